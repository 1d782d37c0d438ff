/* SPDX-License-Identifier: Apache-2.0 */
/* How operations wait, get credits and go out. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/session/session_private.h"

#define SOON_HALVINGS 3 /* of the first pauses of a partition */
#define PACES 2         /* of its link, that an answer may take */

uint64_t ps_session_backoff(uint64_t first_ms, uint32_t tries)
{
    return first_ms << (tries < PS_BACKOFF_DOUBLING ? tries : PS_BACKOFF_DOUBLING);
}

uint64_t ps_link_wait_ms(const ps_session_t *self, const ps_link_t *link, uint32_t tries)
{
    uint64_t wait_ms = ps_session_backoff(self->args.resend_ms, tries);
    uint64_t paced_ms = PACES * link->pace_ms;

    return wait_ms > paced_ms ? wait_ms : paced_ms;
}

uint64_t ps_session_gap_ms(const ps_session_t *self)
{
    return self->args.resend_ms < PS_RESEND_GAP_MS ? self->args.resend_ms : PS_RESEND_GAP_MS;
}

void ps_part_leave_ring(ps_part_t *part)
{
    if (part->ready) {
        TAILQ_REMOVE(&part->link->ready, part, in_ready);
        part->ready = false;
    }
}

void ps_part_make_ready(ps_part_t *part, uint64_t now_ms)
{
    if (part->queued != NULL && part->queued->credited && !part->ready && !part->is_forgotten &&
        part->pause_ms <= now_ms) {
        TAILQ_INSERT_TAIL(&part->link->ready, part, in_ready);
        part->ready = true;
    }
}

/* Lines up for credits, by id: what was carried from another link goes before
 * what came later. */
static void wait_for_credits(ps_op_t *op)
{
    struct ps_ops *waiting = &op->part->link->waiting;
    ps_op_t *before = TAILQ_LAST(waiting, ps_ops);

    while (before != NULL && before->id > op->id) {
        before = TAILQ_PREV(before, ps_ops, in_waiting);
    }
    if (before == NULL) {
        TAILQ_INSERT_HEAD(waiting, op, in_waiting);
    } else {
        TAILQ_INSERT_AFTER(waiting, before, op, in_waiting);
    }
}

/* A link with nothing in flight owed nothing. */
static void join_link(ps_part_t *part, uint64_t now_ms)
{
    ps_link_t *link = part->place;

    if (TAILQ_EMPTY(&link->active)) {
        link->doubted_ms = link->state == PS_LINK_GREETING ? now_ms : 0;
    }
    part->link = link;
    TAILQ_INSERT_TAIL(&link->active, part, in_active);
}

void ps_op_enqueue(ps_op_t *op)
{
    ps_part_t *part = op->part;

    if (TAILQ_EMPTY(&part->ops)) {
        join_link(part, op->start_ms);
    }
    TAILQ_INSERT_TAIL(&part->ops, op, in_list);
    if (part->queued == NULL) {
        part->queued = op;
    }
    wait_for_credits(op);
}

/* Removes it from its link's counts. */
static void leave_link(ps_op_t *op)
{
    ps_link_t *link = op->part->link;

    if (!op->credited) {
        TAILQ_REMOVE(&link->waiting, op, in_waiting);
        return;
    }
    assert(link->n_credited > 0 && link->credited_bytes >= op->bytes);
    link->n_credited--;
    link->credited_bytes -= op->bytes;
    op->credited = false;
}

void ps_op_requeue(ps_op_t *op)
{
    ps_part_t *part = op->part;

    ps_bulk_uncount(op);
    op->sent = false;
    op->again = false;
    op->tries = 0;
    op->piece_ms = 0;
    if (part->queued == NULL || op->id < part->queued->id) {
        part->queued = op;
    }
}

void ps_part_carry(ps_part_t *part, uint64_t now_ms)
{
    ps_op_t *op = NULL;

    ps_part_requeue(part);
    ps_part_leave_ring(part);
    TAILQ_FOREACH(op, &part->ops, in_list)
    {
        leave_link(op);
    }
    TAILQ_REMOVE(&part->link->active, part, in_active);
    join_link(part, now_ms);
    TAILQ_FOREACH(op, &part->ops, in_list)
    {
        wait_for_credits(op);
    }
}

