/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests a relay gets, and what is done when it says something of them: the rules of
 * client/requests/lend.c. */
#include "sim_overlay.h"

#define PATIENCE_MS 1500
#define BESIDE_BYTES 1024
#define SPARED 8
#define DESK_MS 3 /* until the other side looks */

/* ---- the desk ---- */

void overlay_desk(overlay_t *self, overlay_life_t *life, bool to_relay, const overlay_desk_t *desk)
{
    uint64_t *last_ms = &life->desk_ms[to_relay ? 1 : 0];
    uint64_t at_ms = self->now_ms + overlay_below(self, DESK_MS);
    overlay_desk_t *copy = ps_alloc(1, sizeof *copy);
    overlay_event_t *event = NULL;

    overlay_need(copy != NULL, "memory for a desk");
    *copy = *desk;
    *last_ms = at_ms > *last_ms ? at_ms : *last_ms;
    event = overlay_at(self, *last_ms, to_relay ? OVERLAY_EVENT_TO_DESK : OVERLAY_EVENT_OF_DESK,
                       life->number);
    event->b = life->relay.life;
    event->desk = copy;
}

/* ---- lending ---- */

static bool is_all_of_its_clock(overlay_queue_t *queue, uint64_t seq)
{
    bool follows = queue->marked_seq != 0 && seq == queue->marked_seq + 1;

    if (seq > queue->marked_seq) {
        queue->marked_seq = seq;
    }
    return follows;
}

static bool ends_clock(const ps_message_t *message)
{
    return message->kind == PS_KIND_MARK ||
           (message->kind == PS_KIND_PUSH && (message->flags & PS_FLAG_MARK) != 0);
}

static bool fits(const overlay_life_t *life, uint64_t link, uint64_t size)
{
    return size > 0 && size + BESIDE_BYTES <= ps_session_bundle_bytes(life->client.session, link);
}

static bool has_turn(const overlay_t *self, overlay_queue_t *queue, const overlay_op_t *op,
                     const ps_message_t *message)
{
    if (overlay_is_timed(self)) {
        return op->way == OVERLAY_LENT;
    }
    return ends_clock(message) &&
           is_all_of_its_clock(queue, message->kind == PS_KIND_PUSH ? message->push.seq
                                                                    : message->mark.seq);
}

static void put_lot(overlay_t *self, overlay_life_t *life, const ps_effect_t *effect)
{
    const ps_message_t *message = &effect->message;
    bool is_push = message->kind == PS_KIND_PUSH;
    bool is_timed = overlay_is_timed(self);
    uint64_t seq = is_push ? message->push.seq : message->mark.seq;
    overlay_desk_t desk = {.kind = OVERLAY_DESK_LOT,
                           .request = is_push ? message->push.request : message->mark.request,
                           .partition = is_push ? message->push.partition : message->mark.partition,
                           .clock = is_timed  ? 0
                                    : is_push ? message->push.clock
                                              : message->mark.clock - 1,
                           .has_rows = is_push};

    desk.from = (ps_bundle_from_t){.session = ps_session_number(life->client.session, effect->to),
                                   .first_seq = seq,
                                   .last_seq = seq,
                                   .worker = life->rank,
                                   .joins = life->joins,
                                   .marks = ends_clock(message) ? 1 : 0,
                                   .tail = !is_timed             ? 0
                                           : ends_clock(message) ? PS_BUNDLE_TAIL_MARK
                                                                 : PS_BUNDLE_TAIL_PUSH};
    if (is_push) {
        ps_message_slice(message, &desk.slice);
        desk.payload = overlay_flat(effect->payload);
    }
    overlay_trace(self, "  worker %u lends seq %" PRIu64 " of partition %u", life->rank, seq,
                  desk.partition);
    overlay_desk(self, life, true, &desk);
}

/* The relay does not have it. */
static void go_direct(overlay_queue_t *queue, overlay_op_t *op)
{
    if (op->way == OVERLAY_LENT) {
        queue->n_spared = op->n_sends > 1 ? SPARED : queue->n_spared;
        op->way = OVERLAY_DIRECT;
        queue->n_lent--;
        queue->n_direct++;
    }
}

