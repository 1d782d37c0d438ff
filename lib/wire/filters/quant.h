/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_quant - f32 and f64 values in fewer bytes, with unbiased rounding
 *
 * What     F16, BF16  each value as a 16-bit float: IEEE 754 binary16, or the
 *                     upper half of a binary32
 *          FIXED1..4  blocks of PS_QUANT_BLOCK values (the last one may be
 *                     shorter): lo f64, step f64, then a code of 1..4 bytes for
 *                     each value; the value is lo + code x step
 *          A value between two representable ones is rounded to one of them at
 *          random, to the nearer one more often, so that its mean is the value
 *          itself. A representable value does not change: all 16-bit floats
 *          under F16 and BF16, every value of a block of equal values, and 0 in
 *          every block (FIXED may lose its sign).
 * Error    of a value x, at most: F16 max(|x| 2^-10, 2^-24), BF16
 *          max(|x| 2^-7, 2^-133), FIXEDk (greatest - least of the block) /
 *          (2^8k - 2) x (1 + 2^-20), and half a unit in the last place of
 *          the type
 * Limits   If one value cannot be encoded, the whole list stays RAW. Such
 *          values are: values that are not finite; |x| > 65504 for F16, > 255 x
 *          2^120 for BF16, > 2^126 (f32) or 2^1000 (f64) for FIXED; and blocks
 *          of f64 whose values differ, but by less than 2^-800. Decoded values
 *          may be infinite or NaN for F16 and BF16, never for FIXED.
 * Shape    values and coded bytes are little-endian, any alignment
 * Threads  any; nothing is kept between calls
 * Source   Alistarh et al., QSGD, NIPS 2017, section 3 (unbiased rounding)
 */
#ifndef PS_WIRE_QUANT_H
#define PS_WIRE_QUANT_H

#include "base/slice.h"

/* X(NAME, "word", number on the wire, bytes of a code; 0: the size of the
 * type) */
#define PS_VALUES_AS_MAP(X)   \
    X(RAW, "raw", 0, 0)       \
    X(F16, "f16", 1, 2)       \
    X(BF16, "bf16", 2, 2)     \
    X(FIXED1, "fixed1", 3, 1) \
    X(FIXED2, "fixed2", 4, 2) \
    X(FIXED3, "fixed3", 5, 3) \
    X(FIXED4, "fixed4", 6, 4)

#define PS_VALUES_AS_ENUM(NAME, word, number, width) PS_VALUES_##NAME = (number),
typedef enum ps_values_as { PS_VALUES_AS_MAP(PS_VALUES_AS_ENUM) } ps_values_as_t;
#undef PS_VALUES_AS_ENUM
#define PS_VALUES_AS_MAX PS_VALUES_FIXED4

#define PS_QUANT_BLOCK 1024 /* values that share lo and step */

/* Whether values of the type may be encoded so: integers only RAW. */
bool ps_quant_takes(ps_values_as_t as, ps_type_t type);
/* Bytes that n values take. false: overflow. */
PSD_MUST_CHECK bool ps_quant_size(ps_values_as_t as, ps_type_t type, uint64_t n,
                                  uint64_t *ret_size);
/*
 * Encodes n values; `as` must suit type (ps_quant_takes) and is not RAW.
 *
 * seed       in   of the random rounding; the same seed gives the same bytes
 * ret_coded  out  ps_quant_size bytes
 *
 * false: a value cannot be encoded; ret_coded is undefined.
 */
PSD_MUST_CHECK bool ps_quant_encode(ps_values_as_t as, ps_type_t type, const uint8_t *values,
                                    uint64_t n, uint64_t seed, uint8_t *ret_coded);
/*
 * Decodes n values; as and type as above.
 *
 * coded       in   of ps_quant_size bytes
 * ret_values  out  n values of the type; undefined on failure
 *
 * Errors: PSD_PROTO coded has the wrong size; a block's lo or step is invalid,
 * naming the block.
 */
PSD_MUST_CHECK psd_status_t ps_quant_decode(ps_values_as_t as, ps_type_t type, ps_bytes_t coded,
                                            uint64_t n, uint8_t *ret_values, psd_error_t *err);
#endif
