/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_copies - who holds a partition, by the registry's decision
 *
 * What     The primary answers clients; in-sync copies have every record that
 *          was acknowledged at `replica`; one that catches up does not yet.
 *          Each change has an epoch of its own.
 */
#ifndef PS_PROTOCOL_COPIES_H
#define PS_PROTOCOL_COPIES_H

#include "wire/route.h"

#define PS_COPIES_MAX 8

typedef enum ps_copy_state {
    PS_COPY_PRIMARY = 1,
    PS_COPY_IN_SYNC = 2,
    PS_COPY_CATCHING_UP = 3
} ps_copy_state_t;

typedef struct ps_copy {
    uint64_t incarnation; /* of the node */
    uint32_t shard;       /* number within the node */
    ps_copy_state_t state;
    char tcp[PS_ENDPOINT_MAX + 1]; /* "tcp://host:port" */
} ps_copy_t;

typedef struct ps_copies {
    uint64_t epoch;
    bool fenced; /* there is no primary now: one of those in sync becomes it */
    uint32_t n;
    ps_copy_t at[PS_COPIES_MAX]; /* the primary first */
} ps_copies_t;
#endif
