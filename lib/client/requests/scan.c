/* SPDX-License-Identifier: Apache-2.0 */
/* Pulls in pieces. */
#include "client/requests/scan.h"

#include "base/alloc.h"
#include "client/requests/fetch.h"
#include "client/requests/table.h"
#include "model/tables/partition.h"

#define GROUP_BYTES (UINT64_C(4) << 20) /* of values in one request */
#define KEYS_MAX 65536                  /* of rows in one request */
#define FIRST_ROWS 256                  /* of the first group of unknown length */

typedef struct scan {
    const ps_scan_args_t *args;
    const ps_scan_sink_t *sink;
    const ps_table_spec_t *spec; /* borrowed from the table */
    size_t value_size;           /* bytes */
    psd_call_t *call;            /* owned */
    psd_select_t *select;        /* owned */
    uint64_t *keys;              /* owned; single rows that wait for a request */
    size_t n_keys;
    uint32_t *slice_cols; /* owned; the first one of each column slice */
    void *values;         /* owned; GROUP_BYTES */
    uint64_t n_group;     /* rows of one request of unknown length */
} scan_t;

static void scan_done(scan_t *self)
{
    psd_call_destroy(&self->call);
    psd_select_destroy(&self->select);
    ps_free(self->keys);
    ps_free(self->slice_cols);
    ps_free(self->values);
}

static void tell(const scan_t *self, uint64_t bytes)
{
    if (self->args->told != NULL) {
        self->args->told(self->args->arg, bytes);
    }
}

static uint64_t n_cols_of(const scan_t *self)
{
    return self->args->cols != NULL ? self->args->n_cols : self->spec->n_cols;
}

static void select_cols(scan_t *self, uint64_t first, uint64_t n)
{
    if (self->args->cols != NULL) {
        psd_select_cols(self->select, self->args->cols + first, (size_t)n);
    } else if (n == self->spec->n_cols) {
        psd_select_all_cols(self->select);
    } else {
        psd_select_col_range(self->select, (uint32_t)first, (uint32_t)n);
    }
}

/* Pulls n_rows rows, selected already, of the columns first .. first + n. */
static psd_status_t pull_piece(scan_t *self, uint64_t n_rows, uint64_t first_col, uint64_t n_cols,
                               psd_error_t *err)
{
    psd_table_t *table = self->args->table;
    psd_ticket_t ticket = 0;
    psd_status_t rc = PSD_OK;

    select_cols(self, first_col, n_cols);
    rc = psd_pull_start(table, self->select, self->values, (size_t)(n_rows * n_cols), self->call,
                        &ticket, err);
    if (rc == PSD_OK) {
        rc = psd_wait(table->client, ticket, self->args->timeout_ms, err);
    }
    if (rc == PSD_OK) {
        tell(self, n_rows * n_cols * self->value_size);
    }
    return rc;
}

/* One row that is too wide for one request. */
static psd_status_t pull_wide_row(scan_t *self, uint64_t row, psd_error_t *err)
{
    const ps_scan_sink_t *sink = self->sink;
    uint64_t n_cols = n_cols_of(self);
    uint64_t n_piece = GROUP_BYTES / self->value_size;
    psd_status_t rc = sink->row(sink->self, row, err);

    for (uint64_t at = 0; rc == PSD_OK && at < n_cols; at += n_piece) {
        uint64_t n = n_cols - at < n_piece ? n_cols - at : n_piece;

        rc = pull_piece(self, 1, at, n, err);
        if (rc == PSD_OK) {
            rc = sink->values(sink->self, NULL, self->values, (size_t)n, err);
        }
    }
    return rc != PSD_OK ? rc : sink->end(sink->self, err);
}

/* n rows, selected already: keys, or NULL for those from first on. */
static psd_status_t pull_rows(scan_t *self, const uint64_t *keys, uint64_t first, uint64_t n,
                              psd_error_t *err)
{
    const ps_scan_sink_t *sink = self->sink;
    uint64_t n_cols = n_cols_of(self);
    size_t row_bytes = (size_t)n_cols * self->value_size;
    psd_status_t rc = PSD_OK;

    if (row_bytes > GROUP_BYTES) {
        return pull_wide_row(self, keys == NULL ? first : keys[0], err);
    }
    rc = pull_piece(self, n, 0, n_cols, err);
    for (uint64_t i = 0; rc == PSD_OK && i < n; i++) {
        const char *values = (const char *)self->values + i * row_bytes;

        rc = sink->row(sink->self, keys == NULL ? first + i : keys[i], err);
        if (rc == PSD_OK) {
            rc = sink->values(sink->self, NULL, values, (size_t)n_cols, err);
        }
        if (rc == PSD_OK) {
            rc = sink->end(sink->self, err);
        }
    }
    return rc;
}

