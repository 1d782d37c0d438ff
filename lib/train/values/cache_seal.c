/* SPDX-License-Identifier: Apache-2.0 */
/* From the requested parameters to those that are pulled: each once, with room
 * for its values. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "train/values/cache.h"

/* The elements of one row. */
typedef struct run {
    const ps_element_t *elements;
    size_t n;
} run_t;

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for the cache of a block");
}

/* Room for n values; their old content is not kept. */
static psd_status_t make_room(void **values_p, size_t *bytes_p, size_t n, size_t value_size,
                              psd_error_t *err)
{
    size_t bytes = 0;
    void *values = NULL;

    if (__builtin_mul_overflow(n, value_size, &bytes)) {
        return no_memory(err);
    }
    if (*values_p != NULL && bytes <= *bytes_p) {
        return PSD_OK;
    }
    values = ps_alloc_raw(n, value_size);
    if (values == NULL) {
        return no_memory(err);
    }
    ps_free(*values_p);
    *values_p = values;
    *bytes_p = bytes;
    return PSD_OK;
}

static int compare_elements(const void *left, const void *right)
{
    const ps_element_t *a = left;
    const ps_element_t *b = right;

    if (a->row != b->row) {
        return a->row < b->row ? -1 : 1;
    }
    return a->col < b->col ? -1 : a->col > b->col;
}

/* Shorter runs first, then by their columns, then by row: rows with the same
 * columns come together. */
static int compare_cols(const run_t *a, const run_t *b)
{
    if (a->n != b->n) {
        return a->n < b->n ? -1 : 1;
    }
    for (size_t i = 0; i < a->n; i++) {
        if (a->elements[i].col != b->elements[i].col) {
            return a->elements[i].col < b->elements[i].col ? -1 : 1;
        }
    }
    return 0;
}

static int compare_runs(const void *left, const void *right)
{
    const run_t *a = left;
    const run_t *b = right;
    int order = compare_cols(a, b);

    if (order != 0) {
        return order;
    }
    return a->elements->row < b->elements->row ? -1 : 1;
}

/* Sorts the elements, and leaves out those that come with a row. */
static void thin_out(ps_cache_table_t *self)
{
    size_t kept = 0;

    if (self->whole) {
        self->n_elements = 0;
    }
    if (self->n_elements == 0) {
        return;
    }
    qsort(self->elements, self->n_elements, sizeof *self->elements, compare_elements);
    for (size_t i = 0; i < self->n_elements; i++) {
        const ps_element_t *element = &self->elements[i];

        if ((kept > 0 && compare_elements(element, &self->elements[kept - 1]) == 0) ||
            ps_row_set_find(&self->rows, element->row) != PS_ROW_NONE) {
            continue;
        }
        self->elements[kept++] = *element;
    }
    self->n_elements = kept;
}

/* Cuts the sorted elements into runs; returns how many. */
static size_t cut_runs(const ps_element_t *elements, size_t n, run_t *runs)
{
    size_t n_runs = 0;

    for (size_t i = 0; i < n; i++) {
        if (i == 0 || elements[i].row != elements[i - 1].row) {
            runs[n_runs++] = (run_t){.elements = &elements[i], .n = 0};
        }
        runs[n_runs - 1].n++;
    }
    return n_runs;
}

/* Appends the run, in a group with the one before if their columns are the
 * same. */
static bool add_run(ps_cache_table_t *self, const run_t *run, const run_t *before,
                    size_t first_value)
{
    size_t number = 0;

    if (!ps_row_set_add(&self->element_rows, run->elements->row, &number) ||
        !ps_grow(&self->element_starts, &self->starts_capacity, number + 2,
                 sizeof *self->element_starts)) {
        return false;
    }
    self->element_starts[number] = first_value;
    self->element_starts[number + 1] = first_value + run->n;
    if (before != NULL && compare_cols(run, before) == 0) {
        self->groups[self->n_groups - 1].n_rows++;
        return true;
    }
    if (!ps_grow(&self->groups, &self->groups_capacity, self->n_groups + 1, sizeof *self->groups)) {
        return false;
    }
    self->groups[self->n_groups++] = (ps_element_group_t){
        .first_row = number, .n_rows = 1, .first_value = first_value, .n_cols = (uint32_t)run->n};
    return true;
}

static psd_status_t group_elements(ps_cache_table_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) run_t *runs = NULL;
    PSD_AUTO(ps_free_at) ps_element_t *sorted = NULL;
    size_t n_runs = 0;
    size_t at = 0;

    if (self->n_elements == 0) {
        return PSD_OK;
    }
    runs = ps_alloc_raw(self->n_elements, sizeof *runs);
    sorted = ps_alloc_raw(self->n_elements, sizeof *sorted);
    if (runs == NULL || sorted == NULL) {
        return no_memory(err);
    }
    memcpy(sorted, self->elements, self->n_elements * sizeof *sorted);
    n_runs = cut_runs(sorted, self->n_elements, runs);
    qsort(runs, n_runs, sizeof *runs, compare_runs);
    for (size_t i = 0; i < n_runs; i++) {
        if (!add_run(self, &runs[i], i == 0 ? NULL : &runs[i - 1], at)) {
            return no_memory(err);
        }
        memcpy(&self->elements[at], runs[i].elements, runs[i].n * sizeof *sorted);
        at += runs[i].n;
    }
    return PSD_OK;
}

static psd_status_t seal_table(ps_cache_table_t *self, psd_error_t *err)
{
    uint64_t n_rows = self->whole ? self->shape.n_rows : self->rows.n;
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    if (__builtin_mul_overflow(n_rows, self->shape.n_cols, &n)) {
        return no_memory(err);
    }
    if (self->whole) {
        ps_row_set_clear(&self->rows);
    }
    thin_out(self);
    if (n > 0) {
        rc = make_room(&self->values, &self->values_bytes, n, self->shape.value_size, err);
    }
    if (rc == PSD_OK) {
        rc = group_elements(self, err);
    }
    if (rc == PSD_OK && self->n_elements > 0) {
        rc = make_room(&self->element_values, &self->element_bytes, self->n_elements,
                       self->shape.value_size, err);
    }
    return rc;
}

psd_status_t ps_cache_seal(ps_cache_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < self->n_tables; i++) {
        rc = seal_table(&self->tables[i], err);
    }
    return rc;
}
