/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_plan - the plan of a seed
 *
 * What     A plain value: the size of a world, the behaviour of its network and
 *          disks, and its faults with their times.
 * Units    virtual ms of the world
 */
#ifndef PS_TESTS_SIM_CLUSTER_PLAN_H
#define PS_TESTS_SIM_CLUSTER_PLAN_H

#include <stdio.h>

#include "protocol/placement/registry_decide.h"

#define CLUSTER_NODES_MAX 5
#define CLUSTER_SHARDS_MAX 2 /* of a node */
#define CLUSTER_PARTITIONS_MAX 4
#define CLUSTER_CLIENTS_MAX 4
#define CLUSTER_PUSHES_MAX 24 /* of a client */
#define CLUSTER_FAULTS_MAX 12
/* Rows of a partition: all pushes may go there. */
#define CLUSTER_ROWS (CLUSTER_CLIENTS_MAX * CLUSTER_PUSHES_MAX)

typedef enum cluster_fault_kind {
    CLUSTER_CRASH = 1,  /* a node, or the registry; restarts at the end */
    CLUSTER_FREEZE = 2, /* likewise; resumes at the end */
    CLUSTER_CUT = 3,    /* nothing arrives from `who` at `to` */
    CLUSTER_LATE = 4,   /* the registry's letters arrive late at `who` */
    CLUSTER_DRAIN = 5,  /* a node that drains; it may stay at the end */
    CLUSTER_ABSENT = 6, /* a node that is absent before the end */
    CLUSTER_ALL = 7,    /* all nodes crash; they restart from the end on */
    CLUSTER_FULL = 8,   /* the disk of a node; has room again at the end */
    CLUSTER_STILL = 9,  /* likewise; accepts nothing before the end */
    CLUSTER_FAILS = 10  /* likewise; some of its operations fail */
} cluster_fault_kind_t;

/* What a crash leaves on a node's disk. */
typedef enum cluster_loss {
    CLUSTER_WRITTEN = 0, /* everything that was written */
    CLUSTER_FLUSHED = 1, /* what was flushed, and any part of the rest */
    CLUSTER_DISK = 2     /* nothing, if other copies have everything; else as
                          * above */
} cluster_loss_t;

typedef struct cluster_fault {
    cluster_fault_kind_t kind;
    uint32_t who;
    uint32_t to;
    cluster_loss_t loss; /* CRASH, ALL */
    uint64_t at_ms;
    uint64_t end_ms;
    bool begun;
    bool ended;
} cluster_fault_t;

typedef struct cluster_plan {
    uint64_t seed;
    uint64_t luck; /* the same plan in another weather */
    uint32_t n_nodes;
    uint32_t n_shards[CLUSTER_NODES_MAX];
    uint32_t n_members; /* of the registry, on the first nodes; 0: it is alone, on a place of its
                         * own */
    uint32_t tears;     /* of 1000 flushes of a member, before which its disk stops in the middle
                         * of an operation */
    uint32_t cut_every; /* entries, after which a member cuts its log; 0: never */
    uint32_t n_clients;
    uint32_t n_partitions;
    uint32_t replicas;
    bool job;            /* the clients are its workers */
    bool comes;          /* they come and go */
    uint32_t n_expected; /* workers that are expected */
    int32_t max_delay;   /* of the job */
    uint32_t n_clocks;   /* of the job */
    uint32_t n_pushes;   /* of each client, at most */
    uint32_t loss;       /* of 1000 messages */
    uint32_t repeat;     /* of 1000 */
    uint32_t delay_ms;
    uint64_t tail_bytes;
    uint64_t flight_bytes;
    bool disk;        /* the table has a log */
    uint32_t disk_ms; /* most items of one turn of a disk */
    uint64_t log_queue_bytes;
    uint32_t falls;         /* of 1000 stored decisions, after which the
                             * registry crashes before it sends them */
    uint64_t checkpoint_ms; /* between two; 0: there are none */
    bool forgets;           /* partitions know fewer clients than there are */
    bool versions;          /* rows have versions, so a checkpoint may have
                             * only the changed rows */
    ps_combine_t combine;   /* of the table */
    cluster_fault_t faults[CLUSTER_FAULTS_MAX];
    uint32_t n_faults;
} cluster_plan_t;

void cluster_plan_make(uint64_t seed, cluster_plan_t *ret_plan);
void cluster_plan_print(const cluster_plan_t *plan, FILE *to);
void cluster_spec_make(const cluster_plan_t *plan, ps_table_spec_t *ret_spec);
ps_ack_t cluster_table_ack(const cluster_plan_t *plan);
#endif
