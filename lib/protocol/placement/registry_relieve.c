/* SPDX-License-Identifier: Apache-2.0 */
/* Primaries on nodes that are heard, but cannot serve. */
#include <stdio.h>

#include "protocol/placement/registry_look.h"

/* The time that a new primary gets to prove that clients reach it: if two
 * clients each reach only a different node, each gets its turns. */
#define RELIEVED_AGAIN_MS 5000
#define AGAIN_PARTS 4      /* after so great a part of the silence a client says it again */
#define ON_ITS_WAY_MS 2000 /* and so long that may take */
/* For this time no primary moves to such a node only to rebalance. */
#define SHUNNED_MS 60000

static bool is_recent(uint64_t at_ms, uint64_t for_ms, uint64_t now_ms)
{
    return at_ms != 0 && now_ms - at_ms < for_ms;
}

static uint64_t holds_ms(uint64_t silent_ms)
{
    uint64_t ms = silent_ms / AGAIN_PARTS + ON_ITS_WAY_MS;

    if (ms < PS_UNREACHED_MIN_MS) {
        ms = PS_UNREACHED_MIN_MS;
    }
    return ms < PS_UNREACHED_MS ? ms : PS_UNREACHED_MS;
}

bool ps_registry_unreached(ps_registry_t *self, uint64_t incarnation, uint32_t shard,
                           uint64_t silent_ms, uint64_t now_ms)
{
    bool found = false;

    if (silent_ms < self->args.unreached_after_ms) {
        return false;
    }
    for (size_t i = 0; i < self->n_tables; i++) {
        const ps_table_t *table = &self->tables[i];

        for (uint32_t k = 0; k < table->spec.n_partitions; k++) {
            const ps_copies_t *copies = &table->copies[k];
            ps_copy_watch_t *watch = &table->watches[k];

            if (copies->fenced || copies->at[0].incarnation != incarnation ||
                copies->at[0].shard != shard) {
                continue;
            }
            found = true;
            self->dirty = self->dirty || watch->unreached_until_ms <= now_ms;
            watch->unreached_until_ms = now_ms + holds_ms(silent_ms);
        }
    }
    for (size_t i = 0; found && i < self->n_nodes; i++) {
        if (self->nodes[i].incarnation == incarnation) {
            self->nodes[i].unreached_ms = now_ms;
            self->nodes[i].unreached_until_ms = now_ms + holds_ms(silent_ms);
        }
    }
    return found;
}

bool ps_copy_is_shunned(ps_look_t *look, const ps_copy_t *copy)
{
    const ps_node_t *node = ps_copy_node(look->registry, copy);
    uint64_t at_ms = node->unreached_ms > node->disk_ms ? node->unreached_ms : node->disk_ms;

    if (!is_recent(at_ms, SHUNNED_MS, look->now_ms)) {
        return false;
    }
    ps_look_due(look, at_ms + SHUNNED_MS);
    return true;
}

/* A copy that can take over at once; NULL: none. */
static const ps_copy_t *other_in_sync(const ps_look_t *look, const ps_copies_t *copies)
{
    for (uint32_t i = 1; i < copies->n; i++) {
        if (copies->at[i].state == PS_COPY_IN_SYNC &&
            ps_copy_lives(look->registry, &copies->at[i])) {
            return &copies->at[i];
        }
    }
    return NULL;
}

bool ps_copy_is_unreached(const ps_look_t *look, const ps_copy_t *copy)
{
    return ps_copy_node(look->registry, copy)->unreached_until_ms > look->now_ms;
}

static bool is_unreached(ps_look_t *look, const ps_copy_watch_t *watch)
{
    if (watch->unreached_until_ms <= look->now_ms) {
        return false;
    }
    if (is_recent(watch->relieved_ms, RELIEVED_AGAIN_MS, look->now_ms)) {
        ps_look_due(look, watch->relieved_ms + RELIEVED_AGAIN_MS);
        return false;
    }
    return true;
}

/* It is asked first, and hands over what it has: nothing is lost. It stays in
 * sync until the new one says that it lags, for that one may be lost meanwhile.
 */
static psd_status_t move_primary(ps_look_t *look, const ps_spot_t *spot, const ps_copy_t *heir,
                                 const char *why, psd_error_t *err)
{
    ps_copies_t copies = *spot->copies;
    char text[128];

    (void)snprintf(text, sizeof text, "leaves node %s, %s",
                   ps_copy_node(look->registry, &copies.at[0])->name, why);
    ps_copies_fence(&copies);
    look->n_handing++;
    return ps_look_change(look, spot, &copies, heir->incarnation, text, err);
}

psd_status_t ps_step_relieve(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    const ps_copy_t *heir = other_in_sync(look, spot->copies);

    if (heir == NULL || !ps_spot_is_served(look, spot)) {
        return PSD_OK;
    }
    if ((spot->watch->out & 1) != 0) {
        look->registry->nodes[ps_node_index(look->registry, spot->copies->at[0].incarnation)]
            .disk_ms = look->now_ms;
        return move_primary(look, spot, heir, "whose disk accepts no writes", err);
    }
    if (!is_unreached(look, spot->watch)) {
        return PSD_OK;
    }
    spot->watch->relieved_ms = look->now_ms;
    return move_primary(look, spot, heir, "which clients cannot reach", err);
}
