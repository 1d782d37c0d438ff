/* SPDX-License-Identifier: Apache-2.0 */
/* Rows by key: finding them and applying pushes to them. */
#include "model/indexed_rows.h"

#include <assert.h>

#include "base/alloc.h"
#include "model/dense_row.h"
#include "model/indexed_impl.h"

static ps_row_t
row_at(const ps_indexed_rows_t *self, uint32_t number)
{
    ps_row_head_t head = NULL;

    number &= PS_ROW_NUMBER_MAX;
    if (!ps_rows_are_mixed(self)) {
        return ps_dense_row_at(self, ps_slab_at(&self->dense, number));
    }
    head = *ps_row_head_at(self, number);
    if (ps_row_head_is_dense(head)) {
        return ps_dense_row_at(self, head - 1);
    }
    return (ps_row_t){.sparse = ps_row_head_sparse(head)};
}

void
ps_indexed_rows_init(ps_indexed_rows_t *self, const ps_row_shape_t *shape)
{
    *self = (ps_indexed_rows_t){.shape = *shape};
    ps_slab_init(&self->dense, ps_row_shape_bytes(shape));
    ps_slab_init(&self->heads, sizeof(ps_row_head_t));
}

void
ps_indexed_rows_done(ps_indexed_rows_t *self)
{
    for (uint32_t i = 0; i < self->heads.n; i++) {
        ps_row_head_t head = *ps_row_head_at(self, i);

        if (!ps_row_head_is_dense(head)) {
            ps_free(head);
        }
    }
    ps_slab_done(&self->heads);
    ps_slab_done(&self->dense);
    ps_row_index_done(&self->index);
}

static void
apply_dense(const ps_indexed_rows_t *self,
            const ps_dense_row_t *row,
            ps_deltas_t *deltas)
{
    ps_columns_t columns = {0};
    const uint8_t *values = NULL;
    size_t n = 0;

    while ((n = ps_deltas_take(deltas, &columns, &values)) > 0) {
        for (size_t i = 0; i < n;) {
            ps_columns_t rest = ps_columns_from(columns, i);
            size_t run = ps_columns_neighbours(rest, n - i);

            ps_dense_row_apply(row, &self->shape, ps_columns_at(rest, 0),
                               values + i * self->shape.value_size, run);
            i += run;
        }
    }
}

static void
apply_sparse(ps_indexed_rows_t *self, ps_row_head_t *head, ps_deltas_t *deltas)
{
    ps_sparse_row_t *row = ps_row_head_sparse(*head);
    ps_columns_t columns = {0};
    const uint8_t *values = NULL;
    size_t n = 0;

    while ((n = ps_deltas_take(deltas, &columns, &values)) > 0) {
        ps_sparse_row_apply(row, &self->shape, columns, values, n);
    }
    assert(row->n_pending > 0);
    row->n_pending--;
    ps_row_head_settle(self, head);
}

static void
apply_row(ps_indexed_rows_t *self, uint32_t *number, ps_deltas_t *deltas)
{
    ps_row_t row = row_at(self, *number);

    if ((*number & PS_ROW_MARK) == 0) {
        *number |= PS_ROW_MARK;
        self->n_present++;
    }
    if (row.sparse != NULL) {
        apply_sparse(self, ps_row_head_at(self, *number & PS_ROW_NUMBER_MAX),
                     deltas);
    } else {
        apply_dense(self, &row.dense, deltas);
    }
}

void
ps_indexed_rows_ask(const ps_indexed_rows_t *self,
                    const ps_slice_t *slice,
                    const ps_payload_t *payload,
                    uint64_t first)
{
    for (uint64_t i = first; i < first + PS_ROWS_AHEAD && i < slice->n_rows;
         i++) {
        ps_row_index_prefetch(&self->index, ps_slice_row(slice, payload, i));
    }
}

static void
prefetch_row(const ps_indexed_rows_t *self, uint32_t number)
{
    if (ps_rows_are_mixed(self)) {
        __builtin_prefetch(ps_row_head_at(self, number));
    } else {
        __builtin_prefetch(ps_slab_at(&self->dense, number));
    }
}

/* Where the next rows of a slice are; asks for the memory of each. */
static void
find_some(const ps_indexed_rows_t *self,
          const ps_slice_t *slice,
          const ps_payload_t *payload,
          uint64_t first,
          uint32_t *ret_numbers[PS_ROWS_AHEAD])
{
    ps_indexed_rows_ask(self, slice, payload, first);
    for (uint64_t i = 0; i < PS_ROWS_AHEAD && first + i < slice->n_rows; i++) {
        uint64_t key = ps_slice_row(slice, payload, first + i);
        uint32_t *number = ps_row_index_find(&self->index, key);

        assert(number != NULL); /* ps_store_reserve has made it */
        ret_numbers[i] = number;
        prefetch_row(self, *number & PS_ROW_NUMBER_MAX);
    }
}

void
ps_indexed_rows_apply(ps_indexed_rows_t *self,
                      const ps_slice_t *slice,
                      const ps_payload_t *payload)
{
    ps_deltas_t deltas = ps_deltas_over(slice, payload, self->shape.first_col);
    uint32_t *numbers[PS_ROWS_AHEAD] = {NULL};

    while (ps_deltas_next(&deltas)) {
        uint64_t i = deltas.n_rows - 1;

        if (i % PS_ROWS_AHEAD == 0) {
            find_some(self, slice, payload, i, numbers);
        }
        apply_row(self, numbers[i % PS_ROWS_AHEAD], &deltas);
    }
}

bool
ps_indexed_rows_find(const ps_indexed_rows_t *self,
                     uint64_t key,
                     ps_row_t *ret_row)
{
    const uint32_t *number = ps_row_index_find(&self->index, key);

    if (number == NULL) {
        return false;
    }
    *ret_row = row_at(self, *number);
    return true;
}

void
ps_indexed_rows_prefetch(const ps_indexed_rows_t *self, uint64_t key)
{
    const uint32_t *number = ps_row_index_find(&self->index, key);

    if (number != NULL) {
        prefetch_row(self, *number & PS_ROW_NUMBER_MAX);
    }
}

uint64_t
ps_indexed_rows_value_bytes(const ps_indexed_rows_t *self)
{
    uint64_t dense = (uint64_t)self->dense.n * self->shape.width;

    return (dense + self->sparse_entries) * self->shape.value_size;
}

uint64_t
ps_indexed_rows_bytes(const ps_indexed_rows_t *self)
{
    return ps_row_index_bytes(&self->index) + ps_slab_bytes(&self->dense) +
           ps_slab_bytes(&self->heads) + self->sparse_bytes;
}
