/* SPDX-License-Identifier: Apache-2.0 */
/* What the registry has, for those who make faults: which loss is survived. */
#include "protocol/replica/replicas.h"
#include "sim_cluster_lead.h"

const ps_table_t *cluster_registry_table(const cluster_t *self)
{
    const ps_registry_t *machine = self->registry->machine;

    if (machine == NULL && cluster_is_replicated(self)) {
        machine = cluster_members_state(self);
    }
    return machine == NULL ? NULL : ps_registry_table_by_id(machine, self->table);
}

/* The same for those who must know the last decision: NULL while none that is up has applied
 * all that was. */
static const ps_table_t *newest_table(const cluster_t *self)
{
    return !cluster_is_replicated(self) || cluster_members_know_all(self)
               ? cluster_registry_table(self)
               : NULL;
}

/* Whole by the map, or dropped last, and it has kept its rows since. */
static bool has_all(const cluster_t *self, const ps_copy_t *copy, uint32_t partition)
{
    const ps_partition_t *its = cluster_partition(self, copy->incarnation, copy->shard, partition);

    return ps_copy_is_whole(copy) ||
           (copy->dropped && its != NULL && its->replicas != NULL && ps_replicas_has_position(its));
}

/* By the registry, wherever that is. */
static bool is_heard(const cluster_t *self, uint32_t node)
{
    for (uint32_t i = 0; i < self->plan.n_members; i++) {
        if (i != node && cluster_is_cut(self, node, i)) {
            return false;
        }
    }
    return !cluster_is_cut(self, node, CLUSTER_REGISTRY);
}

/* All nodes that are up have announced themselves to this registry, which
 * may have restarted, and have its updates: an image without that is not
 * valid. */
bool cluster_registry_is_settled(const cluster_t *self)
{
    for (uint32_t i = 0; i < self->plan.n_nodes; i++) {
        char name[CLUSTER_NAME_SIZE];
        const ps_node_t *node = NULL;

        cluster_name(i, name);
        node = ps_registry_node(self->registry->machine, name);
        if (node != NULL && node->up &&
            ps_overseer_look(self->registry->overseer, node, self->now_ms).state != PS_HEALTH_UP) {
            return false;
        }
    }
    return ps_overseer_is_settled(self->registry->overseer);
}

/* It is whole and not silent. A copy that the registry takes for lost may
 * leave the in-sync set before the primary's loss is noticed, and is then
 * the second loss. */
static bool is_there(const cluster_t *self, const ps_copy_t *copy, uint32_t partition)
{
    uint32_t node = cluster_node_of(self, copy->incarnation);

    return node != CLUSTER_NOBODY && has_all(self, copy, partition) &&
           cluster_frozen(self, node) == 0 && is_heard(self, node);
}

/* When there are more copies than wanted, the registry may remove any of
 * them, while it does not know which are lost. */
bool cluster_registry_spares(const cluster_t *self, uint32_t node, uint32_t partition)
{
    const ps_table_t *table = newest_table(self);
    const ps_copies_t *copies = table == NULL ? NULL : &table->copies[partition];
    uint64_t own = self->nodes[node].incarnation;
    uint32_t n_whole = 0;
    uint32_t n_others = 0;

    for (uint32_t k = 0; copies != NULL && k < copies->n; k++) {
        const ps_copy_t *copy = &copies->at[k];

        n_whole += ps_copy_is_whole(copy) ? 1 : 0;
        n_others += copy->incarnation != own && is_there(self, copy, partition) ? 1 : 0;
    }
    return n_others > 0 && n_whole < n_others + self->plan.replicas;
}

bool cluster_registry_is_last(const cluster_t *self, uint32_t node, uint32_t partition)
{
    const ps_table_t *table = cluster_registry_table(self);
    const ps_copies_t *copies = table == NULL ? NULL : &table->copies[partition];
    bool is_own = table == NULL;
    bool any_lost = newest_table(self) == NULL;

    for (uint32_t k = 0; copies != NULL && k < copies->n; k++) {
        const ps_copy_t *copy = &copies->at[k];
        bool is_mine = copy->incarnation == self->nodes[node].incarnation;

        is_own = is_own || is_mine;
        if (!is_mine && is_there(self, copy, partition)) {
            return false;
        }
        any_lost = any_lost || (!is_mine && ps_copy_is_heir(copy));
    }
    return is_own && any_lost;
}

/* Its flushed data exists, and will last. */
static bool has_disk(const cluster_t *self, const ps_copy_t *copy)
{
    const cluster_node_t *node = &self->nodes[cluster_node_by(copy->incarnation)];

    return node->disk != NULL && !node->loses_disk && copy->incarnation >= node->disk_from;
}

/* Among the copies that it asked, the registry may also promote one that is
 * lost meanwhile, and leave out the rest. */
static bool may_lose(const cluster_t *self, uint32_t node, uint32_t partition,
                     const ps_copies_t *copies)
{
    uint32_t n_lost = 1;
    bool any = false;

    for (uint32_t k = 0; k < copies->n; k++) {
        const ps_copy_t *copy = &copies->at[k];

        if (ps_copy_is_heir(copy) && cluster_node_by(copy->incarnation) != node) {
            n_lost += has_disk(self, copy) ? 0 : 1;
            any = any || (has_disk(self, copy) && ps_copy_is_whole(copy) &&
                          is_there(self, copy, partition));
        }
    }
    return any && !copies->fenced && n_lost < self->plan.replicas;
}

bool cluster_registry_spares_disk(const cluster_t *self, uint32_t node)
{
    const ps_table_t *table = newest_table(self);

    for (uint32_t i = 0; table != NULL && i < self->plan.n_partitions; i++) {
        if (!may_lose(self, node, i, &table->copies[i])) {
            return false;
        }
    }
    return table != NULL;
}
