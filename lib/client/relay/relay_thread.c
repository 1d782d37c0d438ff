/* SPDX-License-Identifier: Apache-2.0 */
/* The thread: its life, and its turns. */
#include "client/relay/relay_thread.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/handover.h"
#include "client/relay/relay_inner.h"
#include "model/combine/combine_check.h"
#include "transport/threads/fork.h"
#include "transport/threads/thread.h"

#define HIGH_WATER 64
#define HOLD_MS 50      /* for the others, while nobody has measured the network */
#define HOLD_TIMED_MS 5 /* … where no clock says what belongs together */
/* Without a sign of life of who has a bundle. */
#define PATIENCE_MS 2000
#define LIMIT_BYTES (UINT64_C(256) << 20)
#define DOWN_BYTES (UINT64_C(64) << 20) /* of rows that other workers may want */
#define TURN_MAX_MS 1000

/* ---- life ---- */

static void destroy(ps_relay_thread_t **self_p)
{
    ps_relay_thread_t *self = *self_p;
    size_t at = 0;
    uint64_t id = 0;
    void *table = NULL;

    *self_p = NULL;
    if (self == NULL) {
        return;
    }
    ps_ways_done(self);
    ps_socket_drop(&self->port);
    self->calls->close(&self->courier);
    ps_context_destroy(&self->context);
    ps_key_pair_done(&self->keys);
    ps_relay_destroy(&self->relay);
    ps_relay_down_destroy(&self->down);
    while (ps_map_next(&self->tables, &at, &id, &table)) {
        ps_desk_table_t *known = table;

        ps_desk_table_free(&known);
    }
    ps_map_done(&self->tables);
    ps_relay_facts_done(&self->facts);
    ps_relay_facts_done(&self->before);
    ps_overlay_conf_done(&self->conf);
    ps_free(self->sites);
    ps_desk_release(&self->desk);
    ps_relay_trace_close(&self->trace);
    ps_free(self->trace_pattern);
    ps_free(self->callers);
    ps_free(self->under_way);
    ps_free(self->polled);
    ps_free(self->ready);
    ps_free(self);
}

psd_status_t ps_relay_bind(ps_relay_thread_t *self, const char *listen, psd_error_t *err)
{
    const ps_socket_args_t args = {.context = self->context,
                                   .high_water = HIGH_WATER,
                                   .frame_bytes = PS_RELAY_FRAME_BYTES,
                                   .assembly_bytes = PS_RELAY_FRAME_BYTES,
                                   .chunk_bytes = (uint32_t)PS_RELAY_FRAME_BYTES,
                                   .patience_ms = PS_PATIENCE_BODIES_MS,
                                   .is_watched = true,
                                   .keys = self->has_keys ? &self->keys : NULL,
                                   .is_guarded = self->has_keys};
    psd_status_t rc = ps_socket_bind(&listen, 1, &args, &self->port, err);
    const char *bound = rc == PSD_OK ? ps_socket_endpoint(self->port, 0) : "";

    if (rc == PSD_OK && (!ps_relay_endpoint_is_good(bound) ||
                         strncmp(bound, "tcp://0.0.0.0:", strlen("tcp://0.0.0.0:")) == 0)) {
        rc = psd_error_set(err, PSD_INVALID,
                           "a relay at \"%.80s\"; allowed: tcp://HOST:PORT, where HOST is an "
                           "address that other workers reach",
                           bound);
    }
    return rc;
}

/* Where the client finds it. */
static psd_status_t make_desk(ps_relay_thread_t *self, psd_error_t *err)
{
    char place[PS_ENDPOINT_MAX + 1];

    return ps_relay_place(self, place)
               ? ps_desk_new(place, &self->desk, err)
               : psd_error_set(err, PSD_INVALID, "a relay at \"%.80s\": its address is too long",
                               ps_socket_endpoint(self->port, 0));
}

psd_status_t ps_relay_thread_open(const char *endpoint, const psd_options_t *options,
                                  const ps_relay_calls_t *calls, const ps_relay_wish_t *wish,
                                  ps_relay_thread_t **ret_thread, psd_error_t *err)
{
    PSD_AUTO(destroy) ps_relay_thread_t *self = ps_alloc(1, sizeof *self);
    psd_options_t quiet = *options;
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a relay");
    }
    self->calls = calls;
    self->rows_go_on = wish->rows_go_on;
    self->verifies = wish->verifies;
    if (wish->trace != NULL) {
        self->trace_pattern = ps_strdup(wish->trace);
        if (self->trace_pattern == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a relay");
        }
    }
    self->n_forks = ps_fork_count();
    quiet.on_wait = NULL;
    quiet.no_guest = true;
    rc = ps_context_new(1, &self->context, err);
    *ret_thread = NULL;
    if (rc == PSD_OK && wish->encrypts && !ps_relay_begin_keys(self)) {
        return PSD_OK;
    }
    if (rc == PSD_OK) {
        rc = ps_relay_bind(self, wish->listen, err);
    }
    if (rc == PSD_OK) {
        rc = make_desk(self, err);
    }
    if (rc == PSD_OK) {
        rc = calls->connect(endpoint, &quiet, &self->courier, err);
    }
    if (rc == PSD_OK) {
        *ret_thread = self;
        self = NULL;
    }
    return rc;
}

