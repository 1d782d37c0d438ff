/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatches an event: its sender and its partition. */
#include "protocol/shard/shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "model/store/store_growth.h"
#include "protocol/admission/admission.h"
#include "protocol/replica/replicas.h"
#include "protocol/shard/shard_state.h"

#define GIVES_AGAIN_MS 1000 /* that a shard has given rows counts so long */
#define LEASE_MS 300
#define US_PER_MS 1000
#define SLOW_AFTER_MS 2000
#define TAIL_BYTES (UINT64_C(64) << 20)
#define FLIGHT_BYTES (UINT64_C(4) << 20)
#define LOG_QUEUE_BYTES (UINT64_C(64) << 20)

static void set_default_u32(uint32_t *value, uint32_t otherwise)
{
    *value = *value == 0 ? otherwise : *value;
}

static void set_default_u64(uint64_t *value, uint64_t otherwise)
{
    *value = *value == 0 ? otherwise : *value;
}

psd_status_t ps_shard_new(const ps_shard_args_t *args, ps_shard_t **ret_shard, psd_error_t *err)
{
    ps_shard_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a shard");
    }
    self->step.args = *args;
    set_default_u32(&self->step.args.lease_ms, LEASE_MS);
    set_default_u32(&self->step.args.slow_after_ms, SLOW_AFTER_MS);
    set_default_u64(&self->step.args.tail_bytes, TAIL_BYTES);
    set_default_u64(&self->step.args.flight_bytes, FLIGHT_BYTES);
    set_default_u64(&self->step.args.log_queue_bytes, LOG_QUEUE_BYTES);
    self->step.deadline_ms = UINT64_MAX;
    self->step.links = &self->links;
    self->step.counts = args->counts == NULL ? &self->own : args->counts;
    *ret_shard = self;
    return PSD_OK;
}

