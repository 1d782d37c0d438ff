/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: what a relay gave back goes to the shard with a new seq. */
#include "protocol/session/session_private.h"
#include "sim_overlay_planted.h"

void __real_ps_session_given_back(ps_session_t *self, uint64_t now_ms, uint64_t number,
                                  ps_outbox_t *outbox);
void __wrap_ps_session_given_back(ps_session_t *self, uint64_t now_ms, uint64_t number,
                                  ps_outbox_t *outbox);

void __wrap_ps_session_given_back(ps_session_t *self, uint64_t now_ms, uint64_t number,
                                  ps_outbox_t *outbox)
{
    ps_op_t *op = ps_op_find(self, number);

    if (op != NULL && op->sent && ps_op_is_numbered(op) && op->seq == op->part->seq) {
        op->seq = ++op->part->seq;
    }
    __real_ps_session_given_back(self, now_ms, number, outbox);
}

int main(void)
{
    return overlay_planted_main("what is sent again has a new seq");
}
