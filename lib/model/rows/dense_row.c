/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of neighbouring columns: the longer they are, the faster. */
#include "model/rows/dense_row.h"

void ps_dense_row_apply(const ps_dense_row_t *self, const ps_row_shape_t *shape, uint32_t col,
                        const uint8_t *deltas, size_t n)
{
    size_t offset = (size_t)(col - shape->first_col) * shape->value_size;

    ps_updater_apply(shape->updater, *shape->worker, self->values + offset,
                     self->state == NULL ? NULL : self->state + offset, self->state_stride, deltas,
                     n);
}

void ps_dense_row_read(const ps_dense_row_t *self, const ps_row_shape_t *shape,
                       ps_columns_t columns, size_t n, uint8_t *ret_values)
{
    size_t size = shape->value_size;

    for (size_t i = 0; i < n;) {
        ps_columns_t rest = ps_columns_from(columns, i);
        size_t run = ps_columns_neighbours(rest, n - i);
        uint32_t col = ps_columns_at(rest, 0) - shape->first_col;

        ps_values_copy(ret_values + i * size, self->values + col * size, run, size);
        i += run;
    }
}
