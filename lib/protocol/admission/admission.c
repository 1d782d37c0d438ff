/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of clients, and the admission of their requests by seq. */
#include "protocol/admission/admission.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/replay.h"
#include "protocol/replica/replicas.h"

static void refuse_gap(ps_step_t *step, const ps_request_t *request, uint64_t expected)
{
    char text[64];

    (void)snprintf(text, sizeof text, "gap, expected %" PRIu64, expected);
    ps_answer_refused(step, request, PSD_GAP, expected, text);
}

/* ---- windows ---- */

bool ps_partition_retire(ps_step_t *step, ps_partition_t *self, uint64_t session)
{
    ps_record_t record = {.kind = PS_RECORD_RETIRE, .session = session};

    return ps_replicas_makes_records(self) && ps_replicas_record(step, self, &record, NULL);
}

/* True when the client is connected; clients that are not lose their windows
 * first. */
static bool is_connected(const ps_step_t *step, uint64_t session)
{
    const ps_peer_t *peer = ps_peers_of(&step->peers, session);

    return peer != NULL && ps_peer_conn(peer, PS_WAY_FIRST) != PS_PEER_NO_CONN;
}

/* The window to evict for another one: one in which nothing was taken, or the
 * one idle longest. NULL: all were used recently, so messages of them may still
 * be in flight. */
