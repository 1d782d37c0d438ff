/* SPDX-License-Identifier: Apache-2.0 */
/* ps_op_rows - the rows that a change is about, one after the other */
#ifndef PS_MODEL_OP_ROWS_H
#define PS_MODEL_OP_ROWS_H

#include "model/store/store_ops.h"
#include "model/store/store_impl.h"

typedef struct ps_op_rows {
    const ps_slice_t *slice;
    const ps_payload_t *payload;
    const ps_extent_t *extent;       /* only its rows; NULL: all are */
    const ps_indexed_rows_t *stored; /* only the rows present there; NULL: all */
    const ps_store_t *partial;       /* only the rows that it has; NULL: all */
    uint64_t i;                      /* next row of slice, or of `stored` */
} ps_op_rows_t;

/* Rows of a checked change: of a list each; of a range those that it means. A
 * row that is not there and reads as zeros is passed over where the change
 * leaves zeros as they are. */
ps_op_rows_t ps_op_rows_of(const ps_store_t *self, const ps_slice_t *slice,
                           const ps_payload_t *payload, const ps_row_change_t *change);
/* False at the end. Rows may be added to another store on the way. */
bool ps_op_rows_next(ps_op_rows_t *self, uint64_t *ret_key);
/* How many of those that are left have no item in the store, whose rows are
 * indexed; one that is named twice may count twice. Looks for each. */
uint64_t ps_op_rows_new(const ps_op_rows_t *self, const ps_store_t *store);
#endif
