/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates for a budget: large enough, and not much larger. */
#include "model/store_growth.h"

#include "model/store_impl.h"

#define INDEX_BYTES 8 /* of a row, with what is free between two growths */
#define COLUMN_BYTES 4

uint64_t
ps_store_footprint(const ps_store_t *self)
{
    uint64_t values = 0;

    if (!self->is_array) {
        return ps_indexed_rows_bytes(&self->indexed);
    }
    values = self->array.n_rows * self->shape.width * self->shape.value_size;
    return values * (1 + self->shape.n_states) + self->array.filled.size +
           self->array.versions.size;
}

/* Sums and products that do not fit are as good as infinite. */
static uint64_t
product(uint64_t a, uint64_t b)
{
    uint64_t result = 0;

    return __builtin_mul_overflow(a, b, &result) ? UINT64_MAX : result;
}

static uint64_t
sum(uint64_t a, uint64_t b)
{
    uint64_t result = 0;

    return __builtin_add_overflow(a, b, &result) ? UINT64_MAX : result;
}

/* Bytes that one value takes with its states. */
static uint64_t
value_bytes(const ps_store_t *self)
{
    return (uint64_t)self->shape.value_size * (1 + self->shape.n_states);
}

/* Bytes that a new row takes, without sparse entries. */
static uint64_t
row_bytes(const ps_store_t *self)
{
    uint64_t values = ps_rows_are_mixed(&self->indexed)
                          ? sizeof(ps_sparse_row_t)
                          : self->shape.width * value_bytes(self);

    return self->indexed.values_at + sizeof(void *) + values + INDEX_BYTES;
}

/* Bytes that the slice's values take when they are entries of sparse rows. */
static uint64_t
entry_bytes(const ps_store_t *self, const ps_slice_t *slice)
{
    uint64_t n = slice->layout == PS_LAYOUT_SPARSE
                     ? slice->n_values
                     : product(slice->n_rows, slice->n_cols);

    return ps_rows_are_mixed(&self->indexed)
               ? product(n, value_bytes(self) + COLUMN_BYTES)
               : 0;
}

uint64_t
ps_store_growth_bound(const ps_store_t *self, const ps_slice_t *slice)
{
    return self->is_array ? 0
                          : sum(product(slice->n_rows, row_bytes(self)),
                                entry_bytes(self, slice));
}

uint64_t
ps_store_growth(const ps_store_t *self,
                const ps_slice_t *slice,
                const ps_payload_t *payload)
{
    ps_row_walk_t walk;
    uint64_t n_new = 0;

    if (self->is_array) {
        return 0;
    }
    ps_row_walk_begin(&walk, &self->indexed, slice, payload, slice->n_rows);
    while (ps_row_walk_next(&walk)) {
        for (size_t i = 0; i < walk.n; i++) {
            n_new += walk.found[i] == NULL ? 1 : 0;
        }
    }
    return sum(product(n_new, row_bytes(self)), entry_bytes(self, slice));
}
