/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rebalancing: copies move from nodes above their share to nodes below it, then
 * primaries move among the copies.
 *
 * A move is made only if the receiver's share after it is smaller than the
 * sender's was before. So every move shrinks the greatest share, or the number
 * of nodes that have it, and rebalancing terminates.
 */
#include <stdio.h>

#include "base/alloc.h"
#include "protocol/placement/registry_look.h"

/* True when no copy is missing, and none is moving. */
static bool is_calm(ps_look_t *look, const ps_spot_t *spot)
{
    if (!ps_spot_is_served(look, spot) || spot->copies->n != spot->table->spec.replicas) {
        return false;
    }
    for (uint32_t i = 0; i < spot->copies->n; i++) {
        const ps_copy_t *copy = &spot->copies->at[i];

        if (!ps_copy_is_whole(copy) || !ps_copy_stays(look, copy) ||
            !ps_copy_lives(look->registry, copy)) {
            return false;
        }
    }
    return true;
}

bool ps_even_copy(ps_look_t *look, const ps_spot_t *spot, ps_even_t *ret)
{
    const ps_registry_t *self = look->registry;
    uint64_t load = ps_copy_load(spot->table, spot->partition);
    size_t to = PS_NO_PLACE;

    if (!is_calm(look, spot)) {
        return false;
    }
    to = ps_loads_best(&look->loads, self, spot->copies, load, 0);
    if (to == PS_NO_PLACE) {
        return false;
    }
    for (uint32_t i = spot->copies->n; i > 0; i--) { /* the primary last */
        size_t from = ps_node_index(self, spot->copies->at[i - 1].incarnation);

        if (ps_loads_evens(&look->loads, self, from, to, load, self->args.uneven_max)) {
            *ret = (ps_even_t){.at = i - 1, .to = to};
            return true;
        }
    }
    return false;
}

bool ps_even_primary(ps_look_t *look, const ps_spot_t *spot, ps_even_t *ret)
{
    const ps_registry_t *self = look->registry;
    size_t from = 0;

    if (!is_calm(look, spot)) {
        return false;
    }
    from = ps_node_index(self, spot->copies->at[0].incarnation);
    for (uint32_t i = 1; i < spot->copies->n; i++) {
        size_t to = ps_node_index(self, spot->copies->at[i].incarnation);

        if (ps_copy_is_shunned(look, &spot->copies->at[i]) ||
            !ps_loads_evens_primaries(&look->loads, self, from, to, self->args.uneven_max)) {
            continue;
        }
        if (ps_copy_may_lead(look, &spot->copies->at[i])) {
            *ret = (ps_even_t){.to = to, .role = true};
            return true;
        }
        look->is_uneven = true;
    }
    return false;
}

uint32_t ps_registry_n_moving(const ps_registry_t *self)
{
    uint32_t n = 0;

    for (size_t i = 0; i < self->n_tables; i++) {
        const ps_table_t *table = &self->tables[i];

        for (uint32_t k = 0; k < table->spec.n_partitions; k++) {
            const ps_copies_t *copies = &table->copies[k];
            bool moves = copies->fenced && table->watches[k].prefer != 0;

            for (uint32_t j = 0; j < copies->n; j++) {
                moves = moves || copies->at[j].leaving;
            }
            n += moves ? 1 : 0;
        }
    }
    return n;
}

void ps_registry_even_out(ps_registry_t *self)
{
    self->rebalancing = true;
    self->dirty = true;
}

void ps_registry_keep_still(ps_registry_t *self, bool still)
{
    self->dirty = self->dirty || (self->still && !still);
    self->still = still;
}

/* The new copy comes first; the old one goes when it is in sync. */
static psd_status_t move_copy(ps_look_t *look, const ps_spot_t *spot, const ps_even_t *even,
                              psd_error_t *err)
{
    ps_registry_t *self = look->registry;
    ps_copies_t copies = *spot->copies;
    ps_copy_t *old = &copies.at[even->at];
    ps_copy_t copy = ps_loads_copy(&look->loads, self, even->to, PS_COPY_CATCHING_UP);
    uint64_t load = ps_copy_load(spot->table, spot->partition);
    char text[192];

    (void)snprintf(text, sizeof text, "moves a copy from node %s to node %s",
                   ps_copy_node(self, old)->name, self->nodes[even->to].name);
    old->leaving = true;
    ps_loads_take(&look->loads, ps_node_index(self, old->incarnation), old->shard, load);
    ps_loads_add(&look->loads, even->to, copy.shard, load);
    look->catching_up[even->to]++;
    look->n_moving++;
    ps_copies_add(&copies, &copy);
    return ps_look_change(look, spot, &copies, 0, text, err);
}

static psd_status_t move_primary(ps_look_t *look, const ps_spot_t *spot, const ps_even_t *even,
                                 psd_error_t *err)
{
    ps_registry_t *self = look->registry;
    ps_copies_t copies = *spot->copies;
    size_t from = ps_node_index(self, copies.at[0].incarnation);
    char text[192];

    (void)snprintf(text, sizeof text, "is fenced: its primary moves from node %s to node %s",
                   self->nodes[from].name, self->nodes[even->to].name);
    ps_copies_fence(&copies);
    look->loads.primaries[from]--;
    look->loads.primaries[even->to]++;
    look->n_handing++;
    return ps_look_change(look, spot, &copies, self->nodes[even->to].incarnation, text, err);
}

psd_status_t ps_step_even_copies(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    const ps_registry_args_t *args = &look->registry->args;
    ps_even_t even;

    if (!look->registry->rebalancing || look->registry->still ||
        look->n_moving >= args->moves_max || !ps_even_copy(look, spot, &even) ||
        look->catching_up[even.to] >= args->catching_up_max) {
        return PSD_OK;
    }
    return move_copy(look, spot, &even, err);
}

/* Primaries are evened out when copies are. */
psd_status_t ps_step_even_primaries(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    ps_even_t even;

    if (!look->registry->rebalancing || look->registry->still || look->n_moving > 0 ||
        !ps_look_may_hand(look) || !ps_even_primary(look, spot, &even)) {
        return PSD_OK;
    }
    return move_primary(look, spot, &even, err);
}
