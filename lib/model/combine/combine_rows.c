/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes of unlike rows: sorts the rows, then adds those of one row; if their
 * columns are unlike too, sorts the cells, then adds those of one cell. */
#include "model/combine/combine_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/rows/deltas.h"

#define DIGITS 256 /* of a byte, by which rows are sorted */

/* A row of a part. */
typedef struct entry {
    uint64_t row;
    uint64_t at; /* values of the part before the row's first */
    uint32_t part;
    uint32_t n; /* values */
} entry_t;

/* A value of the row at hand. */
typedef struct cell {
    uint32_t col;
    uint32_t order; /* among the row's values */
    uint32_t position;
    const uint8_t *value;
} cell_t;

/* The work on one sum. All pointers are owned but for args, sum and parts. */
typedef struct work {
    const ps_combine_args_t *args;
    ps_sum_t *sum;
    const ps_combine_part_t *parts;
    ps_payload_t **flat; /* of each part; its values in one span */
    size_t n_parts;
    entry_t *entries; /* ascending by row; those of one row in order */
    size_t n_entries;
    cell_t *cells;
    size_t cells_capacity;
    ps_buffer_t counts; /* SPARSE: of each row that is done … */
    ps_buffer_t columns;
    ps_buffer_t values;
} work_t;

static void work_done(work_t *self)
{
    for (size_t i = 0; self->flat != NULL && i < self->n_parts; i++) {
        ps_payload_destroy(&self->flat[i]);
    }
    ps_free(self->flat);
    ps_free(self->entries);
    ps_free(self->cells);
    ps_buffer_done(&self->counts);
    ps_buffer_done(&self->columns);
    ps_buffer_done(&self->values);
}

/* ---- rows ---- */

static bool flatten(work_t *self)
{
    self->flat = ps_alloc(self->n_parts, sizeof(ps_payload_t *));
    for (size_t i = 0; self->flat != NULL && i < self->n_parts; i++) {
        ps_payload_t *payload = (ps_payload_t *)(uintptr_t)self->parts[i].payload;

        self->flat[i] =
            payload->n_spans <= 1 ? ps_payload_keep(payload) : ps_payload_clone(payload);
        if (self->flat[i] == NULL) {
            return false;
        }
        self->n_entries += self->parts[i].slice->n_rows;
    }
    return self->flat != NULL;
}

static void list_rows(work_t *self)
{
    size_t n = 0;

    for (uint32_t i = 0; i < self->n_parts; i++) {
        const ps_slice_t *slice = self->parts[i].slice;
        const uint8_t *counts = self->flat[i]->index.data;
        uint64_t at = 0;

        for (uint64_t k = 0; k < slice->n_rows; k++) {
            entry_t *entry = &self->entries[n++];

            entry->row = ps_slice_row(slice, self->flat[i], k);
            entry->at = at;
            entry->part = i;
            entry->n =
                slice->layout == PS_LAYOUT_SPARSE ? ps_load_u32(counts + 4 * k) : slice->n_cols;
            at += entry->n;
        }
    }
}

/* One pass by the byte at `shift`; entries of equal bytes keep their order. */
static void sort_by_byte(const entry_t *from, entry_t *to, size_t n, uint32_t shift)
{
    size_t starts[DIGITS] = {0};
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        starts[from[i].row >> shift & (DIGITS - 1)]++;
    }
    for (size_t d = 0; d < DIGITS; d++) {
        size_t count = starts[d];

        starts[d] = at;
        at += count;
    }
    for (size_t i = 0; i < n; i++) {
        to[starts[from[i].row >> shift & (DIGITS - 1)]++] = from[i];
    }
}

/* By row, and those of one row as they were. false: no memory. */
static bool sort_rows(work_t *self)
{
    uint64_t differ = 0;
    entry_t *other = NULL;

    for (size_t i = 1; i < self->n_entries; i++) {
        differ |= self->entries[i].row ^ self->entries[0].row;
    }
    if (differ == 0) {
        return true;
    }
    other = ps_alloc_raw(self->n_entries, sizeof *other);
    if (other == NULL) {
        return false;
    }
    for (uint32_t shift = 0; shift < 64; shift += 8) {
        if ((differ >> shift & (DIGITS - 1)) != 0) {
            entry_t *from = self->entries;

            sort_by_byte(from, other, self->n_entries, shift);
            self->entries = other;
            other = from;
        }
    }
    ps_free(other);
    return true;
}

