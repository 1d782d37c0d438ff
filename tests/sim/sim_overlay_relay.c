/* SPDX-License-Identifier: Apache-2.0 */
/* A relay: the machine of the core, its connections to other relays and theirs to it, and the desk.
 * The rules are those of client/relay/relay_thread.c, callers.c and rows.c. */
#include <string.h>

#include "sim_overlay.h"

#define PATIENCE_MS 2000
#define HOLD_TIMED_MS 5
#define OPEN_MS 100
#define DOWN_BYTES 2000
#define WAIT_MS 30000  /* of a call that wants rows */
#define LEAVE_MS 20000 /* a relay that leaves is empty by then */

ps_relay_speaker_t overlay_speaker_of(const overlay_life_t *life)
{
    return (ps_relay_speaker_t){.job = OVERLAY_JOB, .worker = life->rank, .joins = life->joins};
}

void overlay_relay_plan_tick(overlay_t *self, overlay_life_t *life)
{
    overlay_relay_t *relay = &life->relay;
    uint64_t at_ms = ps_relay_due(relay->machine);
    uint64_t dues_ms[] = {ps_session_deadline(relay->courier.session), overlay_ways_due(relay),
                          relay->down == NULL ? UINT64_MAX : ps_relay_down_due(relay->down),
                          relay->leave_ms > 0 ? self->now_ms + OPEN_MS : UINT64_MAX};

    for (size_t i = 0; i < sizeof dues_ms / sizeof *dues_ms; i++) {
        at_ms = dues_ms[i] < at_ms ? dues_ms[i] : at_ms;
    }
    if (at_ms < relay->wake_ms) {
        relay->wake_ms = at_ms;
        overlay_at(self, at_ms, OVERLAY_EVENT_RELAY, life->number);
    }
}

/* ---- life ---- */

void overlay_relay_start(overlay_t *self, overlay_life_t *life)
{
    const ps_relay_settings_t settings = {.worker = life->rank,
                                          .hold_ms = self->weather.hold_ms,
                                          .hold_timed_ms = HOLD_TIMED_MS,
                                          .patience_ms = PATIENCE_MS,
                                          .limit_bytes = self->weather.limit_bytes,
                                          .numbers_after = (uint64_t)life->joins << 32 |
                                                           (life->relay.life + 1) << 16};
    uint64_t n_lives = life->relay.life + 1;

    life->relay = (overlay_relay_t){.life = n_lives, .wake_ms = UINT64_MAX};
    overlay_need(ps_relay_new(&settings, &life->relay.machine, NULL) == PSD_OK &&
                     (!self->plan.shares_rows ||
                      ps_relay_down_new(DOWN_BYTES, &life->relay.down, NULL) == PSD_OK),
                 "memory for a relay");
    overlay_courier_start(self, life);
    overlay_relay_plan_tick(self, life);
}

void overlay_relay_end(overlay_life_t *life)
{
    ps_relay_destroy(&life->relay.machine);
    ps_relay_down_destroy(&life->relay.down);
    ps_session_destroy(&life->relay.courier.session);
}

/* Those that are connected to it notice, or do not. */
static void break_callers(overlay_t *self, const overlay_life_t *life)
{
    for (size_t i = 0; i < self->n_lives; i++) {
        overlay_life_t *other = &self->lives[i];

        for (size_t k = 0; other->relay.machine != NULL && k < other->relay.n_ways; k++) {
            overlay_way_to_t *way = &other->relay.ways[k];

            if (other != life && way->life == life->number && way->conn != 0 &&
                overlay_below(self, 3) > 0) {
                overlay_ways_close(self, other, way);
            }
        }
    }
}