void ps_part_requeue(ps_part_t *part)
{
    ps_op_t *op = NULL;

    TAILQ_FOREACH(op, &part->ops, in_list)
    {
        ps_op_requeue(op);
    }
}

/* If it is only moving to another place, it will be there very soon. */
static uint64_t pause_of(const ps_session_t *self, uint32_t pauses)
{
    uint64_t gap_ms = ps_session_gap_ms(self);
    uint64_t soon_ms = gap_ms >> SOON_HALVINGS;

    return soon_ms > 0 && pauses < SOON_HALVINGS
               ? soon_ms << pauses
               : ps_session_backoff(gap_ms, pauses < SOON_HALVINGS ? 0 : pauses - SOON_HALVINGS);
}

void ps_part_pause(ps_session_t *self, uint64_t now_ms, ps_part_t *part)
{
    if (part->pause_ms > now_ms) {
        return; /* one more answer about the same trouble */
    }
    part->pause_ms = now_ms + pause_of(self, part->pauses);
    part->pauses++;
    ps_part_leave_ring(part);
    ps_session_wake(self, part->pause_ms);
}

/* The first unsent operation from `op` on, including `op`. */
static ps_op_t *first_queued(ps_op_t *op)
{
    while (op != NULL && op->sent) {
        op = TAILQ_NEXT(op, in_list);
    }
    return op;
}

void ps_op_detach(ps_op_t *op)
{
    ps_part_t *part = op->part;

    ps_bulk_uncount(op);
    leave_link(op);
    if (part->queued == op) {
        op->sent = true; /* so that it is passed over */
        part->queued = first_queued(op);
        op->sent = false;
    }
    TAILQ_REMOVE(&part->ops, op, in_list);
    if (part->queued == NULL) {
        ps_part_leave_ring(part);
    } else if (part->blocked) {
        part->blocked = false;
        ps_part_make_ready(part, UINT64_MAX); /* a pause has lost its reason */
    }
    if (TAILQ_EMPTY(&part->ops)) {
        TAILQ_REMOVE(&part->link->active, part, in_active);
        part->link = NULL;
    }
}

/* The time left until the caller's deadline, for the server; 0: no deadline. */
static uint32_t time_left(const ps_op_t *op, uint64_t now_ms)
{
    uint64_t passed = now_ms - op->start_ms;
    uint32_t timeout_ms = op->ask.timeout_ms;

    if (timeout_ms == 0) {
        return 0;
    }
    return passed < timeout_ms ? timeout_ms - (uint32_t)passed : 1;
}

#define SET_WORKER(to, from)           \
    do {                               \
        (to)->job = (from)->job;       \
        (to)->worker = (from)->worker; \
        (to)->member = (from)->member; \
        (to)->joins = (from)->joins;   \
        (to)->clock = (from)->clock;   \
    } while (0)

/* Every kind begins with the same address. */
#define SET_ADDRESS(to, op)                      \
    do {                                         \
        (to)->request = (op)->id;                \
        (to)->table = (op)->part->table;         \
        (to)->partition = (op)->part->partition; \
        (to)->epoch = (op)->part->epoch;         \
    } while (0)

static uint8_t times_flag(const ps_op_t *op)
{
    return op->ask.wants_times && (op->part->link->filters & PS_SPEAKS_TIMES) != 0 ? PS_FLAG_TIMES
                                                                                   : 0;
}

