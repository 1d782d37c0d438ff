/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_query - one run of a prepared SQLite statement, with checks
 *
 * What     The caller binds values and reads columns in order. The query keeps
 *          the first failure; later calls do nothing, and the end returns it.
 *          An invalid column is PSD_DAMAGED, naming table, row and column.
 * Units    u64 lie in SQLite as the signed integer of the same bits
 * Owner    The statement's; a query owns nothing.
 */
#ifndef PS_STORAGE_QUERY_H
#define PS_STORAGE_QUERY_H

#include <sqlite3.h>

#include "base/bytes.h"

#define PS_PLACE_SIZE 200

typedef struct ps_query {
    sqlite3_stmt *stmt; /* borrowed; NULL: not begun */
    const char *table;  /* static; for errors */
    int n_put;
    int n_read;              /* columns of the row at hand */
    int code;                /* first failure, or SQLITE_OK */
    char bad[PS_PLACE_SIZE]; /* first column that is wrong; "" */
} ps_query_t;

/* Turns a failure of SQLite into a status: PSD_DAMAGED, PSD_NOMEM or PSD_IO. */
psd_status_t ps_sql_error(sqlite3 *db, int code, psd_error_t *err);
/* Statements without values or rows. */
PSD_MUST_CHECK psd_status_t ps_sql_exec(sqlite3 *db, const char *sql, psd_error_t *err);
/* First column of the first row of a statement, as text into ret ("" when
 * there is none) or as a number (0). */
PSD_MUST_CHECK psd_status_t ps_sql_text(sqlite3 *db, const char *sql, char *ret, size_t size,
                                        psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_sql_number(sqlite3 *db, const char *sql, int64_t *ret,
                                          psd_error_t *err);

ps_query_t ps_query_begin(sqlite3_stmt *stmt, const char *table);
/* Texts and blobs are borrowed until ps_query_end. */
void ps_query_put_u64(ps_query_t *self, uint64_t value);
void ps_query_put_i64(ps_query_t *self, int64_t value);
void ps_query_put_text(ps_query_t *self, const char *value);
/* Not borrowed. */
void ps_query_put_copy(ps_query_t *self, const char *value);
void ps_query_put_blob(ps_query_t *self, const void *value, size_t size);
/* The next row; false at the end and after a failure. */
PSD_MUST_CHECK bool ps_query_next(ps_query_t *self);
/* Columns of the row, in order. What is wrong reads as 0 or "". */
uint64_t ps_query_u64(ps_query_t *self);
uint32_t ps_query_u32(ps_query_t *self);
int32_t ps_query_i32(ps_query_t *self);
bool ps_query_bool(ps_query_t *self);
/* Borrowed until the next row. */
const char *ps_query_text(ps_query_t *self, size_t max_bytes);
/* Into ret of size bytes, terminated. */
void ps_query_copy_text(ps_query_t *self, char *ret, size_t size);
void ps_query_copy_blob(ps_query_t *self, void *ret, size_t size);
/* "table workers, row job_id=1, worker=7". */
void ps_query_place(const ps_query_t *self, char ret[PS_PLACE_SIZE]);
/* PSD_OK while every column so far was as it must be. */
PSD_MUST_CHECK psd_status_t ps_query_check(const ps_query_t *self, psd_error_t *err);
/* Makes the statement ready for its next run. */
void ps_query_reset(const ps_query_t *self);
/* Resets it and says what went wrong. */
PSD_MUST_CHECK psd_status_t ps_query_end(ps_query_t *self, psd_error_t *err);
/* All of a statement that gives no rows. */
PSD_MUST_CHECK psd_status_t ps_query_run(ps_query_t *self, psd_error_t *err);
#endif
