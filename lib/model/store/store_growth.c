/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates for a budget: large enough, and not much larger. */
#include "model/store/store_growth.h"

#include "model/store/op_rows.h"

#define INDEX_BYTES 8 /* of a row, with the free places between two growths */
#define COLUMN_BYTES 4

uint64_t ps_store_footprint(const ps_store_t *self)
{
    uint64_t values = 0;

    if (!self->is_array) {
        return ps_indexed_rows_bytes(&self->indexed);
    }
    values = self->array.n_rows * self->shape.width * self->shape.value_size;
    return values * (1 + self->shape.n_states) + self->array.filled.size +
           self->array.versions.size;
}

/* Sums and products that overflow saturate. */
static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t result = 0;

    return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    uint64_t result = 0;

    return __builtin_add_overflow(a, b, &result) ? UINT64_MAX : result;
}

/* Bytes that one value takes with its states. */
static uint64_t value_bytes(const ps_store_t *self)
{
    return (uint64_t)self->shape.value_size * (1 + self->shape.n_states);
}

/* Bytes that a new row takes, without sparse entries. */
static uint64_t row_bytes(const ps_store_t *self)
{
    uint64_t values = ps_rows_are_mixed(&self->indexed) ? sizeof(ps_sparse_row_t)
                                                        : self->shape.width * value_bytes(self);

    return self->indexed.values_at + sizeof(void *) + values + INDEX_BYTES;
}

/* Bytes that the slice's values take when they are entries of sparse rows. */
static uint64_t entry_bytes(const ps_store_t *self, const ps_slice_t *slice)
{
    uint64_t n =
        slice->layout == PS_LAYOUT_SPARSE ? slice->n_values : product(slice->n_rows, slice->n_cols);

    return ps_rows_are_mixed(&self->indexed) ? product(n, value_bytes(self) + COLUMN_BYTES) : 0;
}

uint64_t ps_store_growth_bound(const ps_store_t *self, const ps_slice_t *slice)
{
    return self->is_array ? 0
                          : sum(product(slice->n_rows, row_bytes(self)), entry_bytes(self, slice));
}

uint64_t ps_store_growth(const ps_store_t *self, const ps_slice_t *slice,
                         const ps_payload_t *payload)
{
    ps_row_walk_t walk;
    uint64_t n_new = 0;

    if (self->is_array) {
        return 0;
    }
    ps_row_walk_begin(&walk, &self->indexed, slice, payload, slice->n_rows, PS_NEED_HEAD);
    while (ps_row_walk_next(&walk)) {
        for (size_t i = 0; i < walk.n; i++) {
            n_new += walk.found[i] == NULL ? 1 : 0;
        }
    }
    return sum(product(n_new, row_bytes(self)), entry_bytes(self, slice));
}

/* Entries that AXPY takes from the other table's row, at most. */
static uint64_t entries_of(const ps_store_t *other, uint64_t key, uint64_t n_cols)
{
    uint32_t number = PS_ROW_NONE;
    ps_row_t row = {0};

    if (other->is_array || !ps_rows_are_mixed(&other->indexed)) {
        return n_cols;
    }
    number = ps_row_index_find(&other->indexed.index, key);
    if (number == PS_ROW_NONE) {
        return 0;
    }
    row = ps_indexed_row_at(&other->indexed, ps_slab_at(&other->indexed.rows, number));
    return row.sparse != NULL && row.sparse->n < n_cols ? row.sparse->n : n_cols;
}

uint64_t ps_store_change_growth(const ps_store_t *self, const ps_slice_t *slice,
                                const ps_payload_t *rows, const ps_row_change_t *change)
{
    ps_op_rows_t named;
    uint64_t n_entries = 0;
    uint64_t n_new = 0;
    uint64_t key = 0;

    if (self->is_array) {
        return 0;
    }
    named = ps_op_rows_of(self, slice, rows, change);
    n_new = ps_op_rows_new(&named, self);
    if (change->kind == PS_CHANGE_AXPY_ROWS && ps_rows_are_mixed(&self->indexed)) {
        while (ps_op_rows_next(&named, &key)) {
            n_entries = sum(n_entries, entries_of(change->other, key, slice->n_cols));
        }
    }
    return sum(product(n_new, row_bytes(self)),
               product(n_entries, value_bytes(self) + COLUMN_BYTES));
}

uint64_t ps_store_change_walk(const ps_store_t *self, const ps_slice_t *slice,
                              const ps_row_change_t *change)
{
    ps_op_rows_t named = ps_op_rows_of(self, slice, NULL, change);
    uint64_t row = product(slice->n_cols, self->shape.value_size);

    return named.stored != NULL ? 0 : product(slice->n_rows, row);
}