void ps_shard_destroy(ps_shard_t **self_p)
{
    ps_shard_t *self = self_p == NULL ? NULL : *self_p;
    size_t at = 0;
    uint64_t key = 0;
    void *value = NULL;

    if (self == NULL) {
        return;
    }
    while (ps_map_next(&self->step.tables, &at, &key, &value)) {
        ps_local_table_t *table = value;

        ps_shard_table_destroy(&table);
    }
    at = 0;
    while (ps_map_next(&self->step.jobs, &at, &key, &value)) {
        ps_job_t *job = value;

        ps_shard_job_destroy(&job);
    }
    ps_map_done(&self->step.tables);
    ps_map_done(&self->step.jobs);
    ps_map_done(&self->step.dropped);
    ps_peers_done(&self->step.peers);
    ps_shard_links_done(&self->links);
    ps_session_set_done(&self->ended);
    ps_coder_destroy(&self->step.coder);
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t check_hello(const ps_shard_t *self, const ps_msg_hello_t *hello,
                                uint64_t last_session, psd_error_t *err)
{
    char mine[PS_ID_TEXT_SIZE];
    char theirs[PS_ID_TEXT_SIZE];

    if (hello->version_min > PS_VERSION || hello->version_max < PS_VERSION_MIN) {
        return psd_error_set(err, PSD_VERSION, "protocol versions %u..%u; spoken here: %d..%d",
                             hello->version_min, hello->version_max, PS_VERSION_MIN, PS_VERSION);
    }
    if (!ps_id_equal(&hello->cluster, &self->step.args.cluster)) {
        ps_id_format(&hello->cluster, theirs);
        ps_id_format(&self->step.args.cluster, mine);
        return psd_error_set(err, PSD_CLUSTER, "cluster %s; this is %s", theirs, mine);
    }
    if (hello->session == 0) {
        return psd_error_set(err, PSD_DENIED, "session 0; allowed: 1 and up");
    }
    if (hello->incarnation != self->step.args.incarnation) {
        return psd_error_set(err, PSD_INCARNATION,
                             "this is another incarnation of the node than the one asked for");
    }
    if (last_session != 0 && hello->session > last_session && hello->session < PS_GUEST_FIRST) {
        /* A registry that has just started may have answered its client
         * first. */
        return psd_error_set(err, PSD_BUSY,
                             "session %" PRIu64
                             " is not known here yet; the registry has not announced it",
                             hello->session);
    }
    return PSD_OK;
}

/* A late message of an ended session. */
static bool has_ended(const ps_shard_t *self, uint64_t session)
{
    const ps_peer_t *peer = ps_peers_of(&self->step.peers, session);

    return (peer != NULL && peer->ended) || ps_session_set_has(&self->ended, session);
}

static psd_status_t step_hello(ps_shard_t *self, const ps_event_t *event)
{
    const ps_msg_hello_t *hello = &event->message->hello;
    uint64_t conn = event->conn;
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    uint32_t bundles = self->step.args.record_bytes >= PS_BUNDLE_BYTES ? PS_SPEAKS_BUNDLES : 0;
    uint32_t filters = hello->filters & (PS_FILTER_BITS_ALL | PS_SPEAKS_TIMES | bundles);
    psd_status_t rc = check_hello(self, hello, event->last_session, why);

    if (rc == PSD_OK && has_ended(self, hello->session)) {
        rc = psd_error_set(why, PSD_CLOSED, "session %" PRIu64 " has said BYE", hello->session);
    }
    if (rc == PSD_OK && ps_shard_links_from(&self->links, conn) != NULL) {
        rc = psd_error_set(why, PSD_DENIED, "this connection belongs to another shard");
    }
    if (rc == PSD_OK) {
        rc = ps_peers_hello(&self->step.peers,
                            &(ps_peer_hello_t){.conn = conn,
                                               .session = hello->session,
                                               .client = hello->client,
                                               .way = hello->bulk != 0 ? PS_WAY_BULK : PS_WAY_FIRST,
                                               .filters = filters},
                            self->step.now_ms, self->step.args.sessions_max, why);
    }
    if (rc != PSD_OK) {
        ps_count_add(self->step.counts->sessions_refused, 1);
        ps_answer_refused_conn(&self->step, conn, rc, psd_error_text(why));
        ps_note(
            &self->step,
            &(ps_note_t){.kind = PS_NOTE_HELLO_REFUSED, .a = hello->session, .b = (uint64_t)rc});
        return PSD_OK;
    }
    ps_count_add(self->step.counts->sessions, 1);
    ps_answer_welcome(&self->step, conn, filters);
    PS_NOTE_TRACE(&self->step,
                  (&(ps_note_t){.kind = PS_NOTE_HELLO, .a = hello->session, .b = conn}));
    return PSD_OK;
}

/* A guest's number may be another one's tomorrow: nothing is remembered under it. */
static bool may_ask(const ps_request_t *request)
{
    return request->session < PS_GUEST_FIRST || request->kind == PS_KIND_PULL ||
           request->kind == PS_KIND_PROBE;
}

void ps_shard_request(ps_shard_t *self, const ps_request_t *request)
{
    ps_local_table_t *table = ps_map_get(&self->step.tables, request->table);
    ps_partition_t *partition = NULL;

    if (!may_ask(request)) {
        /* It may have one since, whose HELLO was refused here for now: it says it again. */
        ps_answer_refused(&self->step, request, PSD_NO_SESSION, 0,
                          "a client without a session of the registry only reads");
        return;
    }
    if (request->job != 0) {
        request->peer->job = request->job;
    }
    if (table == NULL && request->table > self->step.told_table &&
        ps_map_get(&self->step.dropped, request->table) == NULL) {
        /* A node that has just started hears of its tables one after the other. */
        ps_answer_refused(&self->step, request, PSD_BUSY, 0, "this node knows no such table yet");
        return;
    }
    if (table == NULL || request->partition >= table->spec.n_partitions) {
        ps_answer_refused(&self->step, request, PSD_NO_TABLE, 0,
                          table == NULL ? "the table does not exist"
                                        : "the partition does not exist");
        return;
    }
    partition = table->partitions[request->partition];
    if (request->epoch > table->routes[request->partition].epoch) {
        ps_answer_refused(&self->step, request, PSD_BUSY, 0, "the map here is older than yours");
    } else if (partition == NULL || request->epoch != table->routes[request->partition].epoch) {
        ps_answer_moved(&self->step, request, table, false);
    } else if (partition->replicas != NULL &&
               (!partition->replicas->primary || partition->epoch < request->epoch)) {
        ps_answer_refused(&self->step, request, PSD_BUSY, 0,
                          "the primary is elsewhere, or not chosen yet");
    } else if (request->session <= table->lost_sessions) {
        ps_answer_rows_lost(&self->step, request, table->spec.name);
    } else {
        ps_partition_request(&self->step, partition, request);
    }
}

bool ps_shard_counts_as(ps_kind_t kind, ps_counted_t *ret_counted)
{
    switch ((int)kind) {
    case PS_KIND_PUSH:
        *ret_counted = PS_COUNTED_PUSH;
        return true;
    case PS_KIND_PULL:
        *ret_counted = PS_COUNTED_PULL;
        return true;
    case PS_KIND_MARK:
        *ret_counted = PS_COUNTED_MARK;
        return true;
    case PS_KIND_PROBE:
        *ret_counted = PS_COUNTED_PROBE;
        return true;
    case PS_KIND_BUNDLE:
        *ret_counted = PS_COUNTED_BUNDLE;
        return true;
    default:
        return false;
    }
}

static psd_status_t visit_forget_rooms(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                                       psd_error_t *err)
{
    const uint64_t *conn = arg;

    (void)self;
    (void)err;
    ps_partition_forget_rooms(partition, *conn);
    return PSD_OK;
}

/* After this step the memory of its rooms may be gone. */
static void step_gone(ps_shard_t *self, uint64_t conn)
{
    const ps_peer_t *peer = ps_peers_at(&self->step.peers, conn);
    psd_status_t rc = PSD_OK;

    if (self->step.n_held > 0) {
        rc = ps_shard_visit(self, visit_forget_rooms, &conn, NULL);
    }
    (void)rc; /* forgetting does not fail */
    self->step.has_ended = self->step.has_ended || (peer != NULL && peer->ended);
    ps_peers_gone(&self->step.peers, conn);
    ps_shard_peer_gone(self, conn);
}

/* The client ends. Its windows are freed when its other connection has sent
 * BYE, too, and none of its requests is held. */
static void step_bye(ps_shard_t *self, ps_peer_t *peer, uint64_t conn)
{
    if (peer != NULL) {
        peer->ended = true;
    }
    step_gone(self, conn);
}

static psd_status_t visit_retire(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                                 psd_error_t *err)
{
    const uint64_t *session = arg;

    (void)err;
    if (ps_map_get(&partition->windows, *session) != NULL) {
        (void)ps_partition_retire(&self->step, partition, *session);
    }
    return PSD_OK; /* a window that stays gives way some day */
}

static void retire_ended(ps_shard_t *self)
{
    uint64_t session = 0;

    self->step.has_ended = false;
    while ((session = ps_peers_take_ended(&self->step.peers)) != 0) {
        psd_status_t rc = PSD_OK;
        bool added = false;

        if (session >= PS_GUEST_FIRST) {
            continue; /* it has left nothing */
        }
        rc = ps_shard_visit(self, visit_retire, &session, NULL);
        (void)rc; /* no visit fails */
        if (self->ended.n >= PS_SESSION_RUNS_MAX) {
            ps_session_set_drop_lowest(&self->ended);
        }
        added = ps_session_set_add(&self->ended, session, session);
        (void)added; /* without memory its partitions still refuse it */
    }
}

static psd_status_t step_message(ps_shard_t *self, const ps_event_t *event)
{
    ps_peer_t *peer = ps_peers_at(&self->step.peers, event->conn);
    ps_counted_t counted = PS_COUNTED_PUSH;
    ps_request_t request;

    if (peer == NULL && ps_shard_is_of_peer(event)) {
        ps_shard_step_peer(self, event);
        return PSD_OK;
    }
    if (event->message->kind == PS_KIND_HELLO) {
        return step_hello(self, event);
    }
    if (event->message->kind == PS_KIND_BYE) {
        step_bye(self, peer, event->conn);
        return PSD_OK;
    }
    if (!ps_shard_counts_as(event->message->kind, &counted)) {
        char text[64];

        (void)snprintf(text, sizeof text, "%s is not for a shard",
                       ps_kind_name(event->message->kind));
        ps_answer_refused_conn(&self->step, event->conn, PSD_PROTO, text);
        return PSD_OK;
    }
    ps_count_add(&self->step.counts->requests[counted], 1);
    if (peer == NULL) {
        ps_answer_no_session(&self->step, event->conn, event->message);
        return PSD_OK;
    }
    peer->used_ms = self->step.now_ms;
    self->step.asked_ms = self->step.now_ms;
    if (ps_shard_is_filtered(event->message)) {
        ps_shard_step_filtered(self, peer, event);
        return PSD_OK;
    }
    ps_request_read(event->message, &request);
    request.payload = event->payload;
    request.session = peer->session;
    request.peer = peer;
    request.conn = event->conn;
    request.room = event->room;
    request.sending = event->sending;
    ps_shard_request(self, &request);
    return PSD_OK;
}

/* The work on a push whose answer waits is no part of that wait. */
static void add_work(ps_shard_t *self, const ps_msg_push_t *push, uint64_t session,
                     uint64_t work_us)
{
    const ps_local_table_t *table = ps_map_get(&self->step.tables, push->table);
    ps_partition_t *partition = table == NULL || push->partition >= table->spec.n_partitions
                                    ? NULL
                                    : table->partitions[push->partition];
    ps_waiting_answer_t *answer =
        partition == NULL || partition->replicas == NULL
            ? NULL
            : ps_pending_find(&partition->replicas->pending, session, push->request);

    if (answer != NULL && ps_message_has_times(&answer->answer.message) &&
        answer->since_us == self->step.now_us) {
        answer->answer.message.times.work_us += work_us;
        answer->since_us += work_us;
    }
}

void ps_shard_worked(ps_shard_t *self, const ps_event_t *event, uint64_t work_us)
{
    const ps_peer_t *peer = ps_peers_at(&self->step.peers, event->conn);
    ps_counted_t counted = PS_COUNTED_PUSH;
    ps_request_t request;
    ps_slow_t slow;

    if (peer != NULL && event->message->kind == PS_KIND_PUSH &&
        (event->message->flags & PS_FLAG_TIMES) != 0) {
        add_work(self, &event->message->push, peer->session, work_us);
    }
    if (!ps_step_is_slow(&self->step, work_us / US_PER_MS) || peer == NULL ||
        !ps_shard_counts_as(event->message->kind, &counted) || counted == PS_COUNTED_PROBE) {
        return;
    }
    ps_request_read(event->message, &request);
    request.session = peer->session;
    request.payload = event->payload;
    slow = ps_request_slow(&request, event->now_ms);
    slow.work_us = work_us;
    ps_step_note_slow(&self->step, &slow);
}

uint64_t ps_request_for_values(const ps_message_t *message, uint64_t *ret_epoch)
{
    switch ((int)message->kind) {
    case PS_KIND_PULL:
        *ret_epoch = message->pull.epoch;
        return message->pull.request;
    case PS_KIND_PROBE:
        *ret_epoch = message->probe.epoch;
        return message->probe.request;
    case PS_KIND_PUSH:
        *ret_epoch = message->push.epoch;
        return message->push.pull ? message->push.request : 0;
    default:
        return 0;
    }
}

size_t ps_shard_conns(ps_shard_t *self, uint64_t conn, uint64_t ret_conns[PS_SENDING_CONNS])
{
    const ps_peer_t *peer = ps_peers_at(&self->step.peers, conn);
    size_t n = 0;

    for (size_t way = 0; peer != NULL && way < PS_SENDING_CONNS; way++) {
        if (peer->conns[way] != PS_PEER_NO_CONN) {
            ret_conns[n++] = peer->conns[way];
        }
    }
    return n;
}

psd_status_t ps_shard_visit(ps_shard_t *self,
                            psd_status_t (*visit)(ps_shard_t *self, ps_partition_t *partition,
                                                  const void *arg, psd_error_t *err),
                            const void *arg, psd_error_t *err)
{
    size_t at = 0;
    uint64_t id = 0;
    void *value = NULL;

    while (ps_map_next(&self->step.tables, &at, &id, &value)) {
        ps_local_table_t *table = value;

        for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
            psd_status_t rc =
                table->partitions[i] == NULL ? PSD_OK : visit(self, table->partitions[i], arg, err);

            if (rc != PSD_OK) {
                return rc;
            }
        }
    }
    return PSD_OK;
}

