/* SPDX-License-Identifier: Apache-2.0 */
/* ps_present_rows - the keys that are present, or have changed, in a range of
 * rows, in order */
#ifndef PS_MODEL_PRESENT_ROWS_H
#define PS_MODEL_PRESENT_ROWS_H

#include "model/store/store_impl.h"

typedef struct ps_present_rows {
    uint64_t *keys; /* owned; ascending */
    size_t n;
    size_t capacity;
    bool is_cut; /* the range holds more of them */
} ps_present_rows_t;

/*
 * Finds the first `limit` (> 0) present rows of first .. first + n_rows - 1 in
 * a scattered store; or, if `since` is given, the rows of any store whose
 * version is above it. n_rows > 0, and the range ends at UINT64_MAX or before.
 *
 * Cost     hash keys, and changed rows of scattered ones: one walk over all
 *          stored rows, whatever the range's width; present rows of a hash
 *          partition of range keys: the rows between first and the last one
 *          found times the number of slices; changed rows of others: the
 *          versions of the range
 *
 * false: no memory; *ret is then empty.
 */
PSD_MUST_CHECK bool ps_present_rows_find(const ps_store_t *store, uint64_t first, uint64_t n_rows,
                                         const uint64_t *since, size_t limit,
                                         ps_present_rows_t *ret);
void ps_present_rows_done(ps_present_rows_t *self);
#endif