bool overlay_lend(overlay_t *self, overlay_life_t *life, const ps_effect_t *effect)
{
    const ps_message_t *message = &effect->message;
    bool is_push = message->kind == PS_KIND_PUSH;
    uint64_t request = is_push ? message->push.request : message->mark.request;
    overlay_op_t *op = NULL;
    overlay_queue_t *queue = NULL;

    if ((!is_push && message->kind != PS_KIND_MARK) || life->is_reader) {
        return false;
    }
    op = &life->ops[request - 1];
    queue = &life->queues[op->partition];
    op->n_sends++;
    if (op->n_sends > 1 || !self->weather.has_relays || !has_turn(self, queue, op, message) ||
        life->lends == 0 ||
        (is_push && !fits(life, effect->to, ps_payload_size(effect->payload)))) {
        go_direct(queue, op);
        return false;
    }
    put_lot(self, life, effect);
    ps_session_lent(life->client.session, request, self->now_ms + PATIENCE_MS);
    return true;
}

void overlay_lend_hear(overlay_t *self, overlay_life_t *life, const overlay_desk_t *desk)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    if (desk->news == PS_RELAY_RETURNED) {
        self->n_back++;
        overlay_trace(self, "  worker %u gets op %" PRIu64 " back", life->rank, desk->request);
        ps_session_given_back(life->client.session, self->now_ms, desk->request, &outbox);
    } else {
        ps_session_lent(life->client.session, desk->request, self->now_ms + PATIENCE_MS);
    }
    overlay_worker_perform(self, life, &outbox);
}

/* ---- where no clock holds pushes together ---- */

static uint64_t finishes(const overlay_op_t *op)
{
    return op->kind == OVERLAY_MARK ? op->clock : op->clock + 1;
}

static bool is_one_more(const overlay_queue_t *queue, const overlay_op_t *op)
{
    return !op->marks || (queue->finished > 0 && finishes(op) == queue->finished + 1);
}

static bool is_to_be_lent(const overlay_t *self, const overlay_life_t *life, const overlay_op_t *op)
{
    const overlay_queue_t *queue = &life->queues[op->partition];
    uint64_t link = 0;

    return self->weather.has_relays && life->lends != 0 && queue->has_ended &&
           is_one_more(queue, op) &&
           (op->kind == OVERLAY_MARK
                ? !queue->is_unfit
                : ps_session_link_of(life->client.session, OVERLAY_TABLE, op->partition, &link) &&
                      fits(life, link, overlay_bytes_of(&self->plan, op->partition)));
}

bool overlay_lend_choose(overlay_t *self, overlay_life_t *life, overlay_op_t *op)
{
    overlay_queue_t *queue = &life->queues[op->partition];
    bool lends = false;

    if (op->kind == OVERLAY_PULL || op->kind == OVERLAY_DIGEST || !overlay_is_timed(self)) {
        return true;
    }
    lends = queue->n_spared == 0 && is_to_be_lent(self, life, op);
    if (lends ? queue->n_direct > 0 : queue->n_lent > 0) {
        return false;
    }
    op->way = lends ? OVERLAY_LENT : OVERLAY_DIRECT;
    queue->n_lent += lends ? 1 : 0;
    queue->n_direct += lends ? 0 : 1;
    queue->n_spared -= queue->n_spared > 0 ? 1 : 0;
    if (op->kind != OVERLAY_MARK) {
        queue->is_unfit = !lends && queue->has_ended;
    }
    if (op->marks) {
        queue->finished = finishes(op);
    }
    return true;
}

void overlay_lend_ended(overlay_life_t *life, const overlay_op_t *op, bool was_answered)
{
    overlay_queue_t *queue = &life->queues[op->partition];

    queue->n_lent -= op->way == OVERLAY_LENT ? 1 : 0;
    queue->n_direct -= op->way == OVERLAY_DIRECT ? 1 : 0;
    if (op->way != OVERLAY_NO_WAY && op->marks && !was_answered) {
        queue->finished = 0;
    }
    queue->has_ended = queue->has_ended || (op->way == OVERLAY_DIRECT && was_answered);
}