psd_status_t ps_relay_thread_follow(ps_relay_thread_t *self, const ps_overlay_rules_t *rules,
                                    const char *sites, ps_overlay_conf_t *conf, psd_error_t *err)
{
    size_t size = sites == NULL ? 0 : strlen(sites) + 1;

    self->rules = *rules;
    ps_overlay_conf_done(&self->conf);
    self->conf = *conf;
    conf->edges = NULL;
    if (size > 0) {
        self->sites = ps_alloc_raw(size, 1);
        if (self->sites == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for the names of sites");
        }
        memcpy(self->sites, sites, size);
    }
    return PSD_OK;
}

psd_status_t ps_relay_thread_trace(ps_relay_thread_t *self, uint32_t worker, psd_error_t *err)
{
    psd_status_t rc = self->trace_pattern == NULL
                          ? PSD_OK
                          : ps_relay_trace_open(&self->trace, self->trace_pattern, worker, err);

    return rc == PSD_OK ? rc : psd_error_wrap(err, rc, "PSD_OVERLAY_TRACE");
}

ps_desk_t *ps_relay_thread_desk(const ps_relay_thread_t *self)
{
    return self->desk;
}

/* ---- what is lent ---- */

bool ps_relay_key_of(const ps_relay_thread_t *self, uint32_t table, uint32_t partition,
                     uint64_t clock, ps_relay_key_t *ret_key)
{
    const ps_desk_table_t *known = ps_map_get(&self->tables, table);

    if (known == NULL || partition >= known->n_routes) {
        return false;
    }
    *ret_key = (ps_relay_key_t){.table = table,
                                .partition = partition,
                                .clock = known->is_timed ? 0 : clock,
                                .colour = table + partition,
                                .is_timed = known->is_timed,
                                .any_order = known->is_timed,
                                .type = known->type,
                                .width = known->width};
    return true;
}

/* As its worker has it, before anybody adds anything to it. */
static void add_check(const ps_relay_thread_t *self, ps_desk_lot_t *lent)
{
    const ps_desk_table_t *known = ps_map_get(&self->tables, lent->table);

    if (self->verifies && known != NULL && ps_combine_has_check(known->type)) {
        lent->from.has_check = true;
        lent->from.check = lent->has_rows ? ps_combine_check(&lent->slice, lent->payload, 0) : 0;
    }
}

static void note_lent(ps_relay_thread_t *self, const ps_desk_lot_t *lent,
                      ps_relay_trace_kind_t kind)
{
    ps_relay_trace_note(
        &self->trace,
        &(ps_relay_trace_event_t){.kind = kind,
                                  .worker = self->speaker.worker,
                                  .table = lent->table,
                                  .partition = lent->partition,
                                  .clock = lent->clock,
                                  .bytes = lent->has_rows ? ps_payload_size(lent->payload) : 0});
}

static void lend(ps_relay_thread_t *self, ps_desk_lot_t *lent)
{
    ps_relay_span_t span = {
        .first = self->speaker.worker, .n = 1, .slice = lent->slice, .payload = lent->payload};
    const ps_relay_lot_t lot = {
        .from = &lent->from, .spans = &span, .n_from = 1, .n_spans = lent->has_rows ? 1 : 0};
    const ps_relay_giver_t giver = {
        .worker = self->speaker.worker, .request = lent->request, .plan = self->facts.version};
    ps_relay_key_t key;

    note_lent(self, lent, PS_TRACE_LENT);
    add_check(self, lent);
    if (!ps_relay_key_of(self, lent->table, lent->partition, lent->clock, &key) ||
        ps_relay_give(self->relay, self->now_ms, &giver, &key, &lot, NULL) != PSD_OK) {
        note_lent(self, lent, PS_TRACE_GAVE_BACK);
        ps_desk_tell(self->desk, lent->request, PS_RELAY_RETURNED);
    }
}

