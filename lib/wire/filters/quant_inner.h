/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to lib/wire: one block of values on its way through quant.c
 *
 * What     Values are worked on as f64, which holds both types exactly, two at
 *          a time in the compilers' vector types: which way a value is rounded
 *          is chance, and a branch on it would be guessed wrong half the time.
 * Shape    arrays of a block have PS_QUANT_BLOCK places; those behind n, up to
 *          an even number, hold something that can be written
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

/* 2^52: a number below it loses its fraction by passing it, and shows as an
 * integer in the low bits. */
#define PS_QUANT_SHIFT 0x1p52
#define PS_QUANT_SHIFT_BITS UINT64_C(0x4330000000000000)
#define PS_QUANT_ONE_BITS UINT64_C(0x3FF0000000000000) /* 1 as f64 */

/* The integers below or above t, by chance: above as often as the fraction
 * says. 0 <= t < 2^51; noise in (0, 1), so that a whole t stays. */
static inline ps_u64x2_t ps_quant_round(ps_f64x2_t t, ps_f64x2_t noise)
{
    ps_f64x2_t nearest = (t + PS_QUANT_SHIFT) - PS_QUANT_SHIFT;
    ps_u64x2_t too_far = (ps_u64x2_t)(nearest > t) & PS_QUANT_ONE_BITS;
    ps_f64x2_t whole = nearest - (ps_f64x2_t)too_far;
    ps_u64x2_t up = (ps_u64x2_t)(noise < t - whole) & PS_QUANT_ONE_BITS;
    ps_f64x2_t rounded = whole + (ps_f64x2_t)up;

    return (ps_u64x2_t)(rounded + PS_QUANT_SHIFT) - PS_QUANT_SHIFT_BITS;
}

/* n <= PS_QUANT_BLOCK in all of these. false: a value cannot be written. */
PSD_MUST_CHECK bool ps_quant_half_encode(ps_values_as_t as, const double *values,
                                         const double *noise, size_t n, uint8_t *ret_coded);
void ps_quant_half_decode(ps_values_as_t as, const uint8_t *coded, size_t n, double *ret_values);

#define PS_QUANT_HEAD 16 /* bytes of a block's lo and step */

PSD_MUST_CHECK bool ps_quant_fixed_encode(size_t width, ps_type_t type, const double *values,
                                          const double *noise, size_t n, uint8_t *ret_coded);
/* false: lo or step is not finite, step is negative, or a code would lead
 * beyond what the type holds. */
PSD_MUST_CHECK bool ps_quant_fixed_decode(size_t width, ps_type_t type, const uint8_t *coded,
                                          size_t n, double *ret_values);
#endif
