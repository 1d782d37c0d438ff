/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan - what a run of fault_nodes shall play, and what follows from it
 *
 * Shape    read from KEY=VALUE; a key that is not given keeps what was there
 * Threads  a plain value
 */
#ifndef PS_TESTS_PLAN_H
#define PS_TESTS_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "support/cluster.h"
#include "support/ledger.h"

#define FAULT_KILL 1U
#define FAULT_FREEZE 2U
#define FAULT_CUT 4U
#define FAULT_SLOW 8U
#define FAULT_ALL 16U  /* every node is killed at once */
#define FAULT_FULL 32U /* the node's disk takes no more */
#define FAULT_AWAY                                            \
    64U /* the registry's node is away, alone or with another \
         */

typedef struct plan {
    unsigned nodes;
    unsigned replicas;
    ledger_level_t ack;
    unsigned faults; /* a set of the above */
    cluster_net_t net;
    unsigned rounds;
    uint64_t seed;
    time_t seconds; /* instead of rounds; 0: rounds count */
    unsigned logs;  /* 1: those of the nodes are printed at the end */
    unsigned apart; /* 1: the registry's node has no copies */
    unsigned moves; /* 1: nodes join, drain and come back in the middle */
    unsigned why;   /* 1: who waits long must be told a cause */
} plan_t;

/* Takes one KEY=VALUE. false: not understood. */
bool plan_read(plan_t *self, const char *text);
/* Whether what was acknowledged outlives a node that is killed. */
bool plan_survives(const plan_t *self);
/* Whether the job goes on while that node is away. */
bool plan_goes_on_without(const plan_t *self, unsigned node);
#endif