static void know(ps_relay_thread_t *self, ps_desk_table_t *table)
{
    ps_desk_table_t *before = ps_map_get(&self->tables, table->id);

    ps_courier_learn(self, table);
    if (before != NULL) {
        ps_desk_table_free(&table); /* what is kept does not change */
    } else if (!ps_map_put(&self->tables, table->id, table)) {
        ps_desk_table_free(&table);
    }
}

static void go_by(ps_relay_thread_t *self, ps_relay_facts_t *facts)
{
    uint32_t own = self->speaker.worker;
    bool is_in = ps_relay_facts_find(facts, own) != SIZE_MAX &&
                 (!self->rules.is_listed ||
                  ps_relay_facts_keep_to(facts, own, &self->may, self->rows_go_on));

    if (facts->version != 0 && !is_in) { /* a star, or its worker may not follow that plan */
        ps_desk_set_plan(self->desk, 0); /* nothing is lent */
        ps_desk_set_rows(self->desk, 0, 0, 0);
        ps_relay_admit(self, NULL);
    }
    if (facts->version == 0 || !is_in || ps_relay_facts_give(facts, self->relay, NULL) != PSD_OK) {
        ps_relay_facts_done(facts);
        return;
    }
    ps_relay_facts_done(&self->before);
    self->before = self->facts;
    self->facts = *facts;
    *facts = (ps_relay_facts_t){.version = 0};
    self->self.key = self->facts.key;
    ps_relay_admit(self, &self->facts);
    ps_callers_plan(self);
    ps_ways_plan(self);
    ps_rows_plan(self);
    ps_desk_set_plan(self->desk, self->facts.version);
}

/* Tables come before lots that are of them. */
static void take_from_desk(ps_relay_thread_t *self)
{
    struct ps_desk_lots lots;
    struct ps_desk_tables tables;
    ps_relay_facts_t facts;

    ps_desk_look(self->desk);
    ps_desk_take(self->desk, &lots, &tables, &facts);
    go_by(self, &facts);
    while (!STAILQ_EMPTY(&tables)) {
        ps_desk_table_t *table = STAILQ_FIRST(&tables);

        STAILQ_REMOVE_HEAD(&tables, in_list);
        know(self, table);
    }
    while (!STAILQ_EMPTY(&lots)) {
        ps_desk_lot_t *lot = STAILQ_FIRST(&lots);

        STAILQ_REMOVE_HEAD(&lots, in_list);
        lend(self, lot);
        ps_desk_lot_free(&lot);
    }
    ps_rows_from_desk(self);
}

/* ---- the trace ---- */

static void note_tell(ps_relay_thread_t *self, const ps_relay_deed_t *deed)
{
    if (deed->news == PS_RELAY_RETURNED) {
        ps_relay_trace_note(&self->trace,
                            &(ps_relay_trace_event_t){.kind = PS_TRACE_GAVE_BACK,
                                                      .worker = deed->to,
                                                      .table = deed->key.table,
                                                      .partition = deed->key.partition,
                                                      .clock = deed->key.clock,
                                                      .reason = deed->reason});
    }
}

/* ---- turns ---- */

static void do_deeds(ps_relay_thread_t *self)
{
    ps_relay_deed_t deed;

    while (ps_relay_next(self->relay, &deed)) {
        if (deed.kind == PS_RELAY_SEND) {
            bool is_sent = deed.to == PS_OVERLAY_NODES ? ps_courier_send(self, &deed)
                                                       : ps_ways_send(self, &deed);

            if (!is_sent) {
                ps_relay_heard(self->relay, self->now_ms, deed.to, deed.number, PS_RELAY_RETURNED);
            }
            continue;
        }
        note_tell(self, &deed);
        if (deed.to == self->speaker.worker) {
            ps_desk_tell(self->desk, deed.number, deed.news);
        } else {
            ps_callers_tell(self, &deed);
        }
    }
}

static bool make_room(ps_relay_thread_t *self, size_t n)
{
    return ps_grow(&self->polled, &self->polled_capacity, n, sizeof(ps_socket_t *)) &&
           ps_grow(&self->ready, &self->ready_capacity, n, sizeof *self->ready);
}

/* False: there is nothing to wait with. */
static bool wait(ps_relay_thread_t *self, uint64_t until_ms)
{
    size_t n = 2;

    if (!make_room(self, 2 + self->courier->n_links + self->n_ways)) {
        return false;
    }
    self->polled[0] = self->port;
    self->polled[1] = self->courier->control;
    for (size_t i = 0; i < self->courier->n_links; i++) {
        if (self->courier->links[i].socket != NULL) {
            self->polled[n++] = self->courier->links[i].socket;
        }
    }
    for (size_t i = 0; i < self->n_ways; i++) {
        if (self->ways[i].socket != NULL) {
            self->polled[n++] = self->ways[i].socket;
        }
    }
    return ps_socket_wait(self->polled, n, until_ms > self->now_ms ? until_ms - self->now_ms : 0,
                          self->ready, NULL) == PSD_OK;
}

