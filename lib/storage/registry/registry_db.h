/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/storage/registry: the registry in SQLite, and its log
 *
 * It is       The stored state, the history of commands, migrations, backups;
 *             the log, term and vote of a member where it is replicated.
 * It uses     disk; lib/protocol/registry, whose fields make the columns;
 *             lib/wire/messages, lib/base; sqlite3.
 * It ignores  Which commands there are and what they allow.
 * Start at    registry_db.h, registry_db_open.c for a start, registry_db_store.c
 *             for one command, registry_db_rows.c for the SQL of a row;
 *             registry_log.h for the log.
 */
/*
 * ps_registry_db - the registry on disk: SQLite
 *
 * What     The state after the last command in STRICT tables (cluster, nodes,
 *          shards, tables, partitions, jobs, workers, job_tables, answers …),
 *          the members of a quorum, and the history of commands (events). One command is one
 * transaction: after kill -9 at any point it is stored completely or not at all. Numbers  Each
 * command has a place in the order of commands: its index and the term of the one who gave it. It
 * is stored with the rows. A single registry counts the indexes itself, its term stays as it is.
 * Shape    docs/storage.md: schema, migrations by user_version, crash points
 * Owner    The caller. Threads: confined to one. One process at a time: the
 *          data directory is locked.
 */
#ifndef PS_STORAGE_REGISTRY_DB_H
#define PS_STORAGE_REGISTRY_DB_H

#include "protocol/registry/registry.h"

typedef struct ps_registry_db ps_registry_db_t;

/* A place in the order of commands. */
typedef struct ps_applied {
    uint64_t index; /* up to INT64_MAX; 0: none yet */
    uint64_t term;  /* 0: of a registry that is not replicated */
} ps_applied_t;

#define PS_REGISTRY_MEMBERS_MAX 16

typedef enum ps_registry_role {
    PS_ROLE_VOTER = 1,
    PS_ROLE_STANDBY = 2, /* has the log, does not vote */
    PS_ROLE_SPARE = 3    /* has neither */
} ps_registry_role_t;

/* A node whose registry is a member of the quorum. */
typedef struct ps_registry_member {
    uint64_t id; /* 1 .. INT64_MAX, of its data directory */
    char node[PS_NAME_MAX + 1];
    ps_registry_role_t role;
    uint64_t index; /* of the entry that made the members what they are */
} ps_registry_member_t;

/*
 * Opens or makes DIR/registry.db (WAL, foreign keys), brings its schema up to
 * date, checks it. DIR is made (0700) when it is not there.
 * Errors: PSD_IO; PSD_HELD another psd holds DIR, naming its pid; PSD_FOREIGN
 * written by a newer version or no registry; PSD_DAMAGED.
 */
PSD_MUST_CHECK psd_status_t ps_registry_db_open(const char *dir, ps_registry_db_t **ret_db,
                                                psd_error_t *err);
void ps_registry_db_close(ps_registry_db_t **self_p);
/* Applies the stored state to an empty registry, as commands. Errors:
 * PSD_DAMAGED naming table and row; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_db_load(ps_registry_db_t *self, ps_registry_t *registry,
                                                uint64_t now_ms, psd_error_t *err);
/* The place of the last command that is stored. */
ps_applied_t ps_registry_db_applied(const ps_registry_db_t *self);
/* The next place, for a registry that is not replicated. */
ps_applied_t ps_registry_db_next(const ps_registry_db_t *self);
/* Stores the command that the registry has on trial (ps_registry_try) at its
 * place: the rows that it touched and a line of the history. It outlives the
 * process; a power failure may take the last commands since the last
 * ps_registry_db_flush, the newest first. Errors: PSD_INVALID the index is not
 * above that of ps_registry_db_applied, or the term is below its; PSD_IO (disk
 * full, …), PSD_NOMEM, PSD_DAMAGED: nothing is stored, and the caller must undo
 * it. */
PSD_MUST_CHECK psd_status_t ps_registry_db_store(ps_registry_db_t *self,
                                                 const ps_registry_t *registry,
                                                 const ps_command_t *command, ps_applied_t at,
                                                 psd_error_t *err);
/* From here on what is stored is one transaction: ps_registry_db_applied counts it, others do
 * not see it, and it is there after ps_registry_db_group_keep only. A command that cannot be
 * stored ends the group: all of it is taken back. Errors: PSD_INVALID there is one; PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_registry_db_group(ps_registry_db_t *self, psd_error_t *err);
bool ps_registry_db_is_group(const ps_registry_db_t *self);
/* The group is stored. Errors: PSD_IO, PSD_NOMEM: all of it is taken back. */
PSD_MUST_CHECK psd_status_t ps_registry_db_group_keep(ps_registry_db_t *self, psd_error_t *err);
/* Takes back all that the group has stored; the registry in memory has it still. */
void ps_registry_db_group_drop(ps_registry_db_t *self);
/* Flushes all that is stored; does nothing where nothing is new. Errors: PSD_IO:
 * what is on disk is unknown, so the registry must not go on: nothing more is
 * stored. */
PSD_MUST_CHECK psd_status_t ps_registry_db_flush(ps_registry_db_t *self, psd_error_t *err);
PSD_MUST_CHECK bool ps_registry_db_is_unflushed(const ps_registry_db_t *self);
/* A flush has failed. */
PSD_MUST_CHECK bool ps_registry_db_is_broken(const ps_registry_db_t *self);
/* Stores the members, all n of them in place of those before, and the place of
 * what made them, which is no command. n: up to PS_REGISTRY_MEMBERS_MAX. NULL as
 * members leaves them as they are: only the place is stored. There must be a
 * cluster. Errors: as ps_registry_db_store. */
PSD_MUST_CHECK psd_status_t ps_registry_db_store_members(ps_registry_db_t *self,
                                                         const ps_registry_member_t *members,
                                                         size_t n, ps_applied_t at,
                                                         psd_error_t *err);
/* The members, by their ids; none for a registry that is not replicated. Errors:
 * PSD_DAMAGED naming the row; PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_db_members(
    ps_registry_db_t *self, ps_registry_member_t ret_members[PS_REGISTRY_MEMBERS_MAX],
    size_t *ret_n, psd_error_t *err);

typedef struct ps_event_row {
    uint64_t id; /* 1, 2, 3 … */
    uint64_t unix_ms;
    uint64_t epoch;
    char kind[32];
    char text[256];
} ps_event_row_t;
/* The last `limit` events of those with a greater id than `after`, oldest first, in a
 * fresh array (ps_free). */
PSD_MUST_CHECK psd_status_t ps_registry_db_events(ps_registry_db_t *self, uint64_t after,
                                                  size_t limit, ps_event_row_t **ret_rows,
                                                  size_t *ret_n, psd_error_t *err);
#endif
