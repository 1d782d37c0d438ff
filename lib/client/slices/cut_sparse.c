/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of sparse rows to push: counts and columns must be adjacent, so they
 * are copied; slices point at values where these are contiguous. */
#include "client/slices/cut_inner.h"

#include <string.h>

#include "base/alloc.h"
#include "model/tables/partition.h"

#define ENTRY_BYTES(value_size) (sizeof(uint32_t) + (value_size))
#define ROW_BYTES (sizeof(uint64_t) + sizeof(uint32_t))

/* One run of rows and one column slice. */
typedef struct sparse {
    const ps_cut_args_t *args;
    const ps_row_run_t *rows;
    const size_t *starts; /* of each of the caller's rows, its first entry */
    ps_extent_t extent;   /* whose columns are taken */
    uint32_t col_slice;
    bool splits; /* the table has several column slices */
    size_t value_size;
} sparse_t;

/* The entries of a row that lie in the column slice. */
typedef struct entries {
    size_t first;
    size_t n;
    bool taken; /* the row is pushed to this slice at all */
} entries_t;

static entries_t entries_of(const sparse_t *self, size_t row)
{
    const uint32_t *cols = self->args->select->sparse_cols;
    size_t first = self->starts[row];
    size_t end = self->starts[row + 1];
    bool is_empty = first == end;

    if (!self->splits) {
        return (entries_t){.first = first, .n = end - first, .taken = true};
    }
    while (first < end && cols[first] < self->extent.first_col) {
        first++;
    }
    while (end > first && cols[end - 1] > self->extent.last_col) {
        end--;
    }
    /* An empty row is still a push: a partition has to create the row. */
    return (entries_t){.first = first,
                       .n = end - first,
                       .taken = end > first || (is_empty && self->col_slice == 0)};
}

/* What rows [from, to) of the run come to. */
typedef struct sum {
    size_t to;
    size_t n_rows;
    size_t n_values;
} sum_t;

/* As many rows as stay within the limit; at least one that is taken, if there
 * is one. */
static sum_t sum_up(const sparse_t *self, size_t from)
{
    sum_t sum = {.to = from};
    uint64_t bytes = 0;

    while (sum.to < self->rows->n) {
        entries_t entries = entries_of(self, ps_row_run_at(self->rows, sum.to));
        uint64_t more = ROW_BYTES + entries.n * ENTRY_BYTES(self->value_size);

        if (entries.taken && sum.n_rows > 0 && bytes + more > self->args->limit_bytes) {
            break;
        }
        if (entries.taken) {
            sum.n_rows++;
            sum.n_values += entries.n;
            bytes += more;
        }
        sum.to++;
    }
    return sum;
}

/* Where the parts of a block are filled in. */
typedef struct filler {
    uint8_t *keys; /* NULL: rows are a range */
    uint8_t *counts;
    uint8_t *cols;
    uint8_t *values; /* NULL: pointed at */
} filler_t;

static uint8_t *put(uint8_t *to, const void *from, size_t size)
{
    if (size > 0) {
        memcpy(to, from, size);
    }
    return to + size;
}

static void fill_row(const sparse_t *self, size_t row, filler_t *to)
{
    const psd_select_t *select = self->args->select;
    entries_t entries = entries_of(self, row);
    uint64_t key = ps_select_row(select, row);
    uint32_t count = (uint32_t)entries.n;

    if (!entries.taken) {
        return;
    }
    if (to->keys != NULL) {
        to->keys = put(to->keys, &key, sizeof key);
    }
    to->counts = put(to->counts, &count, sizeof count);
    to->cols = put(to->cols, select->sparse_cols + entries.first, entries.n * sizeof(uint32_t));
    if (to->values != NULL) {
        to->values =
            put(to->values, (const uint8_t *)self->args->values + entries.first * self->value_size,
                entries.n * self->value_size);
    }
}