void overlay_relay_forget(overlay_t *self, overlay_life_t *life)
{
    bool leaves = life->relay.leave_ms > 0;
    overlay_tree_t *tree = NULL;

    overlay_trace(self, "the relay of worker %u forgets everything", life->rank);
    self->n_forgot++;
    overlay_relay_end(life);
    break_callers(self, life);
    life->lends = 0;
    if (leaves) {
        overlay_worker_leave(self, life);
        return;
    }
    overlay_relay_start(self, life);
    tree = ps_alloc_raw(1, sizeof *tree);
    overlay_need(tree != NULL, "memory for a plan");
    *tree = self->tree;
    overlay_at(self, self->now_ms + 1 + overlay_below(self, 300), OVERLAY_EVENT_PLAN, life->number)
        ->tree = tree;
}

/* ---- plans ---- */

static bool give_plan(const overlay_tree_t *tree, ps_relay_t *machine)
{
    uint32_t members[OVERLAY_RANKS_MAX];
    ps_relay_plan_t plan = {.version = tree->version,
                            .clock = tree->clock,
                            .n_workers = tree->n,
                            .n_colours = tree->n_colours,
                            .positions = tree->ranks,
                            .members = members,
                            .parents = tree->parents,
                            .rates = tree->rates};

    for (uint32_t i = 0; i < OVERLAY_RANKS_MAX; i++) {
        members[i] = 1;
    }
    return ps_relay_take_plan(machine, &plan, NULL) == PSD_OK;
}

static void forget_callers(overlay_t *self, overlay_relay_t *relay)
{
    for (size_t i = 0; i < self->n_lives; i++) {
        const overlay_life_t *other = &self->lives[i];
        uint32_t number = overlay_tree_find(&relay->tree, other->rank);

        if (relay->callers[i] != 0 &&
            (number == UINT32_MAX || relay->tree.joins[number] != other->joins)) {
            relay->callers[i] = 0;
        }
    }
}

void overlay_relay_plan(overlay_t *self, overlay_life_t *life, const overlay_tree_t *tree)
{
    overlay_relay_t *relay = &life->relay;
    overlay_desk_t desk = {.kind = OVERLAY_DESK_PLAN, .version = tree->version};

    if (relay->machine == NULL || tree->version <= relay->tree.version) {
        return;
    }
    overlay_trace(self, "worker %u hears of plan %" PRIu64 " from clock %" PRIu64, life->rank,
                  tree->version, tree->clock);
    if (overlay_tree_find(tree, life->rank) == UINT32_MAX) {
        desk.version = 0;
        overlay_desk(self, life, false, &desk);
        return;
    }
    overlay_need(give_plan(tree, relay->machine), "a plan that is good");
    relay->before = relay->tree;
    relay->tree = *tree;
    forget_callers(self, relay);
    overlay_ways_plan(self, life);
    overlay_desk(self, life, false, &desk);
    overlay_relay_turn(self, life);
}

/* ---- what is given ---- */

static ps_relay_key_t key_of(const overlay_t *self, uint32_t partition, uint64_t clock)
{
    bool is_timed = overlay_is_timed(self);

    return (ps_relay_key_t){.table = OVERLAY_TABLE,
                            .partition = partition,
                            .clock = is_timed ? 0 : clock,
                            .colour = OVERLAY_TABLE + partition,
                            .is_timed = is_timed,
                            .any_order = is_timed,
                            .type = self->plan.spec.type,
                            .width = self->plan.spec.n_cols};
}

static void lend(overlay_t *self, overlay_life_t *life, overlay_desk_t *lent)
{
    ps_relay_span_t span = {
        .first = life->rank, .n = 1, .slice = lent->slice, .payload = lent->payload};
    const ps_relay_lot_t lot = {
        .from = &lent->from, .spans = &span, .n_from = 1, .n_spans = lent->has_rows ? 1 : 0};
    const ps_relay_giver_t giver = {
        .worker = life->rank, .request = lent->request, .plan = life->relay.tree.version};
    const ps_relay_key_t key = key_of(self, lent->partition, lent->clock);
    const overlay_desk_t back = {
        .kind = OVERLAY_DESK_NEWS, .request = lent->request, .news = PS_RELAY_RETURNED};

    if (ps_relay_give(life->relay.machine, self->now_ms, &giver, &key, &lot, NULL) != PSD_OK) {
        overlay_desk(self, life, false, &back);
    }
}

