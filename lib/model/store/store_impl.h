/* SPDX-License-Identifier: Apache-2.0 */
/* The definition of a store; for the store_*.c files and the files that they
 * use only. */
#ifndef PS_MODEL_STORE_IMPL_H
#define PS_MODEL_STORE_IMPL_H

#include "model/rows/array_rows.h"
#include "model/rows/indexed_rows.h"
#include "model/rows/row_walk.h"
#include "model/store/store.h"

struct ps_store {
    ps_table_spec_t spec; /* own copy */
    ps_extent_t extent;
    ps_updater_t *updater;
    uint32_t worker;           /* whose deltas are applied */
    uint64_t version;          /* of rows that change from now on */
    ps_row_shape_t shape;      /* points at spec, updater and worker */
    bool is_partial;           /* changes only rows that were taken in */
    uint64_t n_taken;          /* of an array: this number of rows from the front */
    struct ps_image *image;    /* owned; NULL: none (store_image.h) */
    bool is_array;             /* which of the two layouts is in use */
    ps_array_rows_t array;     /* RANGE keys, DENSE rows, no hash */
    ps_indexed_rows_t indexed; /* everything else */
};

/* True when the partition does not hold all rows between its first and its last
 * one: any key, or a hash partition. A range of rows then means the present
 * ones. */
static inline bool ps_store_is_scattered(const ps_store_t *self)
{
    return self->spec.keys == PS_KEYS_HASH || self->extent.n_slices > 1;
}

/* True when this store applies changes of that row: it is whole, or has taken
 * the row in. */
static inline bool ps_store_takes_row(const ps_store_t *self, uint64_t row)
{
    if (!self->is_partial) {
        return true;
    }
    return self->is_array ? row - self->array.first_row < self->n_taken
                          : ps_row_index_find(&self->indexed.index, row) != PS_ROW_NONE;
}

/* As ps_store_push, into a partial store (store_part.c). */
PSD_MUST_CHECK psd_status_t ps_store_push_part(ps_store_t *self, const ps_slice_t *slice,
                                               const ps_payload_t *payload, psd_error_t *err);

/* The rows of a slice in order; an array needs no look-up. */
typedef struct ps_store_walk {
    bool is_array;
    ps_row_walk_t rows;
} ps_store_walk_t;

static inline void ps_store_walk_begin(ps_store_walk_t *self, const ps_store_t *store,
                                       const ps_slice_t *slice, const ps_payload_t *payload,
                                       uint64_t n_rows, ps_row_need_t need)
{
    self->is_array = store->is_array;
    if (!self->is_array) {
        ps_row_walk_begin(&self->rows, &store->indexed, slice, payload, n_rows, need);
    }
}

/* Row i < n_rows, in ascending order of i: an item of the indexed rows; NULL
 * when the row is missing or in an array. */
static inline uint8_t *ps_store_walk_at(ps_store_walk_t *self, uint64_t i)
{
    if (self->is_array) {
        return NULL;
    }
    if (i >= self->rows.first + self->rows.n) {
        (void)ps_row_walk_next(&self->rows);
    }
    return self->rows.found[i - self->rows.first];
}

/* Writes the values of n columns of a row; `at` is its item; NULL: the row
 * reads as its first values, or is in an array. */
void ps_store_read(ps_store_t *self, uint64_t row, uint8_t *at, ps_columns_t columns, size_t n,
                   uint8_t *ret_values);

/* A row as stored, or made of its first values. */
typedef void ps_row_fn_t(void *context, uint64_t key, const ps_row_t *row);
/* The row of a key: stored, or (when first values are not zero) written into
 * `first`, room for a row. False: the row is all zeros. */
bool ps_store_row(ps_store_t *self, uint64_t key, uint8_t *first, ps_row_t *ret_row);
/* True when a change was applied to this row of HASH keys. */
bool ps_store_row_is_present(const ps_store_t *self, uint64_t key);
/* Shows the rows of a checked DENSE want in its order, up to max_values values
 * but at least one row; leaves out rows of zeros only. *ret_done as
 * ps_store_gather. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_store_visit(ps_store_t *self, const ps_slice_t *want,
                                           const ps_payload_t *rows, uint64_t max_values,
                                           ps_row_fn_t *visit, void *context, uint64_t *ret_done,
                                           psd_error_t *err);
#endif
