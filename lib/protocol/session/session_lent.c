/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes and marks that a relay brings: the shard acknowledges them to this session. */
#include "protocol/session/session_private.h"

static ps_op_t *find_sent(const ps_session_t *self, uint64_t number)
{
    ps_op_t *op = ps_op_find(self, number);

    return op == NULL || op->status != PSD_OK || !op->sent ? NULL : op;
}

void ps_session_lent(ps_session_t *self, uint64_t number, uint64_t until_ms)
{
    ps_op_t *op = find_sent(self, number);

    if (op != NULL && ps_op_is_numbered(op)) {
        ps_op_wait(self, op, until_ms);
    }
}

void ps_session_given_back(ps_session_t *self, uint64_t now_ms, uint64_t number,
                           ps_outbox_t *outbox)
{
    ps_op_t *op = find_sent(self, number);

    if (op == NULL || !ps_op_is_numbered(op)) {
        return;
    }
    ps_op_requeue(op);
    ps_part_make_ready(op->part, now_ms);
    ps_link_flush(self, now_ms, op->part->link, outbox);
}

uint64_t ps_session_heard_ms(const ps_session_t *self, uint64_t number)
{
    const ps_op_t *op = ps_op_find(self, number);

    return op == NULL ? 0 : op->heard_ms;
}
