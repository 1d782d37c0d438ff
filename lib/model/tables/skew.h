/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_skew - is one part of a table much larger than the others?
 *
 * What     A part's share is the sum of all parts divided by their number. A
 *          part is too large when it has more than PS_SKEW_FACTOR shares and at
 *          least a floor: below the floor a few rows, or the least allocation,
 *          make the ratio meaningless, and moving them would gain nothing.
 * Units    rows or bytes
 */
#ifndef PS_MODEL_SKEW_H
#define PS_MODEL_SKEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PS_SKEW_FACTOR 3
#define PS_SKEW_ROWS_MIN UINT64_C(1000)
#define PS_SKEW_BYTES_MIN (UINT64_C(1) << 20)

/*
 * Looks at n parts. If the largest is too large, ret_part is its number and
 * ret_sum the sum of all parts. least >= 1: the floor.
 */
bool ps_skew_find(const uint64_t *sizes, size_t n, uint64_t least, size_t *ret_part,
                  uint64_t *ret_sum);
#endif
