/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the replica's files: its state. */
#ifndef PS_SERVER_REPLICA_INNER_H
#define PS_SERVER_REPLICA_INNER_H

#include "server/quorum/replica.h"

typedef struct ps_replica_line { /* of the log, when the command is committed */
    ps_log_level_t level;
    ps_command_kind_t kind;
    uint64_t epoch;
    char text[sizeof((ps_command_t *)0)->text];
} ps_replica_line_t;

/* A line of the log that tells of what a group does. */
typedef struct ps_replica_said {
    ps_log_level_t level;
    const char *event; /* borrowed for good */
    size_t text;       /* where its text begins in the group's `said_text` */
} ps_replica_said_t;

/*
 * Commands that the leader's state has, and that no other member has seen: they are in a
 * transaction of the database that is still open (ps_registry_db_group), and are proposed
 * together. Nothing that they made possible leaves the node before (ps_replica_is_flushed).
 */
typedef struct ps_replica_group {
    ps_buffer_t bytes;                   /* owned; of all, one after the other */
    size_t ends[PS_QUORUM_COMMANDS_MAX]; /* of each, in there */
    ps_replica_line_t lines[PS_QUORUM_COMMANDS_MAX];
    size_t n;
    uint64_t first;          /* the index that the first one will have */
    ps_replica_said_t *said; /* owned; lines for when they are agreed on … */
    size_t n_said;
    size_t said_capacity;
    ps_buffer_t said_text; /* owned; … and the texts of these, each with a '\0' */
} ps_replica_group_t;

struct ps_replica {
    char *dir; /* owned */
    ps_registry_args_t args;
    ps_registry_t *registry; /* owned, and all below */
    ps_registry_db_t *db;
    ps_quorum_thread_t *thread;
    ps_quorum_view_t view; /* the last one */
    ps_replica_group_t group;
    uint64_t commit_ms; /* for a majority to agree */
    uint64_t flushed;   /* entries of the log up to that one */
    uint64_t led_term;  /* in which this node leads; 0: it does not */
    bool is_begun;      /* it is a member from here on, with a thread or none yet */
    bool is_late;       /* what is committed could not be stored */
    bool is_ahead; /* the registry has commands that the database has not: it is loaded again */
};

/* ---- replica.c ---- */

/* What the database holds. */
PSD_MUST_CHECK psd_status_t ps_replica_snapshot(ps_registry_db_t *db, ps_quorum_snapshot_t *ret,
                                                psd_error_t *err);
/* Members are on nodes whose control ports and secrets the registry knows. */
void ps_replica_meet(ps_replica_t *self, const ps_quorum_members_t *members);
#endif
