/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_array_rows - all rows of a range, dense and contiguous
 *
 * What     One array of values and one for each state. First values other than
 *          zero are filled in block by block, on the first touch of a block; a
 *          bit per block records it. Untouched memory costs nothing.
 * Shape    row r of the partition begins at value r * width
 */
#ifndef PS_MODEL_ARRAY_ROWS_H
#define PS_MODEL_ARRAY_ROWS_H

#include "model/rows/deltas.h"
#include "model/rows/pages.h"
#include "model/rows/row_shape.h"

#define PS_ARRAY_BLOCK_SHIFT 12 /* 4096 values: a few pages, one bit */

typedef struct ps_array_rows {
    ps_row_shape_t shape;
    uint64_t first_row;
    uint64_t n_rows;
    ps_pages_t values;
    ps_pages_t state;    /* the state arrays, one after the other */
    size_t state_stride; /* values from one state to the next */
    ps_pages_t filled;   /* a bit per block; empty when first values are zero */
    ps_pages_t versions; /* a u64 per row; empty when the table has none */
} ps_array_rows_t;

/* Errors: PSD_LIMIT when the rows cannot be addressed; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_array_rows_init(ps_array_rows_t *self, const ps_row_shape_t *shape,
                                               uint64_t first_row, uint64_t n_rows,
                                               psd_error_t *err);
void ps_array_rows_done(ps_array_rows_t *self);
/* The row. Fills in the first values of n values from column `col` (of the
 * partition, from 0) on. n may extend into the following rows. */
ps_dense_row_t ps_array_rows_at(ps_array_rows_t *self, uint64_t row, uint32_t col, uint64_t n);
/* Finds the values of the rows of a slice from the i-th on, at most `most`
 * rows. Returns their number, prefetches the needed part of each, and fills in
 * their first values. */
size_t ps_array_rows_find(ps_array_rows_t *self, const ps_slice_t *slice,
                          const ps_payload_t *payload, uint64_t i, ps_row_need_t need,
                          uint8_t **ret_rows, size_t most);
/* Whether the block's first values are filled in. Call only when `filled` is
 * not empty; the same holds for the next function. */
bool ps_array_rows_is_filled(const ps_array_rows_t *self, uint64_t block);
/* Call before setting n values from `first` on, all in one block, and their
 * states: fills in the first values around them if the block has none yet. */
void ps_array_rows_fill_around(ps_array_rows_t *self, uint64_t first, uint64_t n);
/* The n rows from `row` on have changed. */
void ps_array_rows_stamp(ps_array_rows_t *self, uint64_t row, uint64_t n);
/* Version of the row; 0: the row never changed, or the table has no
 * versions. */
uint64_t ps_array_rows_version(const ps_array_rows_t *self, uint64_t row);
/* Copies the values of n columns of a row. */
void ps_array_rows_read(ps_array_rows_t *self, uint64_t row, ps_columns_t columns, size_t n,
                        uint8_t *ret_values);
#endif