/* The place after the last entry of the row that begins at the i-th one. */
static size_t row_end(const work_t *self, size_t i)
{
    size_t end = i + 1;

    while (end < self->n_entries && self->entries[end].row == self->entries[i].row) {
        end++;
    }
    return end;
}

static size_t count_rows(const work_t *self)
{
    size_t n = 0;

    for (size_t i = 0; i < self->n_entries; i = row_end(self, i)) {
        n++;
    }
    return n;
}

static const uint8_t *values_of(const work_t *self, const entry_t *entry)
{
    const ps_payload_t *payload = self->flat[entry->part];

    return payload->n_spans == 0
               ? NULL
               : payload->spans[0].data + entry->at * ps_type_size(self->args->type);
}

static ps_columns_t columns_of(const work_t *self, const entry_t *entry)
{
    const ps_slice_t *slice = self->parts[entry->part].slice;
    const ps_payload_t *payload = self->flat[entry->part];

    if (slice->layout == PS_LAYOUT_SPARSE) {
        return (ps_columns_t){.list = payload->index.data + 4 * slice->n_rows + 4 * entry->at};
    }
    return ps_slice_columns(slice, payload, self->args->first_col);
}

/* ---- all columns alike ---- */

static bool add_row(work_t *self, size_t from, size_t to, uint8_t *values)
{
    for (size_t i = from; i < to; i++) {
        const entry_t *entry = &self->entries[i];

        if (!ps_sum_leaf(self->sum, self->parts[entry->part].first, values_of(self, entry))) {
            return false;
        }
    }
    ps_sum_make(self->sum, values, self->entries[from].n);
    return true;
}

static bool combine_dense(work_t *self, ps_slice_t *ret_slice, ps_payload_t **ret_payload)
{
    ps_slice_t slice = *self->parts[0].slice;
    ps_bytes_t index = self->flat[0]->index;
    size_t row_size = slice.n_cols * self->sum->value_size;
    ps_sum_room_t room = {.payload = NULL};
    size_t n = 0;

    slice.rows = PS_ROWS_LIST;
    slice.first_row = 0;
    slice.n_rows = count_rows(self);
    slice.n_values = slice.n_rows * slice.n_cols;
    if (!ps_sum_room(slice.n_rows * sizeof(uint64_t), index.size, slice.n_rows * row_size, &room)) {
        return false;
    }
    for (size_t i = 0, end = 0; i < self->n_entries; i = end) {
        end = row_end(self, i);
        if (!add_row(self, i, end, room.values + n * row_size)) {
            ps_payload_destroy(&room.payload);
            return false;
        }
        ps_store_u64(room.keys + n * sizeof(uint64_t), self->entries[i].row);
        n++;
    }
    if (index.size > 0) {
        memcpy(room.index, index.data, index.size);
    }
    ps_sum_finish(self->args->type, self->args->divisor, room.values, (size_t)slice.n_values);
    *ret_slice = slice;
    *ret_payload = room.payload;
    return true;
}

/* ---- cell by cell ---- */

static int by_column(const void *left, const void *right)
{
    const cell_t *a = left;
    const cell_t *b = right;
    int order = (a->col > b->col) - (a->col < b->col);

    return order != 0 ? order : (a->order > b->order) - (a->order < b->order);
}

/* The values of the row, by column; those of one column in order. */
static bool list_cells(work_t *self, size_t from, size_t to, size_t *ret_n)
{
    bool ascend = true;
    size_t n = 0;

    for (size_t i = from; i < to; i++) {
        const entry_t *entry = &self->entries[i];
        const uint8_t *values = values_of(self, entry);
        ps_columns_t columns = columns_of(self, entry);

        if (!ps_grow(&self->cells, &self->cells_capacity, n + entry->n, sizeof *self->cells)) {
            return false;
        }
        for (uint32_t k = 0; k < entry->n; k++, n++) {
            self->cells[n] = (cell_t){.col = ps_columns_at(columns, k),
                                      .order = (uint32_t)n,
                                      .position = self->parts[entry->part].first,
                                      .value = values + k * self->sum->value_size};
            ascend = ascend && (n == 0 || self->cells[n - 1].col < self->cells[n].col);
        }
    }
    if (!ascend) {
        qsort(self->cells, n, sizeof *self->cells, by_column);
    }
    *ret_n = n;
    return true;
}

