/* SPDX-License-Identifier: Apache-2.0 */
/* ps_fold - spreads 64 random bits evenly over 0 .. n - 1 without a division
 * (Lemire, ACM TOMACS 2019): the high half of bits x n. */
#ifndef PS_MODEL_FOLD_H
#define PS_MODEL_FOLD_H

#include <stdint.h>

/* ISO C has no 128-bit integer; both supported compilers do. */
__extension__ typedef unsigned __int128 ps_u128_t;

static inline uint64_t ps_fold(uint64_t bits, uint64_t n)
{
    return (uint64_t)(((ps_u128_t)bits * n) >> 64);
}
#endif