static uint64_t due_of(const ps_relay_thread_t *self)
{
    const uint64_t dues_ms[] = {ps_relay_due(self->relay), ps_ways_due(self), ps_courier_due(self),
                                self->down == NULL ? UINT64_MAX : ps_relay_down_due(self->down)};
    uint64_t due_ms = self->now_ms + TURN_MAX_MS;

    for (size_t i = 0; i < sizeof dues_ms / sizeof *dues_ms; i++) {
        due_ms = dues_ms[i] < due_ms ? dues_ms[i] : due_ms;
    }
    return due_ms;
}

static void turn(ps_relay_thread_t *self)
{
    self->now_ms = ps_now_ms();
    take_from_desk(self);
    ps_callers_receive(self);
    ps_ways_receive(self);
    ps_ways_tick(self);
    ps_relay_set_own(self->relay, ps_desk_clock_bytes(self->desk));
    ps_rows_turn(self);
    ps_relay_tick(self->relay, self->now_ms);
    do_deeds(self);
    ps_courier_turn(self);
    do_deeds(self);
    ps_courier_turn(self); /* what the deeds were */
    ps_socket_flush(self->port);
    ps_relay_trace_turn(&self->trace);
}

static void *run(void *arg)
{
    ps_relay_thread_t *self = arg;
    uint64_t until_ms = UINT64_MAX;
    uint32_t wait_ms = 0;
    bool goes_on = true;

    ps_handover_take(self);
    while (goes_on) {
        turn(self);
        if (until_ms == UINT64_MAX && ps_desk_is_left(self->desk, &wait_ms)) {
            until_ms = self->now_ms + wait_ms;
            ps_relay_leave(self->relay, self->now_ms);
            turn(self);
        }
        if (until_ms != UINT64_MAX &&
            (self->now_ms >= until_ms || ps_relay_is_empty(self->relay))) {
            break;
        }
        goes_on = wait(self, due_of(self) < until_ms ? due_of(self) : until_ms);
    }
    ps_desk_set_plan(self->desk, 0);
    ps_desk_set_rows(self->desk, 0, 0, 0);
    ps_handover_give(self);
    return NULL;
}

psd_status_t ps_relay_thread_start(ps_relay_thread_t *self, const ps_relay_speaker_t *speaker,
                                   psd_error_t *err)
{
    const ps_relay_settings_t settings = {.worker = speaker->worker,
                                          .hold_ms = HOLD_MS,
                                          .hold_timed_ms = HOLD_TIMED_MS,
                                          .patience_ms = PATIENCE_MS,
                                          .limit_bytes = LIMIT_BYTES,
                                          .numbers_after = (uint64_t)speaker->joins << 32};
    ps_site_t site = {.name = ""};
    int failure = 0;
    psd_status_t rc = ps_site_find(self->sites, "PSD_SITE", speaker->worker, &site, err);

    if (rc == PSD_OK) {
        rc = ps_relay_new(&settings, &self->relay, err);
    }

    if (rc == PSD_OK && self->rows_go_on) {
        rc = ps_relay_down_new(DOWN_BYTES, &self->down, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->speaker = *speaker;
    ps_relay_trace_begin(&self->trace);
    ps_overlay_conf_may(&self->conf, speaker->worker, &self->may);
    ps_desk_set_rules(self->desk, &self->rules, &site, &self->may);
    self->self = (ps_meet_self_t){.cluster = self->courier->cluster,
                                  .job = speaker->job,
                                  .worker = speaker->worker,
                                  .joins = speaker->joins};
    ps_socket_wake_by(self->port, ps_desk_relay_fd(self->desk));
    ps_handover_give(self);
    failure = ps_thread_start(&self->thread, run, self);
    if (failure != 0) {
        return psd_error_set(err, PSD_IO, "start a thread: error %d", failure);
    }
    self->runs = true;
    return PSD_OK;
}

void ps_relay_thread_stop(ps_relay_thread_t **self_p, uint32_t wait_ms)
{
    ps_relay_thread_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    if (ps_fork_is_since(self->n_forks)) { /* the thread is the parent's */
        ps_key_pair_done(&self->keys);
        ps_fork_keep(self);
        return;
    }
    if (self->runs) {
        ps_desk_leave(self->desk, wait_ms);
        (void)pthread_join(self->thread, NULL);
        ps_handover_take(self);
    }
    destroy(&self);
}
