/* SPDX-License-Identifier: Apache-2.0 */
/* Two tables, row by row. */
#include "cli/tables/rows_diff.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "client/requests/scan.h"

#define UINT64_OF_DOUBLE 18446744073709551616.0 /* from there on it is larger than any u64 */
#define BATCH_BYTES (UINT64_C(4) << 20) /* of rows of A that are held at once, and a row more */

typedef struct row {
    uint64_t key;
    size_t values_at; /* offset in bytes */
    size_t cols_at;
    size_t n; /* values */
} row_t;

typedef struct pass {
    ps_rows_diff_t *diff;
    size_t value_size;  /* bytes */
    ps_buffer_t rows;   /* of A: row_t, … */
    ps_buffer_t values; /* … their values, … */
    ps_buffer_t cols;   /* … and columns, of sparse rows */
    size_t at;          /* the next row of A */
    uint64_t next_key;  /* of B */
    bool is_over;       /* next_key has passed the last of all keys */
    row_t row;          /* of A; compared with one of B */
    size_t at_value;    /* of row, the next one */
    uint32_t next_col;  /* of the row of B, where it is dense */
    bool is_only_b;     /* the row of B has none to be compared with */
    bool differs;       /* the row */
} pass_t;

static void pass_done(pass_t *self)
{
    ps_buffer_done(&self->rows);
    ps_buffer_done(&self->values);
    ps_buffer_done(&self->cols);
}

static const row_t *row_at(const pass_t *self, size_t i)
{
    return (const row_t *)(const void *)self->rows.data + i;
}

static size_t n_rows(const pass_t *self)
{
    return self->rows.size / sizeof(row_t);
}

static bool can_have(const ps_view_t *view, uint64_t key)
{
    return !view->is_hash && key <= view->last_row;
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for the rows of a table");
}

/* ---- values ---- */

static double float_difference(double a, double b)
{
    double difference = fabs(a - b);

    if (a == b || (isnan(a) && isnan(b))) {
        return 0;
    }
    return isnan(difference) ? (double)INFINITY : difference;
}

static double integer_difference(int64_t a, int64_t b, double tolerance, bool *ret_counts)
{
    uint64_t difference = a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;

    /* A double has no integers between two of its own above 2^53. */
    *ret_counts = tolerance < UINT64_OF_DOUBLE && difference > (uint64_t)tolerance;
    return (double)difference;
}

static int64_t integer_at(ps_type_t type, const uint8_t *value)
{
    int32_t narrow = 0;
    int64_t wide = 0;

    if (type == PS_TYPE_I64) {
        memcpy(&wide, value, sizeof wide);
        return wide;
    }
    memcpy(&narrow, value, sizeof narrow);
    return narrow;
}

static double float_at(ps_type_t type, const uint8_t *value)
{
    float narrow = 0;
    double wide = 0;

    if (type == PS_TYPE_F64) {
        memcpy(&wide, value, sizeof wide);
        return wide;
    }
    memcpy(&narrow, value, sizeof narrow);
    return (double)narrow;
}

/* *ret_counts: the difference is greater than the tolerance. */
static double difference_of(ps_type_t type, const uint8_t *a, const uint8_t *b, double tolerance,
                            bool *ret_counts)
{
    double difference = 0;

    if (type == PS_TYPE_I32 || type == PS_TYPE_I64) {
        return integer_difference(integer_at(type, a), integer_at(type, b), tolerance, ret_counts);
    }
    difference = float_difference(float_at(type, a), float_at(type, b));
    *ret_counts = difference > tolerance;
    return difference;
}

