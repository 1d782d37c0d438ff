/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_combine_check - a number that tells whether a sum of integers is the sum of its parts
 *
 * What     The sum of each value times a weight of its cell (row, column), modulo 2^64. It is
 *          linear: the check of a sum is the sum of the checks of its parts, whatever their rows,
 *          columns and layouts are. A part that is missing, there twice, or changed almost surely
 *          gives another number; of i32, whose sums wrap around, only the low 32 bits count. The
 *          more low bits of a value are zero, the fewer bits tell its cell from others.
 * Secret   None: it finds faults, not somebody who makes up both sum and check.
 * Cost     One pass over the values.
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_MODEL_COMBINE_CHECK_H
#define PS_MODEL_COMBINE_CHECK_H

#include "base/slice.h"

/* i32 and i64 have checks; sums of floats depend on their order. */
bool ps_combine_has_check(ps_type_t type);
/* Of a slice of such a type, LIST or RANGE, whose parts have the lengths that it requires. payload
 * is not shared; NULL: the check is 0. first_col: the partition's. */
uint64_t ps_combine_check(const ps_slice_t *slice, const ps_payload_t *payload, uint32_t first_col);
/* Are they the same, in the bits that the type's sums have? */
bool ps_combine_checks_agree(ps_type_t type, uint64_t a, uint64_t b);
#endif
