/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to lib/wire: one block of values inside quant.c
 *
 * What     Works on values as f64, which holds both types exactly, two at a
 *          time in the compilers' vector types. The rounding direction is
 *          random: the processor would mispredict a branch on it half the time.
 * Shape    a block's arrays have PS_QUANT_BLOCK places; the places from n up to
 *          an even number hold values that can be encoded
 */
#ifndef PS_WIRE_QUANT_INNER_H
#define PS_WIRE_QUANT_INNER_H

#include "wire/filters/quant.h"

typedef double ps_f64x2_t __attribute__((vector_size(16)));
typedef uint64_t ps_u64x2_t __attribute__((vector_size(16)));

#define PS_QUANT_LANES 2 /* pairs of generators side by side */

/* xoshiro256+ (Blackman and Vigna, TOMS 2021), two in each lane. */
typedef struct ps_quant_noise {
    ps_u64x2_t state[4][PS_QUANT_LANES];
} ps_quant_noise_t;

void ps_quant_noise_init(ps_quant_noise_t *self, uint64_t seed);
/* Numbers in (0, 1), 52 bits, never 0 and never 1. */
void ps_quant_noise_fill(ps_quant_noise_t *self, double ret[PS_QUANT_BLOCK]);

static inline ps_f64x2_t ps_quant_load(const double *from)
{
    ps_f64x2_t pair;

    __builtin_memcpy(&pair, from, sizeof pair);
    return pair;
}

static inline ps_f64x2_t ps_quant_abs(ps_f64x2_t pair)
{
    return (ps_f64x2_t)((ps_u64x2_t)pair & (UINT64_MAX >> 1));
}

/* 2^52: adding it to a smaller number drops the fraction and leaves the integer
 * in the low bits. */
#define PS_QUANT_SHIFT 0x1p52
#define PS_QUANT_SHIFT_BITS UINT64_C(0x4330000000000000)
#define PS_QUANT_ONE_BITS UINT64_C(0x3FF0000000000000) /* 1 as f64 */

/* The integer below or above t at random; above with the fraction as its
 * probability. 0 <= t < 2^51; noise in (0, 1), so that a whole t stays. */
static inline ps_u64x2_t ps_quant_round(ps_f64x2_t t, ps_f64x2_t noise)
{
    ps_f64x2_t nearest = (t + PS_QUANT_SHIFT) - PS_QUANT_SHIFT;
    ps_u64x2_t too_far = (ps_u64x2_t)(nearest > t) & PS_QUANT_ONE_BITS;
    ps_f64x2_t whole = nearest - (ps_f64x2_t)too_far;
    ps_u64x2_t up = (ps_u64x2_t)(noise < t - whole) & PS_QUANT_ONE_BITS;
    ps_f64x2_t rounded = whole + (ps_f64x2_t)up;

    return (ps_u64x2_t)(rounded + PS_QUANT_SHIFT) - PS_QUANT_SHIFT_BITS;
}

/* n <= PS_QUANT_BLOCK in all of these. false: a value cannot be encoded. */
PSD_MUST_CHECK bool ps_quant_half_encode(ps_values_as_t as, const double *values,
                                         const double *noise, size_t n, uint8_t *ret_coded);
void ps_quant_half_decode(ps_values_as_t as, const uint8_t *coded, size_t n, double *ret_values);

#define PS_QUANT_HEAD 16 /* bytes of a block's lo and step */

PSD_MUST_CHECK bool ps_quant_fixed_encode(size_t width, ps_type_t type, const double *values,
                                          const double *noise, size_t n, uint8_t *ret_coded);
/* false: lo or step is not finite, step is negative, or a code would overflow
 * the type. */
PSD_MUST_CHECK bool ps_quant_fixed_decode(size_t width, ps_type_t type, const uint8_t *coded,
                                          size_t n, double *ret_values);
#endif