/* a, b: NULL for a value that a sparse row does not have. */
static psd_status_t compare_value(pass_t *self, uint64_t key, uint32_t col, const uint8_t *a,
                                  const uint8_t *b, psd_error_t *err)
{
    static const uint8_t zero[sizeof(int64_t)] = {0};
    ps_rows_diff_t *diff = self->diff;
    const uint8_t *a_value = a != NULL ? a : zero;
    const uint8_t *b_value = b != NULL ? b : zero;
    bool counts = false;
    double difference = difference_of(diff->a->type, a_value, b_value, diff->tolerance, &counts);

    if (!counts) {
        return PSD_OK;
    }
    self->differs = true;
    diff->n_values++;
    diff->largest = difference > diff->largest ? difference : diff->largest;
    return diff->found(diff->arg, PS_SIDE_BOTH, key, col, a_value, b_value, difference, err);
}

/* ---- a row of B, and that of A with the same key ---- */

static uint32_t col_of_a(const pass_t *self)
{
    const uint32_t *cols = (const uint32_t *)(const void *)(self->cols.data + self->row.cols_at);

    return self->diff->a->is_sparse ? cols[self->at_value] : (uint32_t)self->at_value;
}

static const uint8_t *value_of_a(const pass_t *self)
{
    return self->values.data + self->row.values_at + self->at_value * self->value_size;
}

/* Values of A before column `col` that B does not have. */
static psd_status_t pass_a_values(pass_t *self, uint64_t col, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && self->at_value < self->row.n && col_of_a(self) < col) {
        rc = compare_value(self, self->row.key, col_of_a(self), value_of_a(self), NULL, err);
        self->at_value++;
    }
    return rc;
}

static void begin_row(pass_t *self, const row_t *row)
{
    self->row = *row;
    self->at_value = 0;
    self->next_col = 0;
    self->is_only_b = false;
    self->differs = false;
}

static psd_status_t end_row(pass_t *self, psd_error_t *err)
{
    psd_status_t rc = pass_a_values(self, UINT64_MAX, err);

    self->diff->n_rows++;
    self->diff->n_rows_differ += self->differs ? 1 : 0;
    return rc;
}

/* Rows of A before `key`, which B does not have. */
static psd_status_t pass_a_rows(pass_t *self, uint64_t key, bool is_last, psd_error_t *err)
{
    ps_rows_diff_t *diff = self->diff;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && self->at < n_rows(self) &&
           (is_last || row_at(self, self->at)->key < key)) {
        const row_t *row = row_at(self, self->at++);

        if (can_have(diff->b, row->key)) {
            begin_row(self, row);
            rc = end_row(self, err);
        } else {
            diff->n_only_a++;
            rc = diff->found(diff->arg, PS_SIDE_A, row->key, 0, NULL, NULL, 0, err);
        }
    }
    return rc;
}

static psd_status_t b_row(void *arg, uint64_t key, psd_error_t *err)
{
    pass_t *self = arg;
    ps_rows_diff_t *diff = self->diff;
    psd_status_t rc = pass_a_rows(self, key, false, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (self->at < n_rows(self) && row_at(self, self->at)->key == key) {
        begin_row(self, row_at(self, self->at++));
        return PSD_OK;
    }
    begin_row(self, &(row_t){.key = key});
    self->is_only_b = !can_have(diff->a, key);
    if (!self->is_only_b) {
        return PSD_OK;
    }
    diff->n_only_b++;
    return diff->found(diff->arg, PS_SIDE_B, key, 0, NULL, NULL, 0, err);
}

/* Adjacent columns of two dense rows that have the same bytes. */
static bool are_same(pass_t *self, const uint32_t *cols, const void *values, size_t n)
{
    return cols == NULL && !self->diff->a->is_sparse && self->at_value == self->next_col &&
           self->row.n - self->at_value >= n &&
           memcmp(value_of_a(self), values, n * self->value_size) == 0;
}

static psd_status_t b_values(void *arg, const uint32_t *cols, const void *values, size_t n,
                             psd_error_t *err)
{
    pass_t *self = arg;
    psd_status_t rc = PSD_OK;

    if (self->is_only_b) {
        return PSD_OK;
    }
    if (n > 0 && are_same(self, cols, values, n)) {
        self->at_value += n;
        self->next_col += (uint32_t)n;
        return PSD_OK;
    }
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        uint32_t col = cols != NULL ? cols[i] : self->next_col++;
        const uint8_t *b = (const uint8_t *)values + i * self->value_size;
        const uint8_t *a = NULL;

        rc = pass_a_values(self, col, err);
        if (self->at_value < self->row.n && col_of_a(self) == col) {
            a = value_of_a(self);
            self->at_value++;
        }
        if (rc == PSD_OK) {
            rc = compare_value(self, self->row.key, col, a, b, err);
        }
    }
    return rc;
}

