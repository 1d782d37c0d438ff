/* SPDX-License-Identifier: Apache-2.0 */
/* ps_dense_row - one updater run into a dense row, and reading it back */
#ifndef PS_MODEL_DENSE_ROW_H
#define PS_MODEL_DENSE_ROW_H

#include "model/rows/deltas.h"
#include "model/rows/row_shape.h"

/* Runs the updater over the n neighbouring columns from `col` (the table's) on;
 * n may extend into the rows directly after it. */
void ps_dense_row_apply(const ps_dense_row_t *self, const ps_row_shape_t *shape, uint32_t col,
                        const uint8_t *deltas, size_t n);
/* Copies the values of n columns. */
void ps_dense_row_read(const ps_dense_row_t *self, const ps_row_shape_t *shape,
                       ps_columns_t columns, size_t n, uint8_t *ret_values);
#endif
