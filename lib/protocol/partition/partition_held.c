/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait: put on hold, let through, told that they wait. */
#include <inttypes.h>
#include <stdio.h>

#include "protocol/partition/partition_work.h"
#include "protocol/partition/replay.h"
#include "protocol/replica/replicas.h"

#define RETRY_MS 50        /* after memory was short */
#define TELL_AGAIN_MS 1000 /* least time between two PARKED of one request */

static void count_held(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request,
                       bool more)
{
    ps_peer_t *peer = request->peer;
    uint64_t bytes = ps_payload_size(request->payload);

    if (more) {
        self->n_held++;
        shard->n_held++;
        shard->n_paired += ps_request_is_paired(request) ? 1 : 0;
        shard->held_bytes += bytes;
        self->queue_bytes += bytes;
        self->use->queue_bytes += bytes;
    } else {
        self->n_held--;
        shard->n_held--;
        shard->n_paired -= ps_request_is_paired(request) ? 1 : 0;
        shard->held_bytes -= bytes;
        self->queue_bytes -= bytes;
        self->use->queue_bytes -= bytes;
    }
    peer->n_held = more ? peer->n_held + 1 : peer->n_held - 1;
    peer->held_bytes = more ? peer->held_bytes + bytes : peer->held_bytes - bytes;
    shard->has_ended = shard->has_ended || (peer->ended && peer->n_held == 0);
}

static void note_held(ps_shard_t *shard, const ps_partition_t *self, const ps_request_t *request)
{
    const ps_gate_t *gate = ps_partition_gate(self, request->job);
    uint32_t slowest = 0;
    uint64_t finished = 0;

    if (gate != NULL) {
        (void)ps_gate_slowest(gate, request->clock, &slowest, &finished);
    }
    PS_NOTE_TRACE(shard, (&(ps_note_t){.kind = PS_NOTE_HELD,
                                       .table = self->table,
                                       .partition = self->number,
                                       .a = request->session,
                                       .b = request->worker,
                                       .c = request->clock,
                                       .d = slowest,
                                       .e = finished}));
}

/* What stands against one more held request, or NULL. */
static const char *too_much(const ps_shard_t *shard, const ps_partition_t *self,
                            const ps_request_t *request)
{
    const ps_peer_t *peer = request->peer;
    const ps_table_use_t *use = self->use;
    uint64_t bytes = ps_payload_size(request->payload);

    if (peer->n_held >= shard->args.credit_requests) {
        return "more requests in flight than credit_requests grants";
    }
    if (peer->n_held > 0 && peer->held_bytes + bytes > shard->args.credit_bytes) {
        return "more bytes in flight than credit_bytes grants";
    }
    if (shard->n_held > 0 && shard->held_bytes + bytes > shard->args.held_bytes) {
        return "the shard holds as much as held_bytes allows";
    }
    if (shard->args.memory_bytes > 0 && shard->n_held > 0 &&
        ps_shard_bytes(shard) + shard->other_bytes + bytes > shard->args.memory_bytes) {
        return "the node keeps as much as memory_bytes allows";
    }
    if (use->limit_bytes > 0 && use->queue_bytes > 0 &&
        use->row_bytes + use->queue_bytes + use->logged_bytes + bytes > use->limit_bytes) {
        return "the shard keeps as much of the table as table_bytes allows";
    }
    return NULL;
}

bool ps_partition_hold(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request)
{
    const char *limit = too_much(shard, self, request);
    const ps_held_t *held = NULL;

    if (limit != NULL) {
        ps_answer_refused(shard, request, PSD_BUSY, 0, limit);
        return false;
    }
    held = ps_held_append(&self->held, request, shard->now_ms);
    if (held == NULL) {
        ps_answer_refused(shard, request, PSD_NOMEM, 0, "no memory");
        return false;
    }
    count_held(shard, self, request, true);
    ps_shard_wake(shard, self, held->tell_ms);
    note_held(shard, self, request);
    return true;
}

void ps_partition_let_go(ps_shard_t *shard, ps_partition_t *self, ps_held_t *held)
{
    count_held(shard, self, &held->is, false);
    ps_held_remove(&self->held, &held);
}

/* Lets one held request through if its time has come. The map may have a new
 * epoch meanwhile, in which it is answered. */
