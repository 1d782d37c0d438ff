/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait: holding them, letting them through, answering PARKED. */
#include <inttypes.h>
#include <stdio.h>

#include "protocol/admission/admission.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/replay.h"
#include "protocol/replica/replicas.h"

#define NS_PER_MS 1000000
#define RETRY_MS 50        /* after memory was short */
#define TELL_AGAIN_MS 1000 /* least time between two PARKED of one push or mark */

static void count_held(ps_step_t *step, ps_partition_t *self, const ps_request_t *request,
                       bool more)
{
    ps_peer_t *peer = request->peer;
    uint64_t bytes = ps_payload_size(request->payload);

    if (more) {
        self->n_held++;
        step->n_held++;
        step->n_paired += ps_request_is_paired(request) ? 1 : 0;
        step->held_bytes += bytes;
        self->queue_bytes += bytes;
        self->use->queue_bytes += bytes;
    } else {
        self->n_held--;
        step->n_held--;
        step->n_paired -= ps_request_is_paired(request) ? 1 : 0;
        step->held_bytes -= bytes;
        self->queue_bytes -= bytes;
        self->use->queue_bytes -= bytes;
    }
    peer->n_held = more ? peer->n_held + 1 : peer->n_held - 1;
    peer->held_bytes = more ? peer->held_bytes + bytes : peer->held_bytes - bytes;
    step->has_ended = step->has_ended || (peer->ended && peer->n_held == 0);
}

static void note_held(ps_step_t *step, const ps_partition_t *self, const ps_request_t *request)
{
    const ps_gate_t *gate = ps_partition_gate(self, request->job);
    uint32_t slowest = 0;
    uint64_t finished = 0;

    if (gate != NULL) {
        (void)ps_gate_slowest(gate, request->clock, &slowest, &finished);
    }
    PS_NOTE_TRACE(step, (&(ps_note_t){.kind = PS_NOTE_HELD,
                                      .table = self->table,
                                      .partition = self->number,
                                      .a = request->session,
                                      .b = request->worker,
                                      .c = request->clock,
                                      .d = slowest,
                                      .e = finished}));
}

/* Why no further request can be held, or NULL. */
static const char *too_much(const ps_step_t *step, const ps_partition_t *self,
                            const ps_request_t *request)
{
    const ps_peer_t *peer = request->peer;
    const ps_table_use_t *use = self->use;
    uint64_t bytes = ps_payload_size(request->payload);

    if (peer->n_held >= step->args.credit_requests) {
        return "more requests in flight than credit_requests grants";
    }
    if (peer->n_held > 0 && peer->held_bytes + bytes > step->args.credit_bytes) {
        return "more bytes in flight than credit_bytes grants";
    }
    if (step->n_held > 0 && step->held_bytes + bytes > step->args.held_bytes) {
        return "the shard holds as much as held_bytes allows";
    }
    if (step->args.memory_bytes > 0 && step->n_held > 0 &&
        ps_step_bytes(step) + step->other_bytes + bytes > step->args.memory_bytes) {
        return "the node keeps as much as memory_bytes allows";
    }
    if (use->limit_bytes > 0 && use->queue_bytes > 0 &&
        use->row_bytes + use->queue_bytes + use->logged_bytes + bytes > use->limit_bytes) {
        return "the shard keeps as much of the table as table_bytes allows";
    }
    return NULL;
}

bool ps_partition_hold(ps_step_t *step, ps_partition_t *self, const ps_request_t *request,
                       ps_held_for_t why)
{
    const char *limit = too_much(step, self, request);
    ps_held_t *held = NULL;

    if (limit != NULL) {
        ps_answer_refused(step, request, PSD_BUSY, 0, limit);
        return false;
    }
    held = ps_held_append(&self->held, request, step->now_ms);
    if (held == NULL) {
        ps_answer_refused(step, request, PSD_NOMEM, 0, "no memory");
        return false;
    }
    held->why = why;
    held->since_us = step->now_us;
    ps_count_add(&step->counts->held[why], 1);
    count_held(step, self, request, true);
    ps_partition_wake(step, self, held->tell_ms);
    note_held(step, self, request);
    return true;
}

