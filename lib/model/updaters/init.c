/* SPDX-License-Identifier: Apache-2.0 */
/* First values: one call of the generator per cell, then a distribution. */
#include "model/updaters/init.h"

#include <math.h>
#include <string.h>

#include "base/cursor.h"
#include "base/hash.h"
#include "base/rng.h"
#include "model/updaters/exact_math.h"

/* The four words of a cell make two 64-bit numbers. */
typedef struct cell_bits {
    uint64_t first;
    uint64_t second;
} cell_bits_t;

static cell_bits_t cell_at(const ps_table_spec_t *spec, uint64_t row, uint32_t col)
{
    uint32_t words[4] = {0};
    cell_bits_t bits = {0};

    ps_rng_at(spec->seed, row, col, words);
    bits.first = (uint64_t)words[1] << 32 | words[0];
    bits.second = (uint64_t)words[3] << 32 | words[2];
    return bits;
}

/* In [0, 1): as many bits as the type's fraction holds, so that the conversion
 * to the type is exact. */
static double unit(uint64_t bits, ps_type_t type)
{
    return type == PS_TYPE_F32 ? (double)(bits >> 40) * 0x1p-24 : (double)(bits >> 11) * 0x1p-53;
}

static double normal(const ps_table_spec_t *spec, cell_bits_t bits)
{
    double u = 1 - unit(bits.first, spec->type); /* (0, 1] */
    double v = unit(bits.second, spec->type);
    double z = sqrt(-2 * ps_exact_log(u)) * ps_exact_cos_turn(v);

    return spec->init.a + spec->init.b * z;
}

static double uniform(const ps_table_spec_t *spec, cell_bits_t bits)
{
    double u = unit(bits.first, spec->type);

    /* Not a + (b - a) u: b - a may overflow. */
    return spec->init.a * (1 - u) + spec->init.b * u;
}

static double uniform_f64(const ps_table_spec_t *spec, cell_bits_t bits)
{
    double value = uniform(spec, bits);

    /* Rounding may have reached an end; b itself is not allowed. */
    if (value >= spec->init.b) {
        return nextafter(spec->init.b, spec->init.a);
    }
    return value < spec->init.a ? spec->init.a : value;
}

static float uniform_f32(const ps_table_spec_t *spec, cell_bits_t bits)
{
    float low = (float)spec->init.a;
    float high = (float)spec->init.b;
    float value = (float)uniform(spec, bits);

    if (value >= high) {
        return nextafterf(high, low);
    }
    return value < low ? low : value;
}

static int64_t uniform_int(const ps_table_spec_t *spec, cell_bits_t bits)
{
    int64_t low = (int64_t)spec->init.a;
    /* b may be 2^63, which no int64_t holds: take the last value instead. */
    int64_t last = spec->init.b >= 0x1p63 ? INT64_MAX : (int64_t)spec->init.b - 1;
    uint64_t width = (uint64_t)last - (uint64_t)low;
    uint64_t offset = width == UINT64_MAX ? bits.first : ps_fold(bits.first, width + 1);

    return (int64_t)((uint64_t)low + offset);
}

static int64_t integer_at(const ps_table_spec_t *spec, uint64_t row, uint32_t col)
{
    if (spec->init.kind == PS_INIT_CONSTANT) {
        return (int64_t)spec->init.a;
    }
    return uniform_int(spec, cell_at(spec, row, col));
}

static float f32_at(const ps_table_spec_t *spec, uint64_t row, uint32_t col)
{
    if (spec->init.kind == PS_INIT_CONSTANT) {
        return (float)spec->init.a;
    }
    if (spec->init.kind == PS_INIT_UNIFORM) {
        return uniform_f32(spec, cell_at(spec, row, col));
    }
    return (float)normal(spec, cell_at(spec, row, col));
}

static double f64_at(const ps_table_spec_t *spec, uint64_t row, uint32_t col)
{
    if (spec->init.kind == PS_INIT_CONSTANT) {
        return spec->init.a;
    }
    if (spec->init.kind == PS_INIT_UNIFORM) {
        return uniform_f64(spec, cell_at(spec, row, col));
    }
    return normal(spec, cell_at(spec, row, col));
}

bool ps_init_is_zero(const ps_init_spec_t *self)
{
    return self->kind == PS_INIT_ZERO || (self->kind == PS_INIT_CONSTANT && self->a == 0);
}

void ps_init_fill(const ps_table_spec_t *spec, uint64_t row, uint32_t first_col, uint32_t n,
                  uint8_t *ret_values)
{
    size_t size = ps_type_size(spec->type);

    if (ps_init_is_zero(&spec->init)) {
        memset(ret_values, 0, n * size);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint8_t *at = ret_values + i * size;
        uint32_t col = first_col + i;

        switch (spec->type) {
        case PS_TYPE_I32:
            ps_store_i32(at, (int32_t)integer_at(spec, row, col));
            break;
        case PS_TYPE_I64:
            ps_store_i64(at, integer_at(spec, row, col));
            break;
        case PS_TYPE_F32:
            ps_store_f32(at, f32_at(spec, row, col));
            break;
        case PS_TYPE_F64:
        default:
            ps_store_f64(at, f64_at(spec, row, col));
            break;
        }
    }
}