/* Writes every field of the kind: the message was not zeroed. */
static void fill_request(const ps_op_t *op, uint64_t now_ms, ps_message_t *message)
{
    const ps_op_start_t *ask = &op->ask;

    message->kind = ask->kind;
    message->flags = 0;
    if (ask->kind == PS_KIND_PUSH) {
        SET_ADDRESS(&message->push, op);
        SET_WORKER(&message->push, &ask->worker);
        message->push.seq = op->seq;
        message->push.timeout_ms = time_left(op, now_ms);
        message->push.ack = ask->ack;
        message->push.pull = ask->pull;
        message->flags = (uint8_t)((ask->marks ? PS_FLAG_MARK : 0) | times_flag(op));
        message->push.op = ask->op;
        message->push.other = ask->other;
        message->push.operand = ask->operand;
        ps_message_set_slice(message, &ask->slice);
    } else if (ask->kind == PS_KIND_PULL) {
        SET_ADDRESS(&message->pull, op);
        SET_WORKER(&message->pull, &ask->worker);
        message->flags = times_flag(op);
        message->pull.after = op->seq;
        message->pull.timeout_ms = time_left(op, now_ms);
        message->pull.op = ask->op;
        message->pull.other = ask->other;
        message->pull.operand = ask->operand;
        message->pull.since = ask->since;
        ps_message_set_slice(message, &ask->slice);
    } else if (ask->kind == PS_KIND_BUNDLE) {
        SET_ADDRESS(&message->bundle, op);
        SET_WORKER(&message->bundle, &ask->worker);
        message->bundle.plan = ask->plan;
        message->bundle.timeout_ms = time_left(op, now_ms);
        message->bundle.urgent = 0;
        message->bundle.n_from = ask->n_from;
        message->bundle.n_spans = ask->n_spans;
    } else {
        SET_ADDRESS(&message->mark, op);
        SET_WORKER(&message->mark, &ask->worker);
        message->mark.seq = op->seq;
        message->mark.timeout_ms = time_left(op, now_ms);
    }
}

/* The connection that it went by, or goes by now. */
static uint64_t number_of(const ps_op_t *op)
{
    const ps_link_t *link = op->part->link;

    return op->bulk ? link->bulk.number : link->number;
}

/* Sends an operation. Without memory it counts as lost in transit. */
static void send_request(ps_session_t *self, uint64_t now_ms, ps_op_t *op, ps_outbox_t *outbox)
{
    ps_effect_t *effect = ps_outbox_add_raw(outbox, PS_EFFECT_SEND);

    op->n_sends++;
    op->n_unsure++;
    op->sent_ms = now_ms;
    op->sent_epoch = op->part->epoch;
    op->due_ms = now_ms + ps_link_wait_ms(self, op->part->link, op->tries);
    op->again = false;
    ps_session_wake(self, op->due_ms);
    if (effect == NULL) {
        return;
    }
    effect->to = number_of(op);
    fill_request(op, now_ms, &effect->message);
    effect->owner = op->ask.owner;
    if (op->ask.payload != NULL) {
        effect->payload = ps_payload_keep(op->ask.payload);
    }
}

/* A partition remembers refusals among the last credit_requests seqs only: a
 * seq further ahead of an unfinished one could make it forget that one's
 * refusal. */
static bool is_too_far_ahead(const ps_link_t *link, const ps_op_t *op)
{
    const ps_op_t *oldest = TAILQ_FIRST(&op->part->ops);

    return op->seq - oldest->seq > link->credit_requests;
}

static bool has_credits(const ps_link_t *link, const ps_op_t *op)
{
    if (link->n_credited == 0) {
        return true; /* even a body larger than all credits */
    }
    if (op->id < link->last_credited) {
        return true; /* it was carried here; later ones must not wait for it in vain */
    }
    return link->n_credited < link->credit_requests && !is_too_far_ahead(link, op) &&
           link->credited_bytes <= link->credit_bytes &&
           op->bytes <= link->credit_bytes - link->credited_bytes;
}

/* Gives credits to those that wait for them, as far as they go. */
static void give_credits(ps_link_t *link, uint64_t now_ms)
{
    ps_op_t *op = NULL;

    while ((op = TAILQ_FIRST(&link->waiting)) != NULL && has_credits(link, op)) {
        TAILQ_REMOVE(&link->waiting, op, in_waiting);
        op->credited = true;
        link->n_credited++;
        link->credited_bytes += op->bytes;
        if (op->id > link->last_credited) {
            link->last_credited = op->id;
        }
        ps_part_make_ready(op->part, now_ms);
    }
}

