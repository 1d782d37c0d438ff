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

static bool
has(const uint32_t *tables, size_t n, uint32_t table)
{
    for (size_t i = 0; i < n; i++) {
        if (tables[i] == table) {
            return true;
        }
    }
    return false;
}

uint64_t
ps_session_doubt(const ps_session_t *self,
                 uint32_t ret_tables[PS_DOUBT_MAX],
                 size_t *ret_n)
{
    uint64_t since_ms = UINT64_MAX;

    *ret_n = 0;
    for (size_t i = 0; i < self->n_places; i++) {
        const ps_link_t *link = self->places[i];
        const ps_part_t *part = NULL;

        if (link->doubted_ms == 0 || TAILQ_EMPTY(&link->active)) {
            continue;
        }
        since_ms = link->doubted_ms < since_ms ? link->doubted_ms : since_ms;
        TAILQ_FOREACH(part, &link->active, in_active)
        {
            if (*ret_n < PS_DOUBT_MAX &&
                !has(ret_tables, *ret_n, part->table)) {
                ret_tables[(*ret_n)++] = part->table;
            }
        }
    }
    return since_ms;
}

size_t
ps_session_silent(const ps_session_t *self,
                  ps_silent_t ret_silent[PS_SILENT_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < self->n_places && n < PS_SILENT_MAX; i++) {
        const ps_link_t *link = self->places[i];

        if (link->doubted_ms != 0 && !TAILQ_EMPTY(&link->active)) {
            ret_silent[n++] = (ps_silent_t){
                .incarnation = link->route.incarnation,
                .shard = link->route.shard,
                .since_ms = link->doubted_ms,
            };
        }
    }
    return n;
}