static psd_status_t visit_tick(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                               psd_error_t *err)
{
    (void)arg;
    (void)err;
    ps_partition_tick(&self->step, partition);
    ps_partition_wake(&self->step, partition, partition->deadline_ms);
    return PSD_OK;
}

static psd_status_t step_tick(ps_shard_t *self, psd_error_t *err)
{
    if (self->step.deadline_ms > self->step.now_ms) {
        return PSD_OK;
    }
    self->step.deadline_ms = UINT64_MAX;
    ps_shard_tick_snapshots(self);
    return ps_shard_visit(self, visit_tick, NULL, err);
}

static psd_status_t book_again(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                               psd_error_t *err)
{
    (void)arg;
    (void)err;
    if (partition->replicas != NULL) {
        ps_rows_book_again(partition->replicas);
        ps_partition_wake(&self->step, partition, self->step.now_ms);
    }
    return PSD_OK;
}

static void take_limits(ps_shard_t *self, const ps_shard_limits_t *limits)
{
    ps_shard_args_t *args = &self->step.args;

    if (limits->slow_after_ms == 0 ||
        (args->slow_after_ms == limits->slow_after_ms &&
         args->copy_bytes_per_s == limits->copy_bytes_per_s &&
         args->busy_copy_bytes_per_s == limits->busy_copy_bytes_per_s)) {
        return;
    }
    args->slow_after_ms = (uint32_t)limits->slow_after_ms;
    args->copy_bytes_per_s = limits->copy_bytes_per_s;
    args->busy_copy_bytes_per_s = limits->busy_copy_bytes_per_s;
    self->step.give_free_us = 0;
    (void)!ps_shard_visit(self, book_again, NULL, NULL);
}

