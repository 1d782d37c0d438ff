/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_row_walk - finds the rows of many keys, a group at a time
 *
 * What     A find waits for two cache lines, a bucket's and a row's. The walk
 *          prefetches buckets far ahead and rows less far, so that many loads
 *          are in flight at once.
 * Owner    Borrows all its arguments. Rows may be added during the walk.
 */
#ifndef PS_MODEL_ROW_WALK_H
#define PS_MODEL_ROW_WALK_H

#include "model/rows/indexed_rows.h"

#define PS_WALK_ROWS 32  /* in a group */
#define PS_WALK_RING 128 /* rows of a slice in flight, at most */

typedef struct ps_row_walk {
    const ps_indexed_rows_t *rows;
    const ps_slice_t *slice;
    const ps_payload_t *payload;
    uint64_t n_rows;                /* rows to walk, from the front of the slice */
    size_t bytes;                   /* of an item to prefetch */
    uint64_t first;                 /* of the current group */
    size_t n;                       /* rows of the current group */
    uint64_t n_buckets;             /* rows of the slice whose bucket was prefetched … */
    uint64_t n_guesses;             /* … and those whose row was */
    uint8_t *found[PS_WALK_ROWS];   /* items of rows; NULL: no such row */
    uint64_t hashes[PS_WALK_RING];  /* of row i of the slice at i % ring */
    uint8_t *guesses[PS_WALK_RING]; /* likewise */
} ps_row_walk_t;

/* n_rows <= slice->n_rows; rows LIST or RANGE. */
void ps_row_walk_begin(ps_row_walk_t *self, const ps_indexed_rows_t *rows, const ps_slice_t *slice,
                       const ps_payload_t *payload, uint64_t n_rows, ps_row_need_t need);
/* Goes to the next group; false at the end. */
bool ps_row_walk_next(ps_row_walk_t *self);
#endif
