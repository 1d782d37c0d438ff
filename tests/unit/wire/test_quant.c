/* SPDX-License-Identifier: Apache-2.0 */
/* wire/filters/quant.h: values in fewer bytes. What chance does to them is in
 * test_quant_chance.c. */
#include "wire/filters/quant.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/rng.h"
#include "unit/wire/quant_kit.h"

#define N_HALVES 65536

Test(quant, only_floats_are_written_in_fewer_bytes)
{
    for (ps_type_t type = PS_TYPE_I32; type <= PS_TYPE_F64; type++) {
        bool is_float = type == PS_TYPE_F32 || type == PS_TYPE_F64;

        cr_assert(ps_quant_takes(PS_VALUES_RAW, type));
        FOR_EACH_AS(as)
        {
            cr_assert_eq(ps_quant_takes(as, type), is_float);
        }
    }
    cr_assert_not(ps_quant_takes((ps_values_as_t)7, PS_TYPE_F32));
}

Test(quant, sizes_are_codes_and_heads_of_blocks)
{
    uint64_t size = 0;

    cr_assert(ps_quant_size(PS_VALUES_RAW, PS_TYPE_F64, 3, &size));
    cr_assert_eq(size, 24);
    cr_assert(ps_quant_size(PS_VALUES_F16, PS_TYPE_F64, 1025, &size));
    cr_assert_eq(size, 2050);
    cr_assert(ps_quant_size(PS_VALUES_FIXED3, PS_TYPE_F32, 1024, &size));
    cr_assert_eq(size, 16 + 3072);
    cr_assert(ps_quant_size(PS_VALUES_FIXED1, PS_TYPE_F32, 1025, &size));
    cr_assert_eq(size, 32 + 1025);
    cr_assert(ps_quant_size(PS_VALUES_FIXED4, PS_TYPE_F32, 0, &size));
    cr_assert_eq(size, 0);
    cr_assert_not(ps_quant_size(PS_VALUES_FIXED1, PS_TYPE_F32, UINT64_MAX, &size));
    cr_assert_not(ps_quant_size(PS_VALUES_F16, PS_TYPE_F32, UINT64_MAX / 2 + 1, &size));
}

/* Every 16-bit float that is a number, as f32 and as f64. */
static void assert_halves_stay(ps_values_as_t as, ps_type_t type)
{
    PSD_AUTO(ps_free_at) uint16_t *codes = ps_alloc(N_HALVES, sizeof *codes);
    PSD_AUTO(ps_free_at) uint16_t *again = ps_alloc(N_HALVES, sizeof *again);
    PSD_AUTO(ps_free_at)
    uint8_t *values = ps_alloc(N_HALVES, ps_type_size(type));
    uint32_t specials = as == PS_VALUES_F16 ? 0x7C00 : 0x7F80;
    size_t n = 0;

    for (uint32_t code = 0; code < N_HALVES; code++) {
        if ((code & specials) != specials) {
            codes[n++] = (uint16_t)code;
        }
    }
    cr_assert_eq(ps_quant_decode(as, type, (ps_bytes_t){(uint8_t *)codes, n * 2}, n, values, NULL),
                 PSD_OK);
    cr_assert(ps_quant_encode(as, type, values, n, 1, (uint8_t *)again));
    cr_assert_arr_eq(codes, again, n * 2);
}

Test(quant, halves_stay_as_they_are)
{
    assert_halves_stay(PS_VALUES_F16, PS_TYPE_F32);
    assert_halves_stay(PS_VALUES_F16, PS_TYPE_F64);
    assert_halves_stay(PS_VALUES_BF16, PS_TYPE_F32);
    assert_halves_stay(PS_VALUES_BF16, PS_TYPE_F64);
}

