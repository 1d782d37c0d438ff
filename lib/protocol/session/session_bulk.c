/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second connection to a shard, for large bodies, so that nothing else
 * queues after them.
 *
 * Pushes and marks of a partition are numbered, and must not overtake each
 * other: while one of them is unanswered on a connection, later ones use the
 * same connection. A large push therefore waits until nothing of its partition
 * is unanswered on the first connection; later ones use the second connection
 * until that is idle again. Pulls name the seq that they must follow, and use
 * the first.
 */
#include <assert.h>

#include "protocol/session/session_private.h"

#define BULK_BYTES                                             \
    (UINT64_C(64) << 10) /* bodies from this size on are large \
                          */

static uint64_t large(const ps_session_t *self)
{
    return self->args.bulk_bytes > 0 ? self->args.bulk_bytes : BULK_BYTES;
}

void ps_session_allow_bulk(ps_session_t *self, uint64_t link)
{
    assert(link < self->n_links);
    self->links[link]->bulk.allowed = true;
}

bool ps_session_link_is_bulk(const ps_session_t *self, uint64_t link)
{
    return link < self->n_links && ps_link_bulk_is(self->links[link], link);
}

/* The request or what it asks for. */
static bool is_large(const ps_session_t *self, const ps_op_t *op)
{
    const ps_slice_t *slice = &op->ask.slice;
    uint64_t row = slice->n_cols * (uint64_t)ps_type_size(slice->type);
    bool pulls = op->ask.kind == PS_KIND_PULL || op->ask.pull;

    return op->bytes >= large(self) || (pulls && row > 0 && slice->n_rows >= large(self) / row);
}

static void open_bulk(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox)
{
    ps_effect_t *effect = ps_outbox_add(outbox, PS_EFFECT_OPEN);

    if (effect == NULL) {
        return; /* the next large one tries again */
    }
    assert(self->n_links < self->links_capacity);
    link->bulk.number = self->n_links;
    link->bulk.state = PS_LINK_GREETING;
    effect->to = link->bulk.number;
    self->links[self->n_links++] = link;
    ps_link_say_hello(self, now_ms, link, true, outbox);
}

/* The last push or mark before it that is unanswered; NULL: none. Later ones do
 * not count: they wait for it. */
static const ps_op_t *before_it(ps_op_t *op)
{
    const ps_op_t *before = TAILQ_PREV(op, ps_ops, in_list);

    while (before != NULL && !before->counted) {
        before = TAILQ_PREV(before, ps_ops, in_list);
    }
    return before;
}

bool ps_bulk_choose(ps_session_t *self, uint64_t now_ms, ps_op_t *op, ps_outbox_t *outbox)
{
    ps_part_t *part = op->part;
    ps_link_t *link = part->link;
    bool is_numbered = ps_op_is_numbered(op);

    if (link->bulk.allowed && link->bulk.state == PS_LINK_UNUSED && is_large(self, op)) {
        open_bulk(self, now_ms, link, outbox);
    }
    op->bulk = op->ask.kind == PS_KIND_BUNDLE && link->bulk.state == PS_LINK_READY &&
               op->bytes >= large(self);
    if (is_numbered && link->bulk.state == PS_LINK_READY) {
        bool wants = op->bytes >= large(self);
        const ps_op_t *before = wants || part->n_numbered[1] > 0 ? before_it(op) : NULL;

        if (wants && before != NULL && !before->bulk) {
            return false;
        }
        op->bulk = before != NULL ? before->bulk : wants;
    }
    if (is_numbered && !op->counted) {
        op->counted = true;
        part->n_numbered[op->bulk ? 1 : 0]++;
    }
    return true;
}

void ps_bulk_ask(ps_session_t *self, uint64_t now_ms, const ps_op_t *op, ps_outbox_t *outbox)
{
    if (op->part->link->bulk.state == PS_LINK_READY) {
        ps_link_say_hello(self, now_ms, op->part->link, !op->bulk, outbox);
    }
}

void ps_bulk_uncount(ps_op_t *op)
{
    if (op->counted) {
        op->counted = false;
        op->part->n_numbered[op->bulk ? 1 : 0]--;
    }
}

void ps_bulk_greet(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox)
{
    link->bulk.state = PS_LINK_GREETING;
    link->bulk.hello_tries = 0;
    ps_link_requeue(link, now_ms);
    ps_link_say_hello(self, now_ms, link, true, outbox);
    ps_link_flush(self, now_ms, link, outbox); /* by the first one */
}

void ps_bulk_tick(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox)
{
    if (link->bulk.state != PS_LINK_GREETING) {
        return;
    }
    if (link->bulk.hello_due_ms <= now_ms) {
        ps_link_say_hello(self, now_ms, link, true, outbox);
    }
    ps_session_wake(self, link->bulk.hello_due_ms);
}
