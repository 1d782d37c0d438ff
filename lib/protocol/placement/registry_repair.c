/* SPDX-License-Identifier: Apache-2.0 */
/* From the current copies to the wanted copies: removes leaving copies when
 * they can be spared, adds missing ones. */
#include <stdio.h>

#include "protocol/placement/registry_look.h"

#define BYTES_PER_MS 1000 /* a copy that is slower than this is stuck */

/* Copies of a partition that stay. */
typedef struct staying {
    uint32_t n;
    uint32_t n_whole; /* those that are also whole, on nodes that are up */
} staying_t;

static bool is_sound(const ps_look_t *look, const ps_copy_t *copy)
{
    return ps_copy_is_whole(copy) && ps_copy_lives(look->registry, copy);
}

static staying_t count_staying(ps_look_t *look, const ps_copies_t *copies)
{
    staying_t count = {0};

    for (uint32_t i = 0; i < copies->n; i++) {
        if (ps_copy_stays(look, &copies->at[i])) {
            count.n++;
            count.n_whole += is_sound(look, &copies->at[i]) ? 1 : 0;
        }
    }
    return count;
}

/* Of copies that stay and are too many, the one that is spared most easily: one
 * that is not whole, else one of the fullest node; never the primary. */
static uint32_t spare_one(ps_look_t *look, const ps_copies_t *copies)
{
    const ps_registry_t *self = look->registry;
    uint32_t found = PS_COPIES_MAX;
    size_t node = 0;

    for (uint32_t i = copies->n - 1; i > 0; i--) {
        size_t at = ps_node_index(self, copies->at[i].incarnation);

        if (!ps_copy_stays(look, &copies->at[i])) {
            continue;
        }
        if (!is_sound(look, &copies->at[i])) {
            return i;
        }
        if (found == PS_COPIES_MAX || ps_loads_evens(&look->loads, self, at, node, 0, 0)) {
            found = i;
            node = at;
        }
    }
    return found;
}

/* Takes out what can be spared; false: nothing can. */
static bool spare(ps_look_t *look, uint32_t wanted, ps_copies_t *copies, const char **ret)
{
    staying_t count = count_staying(look, copies);
    uint32_t n_before = copies->n;

    if (count.n_whole < wanted) {
        return false;
    }
    for (uint32_t i = copies->n - 1; i > 0; i--) {
        if (!ps_copy_stays(look, &copies->at[i])) {
            *ret = ps_copy_node(look->registry, &copies->at[i])->name;
            ps_copies_remove(copies, i);
        }
    }
    if (copies->n == n_before && count.n > wanted) {
        uint32_t at = spare_one(look, copies);

        if (at != PS_COPIES_MAX) {
            *ret = ps_copy_node(look->registry, &copies->at[at])->name;
            ps_copies_remove(copies, at);
        }
    }
    return copies->n < n_before;
}

psd_status_t ps_step_remove(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    ps_copies_t copies = *spot->copies;
    const char *name = "";
    char text[128];

    if (ps_spot_is_served(look, spot) && spare(look, spot->table->spec.replicas, &copies, &name)) {
        (void)snprintf(text, sizeof text, "no longer has a copy on node %s", name);
        return ps_look_change(look, spot, &copies, 0, text, err);
    }
    return PSD_OK;
}

/* True when its time to catch up is over. */
static bool is_overdue(ps_look_t *look, const ps_spot_t *spot, uint32_t i)
{
    const ps_copy_t *copy = &spot->copies->at[i];
    uint64_t *since_ms = &spot->watch->since_ms[i];
    uint64_t due = 0;

    if (copy->state != PS_COPY_CATCHING_UP || copy->leaving ||
        !ps_copy_lives(look->registry, copy)) {
        return false;
    }
    *since_ms = *since_ms == 0 ? look->now_ms : *since_ms;
    due = *since_ms + look->registry->args.catch_up_after_ms +
          spot->table->bytes[spot->partition] / BYTES_PER_MS;
    ps_look_due(look, due);
    return look->now_ms >= due;
}

/* Another copy comes in its place. What was dropped may be all that is left of
 * acknowledged writes, when the primary's node starts again with nothing: it goes
 * only when another copy is in sync. false: it has to stay, as there is no room. */
static bool give_up(const ps_copy_t *old, const ps_copy_t *copy, ps_copies_t *copies)
{
    uint32_t at = (uint32_t)(ps_copies_on(copies, old->incarnation) - copies->at);

    if (!old->dropped) {
        ps_copies_remove(copies, at);
    } else if (copies->n < PS_COPIES_MAX) {
        copies->at[at].leaving = true;
    } else {
        return false;
    }
    ps_copies_add(copies, copy);
    return true;
}

/* Gives up a copy that never catches up, if another node can take one. */
psd_status_t ps_step_replace(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    ps_registry_t *self = look->registry;
    ps_copies_t copies = *spot->copies;
    uint64_t load = ps_copy_load(spot->table, spot->partition);
    char text[256] = "";

    for (uint32_t i = copies.n - 1; i > 0 && ps_spot_is_served(look, spot); i--) {
        const ps_copy_t old = spot->copies->at[i];
        size_t to = is_overdue(look, spot, i) ? ps_loads_best(&look->loads, self, &copies, load, 0)
                                              : PS_NO_PLACE;
        ps_copy_t copy = {0};

        if (to == PS_NO_PLACE || look->catching_up[to] >= self->args.catching_up_max) {
            continue;
        }
        copy = ps_loads_copy(&look->loads, self, to, PS_COPY_CATCHING_UP);
        if (!give_up(&old, &copy, &copies)) {
            continue;
        }
        (void)snprintf(text, sizeof text,
                       "gives up its copy on node %s, which did not catch up, "
                       "for one on node %s",
                       ps_copy_node(self, &old)->name, self->nodes[to].name);
        ps_loads_take(&look->loads, ps_node_index(self, old.incarnation), old.shard, load);
        ps_loads_add(&look->loads, to, copy.shard, load);
        look->catching_up[to]++;
    }
    return text[0] == '\0' ? PSD_OK : ps_look_change(look, spot, &copies, 0, text, err);
}

