/* SPDX-License-Identifier: Apache-2.0 */
/* A partition's life, its windows, and the admission of requests by seq. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/partition/partition_work.h"
#include "protocol/partition/replay.h"
#include "protocol/replica/replicas.h"

psd_status_t ps_partition_new(const ps_table_spec_t *spec, ps_table_use_t *use, uint32_t table,
                              uint32_t number, uint64_t epoch, ps_partition_t **ret_partition,
                              psd_error_t *err)
{
    PSD_AUTO(ps_partition_destroy)
    ps_partition_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a partition");
    }
    self->table = table;
    self->number = number;
    self->epoch = epoch;
    self->spec = spec;
    self->use = use;
    self->version = 1;
    self->deadline_ms = UINT64_MAX;
    rc = ps_store_new(spec, number, &self->store, err);
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "partition %" PRIu32, number);
    }
    *ret_partition = self;
    self = NULL;
    return PSD_OK;
}

static void job_place_done(ps_job_place_t *place)
{
    ps_gate_destroy(&place->gate);
    ps_open_clock_done(&place->open);
}

void ps_partition_clear(ps_partition_t *self)
{
    size_t at = 0;
    uint64_t session = 0;
    void *window = NULL;

    for (size_t i = 0; i < self->n_jobs; i++) {
        job_place_done(&self->jobs[i]);
    }
    self->n_jobs = 0;
    while (ps_map_next(&self->windows, &at, &session, &window)) {
        ps_window_t *each = window;

        ps_window_destroy(&each);
    }
    ps_map_done(&self->windows);
    ps_session_set_done(&self->retired);
}

void ps_partition_uncount_open(ps_shard_t *shard, const ps_partition_t *self)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        shard->logged_bytes -= self->jobs[i].open.bytes;
        self->use->logged_bytes -= self->jobs[i].open.bytes;
    }
}

bool ps_partition_begin_anew(ps_shard_t *shard, ps_partition_t *self)
{
    ps_store_t *store = NULL;

    if (ps_store_new(self->spec, self->number, &store, NULL) != PSD_OK) {
        return false;
    }
    ps_store_destroy(&self->store);
    self->store = store;
    ps_partition_uncount_open(shard, self);
    ps_partition_clear(self);
    self->lsn = 0;
    self->lsn_epoch = 0;
    self->epochs.n = 0;
    self->restoring = false;
    self->snapshot_lsn = 0;
    self->needs_base = false;
    self->base_given = false;
    self->life = ++shard->n_lives;
    self->version = 1;
    ps_shard_count_rows(shard, self, false);
    return true;
}

void ps_partition_destroy(ps_partition_t **self_p)
{
    ps_partition_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    ps_held_clear(&self->held);
    ps_partition_clear(self);
    ps_free(self->jobs);
    ps_replicas_destroy(&self->replicas);
    ps_store_destroy(&self->store);
    ps_free(self);
    *self_p = NULL;
}

static void refuse_gap(ps_shard_t *shard, const ps_request_t *request, uint64_t expected)
{
    char text[64];

    (void)snprintf(text, sizeof text, "gap, expected %" PRIu64, expected);
    ps_answer_refused(shard, request, PSD_GAP, expected, text);
}

/* ---- windows ---- */

bool ps_partition_retire(ps_shard_t *shard, ps_partition_t *self, uint64_t session)
{
    ps_record_t record = {.kind = PS_RECORD_RETIRE, .session = session};

    return ps_replicas_makes_records(self) && ps_partition_record(shard, self, &record, NULL);
}

/* The client can speak now; one that cannot gives way first. */
static bool is_connected(const ps_shard_t *shard, uint64_t session)
{
    const ps_peer_t *peer = ps_peers_of(&shard->peers, session);

    return peer != NULL && ps_peer_conn(peer, PS_WAY_FIRST) != PS_PEER_NO_CONN;
}

/* The window to give up for another one: one in which nothing was taken, or
 * the one that was idle longest. NULL: all were used lately, so that what the
 * network still has of them could come. */
static ps_window_t *find_idle(const ps_shard_t *shard, const ps_partition_t *self)
{
    ps_window_t *idle = NULL;
    bool idle_is_connected = false;
    size_t at = 0;
    uint64_t session = 0;
    void *value = NULL;

    while (ps_map_next(&self->windows, &at, &session, &value)) {
        ps_window_t *window = value;
        bool connected = is_connected(shard, session);

        if (window->next == 1 && window->arrived == 1) {
            return window;
        }
        if (window->next != window->arrived ||
            shard->now_ms - window->used_ms < shard->args.retire_after_ms ||
            (connected && idle != NULL && !idle_is_connected)) {
            continue;
        }
        if (idle == NULL || (!connected && idle_is_connected) || window->used_ms < idle->used_ms ||
            (window->used_ms == idle->used_ms && window->session < idle->session)) {
            idle = window;
            idle_is_connected = connected;
        }
    }
    return idle;
}

