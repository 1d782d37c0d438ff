/* SPDX-License-Identifier: Apache-2.0 */
/* What a store is made of; shared by store.c, store_check.c and
 * store_gather.c, and by nobody else. */
#ifndef PS_MODEL_STORE_IMPL_H
#define PS_MODEL_STORE_IMPL_H

#include "model/array_rows.h"
#include "model/indexed_rows.h"
#include "model/store.h"

struct ps_store {
    ps_table_spec_t spec; /* own copy */
    ps_extent_t extent;
    ps_updater_t *updater;
    uint32_t worker;           /* whose deltas are applied */
    ps_row_shape_t shape;      /* points at spec, updater and worker */
    bool is_array;             /* which of the two layouts is in use */
    ps_array_rows_t array;     /* RANGE keys, DENSE rows, no hash */
    ps_indexed_rows_t indexed; /* everything else */
};

/* The rows of the partition are not all those between its first and its last
 * one: any key, or a hash partition. A range of rows then means those that are
 * present. */
static inline bool
ps_store_is_scattered(const ps_store_t *self)
{
    return self->spec.keys == PS_KEYS_HASH || self->extent.n_slices > 1;
}

/* Writes the values of n columns of a row; first values if it is not there. */
void ps_store_read(ps_store_t *self,
                   uint64_t row,
                   ps_columns_t columns,
                   size_t n,
                   uint8_t *ret_values);
#endif