/* Where a primary that leaves goes: a copy in sync that stays and may take over
 * at once, on the node with the fewest primaries for its weight. PS_COPIES_MAX:
 * there is none now. */
static uint32_t successor(ps_look_t *look, const ps_copies_t *copies)
{
    const ps_registry_t *self = look->registry;
    uint32_t best = PS_COPIES_MAX;
    size_t node = 0;

    for (uint32_t i = 1; i < copies->n; i++) {
        size_t at = ps_node_index(self, copies->at[i].incarnation);

        if (!ps_copy_stays(look, &copies->at[i]) || !is_sound(look, &copies->at[i]) ||
            !ps_copy_may_lead(look, &copies->at[i])) {
            continue;
        }
        if (best == PS_COPIES_MAX || ps_loads_evens_primaries(&look->loads, self, node, at, 0)) {
            best = i;
            node = at;
        }
    }
    return best;
}

psd_status_t ps_step_hand(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    ps_copies_t copies = *spot->copies;
    uint32_t next = PS_COPIES_MAX;
    char text[192];

    if (!ps_look_may_hand(look) || !ps_spot_is_served(look, spot) ||
        ps_copy_stays(look, &copies.at[0])) {
        return PSD_OK;
    }
    next = successor(look, &copies);
    if (next == PS_COPIES_MAX) {
        return PSD_OK;
    }
    (void)snprintf(text, sizeof text, "is fenced: its primary moves from node %s to node %s",
                   ps_copy_node(look->registry, &copies.at[0])->name,
                   ps_copy_node(look->registry, &copies.at[next])->name);
    ps_copies_fence(&copies);
    look->n_handing++;
    return ps_look_change(look, spot, &copies, copies.at[next].incarnation, text, err);
}

/* A copy that was to go, on a node that may keep it, costs nothing. */
static bool keep_leaver(const ps_look_t *look, ps_copies_t *copies)
{
    for (uint32_t i = 0; i < copies->n; i++) {
        if (copies->at[i].leaving && ps_node_takes(ps_copy_node(look->registry, &copies->at[i]))) {
            copies->at[i].leaving = false;
            return true;
        }
    }
    return false;
}

/* A copy that is not whole and does not stay makes room for one that may be;
 * not one that was dropped, before there is one. */
static void drop_unwanted(ps_look_t *look, ps_copies_t *copies)
{
    for (uint32_t i = copies->n - 1; i > 0; i--) {
        if (!ps_copy_is_whole(&copies->at[i]) && !copies->at[i].dropped &&
            !ps_copy_stays(look, &copies->at[i])) {
            ps_copies_remove(copies, i);
            return;
        }
    }
}

/* false: there is no node for it now. */
static bool add_copy(ps_look_t *look, uint64_t load, ps_copies_t *copies, const char **ret_name)
{
    ps_registry_t *self = look->registry;
    size_t node = ps_loads_best(&look->loads, self, copies, load, 0);
    ps_copy_t copy = {0};

    if (node == PS_NO_PLACE || look->catching_up[node] >= self->args.catching_up_max) {
        return false;
    }
    drop_unwanted(look, copies);
    if (copies->n == PS_COPIES_MAX) {
        return false;
    }
    copy = ps_loads_copy(&look->loads, self, node, PS_COPY_CATCHING_UP);
    ps_copies_add(copies, &copy);
    ps_loads_add(&look->loads, node, copy.shard, load);
    look->catching_up[node]++;
    *ret_name = self->nodes[node].name;
    return true;
}

/* One whole copy is left, and acknowledges nothing before there is a second
 * one; those on suspect nodes are not waited for, though they may come back. */
static bool is_alone(ps_look_t *look, const ps_spot_t *spot)
{
    const ps_copies_t *copies = spot->copies;
    uint32_t n_whole = 0;
    uint32_t n_there = 0;

    for (uint32_t i = 0; i < copies->n; i++) {
        const ps_copy_t *copy = &copies->at[i];

        n_whole += is_sound(look, copy) ? 1 : 0;
        n_there += ps_copy_stays(look, copy) && !ps_copy_is_suspect(look->registry, copy) ? 1 : 0;
    }
    return spot->table->spec.ack == PS_ACK_REPLICA && n_whole < 2 && n_there < 2;
}

psd_status_t ps_step_add(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    ps_copies_t copies = *spot->copies;
    const char *name = "";
    char text[128];

    if (!ps_spot_is_served(look, spot) ||
        (count_staying(look, &copies).n >= spot->table->spec.replicas && !is_alone(look, spot))) {
        return PSD_OK;
    }
    if (keep_leaver(look, &copies)) {
        return ps_look_change(look, spot, &copies, 0, "keeps a copy that was to be removed", err);
    }
    if (!add_copy(look, ps_copy_load(spot->table, spot->partition), &copies, &name)) {
        return PSD_OK;
    }
    (void)snprintf(text, sizeof text, "gets a copy on node %s", name);
    return ps_look_change(look, spot, &copies, 0, text, err);
}