Test(quant, halves_are_the_published_ones)
{
    static const struct {
        ps_values_as_t as;
        uint16_t code;
        float value;
    } known[] = {
        {PS_VALUES_F16, 0x3C00, 1.0F},
        {PS_VALUES_F16, 0xC000, -2.0F},
        {PS_VALUES_F16, 0x7BFF, 65504.0F},
        {PS_VALUES_F16, 0x0001, 0x1p-24F},
        {PS_VALUES_F16, 0x0400, 0x1p-14F},
        {PS_VALUES_F16, 0x3555, 0.333251953125F},
        {PS_VALUES_F16, 0x7C00, INFINITY},
        {PS_VALUES_F16, 0xFC00, -INFINITY},
        {PS_VALUES_BF16, 0x3F80, 1.0F},
        {PS_VALUES_BF16, 0xC049, -3.140625F},
        {PS_VALUES_BF16, 0x7F7F, 255 * 0x1p120F},
        {PS_VALUES_BF16, 0x7F80, INFINITY},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        float value = 0;

        cr_assert_eq(ps_quant_decode(known[i].as, PS_TYPE_F32,
                                     (ps_bytes_t){(const uint8_t *)&known[i].code, 2}, 1,
                                     (uint8_t *)&value, NULL),
                     PSD_OK);
        cr_assert_eq(value, known[i].value, "code %zu", i);
    }
}

Test(quant, not_a_number_stays_so_in_halves)
{
    static const uint16_t codes[] = {0x7C01, 0xFE00, 0x7FFF};

    for (size_t i = 0; i < 3; i++) {
        ps_bytes_t coded = {(const uint8_t *)&codes[i], 2};
        double value = 0;

        cr_assert_eq(ps_quant_decode(PS_VALUES_F16, PS_TYPE_F64, coded, 1, (uint8_t *)&value, NULL),
                     PSD_OK);
        cr_assert(isnan(value));
    }
}

/* A value in the midst of a block that could be written otherwise. */
static bool can_be_written(ps_values_as_t as, ps_type_t type, double value)
{
    double values[5] = {0.5, 1, 0, 2, 3};
    uint8_t raw[5 * 8];
    uint8_t coded[64];

    values[2] = value;
    kit_store(type, values, 5, raw);
    return ps_quant_encode(as, type, raw, 5, 1, coded);
}

Test(quant, what_cannot_be_written_is_refused)
{
    FOR_EACH_AS(as)
    {
        for (ps_type_t type = PS_TYPE_F32; type <= PS_TYPE_F64; type++) {
            cr_assert(can_be_written(as, type, 0));
            cr_assert_not(can_be_written(as, type, (double)NAN));
            cr_assert_not(can_be_written(as, type, (double)INFINITY));
            cr_assert_not(can_be_written(as, type, (double)-INFINITY));
        }
    }
    cr_assert(can_be_written(PS_VALUES_F16, PS_TYPE_F32, 65504));
    cr_assert_not(can_be_written(PS_VALUES_F16, PS_TYPE_F32, 65505));
    cr_assert_not(can_be_written(PS_VALUES_F16, PS_TYPE_F64, -65504.0001));
    cr_assert(can_be_written(PS_VALUES_BF16, PS_TYPE_F32, 255 * 0x1p120));
    cr_assert_not(can_be_written(PS_VALUES_BF16, PS_TYPE_F32, 0x1.FFp127));
    cr_assert_not(can_be_written(PS_VALUES_BF16, PS_TYPE_F64, 1e300));
    cr_assert(can_be_written(PS_VALUES_FIXED2, PS_TYPE_F32, -0x1p126));
    cr_assert_not(can_be_written(PS_VALUES_FIXED2, PS_TYPE_F32, 0x1.8p126));
    cr_assert(can_be_written(PS_VALUES_FIXED4, PS_TYPE_F64, 0x1p1000));
    cr_assert_not(can_be_written(PS_VALUES_FIXED4, PS_TYPE_F64, 0x1p1001));
}

Test(quant, block_whose_values_hardly_differ_is_refused)
{
    double values[2] = {0x1p-1000, 0x1p-1001};
    float narrow[2] = {0x1p-149F, 0x1p-148F};
    uint8_t coded[64];

    cr_assert_not(ps_quant_encode(PS_VALUES_FIXED4, PS_TYPE_F64, (uint8_t *)values, 2, 1, coded));
    cr_assert(ps_quant_encode(PS_VALUES_FIXED4, PS_TYPE_F32, (uint8_t *)narrow, 2, 1, coded));
}

