/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_loads - the load of each node, and where the next copy goes
 *
 * What     Loads of copies that stay. Leaving copies do not count, so new
 *          copies are placed as if those were gone. A copy's load is its bytes,
 *          as far as known, plus PS_COPY_LOAD: with unknown or small sizes,
 *          this counts copies. A node's share is its load divided by its
 *          weight.
 * Units    bytes; primaries in copies
 * Shape    nodes have the registry's order; a change of nodes makes loads
 *          invalid
 * Owner    The caller; ps_loads_done.
 */
#ifndef PS_PROTOCOL_REGISTRY_PLACE_H
#define PS_PROTOCOL_REGISTRY_PLACE_H

#include "protocol/registry/registry_state.h"

#define PS_NO_PLACE SIZE_MAX

#define PS_COPY_LOAD (UINT64_C(16) << 20) /* of an empty copy */

typedef struct ps_loads {
    uint64_t *copies;    /* owned; of each node */
    uint64_t *primaries; /* owned; of each node: their number */
    uint64_t **shards;   /* owned; of each node, of copies on each shard */
} ps_loads_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_loads_count(const ps_registry_t *self, ps_loads_t *ret_loads,
                                           psd_error_t *err);
void ps_loads_done(ps_loads_t *self);

/* The index of a node, which must exist. */
size_t ps_node_index(const ps_registry_t *self, uint64_t incarnation);
/* Up and not draining: it may get copies. */
bool ps_node_takes(const ps_node_t *self);
uint32_t ps_node_weight(const ps_node_t *self);

/* The load of one copy of the partition. */
uint64_t ps_copy_load(const ps_table_t *table, uint32_t partition);
/* Adds a copy of that load to the node's shard, or removes it. */
void ps_loads_add(ps_loads_t *self, size_t node, uint32_t shard, uint64_t load);
void ps_loads_take(ps_loads_t *self, size_t node, uint32_t shard, uint64_t load);
/* True when moving a copy of that load from one node to the other makes them
 * more even: `from` is then above its share by more than `slack` such copies.
 */
bool ps_loads_evens(const ps_loads_t *self, const ps_registry_t *registry, size_t from, size_t to,
                    uint64_t load, uint32_t slack);
/* The same for moving a primary to a copy in sync. */
bool ps_loads_evens_primaries(const ps_loads_t *self, const ps_registry_t *registry, size_t from,
                              size_t to, uint32_t slack);
/* The node that takes copies, has none of these, and would have the smallest
 * share with a copy of that load; of equal ones the first from `first` on, with
 * wrap-around. PS_NO_PLACE: none. */
size_t ps_loads_best(const ps_loads_t *self, const ps_registry_t *registry,
                     const ps_copies_t *copies, uint64_t load, size_t first);
/* A copy on the node's emptiest shard. */
ps_copy_t ps_loads_copy(const ps_loads_t *self, const ps_registry_t *registry, size_t node,
                        ps_copy_state_t state);

/* Places the copies of a new table's partitions. Primaries go round-robin over
 * the shards (over the nodes by weight). A table with a partition for every
 * shard begins at the first, so that tables with the same partitioning have the
 * same placement and can be used together. A smaller table begins one further
 * than the table before, so that they spread. Other copies go to the least
 * loaded nodes. Errors: PSD_FEW_NODES, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_place(const ps_registry_t *self, uint64_t epoch,
                                              ps_table_t *table, psd_error_t *err);
#endif
