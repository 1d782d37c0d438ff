/* SPDX-License-Identifier: Apache-2.0 */
/* Shards that are silent: are their partitions still there? */
#include "protocol/session_private.h"

void
ps_link_doubt(ps_session_t *self,
              uint64_t now_ms,
              const ps_op_t *op,
              ps_outbox_t *outbox)
{
    ps_link_t *link = op->part->link;

    if (link->doubted_ms != 0) {
        return;
    }
    link->doubted_ms = now_ms;
    if (op->ask.kind == PS_KIND_PULL && link->state == PS_LINK_READY) {
        link->hello_tries = 0;
        ps_link_say_hello(self, now_ms, link, false, outbox);
    }
}

uint64_t
ps_session_doubt(const ps_session_t *self, uint32_t *ret_table)
{
    uint64_t since_ms = UINT64_MAX;

    for (size_t i = 0; i < self->n_places; i++) {
        const ps_link_t *link = self->places[i];
        const ps_part_t *part = TAILQ_FIRST(&link->active);

        if (link->doubted_ms != 0 && link->doubted_ms < since_ms &&
            part != NULL) {
            since_ms = link->doubted_ms;
            *ret_table = part->table;
        }
    }
    return since_ms;
}
