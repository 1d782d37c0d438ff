/* SPDX-License-Identifier: Apache-2.0 */
/* ps_row_pieces - selected values of a row, wherever they lie, in pieces */
#ifndef PS_MODEL_ROW_PIECES_H
#define PS_MODEL_ROW_PIECES_H

#include "model/store/store_impl.h"

/* n contiguous values, and their columns. */
typedef void ps_piece_fn_t(void *context, uint64_t row, ps_columns_t columns, uint8_t *values,
                           size_t n);
/* A row as stored, or made of its first values. */
typedef void ps_row_fn_t(void *context, uint64_t key, const ps_row_t *row);

/* Shows the n columns of a row in their order; of a sparse row only its
 * entries. */
void ps_row_pieces(const ps_row_shape_t *shape, uint64_t key, const ps_row_t *row,
                   ps_columns_t columns, size_t n, ps_piece_fn_t *piece, void *context);
/* The row's value of one column; NULL: a sparse row without that entry. */
uint8_t *ps_row_value(const ps_row_shape_t *shape, const ps_row_t *row, uint32_t col);
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
