/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_indexed_rows - rows that are found by their key
 *
 * What     An index from key to row number. In a DENSE table the number is a
 *          place in a slab of equal rows; in SPARSE and AUTO tables it is a
 *          head, which points at a sparse row or at a place in the slab.
 *          A row is made by a push that reserves it and counts as present when
 *          a push has been applied to it; until then its mark in the index is
 *          not set. So a pull cannot see pushes that wait for their clock.
 *          A hash partition of a RANGE-keys table lies here too, because its
 *          rows are scattered; rows that were never pushed read as their first
 *          values, which is how all of them are present without being stored.
 * Shape    dense row: values, then the states
 */
#ifndef PS_MODEL_INDEXED_ROWS_H
#define PS_MODEL_INDEXED_ROWS_H

#include "model/row_index.h"
#include "model/slab.h"
#include "model/sparse_row.h"

typedef struct ps_indexed_rows {
    ps_row_shape_t shape;
    ps_row_index_t index;
    ps_slab_t dense;         /* dense rows with their state */
    ps_slab_t heads;         /* SPARSE and AUTO tables: one per row */
    uint64_t n_present;      /* rows to which a push was applied */
    uint64_t sparse_entries; /* of all sparse rows */
    uint64_t sparse_bytes;   /* allocated for them */
} ps_indexed_rows_t;

/* A row as it is found: sparse when that is not NULL, else dense. */
typedef struct ps_row {
    ps_sparse_row_t *sparse;
    ps_dense_row_t dense;
} ps_row_t;

void ps_indexed_rows_init(ps_indexed_rows_t *self, const ps_row_shape_t *shape);
void ps_indexed_rows_done(ps_indexed_rows_t *self);

/* As ps_store_reserve. false: no memory; nothing stays reserved. */
PSD_MUST_CHECK bool ps_indexed_rows_reserve(ps_indexed_rows_t *self,
                                            const ps_slice_t *slice,
                                            const ps_payload_t *payload);
/* Takes back the reservation of the first n_rows rows of the slice. */
void ps_indexed_rows_unreserve(ps_indexed_rows_t *self,
                               const ps_slice_t *slice,
                               const ps_payload_t *payload,
                               uint64_t n_rows);
/* As ps_store_apply. */
void ps_indexed_rows_apply(ps_indexed_rows_t *self,
                           const ps_slice_t *slice,
                           const ps_payload_t *payload);

/* False when there is no such row; *ret_row is then left alone. */
bool ps_indexed_rows_find(const ps_indexed_rows_t *self,
                          uint64_t key,
                          ps_row_t *ret_row);
/* Asks the processor for the row, if it is there. */
void ps_indexed_rows_prefetch(const ps_indexed_rows_t *self, uint64_t key);

/* Bytes of the values of all rows; the state is n_states times that. */
uint64_t ps_indexed_rows_value_bytes(const ps_indexed_rows_t *self);
/* Bytes of everything, free room included. */
uint64_t ps_indexed_rows_bytes(const ps_indexed_rows_t *self);
#endif