/* Makes room for one more window. False: there is none now. */
static bool make_room(ps_shard_t *shard, ps_partition_t *self)
{
    uint64_t max = shard->args.sessions_max;
    ps_window_t *idle = NULL;
    uint64_t session = 0;

    if (self->windows.count < max) {
        return true;
    }
    idle = find_idle(shard, self);
    session = idle == NULL ? 0 : idle->session;
    if (idle != NULL && idle->next == 1) {
        ps_window_destroy(&idle);
        (void)ps_map_remove(&self->windows, session);
        return true;
    }
    if (session == 0 || !ps_partition_retire(shard, self, session)) {
        return self->windows.count < 2 * max;
    }
    ps_note(shard, &(ps_note_t){.kind = PS_NOTE_FORGOTTEN,
                                .table = self->table,
                                .partition = self->number,
                                .a = session});
    return true;
}

/* The client's window, or NULL: it has none yet. False: it was refused. */
static bool find_window(ps_shard_t *shard, const ps_partition_t *self, const ps_request_t *request,
                        ps_window_t **ret_window)
{
    *ret_window = ps_map_get(&self->windows, request->session);
    if (*ret_window != NULL) {
        (*ret_window)->used_ms = shard->now_ms;
        return true;
    }
    if (ps_session_set_has(&self->retired, request->session)) {
        ps_answer_refused(shard, request, PSD_CLOSED,
                          request->kind == PS_KIND_PROBE ? 0 : PS_CLOSED_NOT_TAKEN,
                          "this client was forgotten here");
        return false;
    }
    return true;
}

ps_window_t *ps_partition_window(ps_shard_t *shard, ps_partition_t *self,
                                 const ps_request_t *request)
{
    ps_window_t *window = NULL;

    if (!find_window(shard, self, request, &window) || window != NULL) {
        return window;
    }
    if (request->seq > 1) {
        refuse_gap(shard, request, 1);
        return NULL;
    }
    if (!make_room(shard, self)) {
        ps_answer_refused(shard, request, PSD_BUSY, 0,
                          "more clients than limits.sessions push here now");
        return NULL;
    }
    window = ps_window_new(request->session);
    if (window == NULL || !ps_map_put(&self->windows, request->session, window)) {
        ps_window_destroy(&window);
        ps_answer_refused(shard, request, PSD_NOMEM, 0, "no memory");
        return NULL;
    }
    window->used_ms = shard->now_ms;
    return window;
}

ps_gate_t *ps_partition_gate(const ps_partition_t *self, uint32_t job)
{
    const ps_job_place_t *place = ps_partition_find_place(self, job);

    return place == NULL ? NULL : place->gate;
}

psd_status_t ps_partition_place(ps_shard_t *shard, ps_partition_t *self, uint32_t job,
                                ps_job_place_t **ret_place, psd_error_t *err)
{
    const ps_job_t *known = NULL;
    psd_status_t rc = PSD_OK;

    *ret_place = ps_partition_find_place(self, job);
    if (*ret_place == NULL) {
        known = ps_map_get(&shard->jobs, job);
    }
    if (known != NULL && ps_replicas_makes_records(self)) {
        rc = ps_partition_record_job(shard, self, job, known, err);
        *ret_place = ps_partition_find_place(self, job);
    }
    return rc;
}

psd_status_t ps_partition_job(ps_shard_t *shard, ps_partition_t *self, const ps_job_t *job,
                              psd_error_t *err)
{
    return !ps_replicas_makes_records(self) || ps_partition_find_place(self, job->id) == NULL
               ? PSD_OK
               : ps_partition_record_job(shard, self, job->id, job, err);
}

void ps_partition_forget_job(ps_shard_t *shard, ps_partition_t *self, uint32_t job)
{
    const ps_job_place_t *place = ps_partition_find_place(self, job);
    psd_status_t rc = PSD_OK;

    if (ps_replicas_makes_records(self) && place != NULL && place->open.n_pushes == 0) {
        rc = ps_partition_record_job(shard, self, job, NULL, NULL);
    }
    (void)rc; /* without memory its gate only stays */
}

/* A pushpull's values, as they are now. */
static void answer_values_again(ps_shard_t *shard, ps_partition_t *self,
                                const ps_request_t *request)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = NULL;
    psd_status_t rc = ps_store_check_pull(self->store, &request->slice, request->payload, NULL);

    if (rc == PSD_OK) {
        (void)ps_answer_values(shard, self, request);
        return;
    }
    why = psd_error_new();
    rc = ps_store_check_pull(self->store, &request->slice, request->payload, why);
    ps_answer_refused(shard, request, rc, 0, psd_error_text(why));
}

static void answer_end(ps_shard_t *shard, ps_partition_t *self, const ps_window_t *window,
                       const ps_request_t *request)
{
    const ps_refusal_t *refusal = ps_window_refusal(window, request->seq);

    PS_NOTE_TRACE(shard, (&(ps_note_t){.kind = PS_NOTE_DUPLICATE,
                                       .table = self->table,
                                       .partition = self->number,
                                       .a = request->session,
                                       .b = request->seq}));
    if (refusal != NULL) {
        ps_answer_refused(shard, request, refusal->status, 0,
                          refusal->text == NULL ? psd_status_text(refusal->status) : refusal->text);
    } else if (ps_window_is_unsure(window, request->seq)) {
        ps_answer_refused(shard, request, PSD_CLOSED, 0,
                          "asked too late; whether it was applied is not "
                          "known any more");
    } else if (request->kind == PS_KIND_PUSH && request->pull) {
        answer_values_again(shard, self, request);
    } else {
        ps_answer_ack(shard, request);
    }
}