/* All lengths around a block's and a pair's end: nothing is written behind. */
Test(quant, every_length_comes_back_and_nothing_else_is_touched)
{
    static const size_t lengths[] = {1, 2, 3, 7, 8, 9, 1023, 1024, 1025, 2049};

    FOR_EACH_AS(as)
    {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            kit_round_t round = kit_round_new(as, PS_TYPE_F32, lengths[i]);

            kit_fill_uniform(&round, -1, 1, i);
            cr_assert(kit_encode(&round, 1));
            kit_decode(&round);
            for (size_t k = 0; k < lengths[i]; k++) {
                cr_assert_leq(fabs(kit_error(&round, k)), kit_bound(&round, -1, 1, k));
            }
            kit_round_done(&round);
        }
    }
}

Test(quant, equal_values_and_zeros_stay_in_fixed_point)
{
    for (ps_values_as_t as = PS_VALUES_FIXED1; as <= PS_VALUES_FIXED4; as++) {
        kit_round_t round = kit_round_new(as, PS_TYPE_F64, 3000);

        kit_fill_uniform(&round, -1.7, 0.3, as);
        for (size_t i = 0; i < 3000; i++) {
            if (i >= 1024 && i < 2048) {
                kit_set(&round, i, 0.1);
            } else if (i % 3 == 0) {
                kit_set(&round, i, 0);
            }
        }
        cr_assert(kit_encode(&round, 1));
        kit_decode(&round);
        for (size_t i = 0; i < 3000; i++) {
            if ((i >= 1024 && i < 2048) || i % 3 == 0) {
                cr_assert_eq(kit_error(&round, i), 0);
            }
        }
        kit_round_done(&round);
    }
}

static void assert_refused(const double head[2], ps_type_t type, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint8_t coded[1024 + 16 + 16 + 1] = {0};
    uint8_t values[1025 * 8];

    ps_store_f64(coded + 1024 + 16, head[0]);
    ps_store_f64(coded + 1024 + 24, head[1]);
    cr_assert_eq(ps_quant_decode(PS_VALUES_FIXED1, type, (ps_bytes_t){coded, sizeof coded}, 1025,
                                 values, err),
                 PSD_PROTO);
    cr_assert_str_eq(psd_error_text(err), text);
}

Test(quant, hostile_heads_of_blocks_are_refused)
{
    assert_refused((double[]){0, -1}, PS_TYPE_F32,
                   "block 1 of fixed-point values begins at 0 in steps of -1; "
                   "f32 cannot hold its values");
    assert_refused((double[]){(double)NAN, 0}, PS_TYPE_F64,
                   "block 1 of fixed-point values begins at nan in steps of "
                   "0; f64 cannot hold its values");
    assert_refused((double[]){0, (double)INFINITY}, PS_TYPE_F64,
                   "block 1 of fixed-point values begins at 0 in steps of "
                   "inf; f64 cannot hold its values");
    assert_refused((double[]){0, 1e37}, PS_TYPE_F32,
                   "block 1 of fixed-point values begins at 0 in steps of "
                   "1e+37; f32 cannot hold its values");
    assert_refused((double[]){-1e39, 1}, PS_TYPE_F32,
                   "block 1 of fixed-point values begins at -1e+39 in steps "
                   "of 1; f32 cannot hold its values");
}

Test(quant, bytes_of_another_length_are_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint8_t coded[7] = {0};
    float values[3];

    cr_assert_eq(ps_quant_decode(PS_VALUES_BF16, PS_TYPE_F32, (ps_bytes_t){coded, sizeof coded}, 3,
                                 (uint8_t *)values, err),
                 PSD_PROTO);
    cr_assert_str_eq(psd_error_text(err), "3 values are written in 7 bytes; needed: 6");
}

Test(quant, same_seed_same_bytes)
{
    FOR_EACH_AS(as)
    {
        kit_round_t one = kit_round_new(as, PS_TYPE_F32, 1500);
        kit_round_t other = kit_round_new(as, PS_TYPE_F32, 1500);

        kit_fill_uniform(&one, 0.1, 5, 3);
        kit_fill_uniform(&other, 0.1, 5, 3);
        cr_assert(kit_encode(&one, 7) && kit_encode(&other, 7));
        cr_assert_arr_eq(one.coded, other.coded, one.coded_size);
        cr_assert(kit_encode(&other, 8));
        cr_assert_neq(memcmp(one.coded, other.coded, one.coded_size), 0);
        kit_round_done(&one);
        kit_round_done(&other);
    }
}
