/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_store_growth - what rows take, and what a push or a change would add
 *
 * What     Numbers for a budget. Rows in an array have taken all they can; in
 *          any other store new rows, and entries of sparse rows, are made.
 * Units    bytes
 */
#ifndef PS_MODEL_STORE_GROWTH_H
#define PS_MODEL_STORE_GROWTH_H

#include "model/store/store_ops.h"

/* What values, states and index take, free room of their blocks included. Costs
 * next to nothing. */
uint64_t ps_store_footprint(const ps_store_t *self);
/* No push of so many rows and values adds more. Costs next to nothing. */
uint64_t ps_store_growth_bound(const ps_store_t *self, const ps_slice_t *slice);
/* What a checked push adds: its rows that are not there are counted, every
 * entry of a sparse row as if it were new. Looks for each row. */
uint64_t ps_store_growth(const ps_store_t *self, const ps_slice_t *slice,
                         const ps_payload_t *payload);
/* What a checked change adds, counted in the same way: of AXPY every entry of
 * the other table's rows. Looks for each row that the change is about. */
uint64_t ps_store_change_growth(const ps_store_t *self, const ps_slice_t *slice,
                                const ps_payload_t *rows, const ps_row_change_t *change);
/* Bytes of the values that a change goes through one after the other, whether
 * they are stored or not; 0 for one that only takes the rows that are stored,
 * of which there are no more than memory has room for. */
uint64_t ps_store_change_walk(const ps_store_t *self, const ps_slice_t *slice,
                              const ps_row_change_t *change);
#endif
