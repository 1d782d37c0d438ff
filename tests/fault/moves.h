/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moves - partitions move while things fail: a node joins, others drain
 *
 * What     Turns: a node more joins, a node is drained, it is let stay again,
 *          another one drains, and so on. A turn only begins a move; faults
 *          fall into its middle. At its end the node that drains has nothing
 *          left.
 * Owner    The caller. Borrows the cluster, and the view to its registry.
 * Threads  Confined to one.
 */
#ifndef PS_TESTS_MOVES_H
#define PS_TESTS_MOVES_H

#include <stdbool.h>

#include "base/rng.h"
#include "support/cluster.h"
#include "view.h"

/* Rows that a job of moves has, and what a node sends of them in a second: a
 * move takes as long as a fault does. */
#define MOVES_ROWS 30000
#define MOVES_CONFIG "copies:\n  bytes_per_s: 512KiB\n"

typedef struct moves {
    cluster_t *cluster;
    view_t *view;
    unsigned drained; /* 0: none; the registry's node never is */
    unsigned n_turns;
} moves_t;

/* false: the node does not start, or the registry refuses; why is on stderr. */
bool moves_begin(moves_t *self, ps_rng_t *rng);
/* Waits until all that is to move has moved. */
bool moves_end(moves_t *self);
#endif