/* The seq has its end already: the same answer again, when all that is here is
 * as safe as was asked for. */
static void answer_again(ps_shard_t *shard, ps_partition_t *self, const ps_window_t *window,
                         const ps_request_t *request)
{
    ps_request_t own;
    size_t n_before = 0;

    if (ps_answer_is_under_way(shard, request)) {
        return;
    }
    if (self->replicas == NULL) {
        answer_end(shard, self, window, request);
    } else if (!ps_replicas_answer_waits(shard, self, request)) {
        own = *request;
        own.room = (ps_room_t){NULL, 0}; /* it may be gone before it is sent */
        n_before = shard->outbox->n_effects;
        answer_end(shard, self, window, &own);
        ps_replicas_withhold(shard, self, request, n_before);
    }
}

/* A PUSH or MARK. */
static void admit(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request)
{
    ps_window_t *window = ps_partition_window(shard, self, request);

    if (window == NULL) {
        return;
    }
    switch (ps_window_admit(window, request->seq)) {
    case PS_ADMIT_DUPLICATE:
        answer_again(shard, self, window, request);
        break;
    case PS_ADMIT_QUEUED:
        break;
    case PS_ADMIT_GAP:
        refuse_gap(shard, request, window->arrived);
        break;
    case PS_ADMIT_NEXT:
        if (window->next == window->arrived && ps_partition_is_ready(shard, self, request)) {
            if (!ps_partition_take(shard, self, request)) {
                ps_answer_refused(shard, request, PSD_NOMEM, 0, "no memory");
            } else {
                ps_partition_follow(shard, self, request);
            }
        } else if (ps_partition_hold(shard, self, request)) {
            ps_window_hold(window);
        }
        break;
    default:
        break;
    }
}

static void probe(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request)
{
    ps_window_t *window = NULL;
    char text[PS_TEXT_MAX + 1];

    if (!find_window(shard, self, request, &window)) {
        return;
    }
    if (window == NULL) {
        refuse_gap(shard, request, 1);
        return;
    }
    switch (ps_window_admit(window, request->seq)) {
    case PS_ADMIT_DUPLICATE:
        answer_again(shard, self, window, request);
        break;
    case PS_ADMIT_QUEUED:
        for (const ps_held_t *held = ps_held_of(&self->held, request->session); held != NULL;
             held = held->next_own) {
            if (held->is.seq == request->seq) {
                ps_partition_reason(shard, self, &held->is, text, sizeof text);
                ps_answer_parked(shard, request, text);
                break;
            }
        }
        break;
    case PS_ADMIT_NEXT:
    case PS_ADMIT_GAP:
    default:
        refuse_gap(shard, request, window->arrived);
        break;
    }
}

/* A pull is asked again, and pushes that it is behind have not come. They may
 * be on their way; or they have ended, and are lost: then it would wait for
 * good, so its client is told. False: it was refused for good. */
static bool say_what_lacks(ps_shard_t *shard, const ps_partition_t *self,
                           const ps_request_t *request)
{
    ps_window_t *window = NULL;
    uint64_t arrived = 1;

    if (request->after == 0) {
        return true;
    }
    if (!find_window(shard, self, request, &window)) {
        return false;
    }
    arrived = window == NULL ? 1 : window->arrived;
    if (arrived <= request->after) {
        refuse_gap(shard, request, arrived);
    }
    return true;
}

/* There is one answer with values, so that nothing is written to its room
 * behind that. A repetition need not name the room. */
static void pull_again(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request,
                       ps_held_t *held)
{
    if (request->room.size > 0 || held->is.conn != request->conn) {
        held->is.room = request->room;
    }
    held->is.conn = request->conn;
    if (say_what_lacks(shard, self, request)) {
        ps_partition_advance(shard, self);
    } else {
        ps_partition_let_go(shard, self, held);
    }
}

static void pull(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request)
{
    ps_window_t *window = NULL;

    for (ps_held_t *held = ps_held_of(&self->held, request->session); held != NULL;
         held = held->next_own) {
        if (held->is.kind == PS_KIND_PULL && held->is.request == request->request) {
            pull_again(shard, self, request, held);
            return;
        }
    }
    if (ps_answer_is_under_way(shard, request)) {
        return;
    }
    if (request->after > 0 && !find_window(shard, self, request, &window)) {
        return;
    }
    if (ps_partition_is_ready(shard, self, request)) {
        ps_partition_serve(shard, self, request);
        return;
    }
    (void)ps_partition_hold(shard, self, request);
}

void ps_partition_request(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request)
{
    if (request->kind == PS_KIND_PULL) {
        pull(shard, self, request);
    } else if (request->kind == PS_KIND_PROBE) {
        probe(shard, self, request);
    } else {
        admit(shard, self, request);
    }
}