static ps_window_t *find_idle(const ps_step_t *step, const ps_partition_t *self)
{
    ps_window_t *idle = NULL;
    bool idle_is_connected = false;
    size_t at = 0;
    uint64_t session = 0;
    void *value = NULL;

    while (ps_map_next(&self->windows, &at, &session, &value)) {
        ps_window_t *window = value;
        bool connected = is_connected(step, session);

        if (window->next == 1 && window->arrived == 1) {
            return window;
        }
        if (window->next != window->arrived ||
            step->now_ms - window->used_ms < step->args.retire_after_ms ||
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
static bool make_room(ps_step_t *step, ps_partition_t *self)
{
    uint64_t max = step->args.sessions_max;
    ps_window_t *idle = NULL;
    uint64_t session = 0;

    if (self->windows.count < max) {
        return true;
    }
    idle = find_idle(step, self);
    session = idle == NULL ? 0 : idle->session;
    if (idle != NULL && idle->next == 1) {
        ps_window_destroy(&idle);
        (void)ps_map_remove(&self->windows, session);
        return true;
    }
    if (session == 0 || !ps_partition_retire(step, self, session)) {
        return self->windows.count < 2 * max;
    }
    ps_note(step, &(ps_note_t){.kind = PS_NOTE_FORGOTTEN,
                               .table = self->table,
                               .partition = self->number,
                               .a = session});
    return true;
}

/* The client's window, or NULL: it has none yet. False: it was refused. */
static bool find_window(ps_step_t *step, const ps_partition_t *self, const ps_request_t *request,
                        ps_window_t **ret_window)
{
    *ret_window = ps_map_get(&self->windows, request->session);
    if (*ret_window != NULL) {
        (*ret_window)->used_ms = step->now_ms;
        return true;
    }
    if (ps_session_set_has(&self->retired, request->session)) {
        ps_answer_refused(step, request, PSD_CLOSED,
                          request->kind == PS_KIND_PROBE ? 0 : PS_CLOSED_NOT_TAKEN,
                          "this client's session was evicted here");
        return false;
    }
    return true;
}

ps_window_t *ps_partition_window(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    ps_window_t *window = NULL;

    if (!find_window(step, self, request, &window) || window != NULL) {
        return window;
    }
    if (request->seq > 1) {
        refuse_gap(step, request, 1);
        return NULL;
    }
    if (!make_room(step, self)) {
        ps_answer_refused(step, request, PSD_BUSY, 0,
                          "more clients than limits.sessions are pushing here");
        return NULL;
    }
    window = ps_window_new(request->session);
    if (window == NULL || !ps_map_put(&self->windows, request->session, window)) {
        ps_window_destroy(&window);
        ps_answer_refused(step, request, PSD_NOMEM, 0, "no memory");
        return NULL;
    }
    window->used_ms = step->now_ms;
    return window;
}

psd_status_t ps_partition_place(ps_step_t *step, ps_partition_t *self, uint32_t job,
                                ps_job_place_t **ret_place, psd_error_t *err)
{
    const ps_job_t *known = NULL;
    psd_status_t rc = PSD_OK;

    *ret_place = ps_partition_find_place(self, job);
    if (*ret_place == NULL) {
        known = ps_map_get(&step->jobs, job);
    }
    if (known != NULL && ps_replicas_makes_records(self)) {
        rc = ps_replicas_record_job(step, self, job, known, err);
        *ret_place = ps_partition_find_place(self, job);
    }
    return rc;
}

psd_status_t ps_partition_job(ps_step_t *step, ps_partition_t *self, const ps_job_t *job,
                              psd_error_t *err)
{
    return !ps_replicas_makes_records(self) || ps_partition_find_place(self, job->id) == NULL
               ? PSD_OK
               : ps_replicas_record_job(step, self, job->id, job, err);
}

void ps_partition_forget_job(ps_step_t *step, ps_partition_t *self, uint32_t job)
{
    const ps_job_place_t *place = ps_partition_find_place(self, job);
    psd_status_t rc = PSD_OK;

    if (ps_replicas_makes_records(self) && place != NULL && place->open.n_pushes == 0) {
        rc = ps_replicas_record_job(step, self, job, NULL, NULL);
    }
    (void)rc; /* without memory its gate only stays */
}

/* A pushpull's values, as they are now. */
static void answer_values_again(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = NULL;
    psd_status_t rc = ps_store_check_pull(self->store, &request->slice, request->payload, NULL);

    if (rc == PSD_OK) {
        (void)ps_answer_values(step, self, request);
        return;
    }
    why = psd_error_new();
    rc = ps_store_check_pull(self->store, &request->slice, request->payload, why);
    ps_answer_refused(step, request, rc, 0, psd_error_text(why));
}

static void answer_end(ps_step_t *step, ps_partition_t *self, const ps_window_t *window,
                       const ps_request_t *request)
{
    const ps_refusal_t *refusal = ps_window_refusal(window, request->seq);

    PS_NOTE_TRACE(step, (&(ps_note_t){.kind = PS_NOTE_DUPLICATE,
                                      .table = self->table,
                                      .partition = self->number,
                                      .a = request->session,
                                      .b = request->seq}));
    if (refusal != NULL) {
        ps_answer_refused(step, request, refusal->status, 0,
                          refusal->text == NULL ? psd_status_text(refusal->status) : refusal->text);
    } else if (ps_window_is_unsure(window, request->seq)) {
        ps_answer_refused(step, request, PSD_CLOSED, 0,
                          "resent too late; it is no longer known whether it was applied");
    } else if (request->kind == PS_KIND_PUSH && request->pull) {
        answer_values_again(step, self, request);
    } else {
        ps_answer_ack(step, request);
    }
}

/* The seq is finished already: repeats its answer once everything here has
 * reached the requested level. */
static void answer_again(ps_step_t *step, ps_partition_t *self, const ps_window_t *window,
                         const ps_request_t *request)
{
    ps_request_t own;
    size_t n_before = 0;

    if (ps_answer_is_under_way(step, request)) {
        return;
    }
    ps_count_add(step->counts->repeated, 1);
    if (self->replicas == NULL) {
        answer_end(step, self, window, request);
    } else if (!ps_replicas_answer_waits(step, self, request)) {
        own = *request;
        own.room = (ps_room_t){NULL, 0}; /* it may be gone before it is sent */
        n_before = step->outbox->n_effects;
        answer_end(step, self, window, &own);
        ps_replicas_withhold(step, self, request, n_before);
    }
}

/* It may be taken later, and its seq is not used up: its job is not known yet, or there is no
 * memory. */
static void refuse_for_now(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = ps_partition_words(step, self, request);
    bool is_busy = psd_error_status(why) == PSD_BUSY;

    ps_answer_refused(step, request, is_busy ? PSD_BUSY : PSD_NOMEM, 0,
                      is_busy ? psd_error_text(why) : "no memory");
}

/* A PUSH or MARK. */
static void admit(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    ps_window_t *window = ps_partition_window(step, self, request);
    ps_held_for_t why = PS_HELD_ORDER;

    if (window == NULL) {
        return;
    }
    switch (ps_window_admit(window, request->seq)) {
    case PS_ADMIT_DUPLICATE:
        answer_again(step, self, window, request);
        break;
    case PS_ADMIT_QUEUED:
        break;
    case PS_ADMIT_GAP:
        refuse_gap(step, request, window->arrived);
        break;
    case PS_ADMIT_NEXT:
        if (window->next == window->arrived) {
            why = ps_partition_why(step, self, request);
        }
        if (why == PS_HELD_NOT) {
            if (!ps_partition_take(step, self, request)) {
                refuse_for_now(step, self, request);
            } else {
                ps_partition_follow(step, self, request);
            }
        } else if (ps_partition_hold(step, self, request, why)) {
            ps_window_hold(window);
        }
        break;
    default:
        break;
    }
}

static void probe(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    ps_window_t *window = NULL;
    char text[PS_TEXT_MAX + 1];

    if (!find_window(step, self, request, &window)) {
        return;
    }
    if (window == NULL) {
        refuse_gap(step, request, 1);
        return;
    }
    switch (ps_window_admit(window, request->seq)) {
    case PS_ADMIT_DUPLICATE:
        answer_again(step, self, window, request);
        break;
    case PS_ADMIT_QUEUED:
        for (const ps_held_t *held = ps_held_of(&self->held, request->session); held != NULL;
             held = held->next_own) {
            if (held->is.seq == request->seq) {
                ps_partition_reason(step, self, &held->is, text, sizeof text);
                ps_answer_parked(step, request, text);
                break;
            }
        }
        break;
    case PS_ADMIT_NEXT:
    case PS_ADMIT_GAP:
    default:
        refuse_gap(step, request, window->arrived);
        break;
    }
}

/* A pull is retried, and the pushes that it must follow have not arrived. They
 * may be in flight; or they have ended and are lost: the pull would wait
 * forever, so its client gets a GAP. False: it was refused permanently. */
static bool say_what_lacks(ps_step_t *step, const ps_partition_t *self, const ps_request_t *request)
{
    ps_window_t *window = NULL;
    uint64_t arrived = 1;

    if (request->after == 0) {
        return true;
    }
    if (!find_window(step, self, request, &window)) {
        return false;
    }
    arrived = window == NULL ? 1 : window->arrived;
    if (arrived <= request->after) {
        refuse_gap(step, request, arrived);
    }
    return true;
}

/* There is only one answer with values, so that nothing is written to its room
 * after it. A retry need not name the room. */
static void pull_again(ps_step_t *step, ps_partition_t *self, const ps_request_t *request,
                       ps_held_t *held)
{
    if (request->room.size > 0 || held->is.conn != request->conn) {
        held->is.room = request->room;
    }
    held->is.conn = request->conn;
    if (say_what_lacks(step, self, request)) {
        ps_partition_advance(step, self);
    } else {
        ps_partition_let_go(step, self, held);
    }
}

static void pull(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    ps_window_t *window = NULL;
    ps_held_for_t why = PS_HELD_NOT;

    for (ps_held_t *held = ps_held_of(&self->held, request->session); held != NULL;
         held = held->next_own) {
        if (held->is.kind == PS_KIND_PULL && held->is.request == request->request) {
            pull_again(step, self, request, held);
            return;
        }
    }
    if (ps_answer_is_under_way(step, request)) {
        return;
    }
    if (request->after > 0 && !find_window(step, self, request, &window)) {
        return;
    }
    why = ps_partition_why(step, self, request);
    if (why == PS_HELD_NOT) {
        ps_partition_serve(step, self, request);
        return;
    }
    (void)ps_partition_hold(step, self, request, why);
}

void ps_partition_request(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    if (request->kind == PS_KIND_PULL) {
        pull(step, self, request);
    } else if (request->kind == PS_KIND_PROBE) {
        probe(step, self, request);
    } else if (request->kind == PS_KIND_BUNDLE) {
        ps_partition_bundle(step, self, request);
    } else {
        admit(step, self, request);
    }
}
