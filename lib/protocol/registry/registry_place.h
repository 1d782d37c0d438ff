/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_loads - what copies each node has, and where the next one goes
 *
 * What     Loads of copies that stay (those that are leaving are not counted),
 *          so that what is placed while others move away is placed as if they
 *          were gone. A copy's load is its bytes, as far as they are known, and
 *          PS_COPY_LOAD for itself: without sizes, or with small ones, copies
 *          are counted. A node's share is its load by its weight.
 * Units    bytes; primaries in copies
 * Shape    nodes are counted as they lie in the registry; a change of nodes
 *          makes loads invalid
 * Owner    The caller; ps_loads_done.
 */
#ifndef PS_PROTOCOL_REGISTRY_PLACE_H
#define PS_PROTOCOL_REGISTRY_PLACE_H

#include "protocol/registry/registry_state.h"

#define PS_NO_PLACE SIZE_MAX

#define PS_COPY_LOAD (UINT64_C(16) << 20) /* of a copy that is empty */

typedef struct ps_loads {
    uint64_t *copies;    /* owned; of each node */
    uint64_t *primaries; /* owned; of each node: their number */
    uint64_t **shards;   /* owned; of each node, of copies on each shard */
} ps_loads_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_loads_count(const ps_registry_t *self, ps_loads_t *ret_loads,
                                           psd_error_t *err);
void ps_loads_done(ps_loads_t *self);

/* Where a node lies. The node is there. */
size_t ps_node_index(const ps_registry_t *self, uint64_t incarnation);
/* Up and not draining: it may be given copies. */
bool ps_node_takes(const ps_node_t *self);
uint32_t ps_node_weight(const ps_node_t *self);

/* What one copy of the partition weighs. */
uint64_t ps_copy_load(const ps_table_t *table, uint32_t partition);
/* Counts a copy of that load on the node's shard, or takes it away. */
void ps_loads_add(ps_loads_t *self, size_t node, uint32_t shard, uint64_t load);
void ps_loads_take(ps_loads_t *self, size_t node, uint32_t shard, uint64_t load);
/* True when a copy of that load that goes from one node to the other makes them
 * more even: `from` is then above its share by more than `slack` such copies.
 */
bool ps_loads_evens(const ps_loads_t *self, const ps_registry_t *registry, size_t from, size_t to,
                    uint64_t load, uint32_t slack);
/* The same of a primary that goes to a copy in sync. */
bool ps_loads_evens_primaries(const ps_loads_t *self, const ps_registry_t *registry, size_t from,
                              size_t to, uint32_t slack);
/* The node that would have the smallest share with a copy of that load, takes
 * copies and has none of these; of equal ones the first from `first` on, round
 * the end. PS_NO_PLACE: none. */
size_t ps_loads_best(const ps_loads_t *self, const ps_registry_t *registry,
                     const ps_copies_t *copies, uint64_t load, size_t first);
/* A copy on the node's emptiest shard. */
ps_copy_t ps_loads_copy(const ps_loads_t *self, const ps_registry_t *registry, size_t node,
                        ps_copy_state_t state);

/* Gives a new table's partitions their copies. Primaries go round the shards
 * (round the nodes by their weights): a table with a partition for every one
 * begins at the first, so that tables that are cut alike lie alike, and can be
 * worked on together; a smaller one begins one further than the table before,
 * so that they spread. Other copies go where the least is. Errors:
 * PSD_FEW_NODES, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_place(const ps_registry_t *self, uint64_t epoch,
                                              ps_table_t *table, psd_error_t *err);
#endif
