/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk_world - nodes, copies and time around a registry, from one seed
 *
 * What     What nodes do when they keep to registry_decide.h, in a few lines: a
 *          primary pushes, sends to its copies, counts what all whole ones have
 *          or have flushed, as acknowledged; nodes die, freeze, start again
 *          with or without their log, one or all of them, drain, are removed;
 *          fences, answers, maps and reports are late or lost; the registry is
 *          loaded again from the commands that it has stored. Every change of
 *          the copies is held against what it may be (walk_check.c).
 * Owner    One world at a time, in the caller; world_done frees it.
 */
#ifndef PS_TESTS_WALK_WORLD_H
#define PS_TESTS_WALK_WORLD_H

#include "base/rng.h"
#include "protocol/placement/registry_decide.h"
#include "support/registry_fixture.h"

#define WORLD_NODES 5
#define WORLD_TABLES 3
#define WORLD_PARTITIONS 4
#define WORLD_SUSPECT_MS 400
#define WORLD_REPAIR_MS 2000
#define WORLD_LEASE_MS 300
#define WORLD_CATCH_UP_MS 1500

/* What a node has of one partition. */
typedef struct world_copy {
    uint64_t epoch;         /* it takes nothing older */
    uint64_t lsn;           /* what it has */
    uint64_t lsn_epoch;     /* of that record */
    uint64_t flushed;       /* what a start with the log finds again */
    uint64_t flushed_epoch; /* of that record */
    uint64_t asked;         /* the epoch of a fence that it has not answered yet */
    bool partial;           /* it has begun anew, and nothing has come */
    bool serves;            /* it is the primary, and not fenced */
    uint8_t waits;          /* primary: copies reported as caught up, as bits */
    ps_copies_t map;        /* as it was told */
} world_copy_t;

typedef struct world_node {
    char name[8];
    uint64_t incarnation; /* 0: it has never been started */
    bool alive;
    bool frozen; /* neither hears nor says anything */
    bool joined; /* the registry knows this incarnation */
    bool kept;   /* it started with its log */
    bool logged; /* … which was there when a life of it joined */
    uint64_t start_ms;
    uint64_t beat_ms;
    uint32_t n_shards;
    world_copy_t copies[WORLD_TABLES][WORLD_PARTITIONS];
} world_node_t;

typedef struct world {
    uint64_t seed;
    ps_rng_t rng;
    uint64_t now_ms;
    uint64_t incarnations;
    uint64_t max_epoch; /* of all commands */
    ps_registry_t *registry;
    ps_registry_t *follower; /* is fed with the bytes of the same commands */
    ps_command_t *log;       /* owned; stored commands */
    size_t n_log;
    size_t max_log;
    world_node_t nodes[WORLD_NODES];
    uint64_t acked[WORLD_TABLES][WORLD_PARTITIONS];      /* lsn that all had */
    uint64_t acked_disk[WORLD_TABLES][WORLD_PARTITIONS]; /* … had flushed */
    uint64_t lost[WORLD_TABLES][WORLD_PARTITIONS];       /* epoch of the last loss */
    bool out[WORLD_TABLES][WORLD_PARTITIONS];            /* reported in this epoch */
    uint32_t n_promoted;
    uint32_t n_moved;
    uint32_t n_kept;   /* promotions of what was kept */
    const char *wrong; /* the first broken promise; NULL */
    char where[128];
} world_t;

void world_make(world_t *self, uint64_t seed);
void world_done(world_t *self);
/* n random steps. */
void world_walk(world_t *self, int n);
/* Faults stop; everything becomes whole, or it is said what did not. */
void world_calm(world_t *self);

static inline bool world_chance(world_t *self, uint32_t one_in)
{
    return ps_rng_below(&self->rng, one_in) == 0;
}

/* walk_node.c: a node starts, hears what the registry has of a partition,
 * serves it when it is the primary, and answers a fence. */
void world_node_start(world_t *self, world_node_t *node, bool kept);
void world_node_tell(world_t *self, world_node_t *node, const ps_table_t *table, uint32_t at);
void world_node_serve(world_t *self, world_node_t *node, uint32_t table, uint32_t at, bool calm);
void world_node_answer(world_t *self, world_node_t *node, uint32_t table, uint32_t at, bool calm);

/* walk_check.c */
void world_blame(world_t *self, const char *what, uint32_t table, uint32_t at);
/* Before the command is applied. */
void world_check_command(world_t *self, const ps_command_t *command);
void world_check_whole(world_t *self);
world_node_t *world_node(world_t *self, uint64_t incarnation);
#endif
