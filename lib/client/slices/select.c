/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows and columns: the caller's selection, and the check whether the
 * table has them. */
#include "client/slices/select.h"

#include <inttypes.h>

#include "base/alloc.h"

psd_select_t *psd_select_new(void)
{
    return ps_alloc(1, sizeof(psd_select_t));
}

void psd_select_destroy(psd_select_t **self_p)
{
    if (self_p != NULL) {
        ps_free(*self_p);
        *self_p = NULL;
    }
}

void psd_select_rows(psd_select_t *self, const uint64_t *rows, size_t n_rows)
{
    self->rows_are = PS_SELECT_LIST;
    self->all_rows = false;
    self->rows = rows;
    self->n_rows = n_rows;
    self->first_row = 0;
}

void psd_select_row_range(psd_select_t *self, uint64_t first, uint64_t n_rows)
{
    self->rows_are = PS_SELECT_RANGE;
    self->all_rows = false;
    self->rows = NULL;
    self->n_rows = n_rows;
    self->first_row = first;
}

void psd_select_all_rows(psd_select_t *self)
{
    psd_select_row_range(self, 0, 0);
    self->all_rows = true;
}

void psd_select_cols(psd_select_t *self, const uint32_t *cols, size_t n_cols)
{
    self->cols_are = PS_COLS_LIST;
    self->cols = cols;
    self->n_cols = n_cols;
    self->first_col = 0;
}

void psd_select_col_range(psd_select_t *self, uint32_t first, uint32_t n_cols)
{
    self->cols_are = PS_COLS_RANGE;
    self->cols = NULL;
    self->n_cols = n_cols;
    self->first_col = first;
}

void psd_select_all_cols(psd_select_t *self)
{
    self->cols_are = PS_COLS_ALL;
    self->cols = NULL;
    self->n_cols = 0;
    self->first_col = 0;
}

void psd_select_sparse(psd_select_t *self, const uint32_t *counts, const uint32_t *cols)
{
    self->counts = counts;
    self->sparse_cols = cols;
    self->lengths = NULL;
}

void psd_select_lengths(psd_select_t *self, const uint32_t *lengths)
{
    self->lengths = lengths;
    self->counts = NULL;
    self->sparse_cols = NULL;
}

size_t ps_select_width(const psd_select_t *self, const ps_table_spec_t *spec)
{
    return self->cols_are == PS_COLS_ALL ? spec->n_cols : self->n_cols;
}

static psd_status_t bad_row(uint64_t row, const ps_table_spec_t *spec, psd_error_t *err)
{
    return psd_error_set(err, PSD_RANGE,
                         "row %" PRIu64 " is not in table \"%s\"; allowed: "
                         "0..%" PRIu64,
                         row, spec->name, spec->n_rows - 1);
}

static psd_status_t bad_col(uint64_t col, const ps_table_spec_t *spec, psd_error_t *err)
{
    return psd_error_set(err, PSD_RANGE,
                         "column %" PRIu64 " is not in table \"%s\"; allowed: "
                         "0..%" PRIu32,
                         col, spec->name, spec->n_cols - 1);
}

static psd_status_t check_rows(psd_select_t *self, const ps_table_spec_t *spec, psd_error_t *err)
{
    bool is_range = spec->keys == PS_KEYS_RANGE;

    if (self->all_rows && is_range) {
        self->all_rows = false;
        self->n_rows = spec->n_rows;
    }
    if (self->rows_are == PS_SELECT_RANGE) {
        uint64_t last = self->first_row + (self->n_rows - 1);

        if (self->n_rows > 0 && last < self->first_row) {
            return psd_error_set(err, PSD_RANGE,
                                 "%zu rows from row %" PRIu64 " on end past the greatest row",
                                 self->n_rows, self->first_row);
        }
        if (self->n_rows > 0 && is_range && last >= spec->n_rows) {
            return bad_row(last, spec, err);
        }
        return PSD_OK;
    }
    if (self->rows == NULL && self->n_rows > 0) {
        return psd_error_set(err, PSD_INVALID, "rows is NULL, n_rows %zu", self->n_rows);
    }
    for (size_t i = 0; is_range && i < self->n_rows; i++) {
        if (self->rows[i] >= spec->n_rows) {
            return bad_row(self->rows[i], spec, err);
        }
    }
    return PSD_OK;
}

static psd_status_t check_cols(psd_select_t *self, const ps_table_spec_t *spec, psd_error_t *err)
{
    if (self->cols_are == PS_COLS_ALL) {
        return PSD_OK;
    }
    if (self->n_cols == 0) {
        return psd_error_set(err, PSD_INVALID, "no column is selected");
    }
    if (self->cols_are == PS_COLS_RANGE) {
        uint64_t last = (uint64_t)self->first_col + self->n_cols - 1;

        return last < spec->n_cols ? PSD_OK : bad_col(last, spec, err);
    }
    if (self->cols == NULL || self->n_cols > UINT32_MAX) {
        return psd_error_set(err, PSD_INVALID, "cols is NULL or too long: %zu", self->n_cols);
    }
    for (size_t i = 0; i < self->n_cols; i++) {
        if (self->cols[i] >= spec->n_cols) {
            return bad_col(self->cols[i], spec, err);
        }
    }
    return PSD_OK;
}

