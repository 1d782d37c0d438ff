/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's database from its opening to its closing, and its history. */
#include "storage/registry/registry_db.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/alloc.h"
#include "storage/disk/data_dir.h"
#include "storage/disk/format_note.h"
#include "storage/registry/registry_db_impl.h"
#include "wire/messages/formats.h"

#define STATEMENT_ROW(name, table, sql) {table, sql},
static const struct {
    const char *table;
    const char *sql;
} statement_rows[STATEMENT_COUNT] = {PS_STATEMENTS(STATEMENT_ROW)};
#undef STATEMENT_ROW

ps_query_t ps_registry_db_query(ps_registry_db_t *self, ps_statement_t statement)
{
    return ps_query_begin(self->statements[statement], statement_rows[statement].table);
}

static psd_status_t prepare_all(ps_registry_db_t *self, psd_error_t *err)
{
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        int code = sqlite3_prepare_v3(self->db, statement_rows[i].sql, -1,
                                      SQLITE_PREPARE_PERSISTENT, &self->statements[i], NULL);

        if (code != SQLITE_OK) {
            return ps_sql_error(self->db, code, err);
        }
    }
    return ps_registry_rows_prepare(self, err);
}

/* Where the stored state is in the order of commands; nowhere while there is no
 * cluster. */
static psd_status_t read_applied(ps_registry_db_t *self, psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(self, STATEMENT_APPLIED);

    psd_status_t rc = PSD_OK;

    if (!ps_query_next(&query)) {
        return ps_query_end(&query, err);
    }
    self->applied.index = ps_query_u64(&query);
    self->applied.term = ps_query_u64(&query);
    rc = ps_query_check(&query, err);
    ps_query_reset(&query);
    return rc;
}

