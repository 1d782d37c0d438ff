/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/model/combine: the deltas of one clock, added up
 *
 * It is       One sum of many pushes, whose bits depend on the pushes alone.
 * It uses     rows (a slice row by row), updaters (the loop that adds), tables,
 *             lib/base.
 * It ignores  Clocks, workers and gates, who adds, and what becomes of the sum.
 * Start at    combine.h, then combine.c.
 */
/*
 * ps_combine - adds up pushes in one fixed order
 *
 * What     A part is a push of one worker, or a sum that was made of the pushes
 *          of several. Workers have positions 0, 1, 2, … The sum of an aligned
 *          interval of positions [k·2^j, (k+1)·2^j) is that of its left half
 *          plus that of its right half; a half without a part is absent, which
 *          is not the same as +0.0. One position's sum is its pushes, added one
 *          after the other in the given order. All of this holds for each cell
 *          (row, column) by itself: a cell that only one side has is copied. So
 *          lists, ranges, dense and sparse pushes follow one rule.
 * Bits     The order in which the values of a cell are added follows from the
 *          positions that have one, and from nothing else: not from who arrived
 *          first, nor from how rows were cut or encoded, nor from which cells a
 *          neighbour has. And whoever has all parts of an aligned interval may
 *          add them before and hand in the sum as one part: the same additions
 *          are made, elsewhere. Therefore a server that has every push, and one
 *          that gets sums that others made, end with the same bits.
 *          Integers wrap around. Additions of floats are those of IEEE 754,
 *          rounded once each. A result that is NaN is the one NaN with the bits
 *          0x7fc00000 (f32) or 0x7ff8000000000000 (f64), because which of two
 *          NaN a machine's addition keeps is not defined.
 * Cost     pushes of the same rows and columns: one pass over their values.
 *          Else the rows are sorted first, and of rows with unlike columns the
 *          cells too.
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_MODEL_COMBINE_H
#define PS_MODEL_COMBINE_H

#include "base/slice.h"

#define PS_COMBINE_POSITIONS UINT32_C(4096) /* positions are below */

typedef struct ps_combine_part {
    uint32_t first;              /* the part is of positions first … */
    uint32_t n;                  /* … first + n - 1; a power of two that divides first */
    const ps_slice_t *slice;     /* borrowed; a push that a store has accepted, LIST or RANGE */
    const ps_payload_t *payload; /* borrowed, not shared; NULL if n_rows is 0 */
} ps_combine_part_t;

/* The table's partition, and what is done with the sum. */
typedef struct ps_combine_args {
    ps_type_t type;
    uint32_t first_col; /* of the partition … */
    uint32_t width;     /* … and its number of columns */
    uint32_t divisor;   /* the sum is divided by it: floats as IEEE 754 says, integers towards zero;
                           1: it stays */
} ps_combine_args_t;

/* True when [first, first + n) is an aligned interval of positions. */
bool ps_combine_is_interval(uint32_t first, uint32_t n);

/* True when the parts can be added: intervals that ascend by `first`, are equal
 * or do not meet, and are equal only where n is 1 (one position's pushes, in
 * their order). */
bool ps_combine_fits(const ps_combine_part_t *parts, size_t n_parts);

/*
 * Adds the parts, which fit.
 *
 * ret_slice    each row once, ascending, or as all pushes named them; DENSE when
 *              all have the same columns, else SPARSE. n_rows 0: no push has
 *              rows.
 * ret_payload  the caller's to destroy; NULL when n_rows is 0
 *
 * Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_combine(const ps_combine_args_t *args,
                                       const ps_combine_part_t *parts, size_t n_parts,
                                       ps_slice_t *ret_slice, ps_payload_t **ret_payload,
                                       psd_error_t *err);
#endif
