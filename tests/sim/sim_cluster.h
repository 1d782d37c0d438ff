/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_cluster - nodes that hold copies of a partition, in one thread, by a seed
 *
 * What     Two or three shards of the core with a copy each; a network between
 *          all of them that loses, repeats, delays, reorders and cuts one way;
 *          a node that crashes with all that it knew, nodes that freeze, clocks
 *          that differ; a registry that fences and promotes; clients that push
 *          at levels memory and replica, or work in a job with max_delay 0.
 *          Each push adds 1 to a row of its own, so that rows say what was
 *          applied how often.
 * Checks   W1 what was acknowledged at replica is in every later answer, once,
 *          after the loss of any one node · W2 an answer's level is no lower
 *          than asked · W3 each client's pushes are taken in order · A3 nobody
 *          answers under an epoch that another one's answers have ended · C1,
 *          C2 a pull in clock c + 1 sees the pushes of clocks 1 .. c and no
 *          others · copies in sync have the same records · all ends in the end
 * Shape    sim_cluster_run.c   the plan, time, the network, the loop
 *          sim_cluster_node.c  shards, and the registry
 *          sim_cluster_client.c clients and what they check
 * Units    virtual ms of the world; a node's own clock differs
 */
#ifndef PS_TESTS_SIM_CLUSTER_H
#define PS_TESTS_SIM_CLUSTER_H

#include <stdio.h>

#include "base/map.h"
#include "base/rng.h"
#include "protocol/shard.h"
#include "protocol/shard_links.h"

#define CLUSTER_NODES_MAX 3
#define CLUSTER_CLIENTS_MAX 4
#define CLUSTER_PUSHES_MAX 24 /* of a client */
#define CLUSTER_ROWS (CLUSTER_CLIENTS_MAX * CLUSTER_PUSHES_MAX)
#define CLUSTER_OPS_MAX 96 /* of a client */
#define CLUSTER_RECORDS_MAX 1024
#define CLUSTER_LINKS_MAX 64
#define CLUSTER_TABLE 7
#define CLUSTER_JOB 3
#define CLUSTER_REGISTRY CLUSTER_NODES_MAX /* its place among the cuts */
#define CLUSTER_CALM_MS 4000               /* nothing goes wrong behind it */
#define CLUSTER_END_MS 20000

/* One operation of a client. */
typedef struct cluster_op {
    ps_kind_t kind; /* PUSH, MARK or PULL */
    bool pull;      /* a PUSH that wants its row back */
    uint32_t row;   /* PUSH */
    uint8_t ack;    /* PUSH; the level asked for */
    uint64_t seq;   /* PUSH and MARK */
    uint64_t after; /* PULL */
    uint64_t clock;
    bool sent;
    bool done;
    uint64_t epoch;          /* that its answer was given in */
    bool seen[CLUSTER_ROWS]; /* PULL: acknowledged before it was sent first */
} cluster_op_t;

typedef struct cluster_client {
    cluster_op_t ops[CLUSTER_OPS_MAX];
    size_t n_ops;
    size_t n_done;    /* from the front */
    size_t window;    /* operations under way at once */
    bool memory;      /* it asks for no more than level memory */
    uint64_t pace_ms; /* between two new operations */
    uint64_t next_ms; /* no new one before */
    uint64_t sent_ms; /* last time that it sent anything */
    uint32_t node;    /* that it asks */
    uint64_t epoch;   /* by the map that it has */
    bool broken;      /* pushes that it has had acknowledged at memory are gone
                       */
} cluster_client_t;

typedef struct cluster_node {
    ps_shard_t *shard; /* owned; NULL: crashed */
    uint64_t incarnation;
    int64_t offset_ms; /* of its clock */
    int64_t drift;     /* thousandths by which it runs faster */
    uint64_t wake_ms;
    uint64_t told_epoch;
    uint32_t peer_of[CLUSTER_LINKS_MAX]; /* node at each link that it opened */
    uint64_t lsn;                        /* records that it made or took */
    uint64_t sums[CLUSTER_RECORDS_MAX];  /* of the records, by lsn */
    uint64_t seqs[CLUSTER_CLIENTS_MAX];  /* the last one in its records */
} cluster_node_t;

typedef enum cluster_event_kind {
    CLUSTER_MESSAGE = 1, /* bytes of one to node or client */
    CLUSTER_TICK = 2,    /* a node's */
    CLUSTER_CLIENT = 3,  /* a client looks what it can do */
    CLUSTER_REGISTRY_TICK = 4,
    CLUSTER_TELL = 5,     /* a map arrives at a node */
    CLUSTER_FENCE = 6,    /* arrives at a node */
    CLUSTER_POSITION = 7, /* arrives at the registry */
    CLUSTER_BEAT = 8
} cluster_event_kind_t;

