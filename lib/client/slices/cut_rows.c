/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the caller's rows and columns lie in which slice of the table. */
#include "client/slices/cut_inner.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "model/tables/partition.h"

static uint32_t row_slices(const ps_table_spec_t *spec)
{
    return spec->n_partitions / spec->n_col_slices;
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to cut a call");
}

static ps_row_run_t *add_run(ps_row_runs_t *self)
{
    ps_row_run_t *items = self->items == &self->one ? NULL : self->items;

    if (self->n == 0) {
        self->items = &self->one;
    } else {
        if (!ps_grow(&items, &self->capacity, self->n + 1, sizeof *items)) {
            return NULL;
        }
        if (self->items == &self->one) {
            items[0] = self->one;
        }
        self->items = items;
    }
    self->items[self->n] = (ps_row_run_t){.n = 0};
    return &self->items[self->n++];
}

/* Equal keys count as sorted. */
static bool is_sorted(const psd_select_t *select)
{
    if (select->rows_are == PS_SELECT_RANGE) {
        return true;
    }
    for (size_t i = 1; i < select->n_rows; i++) {
        if (select->rows[i] < select->rows[i - 1]) {
            return false;
        }
    }
    return true;
}

/* The first of the sorted rows from `from` on that is greater than last. */
static size_t first_above(const psd_select_t *select, size_t from, uint64_t last)
{
    size_t low = from;
    size_t high = select->n_rows;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (ps_select_row(select, middle) <= last) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static psd_status_t make_contiguous(const ps_table_spec_t *spec, const psd_select_t *select,
                                    ps_row_runs_t *runs, psd_error_t *err)
{
    size_t at = 0;

    while (at < select->n_rows) {
        uint32_t slice = ps_row_slice_of(spec, ps_select_row(select, at));
        ps_extent_t extent = ps_extent_of(spec, slice * spec->n_col_slices);
        ps_row_run_t *run = add_run(runs);

        if (run == NULL) {
            return no_memory(err);
        }
        run->row_slice = slice;
        run->first = at;
        at = first_above(select, at, extent.last_row);
        run->n = at - run->first;
    }
    return PSD_OK;
}

/* The slice of each row. The rule is that of ps_row_slice_of. The rule for keys
 * of the whole u64 space is repeated here: with very many keys, a call and a
 * switch for each key cost more than the rule. */
static void find_slices(const ps_table_spec_t *spec, const psd_select_t *select, uint32_t *slice_of)
{
    size_t n = select->n_rows;
    uint32_t slices = row_slices(spec);
    bool lists = select->rows_are == PS_SELECT_LIST;

    if (lists && spec->partition_by == PS_PARTITION_BY_HASH) {
        for (size_t i = 0; i < n; i++) {
            slice_of[i] = (uint32_t)ps_fold(ps_hash_u64(select->rows[i]), slices);
        }
    } else if (lists && spec->partition_by == PS_PARTITION_BY_RANGE && spec->keys == PS_KEYS_HASH) {
        for (size_t i = 0; i < n; i++) {
            slice_of[i] = (uint32_t)ps_fold(select->rows[i], slices);
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            slice_of[i] = ps_row_slice_of(spec, ps_select_row(select, i));
        }
    }
}

/* A run for each slice that has rows; counts become where each one begins. */
static bool add_runs(ps_row_runs_t *runs, uint32_t *counts, uint32_t n_slices)
{
    uint32_t at = 0;

    for (uint32_t i = 0; i < n_slices; i++) {
        uint32_t n = counts[i];
        ps_row_run_t *run = n == 0 ? NULL : add_run(runs);

        if (n > 0 && run == NULL) {
            return false;
        }
        if (run != NULL) {
            *run = (ps_row_run_t){.row_slice = i, .n = n, .order = runs->order + at};
        }
        counts[i] = at;
        at += n;
    }
    return true;
}

/* A counting sort, which keeps the order of rows within a slice. */
static psd_status_t make_gathered(const ps_table_spec_t *spec, const psd_select_t *select,
                                  ps_row_runs_t *runs, psd_error_t *err)
{
    uint32_t n_slices = row_slices(spec);
    size_t n = select->n_rows;
    PSD_AUTO(ps_free_at) uint32_t *slice_of = NULL;
    PSD_AUTO(ps_free_at) uint32_t *ends = NULL;

    if (n > UINT32_MAX) {
        return psd_error_set(err, PSD_LIMIT,
                             "%zu rows that are not adjacent; allowed: %" PRIu32 " in one call", n,
                             UINT32_MAX);
    }
    slice_of = ps_alloc_raw(n, sizeof *slice_of);
    ends = ps_alloc(n_slices, sizeof *ends);
    runs->order = ps_alloc_raw(n, sizeof *runs->order);
    if (slice_of == NULL || ends == NULL || runs->order == NULL) {
        return no_memory(err);
    }
    find_slices(spec, select, slice_of);
    for (size_t i = 0; i < n; i++) {
        ends[slice_of[i]]++;
    }
    if (!add_runs(runs, ends, n_slices)) {
        return no_memory(err);
    }
    for (uint32_t i = 0; i < n; i++) {
        runs->order[ends[slice_of[i]]++] = i;
    }
    return PSD_OK;
}

static psd_status_t make_single(const psd_select_t *select, ps_row_runs_t *runs, psd_error_t *err)
{
    ps_row_run_t *run = add_run(runs);

    if (run == NULL) {
        return no_memory(err);
    }
    run->n = select->n_rows;
    return PSD_OK;
}

psd_status_t ps_row_runs_make(const ps_table_spec_t *spec, const psd_select_t *select,
                              ps_row_runs_t *ret_runs, psd_error_t *err)
{
    if (row_slices(spec) == 1) {
        return make_single(select, ret_runs, err);
    }
    if (spec->partition_by != PS_PARTITION_BY_HASH && is_sorted(select)) {
        return make_contiguous(spec, select, ret_runs, err);
    }
    return make_gathered(spec, select, ret_runs, err);
}

void ps_row_runs_done(ps_row_runs_t *self)
{
    if (self->items != &self->one) {
        ps_free(self->items);
    }
    ps_free(self->order);
    *self = (ps_row_runs_t){.n = 0};
}

/* Columns in any order, some of which lie in this slice. */
static psd_status_t gather_cols(const ps_table_spec_t *spec, const psd_select_t *select,
                                ps_col_run_t *run, psd_error_t *err)
{
    run->kind = PS_COLS_LIST;
    run->places = ps_alloc_raw(select->n_cols, sizeof *run->places);
    if (run->places == NULL) {
        return no_memory(err);
    }
    for (size_t i = 0; i < select->n_cols; i++) {
        if (ps_col_slice_of(spec, select->cols[i]) == run->col_slice) {
            run->places[run->n_cols++] = (uint32_t)i;
        }
    }
    return PSD_OK;
}

psd_status_t ps_col_run_make(const ps_table_spec_t *spec, const psd_select_t *select,
                             uint32_t col_slice, ps_col_run_t *ret_run, psd_error_t *err)
{
    ps_extent_t extent = ps_extent_of(spec, col_slice);
    ps_col_run_t run = {.col_slice = col_slice, .kind = select->cols_are};
    uint64_t end = (uint64_t)select->first_col + select->n_cols;
    uint64_t extent_end = (uint64_t)extent.last_col + 1;
    psd_status_t rc = PSD_OK;

    if (select->cols_are == PS_COLS_ALL) {
        run.n_cols = (uint32_t)(extent_end - extent.first_col);
        run.at = extent.first_col;
    } else if (select->cols_are == PS_COLS_RANGE) {
        uint64_t first =
            select->first_col > extent.first_col ? select->first_col : extent.first_col;

        end = end < extent_end ? end : extent_end;
        run.n_cols = end > first ? (uint32_t)(end - first) : 0;
        run.first_col = (uint32_t)first;
        run.at = (size_t)(first - select->first_col);
    } else if (spec->n_col_slices == 1) {
        run.n_cols = (uint32_t)select->n_cols;
    } else {
        rc = gather_cols(spec, select, &run, err);
    }
    *ret_run = run;
    return rc;
}

void ps_col_run_done(ps_col_run_t *self)
{
    ps_free(self->places);
    *self = (ps_col_run_t){.n_cols = 0};
}