static psd_status_t b_end(void *arg, psd_error_t *err)
{
    pass_t *self = arg;

    return self->is_only_b ? PSD_OK : end_row(self, err);
}

/* ---- the rows of A, in batches ---- */

static psd_status_t scan_b(pass_t *self, uint64_t last, psd_error_t *err)
{
    const ps_view_t *b = self->diff->b;
    const ps_span_t span = {self->next_key, last < b->last_row ? last : b->last_row, false};
    const ps_scan_args_t args = {.table = b->table,
                                 .spans = &span,
                                 .n_spans = 1,
                                 .sparse = b->is_sparse,
                                 .timeout_ms = self->diff->timeout_ms};
    const ps_scan_sink_t sink = {.self = self, .row = b_row, .values = b_values, .end = b_end};

    return self->is_over || span.first > b->last_row ? PSD_OK : ps_scan(&args, &sink, err);
}

/* Compares the rows of A that are held with those of B up to key `last`. */
static psd_status_t flush(pass_t *self, uint64_t last, psd_error_t *err)
{
    psd_status_t rc = scan_b(self, last, err);

    if (rc == PSD_OK) {
        rc = pass_a_rows(self, 0, true, err);
    }
    self->rows.size = 0;
    self->values.size = 0;
    self->cols.size = 0;
    self->at = 0;
    self->is_over = last == UINT64_MAX;
    self->next_key = last + 1;
    return rc;
}

static psd_status_t a_row(void *arg, uint64_t key, psd_error_t *err)
{
    pass_t *self = arg;
    const row_t row = {
        .key = key, .values_at = self->values.size, .cols_at = self->cols.size, .n = 0};

    return ps_buffer_append(&self->rows, &row, sizeof row) ? PSD_OK : no_memory(err);
}

static psd_status_t a_values(void *arg, const uint32_t *cols, const void *values, size_t n,
                             psd_error_t *err)
{
    pass_t *self = arg;
    row_t *row = (row_t *)(void *)self->rows.data + (n_rows(self) - 1);

    row->n += n;
    return ps_buffer_append(&self->values, values, n * self->value_size) &&
                   (cols == NULL || ps_buffer_append(&self->cols, cols, n * sizeof *cols))
               ? PSD_OK
               : no_memory(err);
}

static psd_status_t a_end(void *arg, psd_error_t *err)
{
    pass_t *self = arg;

    if (self->rows.size + self->values.size + self->cols.size < BATCH_BYTES) {
        return PSD_OK;
    }
    return flush(self, row_at(self, n_rows(self) - 1)->key, err);
}

psd_status_t ps_rows_diff(ps_rows_diff_t *self, psd_error_t *err)
{
    PSD_AUTO(pass_done) pass_t pass = {.diff = self, .value_size = self->a->value_size};
    const ps_scan_args_t args = {
        .table = self->a->table, .sparse = self->a->is_sparse, .timeout_ms = self->timeout_ms};
    const ps_scan_sink_t sink = {.self = &pass, .row = a_row, .values = a_values, .end = a_end};
    psd_status_t rc = ps_scan(&args, &sink, err);

    return rc != PSD_OK ? rc : flush(&pass, UINT64_MAX, err);
}
