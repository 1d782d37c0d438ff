/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_quorum - members of a registry, their disks, network and clients, in one thread
 *
 * What     Runs ps_quorum in places that crash, freeze, are cut off, join and
 *          leave. Everything follows from a seed, on a virtual clock of ms.
 *          Checked: one leader in a term; all members apply the same entries; what
 *          was answered stays; a read under the lease is not stale; nothing is
 *          applied that the own disk does not have; once all is well, commands are
 *          answered and all members are equal.
 * Shape    sim_quorum_disk.c a disk, sim_quorum_place.c what drives a member,
 *          sim_quorum_faults.c what goes wrong, sim_quorum_run.c the world.
 */
#ifndef PS_TESTS_SIM_QUORUM_H
#define PS_TESTS_SIM_QUORUM_H

#include <stdio.h>

#include "base/rng.h"
#include "protocol/quorum/quorum.h"
#include "protocol/quorum/quorum_cache.h"

#define PLACES 7
#define KEYS 4
#define ELECTION_MS 200
#define VOTES_PATIENCE_MS 800
#define HEARTBEAT_MS 40
#define SLOTS 1024 /* of the network: ms that a message may travel */
#define INDEXES_MAX 65536
#define TERMS_MAX 8192
#define ASKED_MAX 64   /* commands that a place has not answered */
#define TOGETHER_MAX 4 /* … in one proposal */

/* A database: the state of a member. */
typedef struct db {
    ps_quorum_snapshot_t at;
    uint64_t chain;         /* of everything applied */
    uint64_t written[KEYS]; /* the index of the last command of each key */
} db_t;

typedef struct write {
    ps_quorum_effect_kind_t kind; /* BEGIN, CUT, EXTEND */
    uint64_t op;
    uint64_t index;
    ps_quorum_entry_t *entries; /* owned */
    size_t n;
    uint64_t due_ms;
    bool is_install;
    db_t db;
} write_t;

typedef struct disk {
    uint64_t life;
    uint64_t term;
    uint64_t vote;
    bool has_db;
    db_t db;
    ps_quorum_cache_t log;
    write_t *writes; /* not flushed yet, in order */
    size_t n_writes;
    size_t capacity;
} disk_t;

typedef struct asked {
    uint64_t index;
    uint64_t term;
    uint64_t id;
    uint64_t key;
} asked_t;

typedef struct place {
    ps_quorum_t *quorum; /* NULL: it is down */
    uint64_t id;         /* of the member; another one after the disk is lost */
    uint64_t offset_ms;  /* of its clock */
    uint64_t up_ms;      /* when it starts again */
    uint64_t frozen_ms;  /* until when */
    disk_t disk;
    db_t db;    /* in memory */
    db_t inbox; /* a database that came */
    bool has_inbox;
    bool is_install;   /* the next BEGIN is of an install */
    uint64_t flush_ms; /* when the database is flushed that was begun; 0: none */
    db_t flushing;
    asked_t asked[ASKED_MAX];
    size_t n_asked;
    uint64_t last_term; /* of the TERM that it proposed */
} place_t;

typedef struct parcel {
    size_t from;
    uint64_t to;       /* a member's id */
    ps_buffer_t bytes; /* a message, or else a database */
    db_t *db;
} parcel_t;

typedef struct slot {
    parcel_t *at;
    size_t n;
    size_t capacity;
} slot_t;

typedef struct weather {
    uint64_t loss; /* of 1000 messages */
    uint64_t repeat;
    uint64_t late;     /* of 1000: far later */
    bool has_order;    /* messages of a pair arrive in order */
    uint64_t fault_ms; /* one fault in so many ms */
    uint64_t change_ms;
    uint64_t disk_ms; /* a flush takes up to */
} weather_t;

typedef struct world {
    ps_rng_t rng;
    uint64_t now;
    weather_t weather;
    bool is_calm; /* nothing goes wrong any more */
    place_t places[PLACES];
    slot_t slots[SLOTS];
    bool cut[PLACES][PLACES];         /* from, to */
    uint64_t last_ms[PLACES][PLACES]; /* when the last one of a pair arrives */
    uint64_t next_id;                 /* of a member */
    uint64_t next_command;
    /* what was seen */
    uint64_t chain[INDEXES_MAX]; /* after each index; 0: not applied yet */
    uint64_t command[INDEXES_MAX];
    uint64_t answered[INDEXES_MAX]; /* the command that was answered with it; 0: none */
    uint64_t last_answered[KEYS];   /* the highest index */
    uint64_t leaders[TERMS_MAX];
    uint64_t highest;            /* applied anywhere */
    ps_quorum_members_t members; /* as of that */
    uint64_t digest;
    FILE *trace; /* or NULL */
    bool failed;
    char violation[256];
    uint64_t n_answered;
    uint64_t n_leaders;
    uint64_t n_crashes;
    uint64_t n_installs;
    uint64_t n_changes;
    uint64_t n_reads;
    uint64_t n_refused;
} world_t;

/* ---- sim_quorum_disk.c ---- */

void disk_done(disk_t *self);
/* A term and a vote are on disk when it returns. */
void disk_set_term(disk_t *self, uint64_t term, uint64_t vote);
void disk_write(disk_t *self, const ps_quorum_effect_t *effect, uint64_t due_ms, const db_t *db);
/* Carries out what is due. Returns the last op that may be reported; 0: none. */
uint64_t disk_flush(disk_t *self, uint64_t now, bool *ret_is_install);
/* The machine stops. Without power a part of what was not flushed is lost. */
void disk_crash(disk_t *self, ps_rng_t *rng, bool has_power);

/* ---- sim_quorum_place.c ---- */

void place_start(world_t *world, size_t at);
void place_stop(world_t *world, size_t at);
/* One ms of a place that is up and not frozen. */
void place_pass(world_t *world, size_t at);
void place_take(world_t *world, size_t at, const parcel_t *parcel);
uint64_t place_now(const world_t *world, size_t at);
void place_propose(world_t *world, size_t at);
/* Reads a key if its lease allows it. */
void place_read(world_t *world, size_t at);
void place_effects(world_t *world, size_t at);
/* The id of a member whose disk is empty. */
uint64_t place_new_id(world_t *world, size_t at);

/* ---- sim_quorum_faults.c ---- */

/* May a command be answered? */
bool place_may_answer(const place_t *self, uint64_t index);
void faults_pass(world_t *world);
void faults_end(world_t *world);

/* ---- sim_quorum_run.c ---- */

void world_fail(world_t *world, const char *format, ...) PSD_PRINTF(2, 3);
void world_note(world_t *world, const char *format, ...) PSD_PRINTF(2, 3);
void world_send(world_t *world, size_t from, uint64_t to, const ps_quorum_effect_t *effect,
                const db_t *db);
uint64_t world_below(world_t *world, uint64_t bound);
/* The place of a member; PLACES: nowhere. */
size_t world_place_of(const world_t *world, uint64_t id);
/* Runs a seed. */
void world_run(world_t *world, uint64_t seed, FILE *trace);
void world_done(world_t *world);
/* Runs n seeds; the first one that fails, or UINT64_MAX. */
uint64_t sim_quorum_search(uint64_t first, uint64_t n, bool verbose);
#endif
