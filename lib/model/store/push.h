/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_push - the deltas of one push on their way into dense rows
 *
 * What     Takes the payload's values from the front, whatever spans they lie
 *          in, and runs the updater over the rows that it is given; those
 *          of one value are brought together for it.
 *          Where the payload is shared and the table refuses what is not
 *          finite, deltas are looked at once more: bytes that were changed
 *          since they were checked never reach a row. A guarded rule reads each
 *          delta once and leaves out the bad ones; for the others, and for
 *          narrow rows, deltas are copied in blocks that fit the processor's
 *          first cache and looked at there, and a bad block is left out.
 * Owner    Borrows all that it is given.
 */
#ifndef PS_MODEL_PUSH_H
#define PS_MODEL_PUSH_H

#include "model/rows/deltas.h"
#include "model/rows/row_shape.h"

#define PS_PUSH_BLOCK 8192 /* bytes; a multiple of every value's size */

typedef struct ps_push {
    const ps_row_shape_t *shape;
    const ps_payload_t *payload;
    uint8_t *values;     /* with `state`: where all rows' values begin … */
    uint8_t *state;      /* … and their states; NULL: behind each row */
    size_t state_stride; /* values from one state to the next */
    size_t row_bytes;    /* of a whole row's values */
    size_t span;         /* where the next value lies … */
    size_t at;           /* … and how many bytes into that span */
    bool is_guarded;     /* deltas are looked at again, copied in blocks … */
    bool is_fused;       /* … unless the rule itself is guarded */
    _Alignas(64) uint8_t block[PS_PUSH_BLOCK];
} ps_push_t;

/* values and state: where the arrays of all rows begin when states do not stand
 * behind their own row, else NULL. */
void ps_push_begin(ps_push_t *self, const ps_row_shape_t *shape, const ps_payload_t *payload,
                   uint8_t *values, uint8_t *state, size_t state_stride);
/* The next n * width values, one whole row each. */
void ps_push_rows(ps_push_t *self, uint8_t *const *rows, size_t n);
/* The next n values, to neighbouring ones from `values` on. */
void ps_push_run(ps_push_t *self, uint8_t *values, uint64_t n);
/* What is left of the row at hand of `deltas`, which walks by itself. */
void ps_push_columns(ps_push_t *self, uint8_t *row, ps_deltas_t *deltas);
#endif
