/* SPDX-License-Identifier: Apache-2.0 */
/* What a block wants, and where a value of it lies. */
#include "train/values/cache.h"

#include <inttypes.h>

#include "base/alloc.h"

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for the cache of a block");
}

psd_status_t ps_cache_init(ps_cache_t *self, const ps_shape_t *shapes, size_t n_tables,
                           psd_error_t *err)
{
    *self = (ps_cache_t){.n_tables = n_tables};
    self->tables = ps_alloc(n_tables, sizeof *self->tables);
    if (self->tables == NULL) {
        self->n_tables = 0;
        return no_memory(err);
    }
    for (size_t i = 0; i < n_tables; i++) {
        self->tables[i].shape = shapes[i];
    }
    return PSD_OK;
}

void ps_cache_done(ps_cache_t *self)
{
    for (size_t i = 0; i < self->n_tables; i++) {
        ps_cache_table_t *table = &self->tables[i];

        ps_row_set_done(&table->rows);
        ps_row_set_done(&table->element_rows);
        ps_free(table->values);
        ps_free(table->elements);
        ps_free(table->element_starts);
        ps_free(table->groups);
        ps_free(table->element_values);
    }
    ps_free(self->tables);
    *self = (ps_cache_t){.n_tables = 0};
}

void ps_cache_clear(ps_cache_t *self)
{
    self->n_rows_asked = 0;
    self->n_cells_asked = 0;
    for (size_t i = 0; i < self->n_tables; i++) {
        ps_cache_table_t *table = &self->tables[i];

        table->whole = false;
        table->n_missing = 0;
        ps_row_set_clear(&table->rows);
        ps_row_set_clear(&table->element_rows);
        table->n_elements = 0;
        table->n_groups = 0;
    }
}

/* NULL: there is no such table, and err says so. */
static ps_cache_table_t *find_table(const ps_cache_t *self, uint32_t table, psd_error_t *err)
{
    if (table < self->n_tables) {
        return &self->tables[table];
    }
    (void)psd_error_set(err, PSD_INVALID, "table is %" PRIu32 "; there are %zu", table,
                        self->n_tables);
    return NULL;
}

static psd_status_t check_row(const ps_cache_table_t *table, uint64_t row, psd_error_t *err)
{
    if (ps_shape_has_row(&table->shape, row)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_RANGE, "row %" PRIu64 "; the table has %" PRIu64, row,
                         table->shape.n_rows);
}

psd_status_t ps_cache_want_all(ps_cache_t *self, uint32_t table, psd_error_t *err)
{
    ps_cache_table_t *found = find_table(self, table, err);

    if (found == NULL) {
        return PSD_INVALID;
    }
    if (found->shape.n_rows == 0) {
        return psd_error_set(
            err, PSD_INVALID,
            "all rows of a table with hash keys are asked for; allowed: single rows");
    }
    self->n_rows_asked += found->shape.n_rows;
    found->whole = true;
    return PSD_OK;
}

psd_status_t ps_cache_want_rows(ps_cache_t *self, uint32_t table, const uint64_t *rows,
                                size_t n_rows, psd_error_t *err)
{
    ps_cache_table_t *found = find_table(self, table, err);
    psd_status_t rc = found == NULL ? PSD_INVALID : PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < n_rows; i++) {
        size_t number = 0;

        rc = check_row(found, rows[i], err);
        if (rc == PSD_OK && !found->whole && !ps_row_set_add(&found->rows, rows[i], &number)) {
            rc = no_memory(err);
        }
    }
    if (rc == PSD_OK) {
        self->n_rows_asked += n_rows;
    }
    return rc;
}

psd_status_t ps_cache_want_element(ps_cache_t *self, uint32_t table, uint64_t row, uint32_t col,
                                   psd_error_t *err)
{
    ps_cache_table_t *found = find_table(self, table, err);
    psd_status_t rc = found == NULL ? PSD_INVALID : check_row(found, row, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (col >= found->shape.n_cols) {
        return psd_error_set(err, PSD_RANGE, "column %" PRIu32 "; the table has %" PRIu32, col,
                             found->shape.n_cols);
    }
    self->n_cells_asked++;
    if (found->whole || ps_row_set_find(&found->rows, row) != PS_ROW_NONE) {
        return PSD_OK;
    }
    if (!ps_grow(&found->elements, &found->elements_capacity, found->n_elements + 1,
                 sizeof *found->elements)) {
        return no_memory(err);
    }
    found->elements[found->n_elements++] = (ps_element_t){.row = row, .col = col};
    return PSD_OK;
}

/* ---- where values lie ---------------------------------------------------- */

void *ps_cache_row(const ps_cache_table_t *self, uint64_t row)
{
    size_t at = (size_t)row;

    if (!self->whole) {
        at = ps_row_set_find(&self->rows, row);
    } else if (row >= self->shape.n_rows) {
        at = PS_ROW_NONE;
    }
    return at == PS_ROW_NONE
               ? NULL
               : (char *)self->values + at * self->shape.n_cols * self->shape.value_size;
}

/* The place of an element that was wanted by itself. */
static size_t find_element(const ps_cache_table_t *self, uint64_t row, uint32_t col)
{
    size_t number = ps_row_set_find(&self->element_rows, row);
    size_t low = 0;
    size_t high = 0;

    if (number == PS_ROW_NONE) {
        return PS_ROW_NONE;
    }
    low = self->element_starts[number];
    high = self->element_starts[number + 1];
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->elements[middle].col < col) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < self->element_starts[number + 1] && self->elements[low].col == col ? low
                                                                                    : PS_ROW_NONE;
}

void *ps_cache_value(const ps_cache_table_t *self, uint64_t row, uint32_t col)
{
    char *values = NULL;
    size_t at = PS_ROW_NONE;

    if (col >= self->shape.n_cols) {
        return NULL;
    }
    values = ps_cache_row(self, row);
    if (values != NULL) {
        return values + col * self->shape.value_size;
    }
    at = find_element(self, row, col);
    return at == PS_ROW_NONE ? NULL : (char *)self->element_values + at * self->shape.value_size;
}