/* A mark is sent after the values of earlier pulls have arrived: once it is
 * sent, the next clock may close, and the values would be those of a later
 * one. */
static bool waits_for_values(const ps_part_t *part, const ps_op_t *op)
{
    const ps_op_t *before = TAILQ_FIRST(&part->ops);
    bool marks = op->ask.kind == PS_KIND_MARK || op->ask.marks;

    while (marks && before != op) {
        if (before->ask.kind == PS_KIND_PULL || before->ask.pull) {
            return true;
        }
        before = TAILQ_NEXT(before, in_list);
    }
    return false;
}

/* A bundle goes in one frame. A shard would hang up on a larger one than it takes, each time that
 * it comes. */
static bool is_too_large(const ps_link_t *link, const ps_op_t *op)
{
    return op->ask.kind == PS_KIND_BUNDLE &&
           ps_payload_size(op->ask.payload) > ps_link_bundle_bytes(link);
}

/* Within an epoch the partition refuses sessions that it has forgotten. A new primary may not know
 * them: what they had lent would count again, beside what they sent under another identity. */
static bool is_of_another_epoch(const ps_op_t *op)
{
    return op->ask.kind == PS_KIND_BUNDLE && op->sent_epoch != op->part->epoch;
}

/* Ends a bundle that cannot be sent. */
static bool end_bundle(ps_session_t *self, const ps_link_t *link, ps_op_t *op, ps_outbox_t *outbox)
{
    if (is_of_another_epoch(op)) {
        ps_op_end_locally(self, op, PSD_SPLIT, "the partition has a new epoch", outbox);
    } else if (is_too_large(link, op)) {
        ps_op_end_locally(self, op, PSD_LIMIT, "a bundle of more bytes than the shard takes",
                          outbox);
    } else {
        return false;
    }
    self->wake_ms = 0; /* its credits are free for others */
    return true;
}

void ps_link_flush(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox)
{
    ps_part_t *part = NULL;

    if (link->state != PS_LINK_READY) {
        return;
    }
    give_credits(link, now_ms);
    while ((part = TAILQ_FIRST(&link->ready)) != NULL) {
        ps_op_t *op = part->queued;

        ps_part_leave_ring(part);
        if (op == NULL || !op->credited) {
            part->blocked = false;
            continue;
        }
        if (end_bundle(self, link, op, outbox)) {
            ps_part_make_ready(part, now_ms);
            continue;
        }
        part->blocked = waits_for_values(part, op) || !ps_bulk_choose(self, now_ms, op, outbox);
        if (part->blocked) {
            continue;
        }
        op->sent = true;
        part->queued = first_queued(op);
        send_request(self, now_ms, op, outbox);
        ps_part_make_ready(part, now_ms);
    }
}

void ps_op_ask(ps_session_t *self, uint64_t now_ms, ps_op_t *op, ps_outbox_t *outbox)
{
    ps_effect_t *effect = NULL;

    op->tries++;
    op->asked = true;
    ps_link_doubt(self, now_ms, op, outbox);
    ps_bulk_ask(self, now_ms, op, outbox);
    if (op->ask.kind == PS_KIND_PULL) {
        send_request(self, now_ms, op, outbox);
        return;
    }
    op->due_ms = now_ms + ps_link_wait_ms(self, op->part->link, op->tries);
    ps_session_wake(self, op->due_ms);
    if (op->ask.kind == PS_KIND_BUNDLE) {
        return; /* a lost connection, or a forgotten one, brings it again */
    }
    effect = ps_outbox_add(outbox, PS_EFFECT_SEND);
    if (effect == NULL) {
        return;
    }
    effect->to = number_of(op);
    effect->message.kind = PS_KIND_PROBE;
    SET_ADDRESS(&effect->message.probe, op);
    effect->message.probe.seq = op->seq;
    effect->message.probe.ack = op->ask.ack;
    effect->message.probe.mark = op->ask.kind == PS_KIND_MARK ? 1 : 0;
}
