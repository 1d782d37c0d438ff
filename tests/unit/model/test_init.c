/* SPDX-License-Identifier: Apache-2.0 */
/* model/updaters/init.h: first values depend on (seed, row, column) and nothing else. */
#include "model/updaters/init.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"

#define N_DRAWS 100000

static ps_table_spec_t spec_of(ps_type_t type, ps_init_kind_t kind, double a, double b)
{
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    spec.type = type;
    spec.seed = 42;
    spec.init = (ps_init_spec_t){.kind = kind, .a = a, .b = b};
    return spec;
}

static double value_at(const ps_table_spec_t *spec, uint64_t row, uint32_t col)
{
    uint8_t bytes[8];

    ps_init_fill(spec, row, col, 1, bytes);
    switch (spec->type) {
    case PS_TYPE_I32:
        return ps_load_i32(bytes);
    case PS_TYPE_I64:
        return (double)ps_load_i64(bytes);
    case PS_TYPE_F32:
        return (double)ps_load_f32(bytes);
    case PS_TYPE_F64:
    default:
        return ps_load_f64(bytes);
    }
}

/* Worked out apart from this code, from the papers' own words. */
Test(init, known_values)
{
    ps_table_spec_t uniform_64 = spec_of(PS_TYPE_F64, PS_INIT_UNIFORM, -1, 1);
    ps_table_spec_t uniform_32 = spec_of(PS_TYPE_F32, PS_INIT_UNIFORM, -1, 1);
    ps_table_spec_t whole = spec_of(PS_TYPE_I64, PS_INIT_UNIFORM, -10, 11);

    cr_assert_eq(value_at(&uniform_64, 0, 0), -0x1.0156d88c62a2p-4);
    cr_assert_eq(value_at(&uniform_64, 1, 2), 0x1.88b2b22e3f982p-1);
    cr_assert_eq(value_at(&uniform_64, UINT64_MAX, 7), 0x1.5788f85622bbcp-1);
    cr_assert_eq(value_at(&uniform_32, 0, 0), -0x1.0156ep-4);
    cr_assert_eq(value_at(&uniform_32, 1, 2), 0x1.88b2bp-1);
    cr_assert_eq(value_at(&uniform_32, UINT64_MAX, 7), 0x1.5788f8p-1);
    cr_assert_eq(value_at(&whole, 0, 0), -1);
    cr_assert_eq(value_at(&whole, 1, 2), 8);
    cr_assert_eq(value_at(&whole, UINT64_MAX, 7), 7);
}

Test(init, known_normal_values)
{
    ps_table_spec_t normal_64 = spec_of(PS_TYPE_F64, PS_INIT_NORMAL, 0, 1);
    ps_table_spec_t normal_32 = spec_of(PS_TYPE_F32, PS_INIT_NORMAL, 0, 1);

    cr_assert_eq(value_at(&normal_64, 0, 0), -0x1.371e09f80c7dep-1);
    cr_assert_eq(value_at(&normal_64, 1, 2), -0x1.0f57b66058dap+0);
    cr_assert_eq(value_at(&normal_64, UINT64_MAX, 7), -0x1.d6656f266ca4dp+0);
    cr_assert_eq(value_at(&normal_32, 0, 0), -0x1.371ep-1);
    cr_assert_eq(value_at(&normal_32, 1, 2), -0x1.0f57bcp+0);
    cr_assert_eq(value_at(&normal_32, UINT64_MAX, 7), -0x1.d6657p+0);
}

Test(init, a_row_filled_in_pieces_is_the_row)
{
    static const ps_type_t types[] = {PS_TYPE_I32, PS_TYPE_I64, PS_TYPE_F32, PS_TYPE_F64};
    uint8_t whole[100 * 8];
    uint8_t pieces[100 * 8];

    for (size_t t = 0; t < 4; t++) {
        ps_table_spec_t spec = spec_of(types[t], PS_INIT_UNIFORM, -500, 500);
        size_t size = ps_type_size(types[t]);

        ps_init_fill(&spec, 9, 1000, 100, whole);
        ps_init_fill(&spec, 9, 1060, 40, pieces + 60 * size);
        ps_init_fill(&spec, 9, 1000, 1, pieces);
        ps_init_fill(&spec, 9, 1001, 59, pieces + size);
        cr_assert_arr_eq(whole, pieces, 100 * size);
    }
}

Test(init, seed_row_and_column_all_count)
{
    ps_table_spec_t spec = spec_of(PS_TYPE_F64, PS_INIT_UNIFORM, 0, 1);
    double base = value_at(&spec, 3, 4);

    cr_assert_neq(value_at(&spec, 4, 3), base);
    cr_assert_neq(value_at(&spec, 3, 5), base);
    cr_assert_neq(value_at(&spec, 3 + (UINT64_C(1) << 32), 4), base);
    spec.seed++;
    cr_assert_neq(value_at(&spec, 3, 4), base);
}

