/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_lost - copies that a node can no longer read
 *
 * What     Partitions of a table on one shard whose files were damaged at
 *          startup. A node's range may include partitions that are not on that
 *          shard, because it does not know which are.
 * Threads  a plain value
 */
#ifndef PS_PROTOCOL_LOST_H
#define PS_PROTOCOL_LOST_H

#include "wire/messages/doc.h"

#define PS_LOST_MAX 4096 /* listed one by one; more than this become "all tables" */

typedef struct ps_lost {
    uint32_t shard;
    uint32_t table; /* 0: all tables */
    uint32_t first; /* partition */
    uint32_t last;  /* the same, or higher */
} ps_lost_t;

/* True when an entry covers the partition of that table on that shard. */
bool ps_lost_has(const ps_lost_t *lost, size_t n, uint32_t shard, uint32_t table,
                 uint32_t partition);
#endif