/* Rows of one request when every row has the same length. */
static uint64_t rows_of_group(const scan_t *self)
{
    uint64_t bytes = n_cols_of(self) * self->value_size;
    uint64_t n = GROUP_BYTES / bytes;

    return n == 0 ? 1 : n < KEYS_MAX ? n : KEYS_MAX;
}

/* Asks for the next rows and hands them on; *ret_last is the last one's key. */
static psd_status_t fetch_group(scan_t *self, uint64_t *ret_last, size_t *ret_n,
                                uint64_t *ret_bytes, psd_error_t *err)
{
    const ps_scan_sink_t *sink = self->sink;
    PSD_AUTO(psd_result_destroy) psd_result_t *result = NULL;
    psd_status_t rc = ps_fetch_about(self->args->table, self->select, self->args->sparse,
                                     (size_t)self->n_group, self->call, &result, err);
    uint64_t bytes = 0;

    *ret_n = rc == PSD_OK ? psd_result_count(result) : 0;
    for (size_t i = 0; rc == PSD_OK && i < *ret_n; i++) {
        size_t n = 0;
        const void *values = NULL;
        const uint32_t *cols = NULL;

        psd_result_row(result, i, ret_last, &n, &values, &cols);
        bytes += n * (self->value_size + sizeof *cols);
        rc = sink->row(sink->self, *ret_last, err);
        if (rc == PSD_OK && n > 0) {
            rc = sink->values(sink->self, cols, values, n, err);
        }
        if (rc == PSD_OK) {
            rc = sink->end(sink->self, err);
        }
    }
    *ret_bytes = bytes;
    tell(self, bytes);
    return rc;
}

static void adapt_group(scan_t *self, uint64_t bytes)
{
    if (bytes > 2 * GROUP_BYTES && self->n_group > 1) {
        self->n_group /= 2;
    } else if (bytes < GROUP_BYTES / 2 && self->n_group < KEYS_MAX) {
        self->n_group *= 2;
    }
}

static void select_range(scan_t *self, uint64_t first, uint64_t last)
{
    if (first == 0 && last == UINT64_MAX) {
        psd_select_all_rows(self->select);
    } else {
        psd_select_row_range(self->select, first, last - first + 1);
    }
}

/* A range of rows whose lengths only the server knows. */
static psd_status_t fetch_span(scan_t *self, uint64_t first, uint64_t last, psd_error_t *err)
{
    for (;;) {
        uint64_t at = last;
        uint64_t bytes = 0;
        size_t n = 0;
        psd_status_t rc = PSD_OK;

        select_range(self, first, last);
        select_cols(self, 0, n_cols_of(self));
        rc = fetch_group(self, &at, &n, &bytes, err);
        if (rc != PSD_OK || n == 0 || at >= last) {
            return rc;
        }
        first = at + 1;
        adapt_group(self, bytes);
    }
}

/* Sends the single rows that wait. */
static psd_status_t flush_keys(scan_t *self, psd_error_t *err)
{
    size_t n = self->n_keys;
    size_t step = 0;
    psd_status_t rc = PSD_OK;

    self->n_keys = 0;
    step = self->args->sparse ? FIRST_ROWS : (size_t)rows_of_group(self);
    for (size_t at = 0; rc == PSD_OK && at < n; at += step) {
        size_t now = n - at < step ? n - at : step;

        psd_select_rows(self->select, self->keys + at, now);
        if (self->args->sparse) {
            uint64_t last = 0;
            uint64_t bytes = 0;
            size_t n_got = 0;

            select_cols(self, 0, n_cols_of(self));
            self->n_group = 0; /* no bound: the list is one */
            rc = fetch_group(self, &last, &n_got, &bytes, err);
            self->n_group = FIRST_ROWS;
        } else {
            rc = pull_rows(self, self->keys + at, 0, now, err);
        }
    }
    return rc;
}

/* The keys present from first on; one column of each column slice tells, since a row may be
 * present in some slices only. */
