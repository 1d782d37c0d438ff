/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite calls with checks: no result can go unnoticed. */
#include "storage/registry/query.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "storage/disk/page_sums.h"

psd_status_t ps_sql_error(sqlite3 *db, int code, psd_error_t *err)
{
    const char *path = sqlite3_db_filename(db, "main");
    const char *text = sqlite3_errmsg(db);
    int number = sqlite3_system_errno(db);
    char reason[128];

    if (code == SQLITE_IOERR_DATA) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: the page at byte %lld is damaged: its checksum does not match",
                             path, (long long)ps_page_sums_damaged_at(db));
    }
    switch (code & 0xFF) {
    case SQLITE_NOMEM:
        return psd_error_set(err, PSD_NOMEM, "no memory in SQLite");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_CONSTRAINT:
    case SQLITE_ERROR: /* a table or column that should be there is not */
    case SQLITE_MISMATCH:
    case SQLITE_SCHEMA:
    case SQLITE_TOOBIG:
        return psd_error_set(err, PSD_DAMAGED, "%s: %s", path, text);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        return psd_error_set(
            err, PSD_IO, "%s: %s: %s (%d)", path, text,
            number == 0 ? "no reason known" : strerror_r(number, reason, sizeof reason), code);
    default:
        return psd_error_set(err, PSD_IO, "%s: %s (%d)", path, text, code);
    }
}

psd_status_t ps_sql_exec(sqlite3 *db, const char *sql, psd_error_t *err)
{
    int code = sqlite3_exec(db, sql, NULL, NULL, NULL);

    return code == SQLITE_OK ? PSD_OK : ps_sql_error(db, code, err);
}

psd_status_t ps_sql_text(sqlite3 *db, const char *sql, char *ret, size_t size, psd_error_t *err)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

    ret[0] = '\0';
    if (code == SQLITE_OK) {
        code = sqlite3_step(stmt);
    }
    if (code == SQLITE_ROW) {
        const unsigned char *text = sqlite3_column_text(stmt, 0);

        (void)snprintf(ret, size, "%s", text == NULL ? "" : (const char *)text);
        code = SQLITE_DONE;
    }
    if (code != SQLITE_DONE) {
        (void)ps_sql_error(db, code, err);
    }
    (void)sqlite3_finalize(stmt); /* repeats the failure of the step */
    return code == SQLITE_DONE ? PSD_OK : ps_sql_error(db, code, err);
}

psd_status_t ps_sql_number(sqlite3 *db, const char *sql, int64_t *ret, psd_error_t *err)
{
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    int64_t value = 0;

    if (code == SQLITE_OK) {
        code = sqlite3_step(stmt);
    }
    if (code == SQLITE_ROW) {
        value = sqlite3_column_int64(stmt, 0);
        code = SQLITE_DONE;
    }
    if (code != SQLITE_DONE) {
        (void)ps_sql_error(db, code, err);
    }
    (void)sqlite3_finalize(stmt);
    if (code != SQLITE_DONE) {
        return ps_sql_error(db, code, err);
    }
    *ret = value;
    return PSD_OK;
}

ps_query_t ps_query_begin(sqlite3_stmt *stmt, const char *table)
{
    return (ps_query_t){.stmt = stmt, .table = table};
}

static void keep_code(ps_query_t *self, int code)
{
    if (self->code == SQLITE_OK) {
        self->code = code;
    }
}

void ps_query_put_i64(ps_query_t *self, int64_t value)
{
    keep_code(self, sqlite3_bind_int64(self->stmt, ++self->n_put, value));
}

void ps_query_put_u64(ps_query_t *self, uint64_t value)
{
    int64_t bits = 0;

    memcpy(&bits, &value, sizeof bits);
    ps_query_put_i64(self, bits);
}

void ps_query_put_text(ps_query_t *self, const char *value)
{
    keep_code(self, sqlite3_bind_text(self->stmt, ++self->n_put, value, -1, SQLITE_STATIC));
}

void ps_query_put_copy(ps_query_t *self, const char *value)
{
    keep_code(self, sqlite3_bind_text(self->stmt, ++self->n_put, value, -1, SQLITE_TRANSIENT));
}

void ps_query_put_blob(ps_query_t *self, const void *value, size_t size)
{
    keep_code(self, sqlite3_bind_blob64(self->stmt, ++self->n_put, value, size, SQLITE_STATIC));
}

