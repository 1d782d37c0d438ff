/* SPDX-License-Identifier: Apache-2.0 */
/* What the registry may do to copies, and what must be so when all is calm. */
#include "walk_world.h"

#include <stdio.h>

void world_blame(world_t *self, const char *what, uint32_t table, uint32_t at)
{
    if (self->wrong == NULL) {
        self->wrong = what;
        (void)snprintf(self->where, sizeof self->where,
                       "seed %" PRIu64 " at %" PRIu64 " ms: partition %u of "
                       "table %u",
                       self->seed, self->now_ms, at, table);
    }
}

world_node_t *world_node(world_t *self, uint64_t incarnation)
{
    for (int i = 0; i < WORLD_NODES; i++) {
        if (self->nodes[i].incarnation == incarnation) {
            return &self->nodes[i];
        }
    }
    return NULL;
}

/* Nothing was heard of it for long enough to think so. */
static bool is_silent(world_t *self, uint64_t incarnation)
{
    const world_node_t *node = world_node(self, incarnation);

    return node == NULL || self->now_ms - node->beat_ms >= WORLD_SUSPECT_MS;
}

static bool is_draining(world_t *self, uint64_t incarnation)
{
    const ps_node_t *node = ps_registry_node_by_incarnation(self->registry, incarnation);

    return node != NULL && node->draining;
}

/* The incarnation that a copy had before a node's start. */
static uint64_t before_start(world_t *self, const ps_command_t *command, uint64_t incarnation)
{
    const ps_node_t *old = command->kind == PS_COMMAND_NODE
                               ? ps_registry_node(self->registry, command->node.name)
                               : NULL;

    return old != NULL && command->node.incarnation == incarnation ? old->incarnation : incarnation;
}

static bool has_more(const world_copy_t *copy, const world_copy_t *than)
{
    return copy->lsn_epoch > than->lsn_epoch ||
           (copy->lsn_epoch == than->lsn_epoch && copy->lsn > than->lsn);
}

/* No copy that could be asked has more. So a planned move loses nothing, not
 * even what was acknowledged at `memory`. */
static void check_greatest(world_t *self, const ps_change_t *change, const ps_copies_t *old,
                           const world_node_t *promoted)
{
    uint32_t table = change->table - 1;
    const ps_copy_t *chosen = promoted == NULL ? NULL : ps_copies_on(old, promoted->incarnation);

    for (uint32_t i = 0; i < old->n && chosen != NULL; i++) {
        const world_node_t *node = world_node(self, old->at[i].incarnation);

        if (old->at[i].state <= chosen->state && node != NULL &&
            !is_silent(self, node->incarnation) &&
            has_more(&node->copies[table][change->partition],
                     &promoted->copies[table][change->partition])) {
            world_blame(self, "a copy with less is promoted", change->table, change->partition);
        }
    }
}

/* A primary that has started again with its log, and what was kept, have what
 * was acknowledged at `disk`; all others also what was at `replica`. */
static void check_acked(world_t *self, const ps_command_t *command, const ps_change_t *change,
                        const ps_copy_t *was, const world_node_t *node)
{
    uint64_t lsn = node->copies[change->table - 1][change->partition].lsn;
    uint64_t *acked = &self->acked[change->table - 1][change->partition];
    bool restarted =
        command->kind == PS_COMMAND_NODE && command->node.incarnation == node->incarnation;

    if ((was->state == PS_COPY_KEPT && !was->dropped) || restarted) {
        self->n_kept++;
        *acked = lsn < *acked ? lsn : *acked;
    }
    if (lsn < *acked || lsn < self->acked_disk[change->table - 1][change->partition]) {
        world_blame(self, "an acknowledged push is lost", change->table, change->partition);
    }
}

/* One that was dropped, has not begun anew and is not removed, may come back:
 * its rows are those of the primary that is lost. */
static bool has_what_is_lost(world_t *self, const ps_change_t *change, const ps_copies_t *old)
{
    for (uint32_t i = 0; i < old->n; i++) {
        const world_node_t *node = world_node(self, old->at[i].incarnation);

        if (old->at[i].dropped && node != NULL &&
            ps_copies_on(&change->copies, node->incarnation) != NULL &&
            !node->copies[change->table - 1][change->partition].partial) {
            return true;
        }
    }
    return false;
}

/* A copy of which nobody could know that it has nothing: in sync where a
 * decision gives up rows, any heir elsewhere where a node starts without. */