static void note_slow(ps_step_t *step, const ps_held_t *held)
{
    ps_slow_t slow = ps_request_slow(&held->is, step->now_ms);

    slow.held_ms = step->now_ms - held->since_ms;
    slow.held_for = held->why;
    ps_step_note_slow(step, &slow);
}

void ps_partition_let_go(ps_step_t *step, ps_partition_t *self, ps_held_t *held)
{
    count_held(step, self, &held->is, false);
    if (ps_step_is_slow(step, step->now_ms - held->since_ms)) {
        note_slow(step, held);
    }
    ps_histogram_add(&step->counts->held_for[held->why],
                     (step->now_ms - held->since_ms) * NS_PER_MS);
    ps_held_remove(&self->held, &held);
}

static void add_wait(const ps_step_t *step, ps_held_t *held)
{
    uint64_t us = ps_step_us_since(step, held->since_us);

    if (held->why == PS_HELD_CLOCK) {
        held->is.times.gate_us = us;
    } else {
        held->is.times.queue_us = us;
    }
}

/* Lets one held request through if it is ready. The map may have a new epoch
 * meanwhile, in which it is answered. */
static bool let_through(ps_step_t *step, ps_partition_t *self, ps_held_t *held)
{
    ps_window_t *window = NULL;

    held->is.epoch = self->epoch;
    if (held->is.wants_times) {
        add_wait(step, held);
    }
    if (held->is.kind == PS_KIND_PULL) {
        if (!ps_partition_is_ready(step, self, &held->is)) {
            return false;
        }
        ps_partition_serve(step, self, &held->is);
        ps_partition_let_go(step, self, held);
        return true;
    }
    if (held->is.kind == PS_KIND_BUNDLE) {
        ps_bundle_end_t end = ps_partition_take_bundle(step, self, &held->is);

        if (end == PS_BUNDLE_LATER) {
            ps_partition_wake(step, self, step->now_ms + RETRY_MS);
        }
        if (end != PS_BUNDLE_ANSWERED) {
            return false;
        }
        ps_partition_let_go(step, self, held);
        return true;
    }
    window = ps_map_get(&self->windows, held->is.session);
    if (window == NULL || window->next != held->is.seq ||
        !ps_partition_is_ready(step, self, &held->is)) {
        return false;
    }
    if (!ps_partition_take(step, self, &held->is)) {
        ps_partition_wake(step, self, step->now_ms + RETRY_MS);
        return false;
    }
    ps_partition_let_go(step, self, held);
    return true;
}

static void advance(ps_step_t *step, ps_partition_t *self)
{
    bool moved = self->held.first != NULL;

    while (moved) {
        ps_held_t *next = NULL;

        moved = false;
        for (ps_held_t *held = self->held.first; held != NULL; held = next) {
            next = held->next;
            moved = let_through(step, self, held) || moved;
        }
    }
}

/* Partitions of other tables with the same number: requests held there may read
 * its rows, too. */
static void advance_pairs(ps_step_t *step, const ps_partition_t *self)
{
    size_t at = 0;
    uint64_t id = 0;
    void *value = NULL;

    while (ps_map_next(&step->tables, &at, &id, &value)) {
        const ps_local_table_t *table = value;
        ps_partition_t *pair =
            self->number < table->spec.n_partitions ? table->partitions[self->number] : NULL;

        if (pair != NULL && pair != self) {
            advance(step, pair);
        }
    }
}

void ps_partition_advance(ps_step_t *step, ps_partition_t *self)
{
    advance(step, self);
    if (step->n_paired > 0) {
        advance_pairs(step, self);
    }
}

void ps_partition_go_on(ps_step_t *step, ps_partition_t *self)
{
    if (self->woken) {
        self->woken = false;
        ps_partition_advance(step, self);
    }
}

void ps_partition_follow(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    bool moved = self->n_held > 0;

    if (ps_request_marks(request) && (moved || step->n_paired > 0)) {
        ps_partition_advance(step, self);
        return;
    }
    while (moved) {
        ps_held_t *next = NULL;

        moved = false;
        for (ps_held_t *held = ps_held_of(&self->held, request->session); held != NULL;
             held = next) {
            bool marks = ps_request_marks(&held->is);

            next = held->next_own;
            if (let_through(step, self, held)) {
                moved = true;
                if (marks) {
                    ps_partition_advance(step, self);
                    return;
                }
            }
        }
    }
}

