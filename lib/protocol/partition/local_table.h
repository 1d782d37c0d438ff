/* SPDX-License-Identifier: Apache-2.0 */
/* A table, with the partitions of it that are on this shard. */
#ifndef PS_PROTOCOL_LOCAL_TABLE_H
#define PS_PROTOCOL_LOCAL_TABLE_H

#include "protocol/partition/partition.h"
#include "wire/messages/route.h"

typedef struct ps_local_table {
    uint32_t id;
    ps_table_spec_t spec;        /* owned copy */
    ps_table_use_t use;          /* the memory used for it here */
    bool was_found;              /* on the disk, at startup */
    bool aside;                  /* the registry does not know it: nobody is served, until the
                                    registry names it again */
    uint64_t lost_sessions;      /* sessions up to this one used rows of it that
                                    are gone, here or elsewhere; never falls */
    ps_route_t *routes;          /* owned; spec.n_partitions, in order */
    ps_partition_t **partitions; /* owned; NULL if the partition is elsewhere */
} ps_local_table_t;

#endif
