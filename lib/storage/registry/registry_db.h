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
 *             for one command; registry_log.h for the log.
 */
/*
 * ps_registry_db - the registry on disk: SQLite
 *
 * What     The state after the last command in STRICT tables (cluster, nodes,
 *          shards, tables, partitions, jobs, workers, job_tables) and the
 *          history of commands (events). One command is one transaction: after
 *          kill -9 at any point it is stored completely or not at all.
 * Shape    docs/storage.md: schema, migrations by user_version, crash points
 * Owner    The caller. Threads: confined to one. One process at a time: the
 *          data directory is locked.
 */
#ifndef PS_STORAGE_REGISTRY_DB_H
#define PS_STORAGE_REGISTRY_DB_H

#include "protocol/registry/registry.h"

typedef struct ps_registry_db ps_registry_db_t;

/*
 * Opens or makes DIR/registry.db (WAL, foreign keys, synchronous FULL), brings
 * its schema up to date, checks it. DIR is made (0700) when it is not there.
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
/* Stores the command that the registry has on trial (ps_registry_try): the rows
 * that it touched and a line of the history, flushed. Errors: PSD_IO (disk full,
 * …), PSD_NOMEM, PSD_DAMAGED: nothing is stored, and the caller must undo it. */
PSD_MUST_CHECK psd_status_t ps_registry_db_store(ps_registry_db_t *self,
                                                 const ps_registry_t *registry,
                                                 const ps_command_t *command, psd_error_t *err);

typedef struct ps_event_row {
    uint64_t id; /* 1, 2, 3 … */
    uint64_t unix_ms;
    uint64_t epoch;
    char kind[32];
    char text[256];
} ps_event_row_t;
/* The last `limit` events, oldest first, in a fresh array (ps_free). */
PSD_MUST_CHECK psd_status_t ps_registry_db_events(ps_registry_db_t *self, size_t limit,
                                                  ps_event_row_t **ret_rows, size_t *ret_n,
                                                  psd_error_t *err);
#endif