static psd_status_t make(const sparse_t *self, size_t from, const sum_t *sum, ps_cut_t *cut)
{
    const psd_select_t *select = self->args->select;
    bool together = self->rows->order == NULL && !self->splits;
    bool lists =
        !together || select->rows_are == PS_SELECT_LIST || self->args->spec->keys == PS_KEYS_HASH;
    bool borrows = together && self->args->borrow;
    size_t keys_size = lists ? sum->n_rows * sizeof(uint64_t) : 0;
    size_t index_size = (sum->n_rows + sum->n_values) * sizeof(uint32_t);
    size_t values_size = sum->n_values * self->value_size;
    size_t first_row = ps_row_run_at(self->rows, from);
    uint8_t *bytes = NULL;
    ps_payload_t *payload =
        ps_payload_room(keys_size, index_size, borrows ? 0 : values_size, &bytes);
    filler_t filler = {0};

    if (payload == NULL) {
        return PSD_NOMEM;
    }
    filler = (filler_t){.keys = lists ? bytes : NULL,
                        .counts = bytes + keys_size,
                        .cols = bytes + keys_size + sum->n_rows * sizeof(uint32_t),
                        .values = borrows ? NULL : bytes + keys_size + index_size};
    for (size_t i = from; i < sum->to; i++) {
        fill_row(self, ps_row_run_at(self->rows, i), &filler);
    }
    if (borrows && values_size > 0) {
        payload->span = (ps_bytes_t){(const uint8_t *)self->args->values +
                                         self->starts[first_row] * self->value_size,
                                     values_size};
        payload->spans = &payload->span;
        payload->n_spans = 1;
    }
    cut->payload = payload;
    cut->borrows = borrows && values_size > 0;
    cut->slice = (ps_slice_t){
        .rows = lists ? PS_ROWS_LIST : PS_ROWS_RANGE,
        .layout = PS_LAYOUT_SPARSE,
        .cols = PS_COLS_ALL,
        .type = self->args->spec->type,
        .n_rows = sum->n_rows,
        .first_row = lists ? 0 : ps_select_row(select, first_row),
        .n_values = sum->n_values,
    };
    return PSD_OK;
}

static psd_status_t cut_run(const sparse_t *self, ps_cuts_t *cuts, psd_error_t *err)
{
    for (size_t at = 0; at < self->rows->n;) {
        sum_t sum = sum_up(self, at);
        ps_cut_t *cut = NULL;

        if (sum.n_rows == 0) {
            break;
        }
        cut = ps_cuts_add(cuts);
        if (cut == NULL || make(self, at, &sum, cut) != PSD_OK) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a slice");
        }
        cut->partition = self->rows->row_slice * self->args->spec->n_col_slices + self->col_slice;
        at = sum.to;
    }
    return PSD_OK;
}

/* Where the entries of each row begin; one more for the end. */
static size_t *starts_of(const psd_select_t *select)
{
    size_t *starts = ps_alloc_raw(select->n_rows + 1, sizeof *starts);
    size_t at = 0;

    if (starts == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < select->n_rows; i++) {
        starts[i] = at;
        at += select->counts[i];
    }
    starts[select->n_rows] = at;
    return starts;
}

psd_status_t ps_cut_sparse(const ps_cut_args_t *args, const ps_row_runs_t *runs, ps_cuts_t *cuts,
                           psd_error_t *err)
{
    PSD_AUTO(ps_free_at) size_t *starts = starts_of(args->select);
    sparse_t sparse = {.args = args,
                       .starts = starts,
                       .splits = args->spec->n_col_slices > 1,
                       .value_size = ps_type_size(args->spec->type)};
    psd_status_t rc = PSD_OK;

    if (starts == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to cut a call");
    }
    for (uint32_t c = 0; c < args->spec->n_col_slices; c++) {
        sparse.col_slice = c;
        sparse.extent = ps_extent_of(args->spec, c);
        for (size_t i = 0; rc == PSD_OK && i < runs->n; i++) {
            sparse.rows = &runs->items[i];
            rc = cut_run(&sparse, cuts, err);
        }
    }
    return rc;
}