static void tell(overlay_t *self, overlay_life_t *life, const ps_relay_deed_t *deed)
{
    ps_message_t message;

    for (size_t i = 0; i < self->n_lives; i++) {
        if (self->lives[i].rank == deed->to && life->relay.callers[i] != 0) {
            ps_relay_relayed(deed, &message);
            overlay_send(self, life->relay.callers[i], true, &message, NULL);
            return;
        }
    }
}

/* A bundle of another relay. */
static psd_status_t take(overlay_t *self, overlay_life_t *life, uint32_t rank,
                         const ps_msg_bundle_t *bundle, ps_payload_t *payload)
{
    PSD_AUTO(ps_relay_lot_done) ps_relay_lot_t lot = {.from = NULL};
    const ps_relay_giver_t giver = {
        .worker = rank, .request = bundle->request, .plan = bundle->plan};
    const ps_relay_key_t key = key_of(self, bundle->partition, bundle->clock);
    psd_status_t rc = ps_relay_lot_read(bundle, payload, &lot, NULL);

    if (rc == PSD_OK) {
        rc = ps_relay_give(life->relay.machine, self->now_ms, &giver, &key, &lot, NULL);
    }
    if (rc == PSD_OK) {
        self->n_relayed++;
        overlay_check_circle(self, life, &lot);
        overlay_fault_moment(self, life);
    }
    return rc;
}

static void on_bundle(overlay_t *self, overlay_life_t *life, const overlay_life_t *from,
                      const ps_message_t *message, ps_payload_t *payload)
{
    const ps_msg_bundle_t *bundle = &message->bundle;
    ps_relay_deed_t deed = {.kind = PS_RELAY_TELL,
                            .to = from->rank,
                            .number = bundle->request,
                            .key = {.table = bundle->table, .partition = bundle->partition},
                            .news = PS_RELAY_TAKEN};

    if (take(self, life, from->rank, bundle, payload) != PSD_OK) {
        deed.news = PS_RELAY_RETURNED;
        deed.reason = "it cannot be taken";
    }
    overlay_trace(self, "  relay %u: bundle %" PRIu64 " of worker %u for partition %u is %s",
                  life->rank, bundle->request, from->rank, bundle->partition,
                  deed.news == PS_RELAY_TAKEN ? "taken" : "refused");
    tell(self, life, &deed);
}

static void on_relayed(overlay_t *self, overlay_life_t *life, uint64_t conn, uint32_t rank,
                       const ps_message_t *message)
{
    ps_relay_news_t news = PS_RELAY_TAKEN;
    uint64_t number = 0;

    for (size_t i = 0; i < life->relay.n_ways; i++) {
        overlay_way_to_t *way = &life->relay.ways[i];

        if (way->conn != conn || !ps_relay_news(message, &number, &news)) {
            continue;
        }
        way->owes_ms = way->owes_bytes = 0;
        ps_relay_heard(life->relay.machine, self->now_ms, rank, number, news);
        if (news == PS_RELAY_TAKEN && overlay_chance(self, self->weather.crash)) {
            overlay_trace(self, "fault: a way of worker %u breaks", life->rank);
            overlay_ways_close(self, life, way);
        }
    }
}

static void on_want(overlay_t *self, overlay_life_t *life, uint32_t rank, const ps_msg_want_t *want)
{
    const ps_down_key_t key = {.table = want->table,
                               .partition = want->partition,
                               .first_row = want->first_row,
                               .n_rows = want->n_rows,
                               .clock = want->clock};

    ps_relay_down_want(life->relay.down, self->now_ms, rank, want->request, &key, want->wait_ms);
}

static void on_rows(overlay_life_t *life, uint32_t rank, const ps_msg_rows_on_t *rows,
                    ps_payload_t *payload)
{
    const ps_down_key_t key = {
        .table = rows->table, .partition = rows->partition, .clock = rows->clock};

    ps_relay_down_heard(life->relay.down, rank, rows->request, &key, payload);
}