/* The gate that is closed to the request: its own partition's, or that of the
 * other one that it reads too. */
static const ps_gate_t *closed_gate(const ps_step_t *step, const ps_partition_t *self,
                                    const ps_request_t *request)
{
    const ps_gate_t *own = ps_partition_gate(self, request->job);
    ps_partition_t *other = NULL;

    if (!ps_request_is_paired(request) || (own != NULL && !ps_gate_is_open(own, request->clock)) ||
        ps_partition_other(step, self, request, &other, NULL) != PSD_OK) {
        return own;
    }
    return ps_partition_gate(other, request->job);
}

bool ps_partition_hindrance(const ps_step_t *step, const ps_partition_t *self,
                            const ps_request_t *request, char *ret_text, size_t size)
{
    ps_ack_t level = request->ack == PS_ACK_DEFAULT ? self->spec->ack : (ps_ack_t)request->ack;

    (void)snprintf(ret_text, size, "%s", "");
    if (self->replicas != NULL) {
        ps_replicas_reason(step, self, ret_text, size);
    }
    if (self->replicas != NULL && ret_text[0] == '\0' &&
        ps_partition_waits_for_move(step, self, request)) {
        (void)snprintf(ret_text, size,
                       "waiting until partition %" PRIu32
                       " has moved: this push cannot be redirected",
                       self->number);
    }
    if (ret_text[0] != '\0') {
        return true;
    }
    if (ps_partition_is_restoring(self)) {
        (void)snprintf(ret_text, size, "partition %" PRIu32 " is being restored from a checkpoint",
                       self->number);
    } else if (ps_request_has_rows(request) && !ps_partition_log_has_room(step, self)) {
        ps_partition_log_reason(step, ret_text, size);
    } else if (ps_request_has_rows(request) && level == PS_ACK_DISK && !self->has_log) {
        (void)snprintf(ret_text, size,
                       "ack level disk is not available: the table was created with ack %s, so "
                       "partition %" PRIu32 " has no log on disk",
                       ps_ack_name(self->spec->ack), self->number);
    } else if (ps_request_has_rows(request) && level == PS_ACK_REPLICA &&
               (self->replicas == NULL || self->replicas->n_in_sync == 0)) {
        (void)snprintf(ret_text, size,
                       "ack level replica is not available: partition %" PRIu32 " has one copy",
                       self->number);
    }
    return ret_text[0] != '\0';
}

static void print_image_reason(const ps_partition_t *self, char *ret_text, size_t size)
{
    const ps_partition_image_t *image = &self->image;
    const ps_gate_t *gate = ps_partition_gate(self, image->job);
    char why[PS_TEXT_MAX / 2] = "";

    if (image->view.state != PS_IMAGE_PENDING || gate == NULL) {
        (void)snprintf(ret_text, size, "a checkpoint is about to begin");
        return;
    }
    ps_gate_reason(gate, image->clock, why, sizeof why);
    (void)snprintf(ret_text, size, "a checkpoint begins after clock %" PRIu64 ": %s", image->clock,
                   why);
}

void ps_partition_reason(const ps_step_t *step, const ps_partition_t *self,
                         const ps_request_t *request, char *ret_text, size_t size)
{
    const ps_window_t *window = ps_map_get(&self->windows, request->session);
    const ps_gate_t *gate = closed_gate(step, self, request);
    uint64_t next = window == NULL ? 1 : window->next;
    uint64_t behind = request->kind == PS_KIND_PULL ? request->after + 1 : request->seq;

    if (ps_partition_hindrance(step, self, request, ret_text, size)) {
        return;
    }
    if (next < behind) {
        (void)snprintf(ret_text, size, "waiting for push %" PRIu64 " of the same client", next);
    } else if (ps_partition_image_holds(step, self, request)) {
        print_image_reason(self, ret_text, size);
    } else if (gate != NULL && ps_gate_expects(gate, request->worker, request->joins)) {
        (void)snprintf(ret_text, size, "this node does not know yet that worker %" PRIu32 " runs",
                       request->worker);
    } else if (gate != NULL) {
        ps_gate_reason(gate, request->clock, ret_text, size);
    } else {
        (void)snprintf(ret_text, size, "waiting for memory");
    }
}