static psd_status_t fetch_keys(scan_t *self, uint64_t first, uint64_t last,
                               psd_result_t **ret_result, psd_error_t *err)
{
    select_range(self, first, last);
    psd_select_cols(self->select, self->slice_cols, self->spec->n_col_slices);
    return ps_fetch_about(self->args->table, self->select, false, KEYS_MAX, self->call, ret_result,
                          err);
}

/* A range of dense rows of which only the server knows which are present: first
 * their keys, then their values, so that rows may be of any width. */
static psd_status_t pull_present(scan_t *self, uint64_t first, uint64_t last, psd_error_t *err)
{
    for (;;) {
        PSD_AUTO(psd_result_destroy) psd_result_t *result = NULL;
        psd_status_t rc = fetch_keys(self, first, last, &result, err);
        size_t n = rc == PSD_OK ? psd_result_count(result) : 0;
        uint64_t at = last;

        for (size_t i = 0; rc == PSD_OK && i < n; i++) {
            psd_result_row(result, i, &at, NULL, NULL, NULL);
            self->keys[self->n_keys++] = at;
            if (self->n_keys == KEYS_MAX) {
                rc = flush_keys(self, err);
            }
        }
        if (rc == PSD_OK) {
            rc = flush_keys(self, err);
        }
        if (rc != PSD_OK || n == 0 || at >= last) {
            return rc;
        }
        first = at + 1;
    }
}

static psd_status_t scan_span(scan_t *self, const ps_span_t *span, psd_error_t *err)
{
    uint64_t step = rows_of_group(self);
    psd_status_t rc = PSD_OK;

    if (span->is_single) {
        self->keys[self->n_keys++] = span->first;
        return self->n_keys < KEYS_MAX ? PSD_OK : flush_keys(self, err);
    }
    rc = flush_keys(self, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (self->args->sparse) {
        self->n_group = FIRST_ROWS;
        return fetch_span(self, span->first, span->last, err);
    }
    if (self->spec->keys == PS_KEYS_HASH) {
        return pull_present(self, span->first, span->last, err);
    }
    for (uint64_t at = span->first; rc == PSD_OK; at += step) {
        uint64_t left = span->last - at;
        uint64_t n = left < step ? left + 1 : step;

        psd_select_row_range(self->select, at, n);
        rc = pull_rows(self, NULL, at, n, err);
        if (left < step) {
            break;
        }
    }
    return rc;
}

static psd_status_t make_room(scan_t *self, psd_error_t *err)
{
    uint32_t n_slices = self->spec->n_col_slices;

    self->call = psd_call_new();
    self->select = psd_select_new();
    self->keys = ps_alloc(KEYS_MAX, sizeof *self->keys);
    self->slice_cols = ps_alloc(n_slices, sizeof *self->slice_cols);
    self->values = ps_alloc_raw(GROUP_BYTES, 1);
    if (self->call == NULL || self->select == NULL || self->keys == NULL ||
        self->slice_cols == NULL || self->values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for pulled rows");
    }
    psd_call_set_timeout_ms(self->call, self->args->timeout_ms);
    psd_call_set_trace(self->call, self->args->trace);
    for (uint32_t i = 0; i < n_slices; i++) {
        self->slice_cols[i] = ps_extent_of(self->spec, i).first_col;
    }
    return PSD_OK;
}

psd_status_t ps_scan(const ps_scan_args_t *args, const ps_scan_sink_t *sink, psd_error_t *err)
{
    const ps_table_spec_t *spec = &args->table->spec;
    const ps_span_t whole = {0, spec->keys == PS_KEYS_HASH ? UINT64_MAX : spec->n_rows - 1, false};
    const ps_span_t *spans = args->spans != NULL ? args->spans : &whole;
    size_t n_spans = args->spans != NULL ? args->n_spans : 1;
    PSD_AUTO(scan_done)
    scan_t self = {.args = args,
                   .sink = sink,
                   .spec = spec,
                   .value_size = ps_type_size(spec->type),
                   .n_group = FIRST_ROWS};
    psd_status_t rc = make_room(&self, err);

    for (size_t i = 0; rc == PSD_OK && i < n_spans; i++) {
        rc = scan_span(&self, &spans[i], err);
    }
    return rc != PSD_OK ? rc : flush_keys(&self, err);
}
