/* SPDX-License-Identifier: Apache-2.0 */
/* ps_registry_db from inside: its statements; for the files of registry_db. */
#ifndef PS_STORAGE_REGISTRY_DB_IMPL_H
#define PS_STORAGE_REGISTRY_DB_IMPL_H

#include "protocol/registry/registry_rows.h"
#include "storage/disk/commit_note.h"
#include "storage/registry/query.h"
#include "storage/registry/registry_db.h"

#define PS_REGISTRY_DB_ID INT64_C(0x70735247) /* application_id: "psRG" */
#define PS_EVENTS_KEPT 100000                 /* rows of the history */

/* X(NAME, table that errors name, SQL): what is not about the rows of
 * registry_fields.def. */
#define PS_STATEMENTS(X)                                                                        \
    X(BEGIN, "cluster", "BEGIN IMMEDIATE")                                                      \
    X(COMMIT, "cluster", "COMMIT")                                                              \
    X(ROLLBACK, "cluster", "ROLLBACK")                                                          \
    X(COMMITS_ADD, "cluster",                                                                   \
      "UPDATE cluster SET commits = commits + 1, applied_index = ?, applied_term = ?")          \
    X(APPLIED, "cluster", "SELECT applied_index, applied_term FROM cluster")                    \
    X(MEMBERS_CUT, "members", "DELETE FROM members")                                            \
    X(MEMBER_ADD, "members", "INSERT INTO members(id, node, role, made_by) VALUES(?, ?, ?, ?)") \
    X(MEMBERS, "members", "SELECT id, node, role, made_by FROM members ORDER BY id LIMIT 17")   \
    X(EVENT_ADD, "events", "INSERT INTO events(unix_ms, epoch, kind, text) VALUES(?, ?, ?, ?)") \
    X(EVENT_CUT, "events", "DELETE FROM events WHERE id <= ?")                                  \
    X(EVENT_LAST, "events",                                                                     \
      "SELECT id, unix_ms, epoch, kind, text FROM events WHERE id > ? "                         \
      "ORDER BY id DESC LIMIT ?")

#define PS_STATEMENT_ENUM(name, table, sql) STATEMENT_##name,
typedef enum ps_statement { PS_STATEMENTS(PS_STATEMENT_ENUM) STATEMENT_COUNT } ps_statement_t;
#undef PS_STATEMENT_ENUM

/* What is done with the rows of a table. */
typedef enum ps_rows_use {
    PS_ROWS_PUT, /* one is added or overwritten */
    PS_ROWS_CUT, /* some are removed, by their first keys */
    PS_ROWS_ALL, /* all of those that belong to one are read */
    PS_ROWS_USE_COUNT
} ps_rows_use_t;

struct ps_registry_db {
    int lock_fd; /* of the data directory; -1 */
    sqlite3 *db; /* owned */
    ps_commit_note_t note;
    uint64_t n_commits; /* ever */
    bool unflushed;     /* something was stored since the last flush */
    bool broken;        /* a flush failed: what is on disk is unknown */
    ps_applied_t applied;
    bool is_group;           /* what is stored waits for ps_registry_db_group_keep */
    ps_applied_t before;     /* what was applied before the group … */
    uint64_t commits_before; /* … and how many commits there were */
    sqlite3_stmt *statements[STATEMENT_COUNT];
    sqlite3_stmt *rows[PS_ROW_COUNT][PS_ROWS_USE_COUNT];
};

ps_query_t ps_registry_db_query(ps_registry_db_t *self, ps_statement_t statement);

/* registry_db.c: flushes the database, and reads again which commands it has. */
PSD_MUST_CHECK psd_status_t ps_registry_db_look(ps_registry_db_t *self, psd_error_t *err);
/* registry_db_rows.c: prepares what is done with rows. Errors: PSD_DAMAGED a
 * column is not there; PSD_NOMEM, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_registry_rows_prepare(ps_registry_db_t *self, psd_error_t *err);
/* Stores what the command on trial touched. Errors: PSD_IO, PSD_DAMAGED,
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_rows_store(ps_registry_db_t *self,
                                                   const ps_registry_t *registry, psd_error_t *err);
/* The rows of a table that belong to the one with this key, and this second one
 * (0 where there is none), in the order of their keys. */
ps_query_t ps_registry_rows_begin(ps_registry_db_t *self, ps_registry_row_t row, uint64_t key,
                                  uint64_t key_2);
/* The columns of the current row, into a zeroed value. The caller frees what
 * the value owns, even on an error. Errors: PSD_DAMAGED naming row and column;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_rows_read(ps_query_t *query, ps_registry_row_t row,
                                                  void *value, psd_error_t *err);

/* registry_db_open.c: opens the file, checks that it is a registry and whole,
 * and brings its schema up to date. *ret_db is set on failure too, where there
 * is one; the caller closes it. Errors: PSD_IO, PSD_FOREIGN, PSD_DAMAGED,
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_db_open_file(const char *path, sqlite3 **ret_db,
                                                     psd_error_t *err);
#endif
