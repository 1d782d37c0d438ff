/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_push - applies the deltas of one push to dense rows
 *
 * What     Takes the payload's values from the front, across spans, and runs
 *          the updater over the given rows; gathers rows of one value for it.
 *          If the payload is shared and the table allows only finite values,
 *          deltas are checked again: bytes that changed after the check never
 *          reach a row. A guarded rule reads each delta once and leaves out the
 *          bad ones. For other rules, and for narrow rows, deltas are copied in
 *          blocks that fit the L1 cache and checked there; a bad block is left
 *          out.
 * Owner    Borrows all its arguments.
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
    uint8_t *state;      /* … and their states; NULL: after each row */
    size_t state_stride; /* values from one state to the next */
    size_t row_bytes;    /* of a whole row's values */
    size_t span;         /* where the next value lies … */
    size_t at;           /* … and how many bytes into that span */
    bool is_guarded;     /* deltas are checked again, copied in blocks … */
    bool is_fused;       /* … unless the rule itself is guarded */
    _Alignas(64) uint8_t block[PS_PUSH_BLOCK];
} ps_push_t;

/* values and state: the starts of the arrays of all rows, or NULL when each
 * row's state follows the row. */
void ps_push_begin(ps_push_t *self, const ps_row_shape_t *shape, const ps_payload_t *payload,
                   uint8_t *values, uint8_t *state, size_t state_stride);
/* The next n * width values, one whole row each. */
void ps_push_rows(ps_push_t *self, uint8_t *const *rows, size_t n);
/* The next n values, to neighbouring ones from `values` on. */
void ps_push_run(ps_push_t *self, uint8_t *values, uint64_t n);
/* The rest of the current row of `deltas`, which the caller advances. */
void ps_push_columns(ps_push_t *self, uint8_t *row, ps_deltas_t *deltas);
#endif
