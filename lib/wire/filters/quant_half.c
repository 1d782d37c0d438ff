/* SPDX-License-Identifier: Apache-2.0 */
/* 16-bit floats: sign, exponent, m bits of fraction. |x| is scaled so that its
 * unit in the last place is 1, rounded, and reassembled. A carry out of the
 * fraction increments the exponent by itself. */
#include "wire/filters/quant_inner.h"

#include "base/cursor.h"

#define F64_BIAS 1023
#define F64_FRACTION 52 /* bits */
#define CODE_SIZE 2     /* bytes */
#define F32_INFINITY UINT32_C(0x7F800000)
#define F32_EXPONENT_ONE (UINT32_C(1) << 23)
#define F16_MOVE (112 * F32_EXPONENT_ONE) /* from binary16 to binary32 */

/* The parameters of a 16-bit float format. */
typedef struct half {
    uint64_t fraction; /* bits */
    double least;      /* smallest one with a full fraction */
    double greatest;
} half_t;

static const half_t F16 = {10, 0x1p-14, 65504.0};
static const half_t BF16 = {7, 0x1p-126, 255 * 0x1p120};

/* Each value's code in the low bits. */
static inline ps_u64x2_t encode(const half_t *half, ps_f64x2_t x, ps_f64x2_t noise)
{
    ps_f64x2_t least = {half->least, half->least};
    ps_f64x2_t size = ps_quant_abs(x);
    ps_u64x2_t full = (ps_u64x2_t)(size > least);
    ps_u64x2_t base = ((ps_u64x2_t)size & full) | ((ps_u64x2_t)least & ~full);
    ps_u64x2_t exponent = base >> F64_FRACTION;
    ps_u64x2_t first = (ps_u64x2_t)least >> F64_FRACTION;
    ps_u64x2_t scale = (half->fraction + 2 * F64_BIAS - exponent) << F64_FRACTION;
    ps_u64x2_t rounded = ps_quant_round(size * (ps_f64x2_t)scale, noise);
    ps_u64x2_t sign = (ps_u64x2_t)x >> 63;

    return (sign << 15) + ((exponent - first) << half->fraction) + rounded;
}

/* Called with a constant `half`, so that each of the two gets its own loop. */
static inline __attribute__((always_inline)) bool encode_all(const half_t *half,
                                                             const double *values,
                                                             const double *noise, size_t n,
                                                             uint8_t *ret_coded)
{
    ps_u64x2_t good = {UINT64_MAX, UINT64_MAX};
    uint16_t codes[PS_QUANT_BLOCK] = {0};

    for (size_t i = 0; i < n; i += 2) {
        ps_f64x2_t pair = ps_quant_load(values + i);
        ps_u64x2_t code = encode(half, pair, ps_quant_load(noise + i));

        codes[i] = (uint16_t)code[0];
        codes[i + 1] = (uint16_t)code[1];
        good &= (ps_u64x2_t)(ps_quant_abs(pair) <= half->greatest);
    }
    memcpy(ret_coded, codes, n * CODE_SIZE);
    return (good[0] & good[1]) != 0;
}

bool ps_quant_half_encode(ps_values_as_t as, const double *values, const double *noise, size_t n,
                          uint8_t *ret_coded)
{
    return as == PS_VALUES_F16 ? encode_all(&F16, values, noise, n, ret_coded)
                               : encode_all(&BF16, values, noise, n, ret_coded);
}

static inline float float_of_bits(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of_float(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* Exponents move by F16_MOVE. A small one without its leading bit gets it as an
 * f32 of the next exponent, from which the bit is taken again: arithmetic with
 * numbers as small as they are in f32's range would be slow. Infinity and NaN,
 * whose exponent is the greatest, keep it. */
static inline float decode_f16(uint16_t code)
{
    uint32_t size = (uint32_t)(code & 0x7FFF) << 13;
    uint32_t full = size + F16_MOVE;
    float small =
        float_of_bits(full + F32_EXPONENT_ONE) - float_of_bits(F16_MOVE + F32_EXPONENT_ONE);
    uint32_t is_small = 0 - (uint32_t)(size < F32_EXPONENT_ONE);
    uint32_t bits = (bits_of_float(small) & is_small) | (full & ~is_small);
    uint32_t special = size >= 0x1F * F32_EXPONENT_ONE ? F32_INFINITY : 0;
    uint32_t sign = (uint32_t)(code & 0x8000) << 16;

    return float_of_bits(bits | special | sign);
}

void ps_quant_half_decode(ps_values_as_t as, const uint8_t *coded, size_t n, double *ret_values)
{
    if (as == PS_VALUES_F16) {
        for (size_t i = 0; i < n; i++) {
            ret_values[i] = (double)decode_f16(ps_load_u16(coded + CODE_SIZE * i));
        }
    } else {
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = ps_load_u16(coded + CODE_SIZE * i);

            ret_values[i] = (double)float_of_bits(bits << 16);
        }
    }
}