typedef struct cluster_event {
    uint64_t at_ms;
    uint64_t order;
    cluster_event_kind_t kind;
    uint32_t to; /* node; or client, when to_client */
    bool to_client;
    uint64_t conn;     /* as the receiver knows it */
    ps_buffer_t bytes; /* owned; of one message */
    ps_copies_t *map;  /* owned; TELL */
    uint64_t epoch;
    uint64_t lsn;
    uint32_t from;
    uint32_t sender; /* MESSAGE: its place */
} cluster_event_t;

/* What the registry knows of the partition. */
typedef struct cluster_registry {
    uint64_t epoch;
    uint32_t primary;                /* node */
    bool in_sync[CLUSTER_NODES_MAX]; /* the primary, too */
    uint64_t beat_ms[CLUSTER_NODES_MAX];
    bool bad[CLUSTER_NODES_MAX]; /* reported by the primary */
    bool fencing;
    bool answered[CLUSTER_NODES_MAX];
    uint64_t position[CLUSTER_NODES_MAX];
} cluster_registry_t;

typedef struct cluster_plan {
    uint32_t n_nodes;
    uint32_t n_clients;
    bool bsp;
    ps_table_spec_t spec;
    uint32_t loss;   /* of 1000 */
    uint32_t repeat; /* of 1000 */
    uint32_t delay_ms;
    uint32_t crash; /* node, or UINT32_MAX */
    uint64_t crash_ms;
    uint32_t frozen; /* node, or UINT32_MAX */
    uint64_t freeze_ms;
    uint64_t freeze_end_ms;
    uint32_t cut_from[2]; /* node or registry; UINT32_MAX: none */
    uint32_t cut_to[2];
    uint64_t cut_ms[2];
    uint64_t cut_end_ms[2];
    uint64_t tail_bytes;
    uint64_t flight_bytes;
} cluster_plan_t;

typedef struct cluster {
    cluster_plan_t plan;
    ps_rng_t rng;
    uint64_t now_ms;
    uint64_t order;
    cluster_event_t *events; /* owned */
    size_t n_events;
    size_t capacity;
    cluster_node_t nodes[CLUSTER_NODES_MAX];
    cluster_registry_t registry;
    cluster_client_t clients[CLUSTER_CLIENTS_MAX];
    bool acked[CLUSTER_ROWS];          /* at replica */
    uint64_t push_clock[CLUSTER_ROWS]; /* BSP: in which clock; 0: no push */
    uint64_t answer_epoch; /* the highest that was answered under … */
    uint32_t answer_node;  /* … and by whom */
    uint64_t n_handled;    /* events */
    uint64_t n_answers;
    uint64_t n_promotions;
    FILE *trace;
    bool failed;
    char violation[256];
} cluster_t;

/* sim_cluster_run.c */
void PSD_PRINTF(2, 3) cluster_fail(cluster_t *self, const char *format, ...);
void PSD_PRINTF(2, 3) cluster_trace(cluster_t *self, const char *format, ...);
_Noreturn void cluster_stop(const char *what);
cluster_event_t *cluster_at(cluster_t *self,
                            uint64_t at_ms,
                            cluster_event_kind_t kind,
                            uint32_t to);
/* When something between two places arrives; 0: never. */
uint64_t cluster_way(cluster_t *self, uint32_t from, uint32_t to);
/* A message on its way, lost or doubled by chance. from, to: places for cuts;
 * a client's is that of no node. */
void cluster_send(cluster_t *self,
                  uint32_t from,
                  uint32_t to,
                  bool to_client,
                  uint64_t conn,
                  const ps_message_t *message,
                  const ps_payload_t *payload);
/* Runs the world of a seed; the first violation, or NULL. */
const char *cluster_run(uint64_t seed, FILE *trace, cluster_t *self);
/* Runs n seeds; the first that fails, or UINT64_MAX. */
uint64_t cluster_search(uint64_t first, uint64_t n, bool verbose);

/* sim_cluster_node.c */
void cluster_nodes_start(cluster_t *self);
void cluster_nodes_done(cluster_t *self);
/* Steps the shard of a node that lives. */
void cluster_node_step(cluster_t *self, uint32_t node, ps_event_t *event);
void cluster_node_event(cluster_t *self, const cluster_event_t *event);
void cluster_registry_tick(cluster_t *self);
void cluster_nodes_compare(cluster_t *self);

/* sim_cluster_client.c */
void cluster_clients_start(cluster_t *self);
void cluster_client_tick(cluster_t *self, uint32_t client);
void cluster_client_received(cluster_t *self,
                             uint32_t client,
                             const ps_message_t *message,
                             const ps_body_t *body);
void cluster_clients_finish(cluster_t *self);
#endif
