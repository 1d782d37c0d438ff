/* SPDX-License-Identifier: Apache-2.0 */
/* ps_row_pieces - selected values of a row, wherever they lie, in pieces */
#ifndef PS_MODEL_ROW_PIECES_H
#define PS_MODEL_ROW_PIECES_H

#include "model/rows/indexed_rows.h"

/* n contiguous values, and their columns. */
typedef void ps_piece_fn_t(void *context, uint64_t row, ps_columns_t columns, uint8_t *values,
                           size_t n);

/* Shows the n columns of a row in their order; of a sparse row only its
 * entries. */
void ps_row_pieces(const ps_row_shape_t *shape, uint64_t key, const ps_row_t *row,
                   ps_columns_t columns, size_t n, ps_piece_fn_t *piece, void *context);
/* The row's value of one column; NULL: a sparse row without that entry. */
uint8_t *ps_row_value(const ps_row_shape_t *shape, const ps_row_t *row, uint32_t col);
#endif