static bool let_through(ps_shard_t *shard, ps_partition_t *self, ps_held_t *held)
{
    ps_window_t *window = NULL;

    held->is.epoch = self->epoch;
    if (held->is.kind == PS_KIND_PULL) {
        if (!ps_partition_is_ready(shard, self, &held->is)) {
            return false;
        }
        ps_partition_serve(shard, self, &held->is);
        ps_partition_let_go(shard, self, held);
        return true;
    }
    window = ps_map_get(&self->windows, held->is.session);
    if (window == NULL || window->next != held->is.seq ||
        !ps_partition_is_ready(shard, self, &held->is)) {
        return false;
    }
    if (!ps_partition_take(shard, self, &held->is)) {
        ps_shard_wake(shard, self, shard->now_ms + RETRY_MS);
        return false;
    }
    ps_partition_let_go(shard, self, held);
    return true;
}

static void advance(ps_shard_t *shard, ps_partition_t *self)
{
    bool moved = self->held.first != NULL;

    while (moved) {
        ps_held_t *next = NULL;

        moved = false;
        for (ps_held_t *held = self->held.first; held != NULL; held = next) {
            next = held->next;
            moved = let_through(shard, self, held) || moved;
        }
    }
}

static psd_status_t visit_pair(ps_shard_t *shard, ps_partition_t *partition, const void *arg,
                               psd_error_t *err)
{
    const ps_partition_t *moved = arg;

    (void)err;
    if (partition != moved && partition->number == moved->number) {
        advance(shard, partition);
    }
    return PSD_OK;
}

void ps_partition_advance(ps_shard_t *shard, ps_partition_t *self)
{
    psd_status_t rc = PSD_OK;

    advance(shard, self);
    if (shard->n_paired > 0) {
        rc = ps_shard_visit(shard, visit_pair, self, NULL);
    }
    (void)rc; /* no visit fails */
}

void ps_partition_follow(ps_shard_t *shard, ps_partition_t *self, const ps_request_t *request)
{
    bool moved = self->n_held > 0;

    if (ps_request_marks(request) && (moved || shard->n_paired > 0)) {
        ps_partition_advance(shard, self);
        return;
    }
    while (moved) {
        ps_held_t *next = NULL;

        moved = false;
        for (ps_held_t *held = ps_held_of(&self->held, request->session); held != NULL;
             held = next) {
            bool marks = ps_request_marks(&held->is);

            next = held->next_own;
            if (let_through(shard, self, held)) {
                moved = true;
                if (marks) {
                    ps_partition_advance(shard, self);
                    return;
                }
            }
        }
    }
}

/* The gate that is closed to the request: its own partition's, or that of the
 * other one that it reads too. */
static const ps_gate_t *closed_gate(const ps_shard_t *shard, const ps_partition_t *self,
                                    const ps_request_t *request)
{
    const ps_gate_t *own = ps_partition_gate(self, request->job);
    ps_partition_t *other = NULL;

    if (!ps_request_is_paired(request) || (own != NULL && !ps_gate_is_open(own, request->clock)) ||
        ps_partition_other(shard, self, request, &other, NULL) != PSD_OK) {
        return own;
    }
    return ps_partition_gate(other, request->job);
}

