/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_cluster_member - the members of a replicated registry
 *
 * What     In half of the worlds the registry is on three or five of the nodes'
 *          places. Each member has the real quorum machine, a real log on a
 *          virtual disk, and a state of its own; the daemon's quorum_steps take
 *          it through its life. Whoever leads runs the registry's process
 *          (cluster_registry_t), which waits for a majority as the daemon's main
 *          thread does: meanwhile the world goes on, and the leader may fall.
 *          One who asks repeats every request until it is answered.
 * Checks   L1 one leader in a term · L2 all members apply the same entries ·
 *          L3 with the same state · L4 no node obeys a term after a higher one ·
 *          L5 a request is done once, and no session number is given twice ·
 *          L6 in the end all members have everything
 * Units    virtual ms of the world; a member's own clock differs
 */
#ifndef PS_TESTS_SIM_CLUSTER_MEMBER_H
#define PS_TESTS_SIM_CLUSTER_MEMBER_H

#include "server/quorum/quorum_steps.h"
#include "sim_cluster_plan.h"
#include "support/sim_disk.h"

#define CLUSTER_FIRST_TERM 1 /* of what was stored before there were members */
#define CLUSTER_TERMS_MAX 4096
#define CLUSTER_REQUESTS_MAX 2048
#define CLUSTER_GIVEN_MAX 8192

struct cluster;
struct cluster_letter;

/* A committed entry, as the first member applied it. */
typedef struct cluster_entry {
    uint64_t term;
    uint32_t kind;
    ps_buffer_t bytes; /* owned */
    uint64_t hash;     /* of the state after it */
} cluster_entry_t;

/* What a member's database has: the state is that of the first `n` entries. */
typedef struct cluster_db {
    ps_applied_t applied;
    uint64_t n;
    uint64_t members_index;
    ps_quorum_members_t members;
} cluster_db_t;

typedef enum cluster_install {
    CLUSTER_NO_INSTALL = 0,
    CLUSTER_INSTALL_WAITS = 1, /* for the main thread: the inbox is to be the database */
    CLUSTER_INSTALL_BEGINS = 2 /* it is, and the log begins again after it */
} cluster_install_t;

typedef struct cluster_member {
    sim_disk_t *disk; /* owned; of the log */
    cluster_db_t db;  /* what is stored */
    uint64_t offset_ms;
    uint64_t life; /* of all members' lives; 0: it never lived */
    /* While it lives. */
    ps_registry_log_t *log; /* owned */
    ps_quorum_t *quorum;    /* owned; NULL: it is down */
    ps_registry_t *state;   /* owned */
    uint64_t op;            /* of the log, that is not flushed */
    bool flushes;           /* its thread waits for the disk … */
    uint64_t flushed_ms;    /* … until then */
    bool takes;             /* its main thread has been woken */
    uint64_t wake_ms;       /* of the tick that is planned */
    uint64_t cut;           /* applied at the last cut of the log */
    cluster_db_t inbox;     /* a database that came */
    bool has_inbox;
    cluster_install_t installs;
    bool dies; /* its disk has stopped in the middle of an operation */
} cluster_member_t;

/* What was seen of all members. */
typedef struct cluster_story {
    cluster_entry_t *entries; /* owned; entry i + 1 of the log */
    size_t n;
    size_t capacity;
    uint64_t n_lives;
    uint64_t leaders[CLUSTER_TERMS_MAX]; /* the life that led */
    uint8_t done[CLUSTER_REQUESTS_MAX];  /* how often each request was done */
    bool given[CLUSTER_GIVEN_MAX];       /* session numbers */
    uint64_t request;                    /* the open one */
    uint64_t n_leads;
    uint64_t n_falls;
    uint64_t n_installs;
    uint64_t n_lost; /* commands of unknown outcome */
} cluster_story_t;

/* These commands are the first entries. */
void cluster_story_begin(struct cluster *self, const ps_command_t *commands, size_t n);
/* Their databases hold what the registry has stored so far. */
void cluster_members_start(struct cluster *self);
void cluster_members_done(struct cluster *self);
/* The node starts, or the registry's part of it. */
void cluster_member_start(struct cluster *self, uint32_t at);
/* power: it loses what is not flushed. */
void cluster_member_crash(struct cluster *self, uint32_t at, bool power);
bool cluster_has_member(const struct cluster *self, uint32_t place);
/* Events. */
void cluster_member_tick(struct cluster *self, uint32_t at);
void cluster_member_flushed(struct cluster *self, uint32_t at);
void cluster_member_take(struct cluster *self, uint32_t at);
void cluster_member_message(struct cluster *self, uint32_t at, ps_bytes_t bytes);
/* A database came from another member. false: it takes none now. */
bool cluster_member_database(struct cluster *self, uint32_t at, const cluster_db_t *db);
/* One that it sent came; NULL: it was lost. */
void cluster_member_sent(struct cluster *self, uint32_t at, uint32_t to, const cluster_db_t *db);
/* Its thread waits for the disk until then; 0: it does not. */
uint64_t cluster_member_busy(const struct cluster *self, uint32_t at);
/* Has a planned command committed and applied at the leader that is at work.
 * false: it leads no more, and its process has ended. */
bool cluster_member_commit(struct cluster *self, const ps_command_t *command);
/* A member stores an entry in one transaction. */
void cluster_db_put(cluster_db_t *self, uint64_t n, ps_applied_t at);
/* A majority has just agreed that the one at work leads. */
bool cluster_member_may_answer(const struct cluster *self);
/* The member that this one takes for the leader; CLUSTER_NOBODY: none. */
uint32_t cluster_member_leader(const struct cluster *self, uint32_t at);
/* The state that has most; NULL: all members are down. */
ps_registry_t *cluster_members_state(const struct cluster *self);
/* One that is up has applied all that was ever applied. */
bool cluster_members_know_all(const struct cluster *self);
/* All have everything. */
bool cluster_members_are_level(const struct cluster *self);

/* sim_cluster_request.c: one who asks for a change again and again. */
void cluster_request_time(struct cluster *self);
void cluster_request_letter(struct cluster *self, const struct cluster_letter *letter);
void cluster_request_answer(struct cluster *self, const struct cluster_letter *letter);
/* An entry is applied for the first time. */
void cluster_request_note(struct cluster *self, const ps_command_t *command);
#endif
