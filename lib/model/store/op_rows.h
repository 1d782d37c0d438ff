/* SPDX-License-Identifier: Apache-2.0 */
/* ps_op_rows - iterates over the rows of a change */
#ifndef PS_MODEL_OP_ROWS_H
#define PS_MODEL_OP_ROWS_H

#include "model/store/store_ops.h"
#include "model/store/store_impl.h"

typedef struct ps_op_rows {
    const ps_slice_t *slice;
    const ps_payload_t *payload;
    const ps_extent_t *extent;       /* only its rows; NULL: all */
    const ps_indexed_rows_t *stored; /* only the rows present there; NULL: all */
    const ps_store_t *partial;       /* only the rows that it stores; NULL: all */
    uint64_t i;                      /* next row of slice, or of `stored` */
} ps_op_rows_t;

/* Rows of a checked change: every row of a list; of a range, the rows that the
 * change applies to. Skips a row that is not stored and reads as zeros if the
 * change leaves zeros unchanged. */
ps_op_rows_t ps_op_rows_of(const ps_store_t *self, const ps_slice_t *slice,
                           const ps_payload_t *payload, const ps_row_change_t *change);
/* False at the end. Rows may be added to another store meanwhile. */
bool ps_op_rows_next(ps_op_rows_t *self, uint64_t *ret_key);
/* The number of remaining rows without an item in the store, whose rows are
 * indexed; a row that is named twice may count twice. Looks up each row. */
uint64_t ps_op_rows_new(const ps_op_rows_t *self, const ps_store_t *store);
#endif
