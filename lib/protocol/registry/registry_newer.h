/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_registry_plan_newer - copies that nodes have are newer than what the registry knows
 *
 * What     A registry that was restored from a backup, or forced from a log that lacks
 *          the last changes, does not know which copies were moved or promoted since.
 *          Nodes say which copies they have, and of which epoch. Where one is of a later
 *          epoch than the registry's line of the map, those of the latest are the heirs,
 *          and the registry asks them for their positions, as where a primary is lost.
 *          Elsewhere a copy on a node that has nothing of the partition is no heir.
 * Owner    The caller. Threads: pure functions.
 */
#ifndef PS_PROTOCOL_REGISTRY_NEWER_H
#define PS_PROTOCOL_REGISTRY_NEWER_H

#include "protocol/registry/registry.h"

/* A copy that a node has. */
typedef struct ps_witness {
    uint32_t table;
    uint32_t partition;
    uint64_t incarnation; /* of the node */
    uint32_t shard;
    uint64_t epoch; /* of the line of the map that it goes by */
} ps_witness_t;

/* What nodes have said. */
typedef struct ps_testimony {
    const ps_witness_t *copies; /* in the order of ps_witness_compare */
    size_t n_copies;
    const uint64_t *nodes; /* incarnations of those that have said all that they have */
    size_t n_nodes;
    const ps_witness_t *before; /* epochs of the registry's lines before nodes came, in the same
                                   order; a line that is not there had its present one */
    size_t n_before;
} ps_testimony_t;

/* For qsort: by table, then by partition. */
int ps_witness_compare(const void *a, const void *b);
/* The command COPIES, for a cluster in which nobody has learnt of the registry's map yet.
 * Kind 0: the registry knows it all. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_newer(const ps_registry_t *self,
                                                   const ps_testimony_t *testimony,
                                                   uint64_t unix_ms, ps_command_t *ret_command,
                                                   psd_error_t *err);
#endif