/* What was committed is there. */
static psd_status_t check_commits(ps_registry_db_t *self, const char *dir, psd_error_t *err)
{
    uint64_t noted = 0;
    int64_t n = 0;
    psd_status_t rc = ps_sql_number(self->db, "SELECT commits FROM cluster", &n, err);

    if (rc == PSD_OK) {
        rc = ps_commit_note_open(&self->note, dir, &noted, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->n_commits = (uint64_t)n;
    if (noted > self->n_commits) {
        return psd_error_set(
            err, PSD_DAMAGED,
            "%s/registry.db has %" PRIu64 " commits, %s/registry.commits says %" PRIu64
            ": its last ones are lost, registry.db-wal was damaged or removed; restore a backup, "
            "or remove registry.commits to continue with what is left",
            dir, self->n_commits, dir, noted);
    }
    return PSD_OK;
}

/* ---- flushing ---- */

bool ps_registry_db_is_unflushed(const ps_registry_db_t *self)
{
    return self->unflushed;
}

bool ps_registry_db_is_broken(const ps_registry_db_t *self)
{
    return self->broken;
}

/* The commits are in SQLite's log, which the connection flushes by itself only
 * before it copies from it (synchronous NORMAL). */
psd_status_t ps_registry_db_flush(ps_registry_db_t *self, psd_error_t *err)
{
    sqlite3_file *wal = NULL;
    int code = SQLITE_OK;

    if (!self->unflushed) {
        return PSD_OK;
    }
    if (!self->broken) {
        code = sqlite3_file_control(self->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, (void *)&wal);
        self->broken = code != SQLITE_OK || wal == NULL || wal->pMethods == NULL ||
                       wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL) != SQLITE_OK;
    }
    if (self->broken) {
        return psd_error_set(err, PSD_IO, "%s: the last changes could not be flushed",
                             sqlite3_db_filename(self->db, "main"));
    }
    self->unflushed = false;
    ps_commit_note_write(&self->note, self->is_group ? self->commits_before : self->n_commits);
    return PSD_OK;
}

/* Takes back what the transaction under way has stored, of a group or of one change. */
void ps_registry_db_group_drop(ps_registry_db_t *self)
{
    if (sqlite3_get_autocommit(self->db) == 0) {
        ps_query_t query = ps_registry_db_query(self, STATEMENT_ROLLBACK);
        psd_status_t rolled = ps_query_run(&query, NULL);

        (void)rolled; /* the first cause is reported */
    }
    if (self->is_group) {
        self->is_group = false;
        self->applied = self->before;
        self->n_commits = self->commits_before;
    }
}

/* ---- opening and closing ---- */

psd_status_t ps_registry_db_look(ps_registry_db_t *self, psd_error_t *err)
{
    int64_t n = 0;
    psd_status_t rc = ps_sql_number(self->db, "SELECT commits FROM cluster", &n, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self->n_commits = (uint64_t)n;
    self->unflushed = true;
    rc = ps_registry_db_flush(self, err);
    return rc == PSD_OK ? read_applied(self, err) : rc;
}

static psd_status_t open_in(ps_registry_db_t *self, const char *dir, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = PSD_OK;

    if (!ps_buffer_print(&path, "%s/registry.db", dir)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    rc = ps_data_dir_lock(dir, &self->lock_fd, err);
    if (rc == PSD_OK) {
        rc = ps_format_note_settle(ps_disk_real(), dir, PS_DISK_FORMAT, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_open_file((const char *)path.data, &self->db, err);
    }
    if (rc == PSD_OK) {
        rc = check_commits(self, dir, err);
    }
    if (rc == PSD_OK) {
        rc = prepare_all(self, err);
    }
    if (rc == PSD_OK) { /* from here on ps_registry_db_flush says when */
        rc = ps_sql_exec(self->db, "PRAGMA synchronous = NORMAL", err);
    }
    return rc == PSD_OK ? read_applied(self, err) : rc;
}

psd_status_t ps_registry_db_open(const char *dir, ps_registry_db_t **ret_db, psd_error_t *err)
{
    PSD_AUTO(ps_registry_db_close)
    ps_registry_db_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the registry");
    }
    self->lock_fd = -1;
    self->note.fd = -1;
    rc = open_in(self, dir, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_db = self; /* ownership moves to the caller */
    self = NULL;
    return PSD_OK;
}

void ps_registry_db_close(ps_registry_db_t **self_p)
{
    ps_registry_db_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    if (self->is_group) {
        ps_registry_db_group_drop(self);
    }
    (void)!ps_registry_db_flush(self, NULL); /* else the next start reads what is there */
    for (int i = 0; i < STATEMENT_COUNT; i++) {
        (void)sqlite3_finalize(self->statements[i]);
    }
    for (int i = 0; i < PS_ROW_COUNT * PS_ROWS_USE_COUNT; i++) {
        (void)sqlite3_finalize(self->rows[i / PS_ROWS_USE_COUNT][i % PS_ROWS_USE_COUNT]);
    }
    (void)sqlite3_close(self->db);
    ps_commit_note_close(&self->note);
    if (self->lock_fd >= 0) {
        (void)close(self->lock_fd); /* unlocks; nothing was written late */
    }
    ps_free(self);
    *self_p = NULL;
}

static void read_event(ps_query_t *query, ps_event_row_t *row)
{
    row->id = ps_query_u64(query);
    row->unix_ms = ps_query_u64(query);
    row->epoch = ps_query_u64(query);
    ps_query_copy_text(query, row->kind, sizeof row->kind);
    ps_query_copy_text(query, row->text, sizeof row->text);
}

psd_status_t ps_registry_db_events(ps_registry_db_t *self, uint64_t after, size_t limit,
                                   ps_event_row_t **ret_rows, size_t *ret_n, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) ps_event_row_t *rows = NULL;
    ps_query_t query = ps_registry_db_query(self, STATEMENT_EVENT_LAST);
    size_t n = 0;
    size_t capacity = 0;
    psd_status_t rc = PSD_OK;

    ps_query_put_u64(&query, after);
    ps_query_put_u64(&query, limit < PS_EVENTS_KEPT ? limit : PS_EVENTS_KEPT);
    while (rc == PSD_OK && ps_query_next(&query)) {
        if (!ps_grow(&rows, &capacity, n + 1, sizeof *rows)) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for %zu events", n);
        } else {
            read_event(&query, &rows[n++]);
        }
    }
    if (rc != PSD_OK) {
        ps_query_reset(&query);
        return rc;
    }
    rc = ps_query_end(&query, err);
    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; i < n / 2; i++) { /* they came newest first */
        ps_event_row_t row = rows[i];

        rows[i] = rows[n - 1 - i];
        rows[n - 1 - i] = row;
    }
    *ret_rows = rows; /* ownership moves to the caller */
    rows = NULL;
    *ret_n = n;
    return PSD_OK;
}