bool ps_partition_hindrance(const ps_shard_t *shard, const ps_partition_t *self,
                            const ps_request_t *request, char *ret_text, size_t size)
{
    ps_ack_t level = request->ack == PS_ACK_DEFAULT ? self->spec->ack : (ps_ack_t)request->ack;

    (void)snprintf(ret_text, size, "%s", "");
    if (self->replicas != NULL) {
        ps_replicas_reason(shard, self, ret_text, size);
    }
    if (self->replicas != NULL && ret_text[0] == '\0' &&
        ps_partition_waits_for_move(shard, self, request)) {
        (void)snprintf(ret_text, size,
                       "waiting for partition %" PRIu32
                       " to have moved: this push cannot be sent to its new "
                       "place",
                       self->number);
    }
    if (ret_text[0] != '\0') {
        return true;
    }
    if (ps_partition_is_restoring(self)) {
        (void)snprintf(ret_text, size, "partition %" PRIu32 " is being restored from a checkpoint",
                       self->number);
    } else if (request->kind == PS_KIND_PUSH && !ps_shard_log_has_room(shard, self)) {
        ps_shard_log_reason(shard, ret_text, size);
    } else if (request->kind == PS_KIND_PUSH && level == PS_ACK_DISK && !self->has_log) {
        (void)snprintf(ret_text, size,
                       "ack level disk cannot be had: the table was made with "
                       "ack %s, so partition %" PRIu32 " has no log on disk",
                       ps_ack_name(self->spec->ack), self->number);
    } else if (request->kind == PS_KIND_PUSH && level == PS_ACK_REPLICA &&
               (self->replicas == NULL || self->replicas->n_in_sync == 0)) {
        (void)snprintf(ret_text, size,
                       "ack level replica cannot be had: partition %" PRIu32 " has one copy",
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
    (void)snprintf(ret_text, size, "a checkpoint begins behind clock %" PRIu64 ": %s", image->clock,
                   why);
}

void ps_partition_reason(const ps_shard_t *shard, const ps_partition_t *self,
                         const ps_request_t *request, char *ret_text, size_t size)
{
    const ps_window_t *window = ps_map_get(&self->windows, request->session);
    const ps_gate_t *gate = closed_gate(shard, self, request);
    uint64_t next = window == NULL ? 1 : window->next;
    uint64_t behind = request->kind == PS_KIND_PULL ? request->after + 1 : request->seq;

    if (ps_partition_hindrance(shard, self, request, ret_text, size)) {
        return;
    }
    if (next < behind) {
        (void)snprintf(ret_text, size, "waiting behind push %" PRIu64 " of the same client", next);
    } else if (ps_partition_image_holds(shard, self, request)) {
        print_image_reason(self, ret_text, size);
    } else if (gate != NULL && ps_gate_expects(gate, request->worker, request->joins)) {
        (void)snprintf(ret_text, size, "this node was not told yet that worker %" PRIu32 " runs",
                       request->worker);
    } else if (gate != NULL) {
        ps_gate_reason(gate, request->clock, ret_text, size);
    } else {
        (void)snprintf(ret_text, size, "waiting for memory");
    }
}

/* A request that waits has reached the time at which its client wants to hear
 * of it: a pull ends, a push or mark stays. */
static void tell(ps_shard_t *shard, ps_partition_t *self, ps_held_t *held)
{
    char text[PS_TEXT_MAX + 1];

    ps_partition_reason(shard, self, &held->is, text, sizeof text);
    if (held->is.kind == PS_KIND_PULL) {
        ps_answer_refused(shard, &held->is, PSD_DEADLINE, 0, text);
        ps_partition_let_go(shard, self, held);
        return;
    }
    ps_answer_parked(shard, &held->is, text);
    /* A push that is sent again behind its caller's deadline has 1 ms left. */
    held->tell_ms =
        shard->now_ms + (held->is.timeout_ms > TELL_AGAIN_MS ? held->is.timeout_ms : TELL_AGAIN_MS);
}

void ps_partition_tick(ps_shard_t *shard, ps_partition_t *self)
{
    ps_held_t *next = NULL;

    if (self->deadline_ms > shard->now_ms) {
        return;
    }
    self->deadline_ms = UINT64_MAX;
    if (self->image.hold_ms > shard->now_ms) {
        ps_shard_wake(shard, self, self->image.hold_ms);
    }
    for (size_t i = 0; i < self->n_jobs; i++) {
        if (!ps_partition_close_clocks(shard, self, &self->jobs[i])) {
            ps_shard_wake(shard, self, shard->now_ms + RETRY_MS);
        }
    }
    ps_partition_advance(shard, self);
    if (self->replicas != NULL) {
        ps_replicas_tick(shard, self);
    }
    for (ps_held_t *held = self->held.first; held != NULL; held = next) {
        next = held->next;
        if (held->tell_ms <= shard->now_ms) {
            tell(shard, self, held);
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

void ps_partition_turn_away(ps_shard_t *shard, ps_partition_t *self, const ps_shard_table_t *moved)
{
    size_t at = 0;
    uint64_t session = 0;
    void *window = NULL;

    if (self->replicas != NULL) {
        ps_replicas_turn_away(shard, self, moved);
    }
    while (self->held.first != NULL) {
        const ps_request_t *request = &self->held.first->is;

        if (moved != NULL) {
            ps_answer_moved(shard, request, moved, false);
        } else {
            ps_answer_refused(shard, request, PSD_NO_TABLE, 0, "the table was dropped");
        }
        ps_partition_let_go(shard, self, self->held.first);
    }
    while (ps_map_next(&self->windows, &at, &session, &window)) {
        ps_window_let_go(window);
    }
}

void ps_partition_leave(ps_shard_t *shard, ps_partition_t *self, const ps_shard_table_t *moved)
{
    ps_partition_turn_away(shard, self, moved);
    ps_partition_uncount_open(shard, self);
}

void ps_partition_refuse_lost(ps_shard_t *shard, ps_partition_t *self, uint32_t lost,
                              const ps_shard_table_t *table)
{
    ps_held_t *next = NULL;

    for (ps_held_t *held = self->held.first; held != NULL; held = next) {
        next = held->next;
        if (held->is.session <= table->lost_sessions &&
            (self->table == lost ||
             (ps_request_names_other(&held->is) && held->is.op.other == lost))) {
            ps_answer_rows_lost(shard, &held->is, table->spec.name);
            ps_partition_let_go(shard, self, held);
        }
    }
}
