/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_store_growth - the memory of rows, and how much a push or a change would
 * add
 *
 * What     Numbers for a budget. An array already has memory for all its rows;
 *          any other store allocates new rows and entries of sparse rows.
 * Units    bytes
 */
#ifndef PS_MODEL_STORE_GROWTH_H
#define PS_MODEL_STORE_GROWTH_H

#include "model/store/store_ops.h"

/* Bytes of values, states and index, unused capacity of their blocks included.
 * Cheap. */
uint64_t ps_store_footprint(const ps_store_t *self);
/* An upper bound for any push with this number of rows and values. Cheap. */
uint64_t ps_store_growth_bound(const ps_store_t *self, const ps_slice_t *slice);
/* Bytes that a checked push adds: counts its missing rows, and every entry of a
 * sparse row as if it were new. Looks up each row. */
uint64_t ps_store_growth(const ps_store_t *self, const ps_slice_t *slice,
                         const ps_payload_t *payload);
/* Bytes that a checked change adds, counted in the same way; for AXPY counts
 * every entry of the other table's rows. Looks up each row of the change. */
uint64_t ps_store_change_growth(const ps_store_t *self, const ps_slice_t *slice,
                                const ps_payload_t *rows, const ps_row_change_t *change);
/* Bytes of the values that a change iterates over, stored or not; 0 for a
 * change that only visits stored rows, whose number memory limits. */
uint64_t ps_store_change_walk(const ps_store_t *self, const ps_slice_t *slice,
                              const ps_row_change_t *change);
#endif