static bool is_spared(world_t *self, const ps_command_t *command, const ps_change_t *change,
                      const ps_copies_t *old)
{
    bool decided = command->kind == PS_COMMAND_COPIES;
    uint32_t n = 0;

    for (uint32_t i = 0; i < old->n; i++) {
        const ps_copy_t *copy = &old->at[i];
        const world_node_t *node = world_node(self, copy->incarnation);
        bool partial = node != NULL && node->copies[change->table - 1][change->partition].partial;

        n += (decided ? ps_copy_is_whole(copy) : ps_copy_is_heir(copy)) && !partial ? 1 : 0;
    }
    return n > (decided ? 0 : 1);
}

/* What is gone was not there any more. */
static void check_lost(world_t *self, const ps_command_t *command, const ps_change_t *change,
                       const ps_copies_t *old)
{
    if (!change->rows_lost) {
        return;
    }
    if (is_spared(self, command, change, old) || has_what_is_lost(self, change, old)) {
        world_blame(self, "rows are lost while another copy is whole", change->table,
                    change->partition);
    }
    self->lost[change->table - 1][change->partition] = command->epoch;
    self->acked[change->table - 1][change->partition] = 0;
    self->acked_disk[change->table - 1][change->partition] = 0;
}

static void check_lease(world_t *self, const ps_change_t *change, const world_node_t *node)
{
    if (node != NULL && self->now_ms < node->start_ms + WORLD_LEASE_MS) {
        world_blame(self, "a node that has just started is promoted", change->table,
                    change->partition);
    }
}

/* What may have more was waited for. */
static void check_patience(world_t *self, const ps_change_t *change, const ps_copies_t *old)
{
    for (uint32_t i = 0; i < old->n; i++) {
        const world_node_t *node = world_node(self, old->at[i].incarnation);

        if (ps_copy_is_whole(&old->at[i]) && node != NULL &&
            self->now_ms - node->beat_ms < WORLD_REPAIR_MS) {
            world_blame(self,
                        "what was kept is promoted before a whole copy "
                        "is given up",
                        change->table, change->partition);
        }
    }
}

static void check_primary(world_t *self, const ps_command_t *command, const ps_change_t *change,
                          const ps_copies_t *old)
{
    const ps_copy_t *primary = ps_copies_primary(&change->copies);
    const ps_copy_t *was = NULL;
    const world_node_t *node = NULL;

    if (primary == NULL) {
        return;
    }
    was = ps_copies_on(old, before_start(self, command, primary->incarnation));
    node = world_node(self, primary->incarnation);
    if ((was == NULL || !ps_copy_is_heir(was)) && change->rows_lost) {
        return; /* a new one, or one that was never whole: it is empty */
    }
    if (was == NULL || !ps_copy_is_heir(was)) {
        world_blame(self, "a copy that was not in sync is promoted", change->table,
                    change->partition);
        return;
    }
    if (node != NULL && !change->rows_lost) {
        check_acked(self, command, change, was, node);
    }
    if (old->fenced) {
        self->n_promoted++;
        check_lease(self, change, node);
        if (was->state == PS_COPY_KEPT) {
            check_patience(self, change, old);
        }
        check_greatest(self, change, old, node);
    } else if (was != NULL && was != &old->at[0]) {
        world_blame(self, "a primary changes without a fence", change->table, change->partition);
    }
}

static void check_fence(world_t *self, const ps_command_t *command, const ps_change_t *change,
                        const ps_copies_t *old)
{
    uint64_t primary = old->at[0].incarnation;

    if (old->fenced || !change->copies.fenced) {
        return;
    }
    if (ps_copies_n_heirs(&change->copies) < 1) {
        world_blame(self, "a fence for nobody", change->table, change->partition);
    }
    if (command->kind == PS_COMMAND_COPIES && change->prefer == 0 && !is_silent(self, primary)) {
        world_blame(self, "a fence without cause", change->table, change->partition);
    }
    self->n_moved += change->prefer != 0 ? 1 : 0;
}

