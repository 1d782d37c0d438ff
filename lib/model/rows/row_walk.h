/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_row_walk - finds the rows of many keys, a group at a time
 *
 * What     A find waits for two lines of memory, a bucket's and a row's. The
 *          walk asks for buckets far ahead and for rows less far, so that many
 *          are on their way at once.
 * Owner    Borrows all that it is given. Rows may be added on the way.
 */
#ifndef PS_MODEL_ROW_WALK_H
#define PS_MODEL_ROW_WALK_H

#include "model/rows/indexed_rows.h"

#define PS_WALK_ROWS 32  /* in a group */
#define PS_WALK_RING 128 /* rows of a slice that are on their way, at most */

typedef struct ps_row_walk {
    const ps_indexed_rows_t *rows;
    const ps_slice_t *slice;
    const ps_payload_t *payload;
    uint64_t n_rows;                /* to be walked, from the front of the slice */
    size_t bytes;                   /* of an item that are asked for */
    uint64_t first;                 /* of the group at hand */
    size_t n;                       /* rows of the group at hand */
    uint64_t n_buckets;             /* rows of the slice whose bucket was asked for … */
    uint64_t n_guesses;             /* … and those whose row was */
    uint8_t *found[PS_WALK_ROWS];   /* items of rows; NULL: not there */
    uint64_t hashes[PS_WALK_RING];  /* of row i of the slice at i % ring */
    uint8_t *guesses[PS_WALK_RING]; /* likewise */
} ps_row_walk_t;

/* n_rows <= slice->n_rows; rows LIST or RANGE. */
void ps_row_walk_begin(ps_row_walk_t *self, const ps_indexed_rows_t *rows, const ps_slice_t *slice,
                       const ps_payload_t *payload, uint64_t n_rows, ps_row_need_t need);
/* Goes to the next group; false at the end. */
bool ps_row_walk_next(ps_row_walk_t *self);
#endif
