/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed point: a block's values on an even grid between its least and its
 * greatest. When 0 lies between them it is a point of the grid, and the step
 * has so few bits that every product with a code is exact: 0 stays 0. */
#include "wire/filters/quant_inner.h"

#include <math.h>

#include "base/cursor.h"

#define STEP_SPARE                                              \
    UINT64_C(0xFFFFFFFF)    /* low bits of a step that are 0: a \
                               product with 32 bits is exact */
#define STEP_LEAST 0x1p-900 /* far from where f64 loses bits */

typedef struct grid {
    double lo;
    double step;
    double top; /* greatest code */
} grid_t;

/* The greatest size of a value that is written. Two steps beyond it are still
 * numbers of the type. */
static double size_limit(ps_type_t type)
{
    return type == PS_TYPE_F32 ? 0x1p126 : 0x1p1000;
}

static inline ps_f64x2_t choose(ps_u64x2_t first, ps_f64x2_t a, ps_f64x2_t b)
{
    return (ps_f64x2_t)(((ps_u64x2_t)a & first) | ((ps_u64x2_t)b & ~first));
}

/* Least and greatest value. false: one is too large or no number. */
static bool find_range(ps_type_t type, const double *values, size_t n, double *ret_lo,
                       double *ret_hi)
{
    double limit = size_limit(type);
    ps_u64x2_t good = {UINT64_MAX, UINT64_MAX};
    ps_f64x2_t lo = ps_quant_load(values);
    ps_f64x2_t hi = lo;

    for (size_t i = 0; i < n; i += 2) {
        ps_f64x2_t pair = ps_quant_load(values + i);

        lo = choose((ps_u64x2_t)(pair < lo), pair, lo);
        hi = choose((ps_u64x2_t)(pair > hi), pair, hi);
        good &= (ps_u64x2_t)(ps_quant_abs(pair) <= limit); /* NaN is not */
    }
    *ret_lo = lo[0] < lo[1] ? lo[0] : lo[1];
    *ret_hi = hi[0] > hi[1] ? hi[0] : hi[1];
    return (good[0] & good[1]) != 0;
}

/* Rounds up to a number with few bits. */
static double coarse(double step)
{
    uint64_t bits = 0;

    memcpy(&bits, &step, sizeof bits);
    bits = (bits + STEP_SPARE) & ~STEP_SPARE;
    memcpy(&step, &bits, sizeof bits);
    return step;
}

static bool make_grid(size_t width, double lo, double hi, grid_t *ret_grid)
{
    bool has_zero = lo < 0 && hi > 0;
    double top = (double)((UINT64_C(1) << (8 * width)) - 1);

    *ret_grid = (grid_t){.lo = lo, .step = 0, .top = top};
    if (!(lo < hi)) {
        return true;
    }
    /* With a point at 0 the grid may stick out at both ends. */
    ret_grid->step = coarse((hi - lo) / (has_zero ? top - 1 : top));
    if (ret_grid->step < STEP_LEAST) {
        return false;
    }
    if (has_zero) {
        ret_grid->lo = -(ceil(-lo / ret_grid->step) * ret_grid->step);
    }
    return true;
}

static void find_codes(const grid_t *grid, const double *values, const double *noise, size_t n,
                       uint32_t ret_codes[PS_QUANT_BLOCK])
{
    double step = grid->step > 0 ? grid->step : 1; /* all are lo then */
    ps_f64x2_t top = {grid->top, grid->top};

    for (size_t i = 0; i < n; i += 2) {
        ps_f64x2_t t = (ps_quant_load(values + i) - grid->lo) / step;
        ps_f64x2_t below = choose((ps_u64x2_t)(t < top), t, top);
        ps_u64x2_t code = ps_quant_round(below, ps_quant_load(noise + i));

        ret_codes[i] = (uint32_t)code[0];
        ret_codes[i + 1] = (uint32_t)code[1];
    }
}

/* The low bytes of each code. */
static void write_codes(const uint32_t *codes, size_t width, size_t n, uint8_t *to)
{
    switch (width) {
    case 1:
        for (size_t i = 0; i < n; i++) {
            to[i] = (uint8_t)codes[i];
        }
        break;
    case 2:
        for (size_t i = 0; i < n; i++) {
            ps_store_u16(to + 2 * i, (uint16_t)codes[i]);
        }
        break;
    case 3: /* each fourth byte is overwritten by the next code */
        for (size_t i = 0; i + 1 < n; i++) {
            ps_store_u32(to + 3 * i, codes[i]);
        }
        memcpy(to + 3 * (n - 1), &codes[n - 1], 3);
        break;
    default:
        memcpy(to, codes, n * sizeof *codes);
        break;
    }
}

bool ps_quant_fixed_encode(size_t width, ps_type_t type, const double *values, const double *noise,
                           size_t n, uint8_t *ret_coded)
{
    uint32_t codes[PS_QUANT_BLOCK];
    double lo = 0;
    double hi = 0;
    grid_t grid = {0};

    if (!find_range(type, values, n, &lo, &hi) || !make_grid(width, lo, hi, &grid)) {
        return false;
    }
    ps_store_f64(ret_coded, grid.lo);
    ps_store_f64(ret_coded + 8, grid.step);
    find_codes(&grid, values, noise, n, codes);
    write_codes(codes, width, n, ret_coded + PS_QUANT_HEAD);
    return true;
}

static void read_codes(const uint8_t *from, size_t width, size_t n,
                       uint32_t ret_codes[PS_QUANT_BLOCK])
{
    switch (width) {
    case 1:
        for (size_t i = 0; i < n; i++) {
            ret_codes[i] = from[i];
        }
        break;
    case 2:
        for (size_t i = 0; i < n; i++) {
            ret_codes[i] = ps_load_u16(from + 2 * i);
        }
        break;
    case 3: /* the fourth byte is the next code's */
        for (size_t i = 0; i + 1 < n; i++) {
            ret_codes[i] = ps_load_u32(from + 3 * i) & 0xFFFFFF;
        }
        ret_codes[n - 1] = 0;
        memcpy(&ret_codes[n - 1], from + 3 * (n - 1), 3);
        break;
    default:
        memcpy(ret_codes, from, n * sizeof *ret_codes);
        break;
    }
}

bool ps_quant_fixed_decode(size_t width, ps_type_t type, const uint8_t *coded, size_t n,
                           double *ret_values)
{
    uint32_t codes[PS_QUANT_BLOCK];
    double lo = ps_load_f64(coded);
    double step = ps_load_f64(coded + 8);
    double top = (double)((UINT64_C(1) << (8 * width)) - 1);
    double limit = 2 * size_limit(type);

    if (!(fabs(lo) <= limit) || !(step >= 0) || !(fabs(lo + step * top) <= limit)) {
        return false;
    }
    read_codes(coded + PS_QUANT_HEAD, width, n, codes);
    for (size_t i = 0; i < n; i++) {
        ret_values[i] = lo + step * (double)codes[i];
    }
    return true;
}