/* A whole copy that is not whole any more has a reason. */
static void check_shrink(world_t *self, const ps_command_t *command, const ps_change_t *change,
                         const ps_copies_t *old)
{
    const ps_table_t *table = ps_registry_table_by_id(self->registry, change->table);

    if (command->kind != PS_COMMAND_COPIES) {
        return;
    }
    for (uint32_t i = 0; i < old->n; i++) {
        const ps_copy_t *now = ps_copies_on(&change->copies, old->at[i].incarnation);

        if (now == NULL && old->at[i].dropped && table->spec.replicas > 1 &&
            ps_copies_n_whole(&change->copies) < 2) {
            world_blame(self, "a dropped copy goes before another one is in sync", change->table,
                        change->partition);
        }
        if (!ps_copy_is_whole(&old->at[i])) {
            continue;
        }
        if (now == NULL && ps_copies_n_whole(&change->copies) < table->spec.replicas) {
            world_blame(self, "a whole copy goes that is needed", change->table, change->partition);
        }
        if (now != NULL && !ps_copy_is_heir(now) &&
            !self->out[change->table - 1][change->partition] &&
            !is_silent(self, now->incarnation)) {
            world_blame(self, "a copy is out of sync without cause", change->table,
                        change->partition);
        }
    }
}

void world_check_command(world_t *self, const ps_command_t *command)
{
    if (command->n_changes > 0 && command->epoch <= self->max_epoch) {
        world_blame(self, "an epoch is given twice", 0, 0);
    }
    for (size_t i = 0; i < command->n_changes; i++) {
        const ps_change_t *change = &command->changes[i];
        const ps_table_t *table = ps_registry_table_by_id(self->registry, change->table);
        const ps_copies_t *old = &table->copies[change->partition];

        if (ps_copies_check(&change->copies, NULL) != PSD_OK) {
            world_blame(self, "copies are in no order", change->table, change->partition);
        }
        check_lost(self, command, change, old);
        check_primary(self, command, change, old);
        check_fence(self, command, change, old);
        check_shrink(self, command, change, old);
        self->out[change->table - 1][change->partition] = false;
    }
    if (self->max_epoch < command->epoch) {
        self->max_epoch = command->epoch;
    }
}

/* Calm */

typedef struct counts {
    uint32_t copies[WORLD_NODES];
    uint32_t primaries[WORLD_NODES];
} counts_t;

static void check_partition(world_t *self, const ps_table_t *table, uint32_t at, counts_t *counts)
{
    const ps_copies_t *copies = &table->copies[at];

    if (copies->fenced || copies->n != table->spec.replicas ||
        ps_copies_n_whole(copies) != copies->n) {
        world_blame(self, "it did not become whole", table->id, at);
    }
    for (uint32_t i = 0; i < copies->n; i++) {
        const world_node_t *node = world_node(self, copies->at[i].incarnation);

        if (node == NULL || !node->alive || is_draining(self, copies->at[i].incarnation)) {
            world_blame(self, "a copy is on a node that drains or is gone", table->id, at);
            continue;
        }
        if (copies->at[i].leaving) {
            world_blame(self, "a copy does not leave", table->id, at);
        }
        counts->copies[node - self->nodes]++;
        counts->primaries[node - self->nodes] += i == 0 ? 1 : 0;
    }
}

/* Could one copy or primary of this partition go to a node that has two less?
 */
static void check_even(world_t *self, const ps_table_t *table, uint32_t at, const counts_t *counts)
{
    const ps_copies_t *copies = &table->copies[at];

    for (int to = 0; to < WORLD_NODES; to++) {
        const world_node_t *node = &self->nodes[to];
        const ps_copy_t *there = ps_copies_on(copies, node->incarnation);
        const ps_node_t *known = ps_registry_node_by_incarnation(self->registry, node->incarnation);

        if (known == NULL || known->draining) {
            continue;
        }
        for (uint32_t i = 0; i < copies->n; i++) {
            size_t from = (size_t)(world_node(self, copies->at[i].incarnation) - self->nodes);

            if (there == NULL && counts->copies[from] > counts->copies[to] + 1) {
                world_blame(self, "copies are uneven", table->id, at);
            }
            if (there != NULL && i == 0 && counts->primaries[from] > counts->primaries[to] + 1) {
                world_blame(self, "primaries are uneven", table->id, at);
            }
        }
    }
}

void world_check_whole(world_t *self)
{
    counts_t counts = {{0}, {0}};

    for (size_t i = 0; i < ps_registry_n_tables(self->registry); i++) {
        const ps_table_t *table = ps_registry_table_at(self->registry, i);

        for (uint32_t j = 0; j < table->spec.n_partitions; j++) {
            check_partition(self, table, j, &counts);
        }
    }
    for (size_t i = 0; self->wrong == NULL && i < ps_registry_n_tables(self->registry); i++) {
        const ps_table_t *table = ps_registry_table_at(self->registry, i);

        for (uint32_t j = 0; j < table->spec.n_partitions; j++) {
            check_even(self, table, j, &counts);
        }
    }
}