static psd_status_t check_dense_shape(const psd_select_t *self, const ps_table_spec_t *spec,
                                      size_t n_values, psd_error_t *err)
{
    size_t width = ps_select_width(self, spec);
    size_t need = 0;

    if (__builtin_mul_overflow(self->n_rows, width, &need) || need > SIZE_MAX / sizeof(uint64_t)) {
        return psd_error_set(err, PSD_SHAPE,
                             "%zu rows of %zu columns are more values than can "
                             "be counted",
                             self->n_rows, width);
    }
    if (n_values != need) {
        return psd_error_set(err, PSD_SHAPE,
                             "%zu values for %zu rows of %zu columns; allowed: "
                             "%zu",
                             n_values, self->n_rows, width, need);
    }
    return PSD_OK;
}

/* The entries of one row, whose columns ascend. */
static psd_status_t check_entries(const psd_select_t *self, const ps_table_spec_t *spec, size_t row,
                                  const uint32_t *cols, psd_error_t *err)
{
    for (uint32_t i = 0; i < self->counts[row]; i++) {
        if (cols[i] >= spec->n_cols) {
            return bad_col(cols[i], spec, err);
        }
        if (i > 0 && cols[i] <= cols[i - 1]) {
            return psd_error_set(err, PSD_SHAPE,
                                 "row %" PRIu64 ": column %" PRIu32 " comes after column %" PRIu32
                                 "; allowed: ascending",
                                 ps_select_row(self, row), cols[i], cols[i - 1]);
        }
    }
    return PSD_OK;
}

static psd_status_t check_sparse_shape(const psd_select_t *self, const ps_table_spec_t *spec,
                                       size_t n_values, psd_error_t *err)
{
    size_t at = 0;

    if (self->cols_are != PS_COLS_ALL) {
        return psd_error_set(err, PSD_INVALID,
                             "sparse rows name their columns themselves; "
                             "allowed: all columns selected");
    }
    if (self->sparse_cols == NULL && n_values > 0) {
        return psd_error_set(err, PSD_INVALID, "cols of sparse rows is NULL");
    }
    for (size_t i = 0; i < self->n_rows; i++) {
        psd_status_t rc = PSD_OK;

        if (self->counts[i] > n_values - at) {
            return psd_error_set(err, PSD_SHAPE, "counts add up to more than the %zu values",
                                 n_values);
        }
        rc = check_entries(self, spec, i, self->sparse_cols + at, err);
        if (rc != PSD_OK) {
            return rc;
        }
        at += self->counts[i];
    }
    if (at != n_values) {
        return psd_error_set(err, PSD_SHAPE, "counts add up to %zu; there are %zu values", at,
                             n_values);
    }
    return PSD_OK;
}

/* What the lengths add up to, each within the table's columns. */
static psd_status_t add_up(const psd_select_t *self, const ps_table_spec_t *spec, size_t *ret_sum,
                           psd_error_t *err)
{
    size_t sum = 0;

    for (size_t i = 0; i < self->n_rows; i++) {
        if (self->lengths[i] > spec->n_cols) {
            return psd_error_set(err, PSD_RANGE,
                                 "row %" PRIu64 " has %" PRIu32 " values; allowed: 0..%" PRIu32,
                                 ps_select_row(self, i), self->lengths[i], spec->n_cols);
        }
        sum += self->lengths[i]; /* n_rows x 2^31 at most, and no more memory */
    }
    *ret_sum = sum;
    return PSD_OK;
}

psd_status_t ps_select_spell(psd_select_t *self, const ps_table_spec_t *spec, size_t n_values,
                             uint32_t **ret_cols, psd_error_t *err)
{
    uint32_t *cols = NULL;
    size_t sum = 0;
    size_t at = 0;
    psd_status_t rc = PSD_OK;

    if (self->lengths == NULL) {
        return PSD_OK;
    }
    if (self->all_rows && spec->keys == PS_KEYS_RANGE) {
        self->all_rows = false;
        self->n_rows = spec->n_rows;
    }
    rc = add_up(self, spec, &sum, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (sum != n_values) {
        return psd_error_set(err, PSD_SHAPE, "lengths add up to %zu; there are %zu values", sum,
                             n_values);
    }
    cols = ps_alloc_raw(sum, sizeof *cols);
    if (cols == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a selection");
    }
    for (size_t i = 0; i < self->n_rows; i++) {
        for (uint32_t j = 0; j < self->lengths[i]; j++) {
            cols[at++] = j;
        }
    }
    self->counts = self->lengths;
    self->sparse_cols = cols;
    self->lengths = NULL;
    *ret_cols = cols;
    return PSD_OK;
}

psd_status_t ps_select_check_places(const psd_select_t *self, const ps_table_spec_t *spec,
                                    psd_select_t *ret_plain, psd_error_t *err)
{
    psd_select_t plain = *self;
    psd_status_t rc = check_rows(&plain, spec, err);

    if (rc == PSD_OK) {
        rc = check_cols(&plain, spec, err);
    }
    if (rc == PSD_OK) {
        *ret_plain = plain;
    }
    return rc;
}

psd_status_t ps_select_check(const psd_select_t *self, const ps_table_spec_t *spec, size_t n_values,
                             psd_select_t *ret_plain, psd_error_t *err)
{
    psd_select_t plain = {.all_rows = false};
    psd_status_t rc = ps_select_check_places(self, spec, &plain, err);

    if (rc == PSD_OK && plain.all_rows) {
        return psd_error_set(
            err, PSD_INVALID,
            "table \"%s\" has hash keys: only the server knows all of its rows; use psd_fetch",
            spec->name);
    }
    if (rc == PSD_OK) {
        rc = plain.counts == NULL ? check_dense_shape(&plain, spec, n_values, err)
                                  : check_sparse_shape(&plain, spec, n_values, err);
    }
    if (rc == PSD_OK) {
        *ret_plain = plain;
    }
    return rc;
}