psd_status_t ps_shard_step(ps_shard_t *self, const ps_event_t *event, ps_outbox_t *outbox,
                           psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    self->step.now_ms = event->now_ms;
    self->step.now_us = event->now_us > 0 ? event->now_us : event->now_ms * US_PER_MS;
    self->step.other_bytes = event->other_bytes;
    self->step.other_giving = event->other_giving;
    self->step.given_bytes = 0;
    self->step.outbox = outbox;
    take_limits(self, &event->limits);
    switch (event->kind) {
    case PS_EVENT_MESSAGE:
        self->step.told_job = event->told_job;
        if (event->told_table > self->step.told_table) {
            self->step.told_table = event->told_table;
        }
        rc = step_message(self, event);
        break;
    case PS_EVENT_TICK:
        rc = step_tick(self, err);
        break;
    case PS_EVENT_TABLE:
        rc = ps_shard_step_table(self, event, err);
        break;
    case PS_EVENT_DROP:
        ps_shard_step_drop(self, event);
        break;
    case PS_EVENT_ASIDE:
        ps_shard_step_aside(self, event);
        break;
    case PS_EVENT_JOB:
        rc = ps_shard_step_job(self, event->job, err);
        break;
    case PS_EVENT_GONE:
        step_gone(self, event->conn);
        break;
    case PS_EVENT_FENCE:
        ps_shard_step_fence(self, event);
        break;
    case PS_EVENT_FLUSHED:
        ps_shard_step_flushed(self, event);
        break;
    default:
        break;
    }
    if (self->step.has_ended) {
        retire_ended(self);
    }
    if (self->step.wants_bases) {
        self->step.wants_bases = false;
        ps_shard_want_bases(self);
    }
    self->step.outbox = NULL;
    return rc;
}

const char *ps_shard_table_name(const ps_shard_t *self, uint32_t table)
{
    const ps_local_table_t *local = ps_map_get(&self->step.tables, table);

    return local == NULL ? NULL : local->spec.name;
}

uint64_t ps_shard_bytes(const ps_shard_t *self)
{
    return ps_step_bytes(&self->step);
}

uint64_t ps_shard_tail_bytes(const ps_shard_t *self)
{
    return self->step.tail_bytes;
}

bool ps_shard_gives_rows(const ps_shard_t *self, uint64_t now_ms)
{
    return self->step.gave_ms != 0 && now_ms < self->step.gave_ms + GIVES_AGAIN_MS;
}

uint64_t ps_shard_deadline(const ps_shard_t *self)
{
    return self->step.deadline_ms;
}