Test(init, zero_and_constant)
{
    static const ps_type_t types[] = {PS_TYPE_I32, PS_TYPE_I64, PS_TYPE_F32, PS_TYPE_F64};

    for (size_t t = 0; t < 4; t++) {
        ps_table_spec_t zero = spec_of(types[t], PS_INIT_ZERO, 5, 5);
        ps_table_spec_t minus = spec_of(types[t], PS_INIT_CONSTANT, -0.0, 0);
        ps_table_spec_t three = spec_of(types[t], PS_INIT_CONSTANT, -3, 0);

        cr_assert_eq(value_at(&zero, 1, 1), 0);
        cr_assert_eq(value_at(&three, 1, 1), -3);
        cr_assert_eq(value_at(&minus, 1, 1), 0);
        cr_assert_not(signbit(value_at(&minus, 1, 1)));
        cr_assert(ps_init_is_zero(&zero.init));
        cr_assert(ps_init_is_zero(&minus.init));
        cr_assert_not(ps_init_is_zero(&three.init));
    }
}

/* Mean and variance of n draws within 4 standard errors; kurtosis is the fourth
 * moment over the squared variance. */
static void check_moments(const ps_table_spec_t *spec, double mean, double variance,
                          double kurtosis)
{
    double sum = 0;
    double squares = 0;

    for (uint32_t i = 0; i < N_DRAWS; i++) {
        double x = value_at(spec, i / 100, i % 100) - mean;

        sum += x;
        squares += x * x;
    }
    cr_assert_leq(fabs(sum / N_DRAWS), 4 * sqrt(variance / N_DRAWS));
    cr_assert_leq(fabs(squares / N_DRAWS - variance),
                  4 * variance * sqrt((kurtosis - 1) / N_DRAWS));
}

Test(init, moments_of_uniform)
{
    ps_table_spec_t wide = spec_of(PS_TYPE_F64, PS_INIT_UNIFORM, -2, 6);
    ps_table_spec_t narrow = spec_of(PS_TYPE_F32, PS_INIT_UNIFORM, 0, 1);
    ps_table_spec_t whole = spec_of(PS_TYPE_I32, PS_INIT_UNIFORM, 0, 1000);

    check_moments(&wide, 2, 64.0 / 12, 1.8);
    check_moments(&narrow, 0.5, 1.0 / 12, 1.8);
    check_moments(&whole, 499.5, 999999.0 / 12, 1.8);
}

Test(init, moments_of_normal)
{
    ps_table_spec_t wide = spec_of(PS_TYPE_F64, PS_INIT_NORMAL, 3, 2);
    ps_table_spec_t narrow = spec_of(PS_TYPE_F32, PS_INIT_NORMAL, 0, 0.01);

    check_moments(&wide, 3, 4, 3);
    check_moments(&narrow, 0, 1e-4, 3);
}

/* Neighbouring rows and columns have nothing to do with each other. */
Test(init, neighbours_do_not_correlate)
{
    ps_table_spec_t spec = spec_of(PS_TYPE_F64, PS_INIT_NORMAL, 0, 1);
    double by_row = 0;
    double by_col = 0;

    for (uint32_t i = 0; i < N_DRAWS; i++) {
        double x = value_at(&spec, i, 5);

        by_row += x * value_at(&spec, i + 1, 5);
        by_col += x * value_at(&spec, i, 6);
    }
    cr_assert_leq(fabs(by_row / N_DRAWS), 4 / sqrt(N_DRAWS));
    cr_assert_leq(fabs(by_col / N_DRAWS), 4 / sqrt(N_DRAWS));
}

Test(init, uniform_stays_below_its_upper_bound)
{
    /* One step wide: rounding alone would often reach the bound. */
    double next = nextafter(1.0, 2.0);
    float next_32 = nextafterf(1.0F, 2.0F);
    ps_table_spec_t wide = spec_of(PS_TYPE_F64, PS_INIT_UNIFORM, 1, next);
    ps_table_spec_t narrow = spec_of(PS_TYPE_F32, PS_INIT_UNIFORM, 1, (double)next_32);
    ps_table_spec_t huge = spec_of(PS_TYPE_F64, PS_INIT_UNIFORM, -0x1.fp1023, 0x1.fp1023);

    for (uint64_t row = 0; row < 1000; row++) {
        cr_assert_eq(value_at(&wide, row, 0), 1);
        cr_assert_eq(value_at(&narrow, row, 0), 1);
        cr_assert(isfinite(value_at(&huge, row, 0)));
    }
}

Test(init, integers_reach_every_value_and_no_other)
{
    ps_table_spec_t die = spec_of(PS_TYPE_I32, PS_INIT_UNIFORM, -1, 5);
    ps_table_spec_t any = spec_of(PS_TYPE_I64, PS_INIT_UNIFORM, -0x1p63, 0x1p63);
    int seen[6] = {0};
    int n_negative = 0;

    for (uint64_t row = 0; row < 6000; row++) {
        double x = value_at(&die, row, 0);

        cr_assert(x >= -1 && x < 5);
        seen[(int)x + 1]++;
        n_negative += value_at(&any, row, 0) < 0 ? 1 : 0;
    }
    for (int i = 0; i < 6; i++) {
        cr_assert(seen[i] > 850 && seen[i] < 1150);
    }
    cr_assert(n_negative > 2800 && n_negative < 3200);
}