/* The sum of the cells from the i-th on that have its column; *ret_end: the
 * place after them. */
static bool add_cell(work_t *self, size_t i, size_t n, size_t *ret_end)
{
    size_t size = self->sum->value_size;
    uint32_t col = self->cells[i].col;
    uint64_t value = 0;

    for (*ret_end = i; *ret_end < n && self->cells[*ret_end].col == col; (*ret_end)++) {
        const cell_t *cell = &self->cells[*ret_end];

        if (!ps_sum_leaf(self->sum, cell->position, cell->value)) {
            return false;
        }
    }
    ps_sum_make(self->sum, (uint8_t *)&value, 1);
    ps_sum_finish(self->args->type, self->args->divisor, (uint8_t *)&value, 1);
    return ps_buffer_u32(&self->columns, col) && ps_buffer_append(&self->values, &value, size);
}

static bool add_cells(work_t *self, size_t from, size_t to)
{
    uint32_t n_done = 0;
    size_t n = 0;

    if (!list_cells(self, from, to, &n)) {
        return false;
    }
    for (size_t i = 0, end = 0; i < n; i = end, n_done++) {
        if (!add_cell(self, i, n, &end)) {
            return false;
        }
    }
    return ps_buffer_u32(&self->counts, n_done);
}

static void put(uint8_t *to, const ps_buffer_t *from)
{
    if (from->size > 0) {
        memcpy(to, from->data, from->size);
    }
}

static bool combine_sparse(work_t *self, ps_slice_t *ret_slice, ps_payload_t **ret_payload)
{
    ps_sum_room_t room = {.payload = NULL};
    size_t n_rows = 0;

    for (size_t i = 0, end = 0; i < self->n_entries; i = end, n_rows++) {
        end = row_end(self, i);
        if (!add_cells(self, i, end)) {
            return false;
        }
    }
    if (!ps_sum_room(n_rows * sizeof(uint64_t), self->counts.size + self->columns.size,
                     self->values.size, &room)) {
        return false;
    }
    for (size_t i = 0, n = 0; i < self->n_entries; i = row_end(self, i), n++) {
        ps_store_u64(room.keys + n * sizeof(uint64_t), self->entries[i].row);
    }
    put(room.index, &self->counts);
    put(room.index + self->counts.size, &self->columns);
    put(room.values, &self->values);
    *ret_slice = (ps_slice_t){.rows = PS_ROWS_LIST,
                              .layout = PS_LAYOUT_SPARSE,
                              .cols = PS_COLS_ALL,
                              .type = self->args->type,
                              .n_rows = n_rows,
                              .n_values = self->values.size / self->sum->value_size};
    *ret_payload = room.payload;
    return true;
}

psd_status_t ps_combine_rows(const ps_combine_args_t *args, ps_sum_t *sum,
                             const ps_combine_part_t *parts, size_t n_parts, bool like,
                             ps_slice_t *ret_slice, ps_payload_t **ret_payload, psd_error_t *err)
{
    PSD_AUTO(work_done)
    work_t work = {.args = args, .sum = sum, .parts = parts, .n_parts = n_parts};
    bool fits = flatten(&work);

    if (fits) {
        work.entries = ps_alloc_raw(work.n_entries, sizeof *work.entries);
        fits = work.entries != NULL;
    }
    if (fits) {
        list_rows(&work);
        fits = sort_rows(&work);
    }
    if (fits) {
        fits = like ? combine_dense(&work, ret_slice, ret_payload)
                    : combine_sparse(&work, ret_slice, ret_payload);
    }
    return fits ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory to add pushes");
}
