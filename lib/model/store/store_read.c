/* SPDX-License-Identifier: Apache-2.0 */
/* Copies values of rows from any layout, one row after the other. */
#include "model/rows/dense_row.h"
#include "model/updaters/init.h"
#include "model/store/reply.h"
#include "model/updaters/row_loops.h"

#define GROUP 32 /* rows found, then copied */

static void read_first(const ps_store_t *self, uint64_t row, ps_columns_t columns, size_t n,
                       uint8_t *ret_values)
{
    const ps_row_shape_t *shape = &self->shape;

    for (size_t i = 0; i < n;) {
        ps_columns_t rest = ps_columns_from(columns, i);
        size_t run = ps_columns_neighbours(rest, n - i);

        ps_init_fill(shape->spec, row, ps_columns_at(rest, 0), (uint32_t)run,
                     ret_values + i * shape->value_size);
        i += run;
    }
}

void ps_store_read(ps_store_t *self, uint64_t row, uint8_t *at, ps_columns_t columns, size_t n,
                   uint8_t *ret_values)
{
    ps_row_t found = {0};

    if (self->is_array) {
        ps_array_rows_read(&self->array, row, columns, n, ret_values);
        return;
    }
    if (at == NULL) {
        read_first(self, row, columns, n, ret_values);
        return;
    }
    found = ps_indexed_row_at(&self->indexed, at);
    if (found.sparse != NULL) {
        ps_sparse_row_read(found.sparse, &self->shape, columns, n, ret_values);
    } else {
        ps_dense_row_read(&found.dense, &self->shape, columns, n, ret_values);
    }
}

/* All columns of rows of an array. */
static void read_array(ps_store_t *self, const ps_slice_t *want, const ps_payload_t *rows,
                       uint64_t n_rows, uint8_t *ret_values)
{
    size_t row_bytes = (size_t)self->shape.width * self->shape.value_size;
    ps_slice_t part = *want;
    uint8_t *found[2][GROUP];
    size_t n[2] = {0};

    part.n_rows = n_rows;
    n[0] = ps_array_rows_find(&self->array, &part, rows, 0, PS_NEED_VALUES, found[0], GROUP);
    for (uint64_t i = 0, g = 0; i < n_rows; g = 1 - g) {
        n[1 - g] = ps_array_rows_find(&self->array, &part, rows, i + n[g], PS_NEED_VALUES,
                                      found[1 - g], GROUP);
        ps_rows_copy(ret_values + i * row_bytes, found[g], n[g], row_bytes);
        i += n[g];
    }
}

/* All columns of rows of a DENSE table. */
static void read_whole(ps_store_t *self, const ps_slice_t *want, const ps_payload_t *rows,
                       uint64_t n_rows, uint8_t *ret_values)
{
    size_t row_bytes = (size_t)self->shape.width * self->shape.value_size;
    ps_columns_t columns = {.first = self->shape.first_col};
    bool streams = ps_rows_may_stream(ret_values, n_rows * row_bytes, row_bytes);
    ps_row_walk_t walk;

    ps_row_walk_begin(&walk, &self->indexed, want, rows, n_rows, PS_NEED_VALUES);
    while (ps_row_walk_next(&walk)) {
        uint8_t *to = ret_values + walk.first * row_bytes;

        for (size_t i = 0; i < walk.n; i++) {
            if (walk.found[i] != NULL) {
                walk.found[i] += self->indexed.values_at;
                continue;
            }
            read_first(self, ps_slice_row(want, rows, walk.first + i), columns, self->shape.width,
                       to + i * row_bytes);
        }
        if (streams) {
            ps_rows_stream(to, walk.found, walk.n, row_bytes);
        } else {
            ps_rows_copy(to, walk.found, walk.n, row_bytes);
        }
    }
    if (streams) {
        ps_rows_stream_end();
    }
}

/* Some columns, or rows that may be sparse. */
static void read_each(ps_store_t *self, const ps_slice_t *want, const ps_payload_t *rows,
                      uint64_t n_rows, uint8_t *ret_values)
{
    ps_columns_t columns = ps_slice_columns(want, rows, self->shape.first_col);
    size_t row_bytes = (size_t)want->n_cols * self->shape.value_size;
    ps_store_walk_t walk;

    ps_store_walk_begin(&walk, self, want, rows, n_rows, PS_NEED_VALUES);
    for (uint64_t i = 0; i < n_rows; i++) {
        uint8_t *at = ps_store_walk_at(&walk, i);

        ps_store_read(self, ps_slice_row(want, rows, i), at, columns, want->n_cols,
                      ret_values + i * row_bytes);
    }
}

void ps_store_read_rows(ps_store_t *self, const ps_slice_t *want, const ps_payload_t *rows,
                        uint64_t n_rows, uint8_t *ret_values)
{
    bool is_whole = ps_slice_is_whole(want, self->shape.width);

    if (!is_whole) {
        read_each(self, want, rows, n_rows, ret_values);
    } else if (self->is_array && want->rows == PS_ROWS_RANGE) {
        uint64_t n_values = n_rows * want->n_cols;
        ps_dense_row_t row = ps_array_rows_at(&self->array, want->first_row, 0, n_values);

        memcpy(ret_values, row.values, n_values * self->shape.value_size);
    } else if (self->is_array) {
        read_array(self, want, rows, n_rows, ret_values);
    } else if (ps_rows_are_mixed(&self->indexed)) {
        read_each(self, want, rows, n_rows, ret_values);
    } else {
        read_whole(self, want, rows, n_rows, ret_values);
    }
}