void overlay_relay_received(overlay_t *self, overlay_life_t *life, uint64_t conn, bool goes_back,
                            const ps_message_t *message, ps_payload_t *payload)
{
    const overlay_conn_t *of = overlay_conn(self, conn);
    const overlay_life_t *other = overlay_life(self, goes_back ? of->number : of->life);
    bool is_known = goes_back || life->relay.callers[other->number] == conn;

    if (is_known && message->kind == PS_KIND_BUNDLE) {
        on_bundle(self, life, other, message, payload);
    } else if (is_known && message->kind == PS_KIND_WANT) {
        on_want(self, life, other->rank, &message->want);
    } else if (goes_back && message->kind == PS_KIND_RELAYED) {
        on_relayed(self, life, conn, other->rank, message);
    } else if (goes_back && message->kind == PS_KIND_ROWS_ON) {
        on_rows(life, other->rank, &message->rows_on, payload);
    }
    overlay_relay_turn(self, life);
}

/* ---- rows ---- */

static void ask(overlay_t *self, overlay_life_t *life, const overlay_desk_t *question)
{
    const ps_down_key_t *key = &question->key;
    const ps_message_t want = {.kind = PS_KIND_WANT,
                               .want = {.request = question->request,
                                        .table = key->table,
                                        .partition = key->partition,
                                        .clock = key->clock,
                                        .first_row = key->first_row,
                                        .n_rows = key->n_rows,
                                        .wait_ms = WAIT_MS}};
    const overlay_tree_t *tree = &life->relay.tree;
    uint32_t above = tree->version == 0
                         ? UINT32_MAX
                         : overlay_tree_above(self, tree, life->rank,
                                              (key->table + key->partition) % tree->n_colours);
    uint32_t rank = above == UINT32_MAX ? PS_OVERLAY_NODES : self->lives[above].rank;
    const overlay_way_to_t *way =
        above == UINT32_MAX ? NULL : overlay_ways_find(&life->relay, above);

    ps_relay_down_ask(life->relay.down, self->now_ms, rank, question->request, key, WAIT_MS);
    if (way != NULL) {
        overlay_send(self, way->conn, false, &want, NULL);
    } else {
        ps_relay_down_heard(life->relay.down, rank, question->request, key, NULL);
    }
}

static void send_rows(overlay_t *self, overlay_life_t *life, const ps_down_deed_t *deed)
{
    const ps_message_t message = {.kind = PS_KIND_ROWS_ON,
                                  .rows_on = {.request = deed->request,
                                              .table = deed->key.table,
                                              .partition = deed->key.partition,
                                              .clock = deed->key.clock,
                                              .has = deed->payload != NULL}};

    for (size_t i = 0; i < self->n_lives; i++) {
        if (self->lives[i].rank == deed->worker && life->relay.callers[i] != 0) {
            overlay_send(self, life->relay.callers[i], true, &message, deed->payload);
            return;
        }
    }
}

static void do_rows(overlay_t *self, overlay_life_t *life)
{
    ps_down_deed_t deed;

    if (life->relay.down == NULL) {
        return;
    }
    ps_relay_down_tick(life->relay.down, self->now_ms);
    while (ps_relay_down_next(life->relay.down, &deed)) {
        overlay_desk_t desk = {.kind = OVERLAY_DESK_ROWS,
                               .request = deed.request,
                               .partition = deed.key.partition,
                               .payload = deed.payload};

        if (deed.kind == PS_DOWN_GIVE) {
            overlay_desk(self, life, false, &desk);
        } else {
            send_rows(self, life, &deed);
            ps_payload_destroy(&deed.payload);
        }
    }
}