/* When to tell again. A relay passes it on as a sign of life, so a bundle's sender says how often;
 * a push that is retried after its caller's deadline has 1 ms left. */
static uint64_t tell_again_ms(const ps_request_t *request)
{
    uint64_t least = request->kind == PS_KIND_BUNDLE ? RETRY_MS : TELL_AGAIN_MS;

    return request->timeout_ms > least ? request->timeout_ms : least;
}

/* A held request is due to be answered: a pull ends, a push or mark stays
 * held. */
static void tell(ps_step_t *step, ps_partition_t *self, ps_held_t *held)
{
    char text[PS_TEXT_MAX + 1];

    ps_partition_reason(step, self, &held->is, text, sizeof text);
    if (held->is.kind == PS_KIND_PULL) {
        ps_answer_refused(step, &held->is, PSD_DEADLINE, 0, text);
        ps_partition_let_go(step, self, held);
        return;
    }
    ps_answer_parked(step, &held->is, text);
    held->tell_ms = step->now_ms + tell_again_ms(&held->is);
}

void ps_partition_tick(ps_step_t *step, ps_partition_t *self)
{
    ps_held_t *next = NULL;

    if (self->deadline_ms > step->now_ms) {
        return;
    }
    self->deadline_ms = UINT64_MAX;
    if (self->image.hold_ms > step->now_ms) {
        ps_partition_wake(step, self, self->image.hold_ms);
    }
    for (size_t i = 0; i < self->n_jobs; i++) {
        if (!ps_partition_close_clocks(step, self, &self->jobs[i])) {
            ps_partition_wake(step, self, step->now_ms + RETRY_MS);
        }
    }
    ps_partition_advance(step, self);
    if (self->replicas != NULL) {
        ps_replicas_tick(step, self);
        ps_partition_go_on(step, self);
    }
    for (ps_held_t *held = self->held.first; held != NULL; held = next) {
        next = held->next;
        if (held->tell_ms <= step->now_ms) {
            tell(step, self, held);
        }
    }
    for (const ps_held_t *held = self->held.first; held != NULL; held = held->next) {
        if (held->tell_ms < self->deadline_ms) {
            self->deadline_ms = held->tell_ms;
        }
    }
}

void ps_partition_forget_rooms(ps_partition_t *self, uint64_t conn)
{
    for (ps_held_t *held = self->held.first; held != NULL; held = held->next) {
        if (held->is.conn == conn) {
            held->is.room = (ps_room_t){NULL, 0};
        }
    }
}

void ps_partition_turn_away(ps_step_t *step, ps_partition_t *self, const ps_local_table_t *moved)
{
    size_t at = 0;
    uint64_t session = 0;
    void *window = NULL;

    if (self->replicas != NULL) {
        ps_replicas_turn_away(step, self, moved);
    }
    while (self->held.first != NULL) {
        const ps_request_t *request = &self->held.first->is;

        if (moved != NULL) {
            ps_answer_moved(step, request, moved, false);
        } else {
            ps_answer_refused(step, request, PSD_NO_TABLE, 0, "the table was dropped");
        }
        ps_partition_let_go(step, self, self->held.first);
    }
    while (ps_map_next(&self->windows, &at, &session, &window)) {
        ps_window_let_go(window);
    }
}

void ps_partition_leave(ps_step_t *step, ps_partition_t *self, const ps_local_table_t *moved)
{
    ps_partition_turn_away(step, self, moved);
    ps_partition_uncount_open(step, self);
}

void ps_partition_refuse_lost(ps_step_t *step, ps_partition_t *self, uint32_t lost,
                              const ps_local_table_t *table)
{
    ps_held_t *next = NULL;

    for (ps_held_t *held = self->held.first; held != NULL; held = next) {
        next = held->next;
        if (held->is.session <= table->lost_sessions &&
            (self->table == lost ||
             (ps_request_names_other(&held->is) && held->is.op.other == lost))) {
            ps_answer_rows_lost(step, &held->is, table->spec.name);
            ps_partition_let_go(step, self, held);
        }
    }
}