bool ps_query_next(ps_query_t *self)
{
    int code = SQLITE_OK;

    if (self->code != SQLITE_OK || self->bad[0] != '\0') {
        return false;
    }
    self->n_read = 0;
    code = sqlite3_step(self->stmt);
    if (code != SQLITE_ROW && code != SQLITE_DONE) {
        self->code = code;
    }
    return code == SQLITE_ROW;
}

void ps_query_place(const ps_query_t *self, char ret[PS_PLACE_SIZE])
{
    int n = sqlite3_data_count(self->stmt);
    int at = snprintf(ret, PS_PLACE_SIZE, "table %s, row", self->table);

    for (int i = 0; i < n && i < 2 && at > 0 && at < PS_PLACE_SIZE; i++) {
        const unsigned char *text = sqlite3_column_text(self->stmt, i);

        at += snprintf(ret + at, PS_PLACE_SIZE - (size_t)at, "%s %s=%.63s", i == 0 ? "" : ",",
                       sqlite3_column_name(self->stmt, i), text == NULL ? "?" : (const char *)text);
    }
}

/* The next column, which must be of the type; -1: it is not. */
static int next_column(ps_query_t *self, int type)
{
    int at = self->n_read++;

    assert(at < sqlite3_data_count(self->stmt));
    return sqlite3_column_type(self->stmt, at) == type ? at : -1;
}

static void spoil(ps_query_t *self)
{
    const char *name = sqlite3_column_name(self->stmt, self->n_read - 1);

    if (self->bad[0] == '\0') {
        (void)snprintf(self->bad, sizeof self->bad, "%s", name);
    }
}

static int64_t number_of(ps_query_t *self, int64_t min, int64_t max)
{
    int at = next_column(self, SQLITE_INTEGER);
    int64_t value = at < 0 ? 0 : sqlite3_column_int64(self->stmt, at);

    if (at < 0 || value < min || value > max) {
        spoil(self);
        return 0;
    }
    return value;
}

uint64_t ps_query_u64(ps_query_t *self)
{
    return (uint64_t)number_of(self, INT64_MIN, INT64_MAX);
}

uint32_t ps_query_u32(ps_query_t *self)
{
    return (uint32_t)number_of(self, 0, UINT32_MAX);
}

int32_t ps_query_i32(ps_query_t *self)
{
    return (int32_t)number_of(self, INT32_MIN, INT32_MAX);
}

bool ps_query_bool(ps_query_t *self)
{
    return number_of(self, 0, 1) == 1;
}

const char *ps_query_text(ps_query_t *self, size_t max_bytes)
{
    int at = next_column(self, SQLITE_TEXT);
    const char *text = NULL;

    if (at >= 0) {
        text = (const char *)sqlite3_column_text(self->stmt, at);
    }
    if (text == NULL || strlen(text) > max_bytes ||
        strlen(text) != (size_t)sqlite3_column_bytes(self->stmt, at)) {
        spoil(self);
        return "";
    }
    return text;
}

void ps_query_copy_text(ps_query_t *self, char *ret, size_t size)
{
    const char *text = ps_query_text(self, size - 1);

    memcpy(ret, text, strlen(text) + 1);
}

void ps_query_copy_blob(ps_query_t *self, void *ret, size_t size)
{
    int at = next_column(self, SQLITE_BLOB);
    const void *blob = at < 0 ? NULL : sqlite3_column_blob(self->stmt, at);

    if (blob == NULL || (size_t)sqlite3_column_bytes(self->stmt, at) != size) {
        memset(ret, 0, size);
        spoil(self);
        return;
    }
    memcpy(ret, blob, size);
}

psd_status_t ps_query_check(const ps_query_t *self, psd_error_t *err)
{
    char place[PS_PLACE_SIZE];

    if (self->bad[0] == '\0') {
        return PSD_OK;
    }
    ps_query_place(self, place);
    return psd_error_set(err, PSD_DAMAGED, "%s: %s is not of its type or range", place, self->bad);
}

void ps_query_reset(const ps_query_t *self)
{
    (void)sqlite3_reset(self->stmt); /* repeats the failure of the step */
    (void)sqlite3_clear_bindings(self->stmt);
}

psd_status_t ps_query_end(ps_query_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_query_check(self, err);

    if (self->code != SQLITE_OK) {
        rc = ps_sql_error(sqlite3_db_handle(self->stmt), self->code, err);
    }
    ps_query_reset(self);
    return rc;
}

psd_status_t ps_query_run(ps_query_t *self, psd_error_t *err)
{
    while (ps_query_next(self)) {
    }
    return ps_query_end(self, err);
}