void overlay_relay_from_desk(overlay_t *self, overlay_life_t *life, overlay_desk_t *desk)
{
    ps_relay_down_t *down = life->relay.down;

    if (desk->kind == OVERLAY_DESK_LOT) {
        lend(self, life, desk);
    } else if (desk->kind == OVERLAY_DESK_ASK && down != NULL) {
        ask(self, life, desk);
    } else if (desk->kind == OVERLAY_DESK_KEEP && down != NULL) {
        ps_relay_down_keep(down, &desk->key, desk->payload);
    } else if (desk->kind == OVERLAY_DESK_BEGIN && down != NULL) {
        ps_relay_down_begin(down, &desk->key);
    }
    overlay_relay_turn(self, life);
}

/* ---- turns ---- */

static void do_send(overlay_t *self, overlay_life_t *life, const ps_relay_deed_t *deed)
{
    bool is_sent = deed->to == PS_OVERLAY_NODES ? overlay_courier_send(self, life, deed)
                                                : overlay_ways_send(self, life, deed);

    overlay_trace(self,
                  "  relay %u: bundle %" PRIu64 " for partition %u, clock %" PRIu64
                  ", %u contributors, %u spans goes to %d%s",
                  life->rank, deed->number, deed->key.partition, deed->key.clock, deed->lot->n_from,
                  deed->lot->n_spans, (int)deed->to, is_sent ? "" : ", which cannot be");
    if (!is_sent) {
        ps_relay_heard(life->relay.machine, self->now_ms, deed->to, deed->number,
                       PS_RELAY_RETURNED);
    } else {
        overlay_fault_moment(self, life);
    }
}

static void do_deeds(overlay_t *self, overlay_life_t *life)
{
    ps_relay_deed_t deed;

    while (ps_relay_next(life->relay.machine, &deed)) {
        const overlay_desk_t desk = {
            .kind = OVERLAY_DESK_NEWS, .request = deed.number, .news = deed.news};

        if (deed.kind == PS_RELAY_SEND) {
            do_send(self, life, &deed);
        } else if (deed.to == life->rank) {
            overlay_desk(self, life, false, &desk);
        } else {
            tell(self, life, &deed);
        }
    }
}

/* It has passed on what it had. */
static bool has_left(overlay_t *self, overlay_life_t *life)
{
    const overlay_relay_t *relay = &life->relay;
    uint64_t from_ms =
        relay->leave_ms > self->weather.calm_ms ? relay->leave_ms : self->weather.calm_ms;

    if (relay->leave_ms == 0) {
        return false;
    }
    if (!ps_relay_is_empty(relay->machine)) {
        if (self->now_ms > from_ms + LEAVE_MS) {
            overlay_fail(self, "the relay of worker %u is not empty %d ms after it was to leave",
                         life->rank, LEAVE_MS);
        }
        return false;
    }
    if (ps_relay_bytes(relay->machine) != 0) {
        overlay_fail(self, "the relay of worker %u is empty and counts %" PRIu64 " bytes",
                     life->rank, ps_relay_bytes(relay->machine));
    }
    return true;
}

void overlay_relay_turn(overlay_t *self, overlay_life_t *life)
{
    if (life->relay.machine == NULL) {
        return;
    }
    overlay_ways_tick(self, life);
    do_rows(self, life);
    ps_relay_tick(life->relay.machine, self->now_ms);
    do_deeds(self, life);
    overlay_courier_turn(self, life);
    do_deeds(self, life);
    overlay_check_waits(self, life);
    if (life->relay.is_doomed) {
        overlay_relay_forget(self, life);
    } else if (has_left(self, life)) {
        overlay_trace(self, "the relay of worker %u has left", life->rank);
        overlay_relay_end(life);
        break_callers(self, life);
        overlay_worker_leave(self, life);
    } else {
        overlay_relay_plan_tick(self, life);
    }
}

void overlay_relay_tick(overlay_t *self, overlay_life_t *life)
{
    life->relay.wake_ms = UINT64_MAX;
    overlay_relay_turn(self, life);
}

void overlay_relay_leave(overlay_t *self, overlay_life_t *life)
{
    life->relay.leave_ms = self->now_ms;
    ps_relay_leave(life->relay.machine, self->now_ms);
    overlay_relay_turn(self, life);
}
