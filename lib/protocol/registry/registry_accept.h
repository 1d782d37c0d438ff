/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_found - a table that nodes keep aside becomes one of the registry's again
 *
 * What     Nodes say which copies of its partitions they have. The newest whole copy
 *          of each becomes the primary, as where a primary is lost; the others catch
 *          up. The epoch is above all that nodes have, so that no copy takes the new
 *          map for an older one.
 * Owner    The caller. Threads: pure functions.
 */
#ifndef PS_PROTOCOL_REGISTRY_ACCEPT_H
#define PS_PROTOCOL_REGISTRY_ACCEPT_H

#include "protocol/registry/registry.h"

/* A copy that a node has. */
typedef struct ps_found {
    uint32_t partition;
    uint64_t incarnation; /* of the node */
    uint32_t shard;
    uint64_t epoch;
    uint64_t lsn; /* of its last record … */
    uint64_t lsn_epoch;
    bool whole; /* it has rows for all of that */
    uint64_t rows;
    uint64_t bytes;
} ps_found_t;

/* The copy from which the partition goes on; NULL: no node has a whole one. */
const ps_found_t *ps_found_best(const ps_found_t *found, size_t n, uint32_t partition);

/* What is to be accepted. */
typedef struct ps_accept {
    uint32_t table; /* its number */
    const ps_table_spec_t *spec;
    const ps_found_t *found;
    size_t n_found;
    bool with_loss; /* partitions that nobody has start empty */
} ps_accept_t;

/* The command TABLE. Partitions that nobody has whole are placed on nodes that are up,
 * empty, and the table lost rows. Errors: PSD_DAMAGED there are such partitions, and
 * not with_loss; PSD_TABLE_EXISTS the name or the number is another table's;
 * PSD_UNSUPPORTED it does not combine each, in a cluster of machine version 1;
 * PSD_FEW_NODES, PSD_LIMIT, PSD_INVALID the spec, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_accept(const ps_registry_t *self,
                                                    const ps_accept_t *accept, uint64_t unix_ms,
                                                    ps_command_t *ret_command, psd_error_t *err);
#endif
