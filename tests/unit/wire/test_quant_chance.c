/* SPDX-License-Identifier: Apache-2.0 */
/* wire/filters/quant.h: rounding by chance. Seeds are fixed, so that what holds within
 * three standard deviations here holds on every run. */
#include "unit/wire/quant_kit.h"

#define N_SAMPLES 1000000
#define LO (-0.75) /* the ends of every block */
#define HI 1.5

/* The two numbers that can be written next to x, below and above; the same one
 * twice when x itself can. */
typedef struct neighbours {
    double below;
    double above;
} neighbours_t;

static neighbours_t half_neighbours(ps_values_as_t as, double x)
{
    int fraction = as == PS_VALUES_F16 ? 10 : 7;
    int least = as == PS_VALUES_F16 ? -14 : -126;
    int exponent = 0;
    double unit = 0;

    (void)frexp(x, &exponent);
    exponent = exponent - 1 > least ? exponent - 1 : least;
    unit = ldexp(1, exponent - fraction);
    return (neighbours_t){floor(x / unit) * unit, ceil(x / unit) * unit};
}

/* From the head of the block that the value lies in. */
static neighbours_t fixed_neighbours(const kit_round_t *round, size_t i, double x)
{
    size_t width = 1 + (size_t)round->as - PS_VALUES_FIXED1;
    size_t block = PS_QUANT_BLOCK * width + 16;
    const uint8_t *head = round->coded + i / PS_QUANT_BLOCK * block;
    double lo = ps_load_f64(head);
    double step = ps_load_f64(head + 8);
    double t = (x - lo) / step;

    return (neighbours_t){lo + floor(t) * step, lo + ceil(t) * step};
}

static neighbours_t neighbours_of(const kit_round_t *round, size_t i, double x)
{
    return round->as <= PS_VALUES_BF16 ? half_neighbours(round->as, x)
                                       : fixed_neighbours(round, i, x);
}

/* As the type has it. */
static double in_type(ps_type_t type, double x)
{
    return type == PS_TYPE_F32 ? (double)(float)x : x;
}

static void fill(kit_round_t *round, double x)
{
    for (size_t i = 0; i < round->n; i++) {
        kit_set(round, i, i % PS_QUANT_BLOCK == 0 ? LO : i % PS_QUANT_BLOCK == 1 ? HI : x);
    }
}

/* Mean of what is read where x was written, and how often it is each of its
 * neighbours. */
static void assert_unbiased(kit_round_t *round, double x, uint64_t seed)
{
    double sum = 0;
    double n = 0;
    double width = 0;
    double share = 0;
    double sigma = 0;
    neighbours_t near = {0};

    x = in_type(round->type, x);
    fill(round, x);
    cr_assert(kit_encode(round, seed));
    kit_decode(round);
    near = neighbours_of(round, 2, x);
    width = near.above - near.below;
    for (size_t i = 0; i < round->n; i++) {
        double back = kit_load(round->type, round->back, i);

        if (i % PS_QUANT_BLOCK > 1) {
            cr_assert(back == in_type(round->type, near.below) ||
                          back == in_type(round->type, near.above),
                      "%.17g is read as %.17g, not %.17g or %.17g", x, back, near.below,
                      near.above);
            sum += back - x;
            n += 1;
        }
    }
    share = width > 0 ? (x - near.below) / width : 0;
    sigma = width * sqrt(share * (1 - share) / n);
    /* f32 rounds once more when what is read is stored */
    cr_assert_leq(
        fabs(sum / n), 3 * sigma + (round->type == PS_TYPE_F32 ? fabs(x) * 0x1p-24 : 1e-16),
        "as %d: %.17g comes back %g off on average, sigma %g", round->as, x, sum / n, sigma);
}

#define N_WHOLE (N_SAMPLES / (PS_QUANT_BLOCK - 2) + 1)

Test(quant_chance, mean_of_a_million_is_the_value_itself)
{
    static const double values[] = {0.1, 1.0 / 3, -0.7, 1.2345678, 1e-3};

    FOR_EACH_AS(as)
    {
        for (ps_type_t type = PS_TYPE_F32; type <= PS_TYPE_F64; type++) {
            kit_round_t round = kit_round_new(as, type, N_WHOLE * PS_QUANT_BLOCK);

            for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
                assert_unbiased(&round, values[i], (uint64_t)as * 100 + i);
            }
            kit_round_done(&round);
        }
    }
}

Test(quant_chance, mean_of_tiny_halves_is_the_value_itself)
{
    kit_round_t f16 = kit_round_new(PS_VALUES_F16, PS_TYPE_F64, N_WHOLE * PS_QUANT_BLOCK);
    kit_round_t bf16 = kit_round_new(PS_VALUES_BF16, PS_TYPE_F64, N_WHOLE * PS_QUANT_BLOCK);

    assert_unbiased(&f16, 0x1.23p-16, 1);
    assert_unbiased(&f16, 0x1p-27, 2);
    assert_unbiased(&f16, 0x1.FFFFp-15, 3);
    assert_unbiased(&bf16, 0x1.2345p-130, 4);
    assert_unbiased(&bf16, 0x1p-140, 5);
    kit_round_done(&f16);
    kit_round_done(&bf16);
}

/* A mean can hide a chance that favours both ends: the square of the error has
 * to be the one of a coin with the share's weight. */
Test(quant_chance, chance_is_the_share_of_the_way_to_the_next)
{
    kit_round_t round = kit_round_new(PS_VALUES_FIXED1, PS_TYPE_F64, N_WHOLE * PS_QUANT_BLOCK);
    double x = 0.3;
    double n = 0;
    double above = 0;
    double share = 0;
    neighbours_t near = {0};

    fill(&round, x);
    cr_assert(kit_encode(&round, 5));
    kit_decode(&round);
    near = neighbours_of(&round, 2, x);
    share = (x - near.below) / (near.above - near.below);
    for (size_t i = 0; i < round.n; i++) {
        if (i % PS_QUANT_BLOCK > 1) {
            above += kit_load(round.type, round.back, i) > x;
            n += 1;
        }
    }
    cr_assert(share > 0.01 && share < 0.99);
    cr_assert_leq(fabs(above / n - share), 3 * sqrt(share * (1 - share) / n));
    kit_round_done(&round);
}

/* Neighbouring places must not be rounded alike: the sum over a block would be
 * off by much more than chance allows. */
Test(quant_chance, places_are_rounded_independently)
{
    kit_round_t round = kit_round_new(PS_VALUES_BF16, PS_TYPE_F32, 1000 * PS_QUANT_BLOCK);
    double sum_of_squares = 0;
    double expected = 0;
    double x = 0;

    for (size_t i = 0; i < round.n; i++) {
        kit_set(&round, i, 1.003);
    }
    cr_assert(kit_encode(&round, 11));
    kit_decode(&round);
    x = kit_load(PS_TYPE_F32, round.values, 0);
    for (size_t first = 0; first < round.n; first += PS_QUANT_BLOCK) {
        double sum = 0;

        for (size_t i = 0; i < PS_QUANT_BLOCK; i++) {
            sum += kit_error(&round, first + i);
        }
        sum_of_squares += sum * sum;
    }
    expected = 1000 * (double)PS_QUANT_BLOCK * (x - 1) * (1 + 0x1p-7 - x);
    /* The variance of a variance of 1000 sums is about 2 / 1000. */
    cr_assert_leq(fabs(sum_of_squares / expected - 1), 3 * sqrt(2.0 / 1000));
    kit_round_done(&round);
}

/* Sizes from the smallest to the greatest: every error within its bound. */
Test(quant_chance, errors_of_all_sizes_are_within_their_bounds)
{
    for (ps_values_as_t as = PS_VALUES_F16; as <= PS_VALUES_BF16; as++) {
        kit_round_t round = kit_round_new(as, PS_TYPE_F64, 100000);
        ps_rng_t rng = {.state = 3};
        int reach = as == PS_VALUES_F16 ? 15 : 126;

        for (size_t i = 0; i < round.n; i++) {
            double x = ldexp(1 + ps_rng_f64(&rng),
                             (int)ps_rng_below(&rng, 2 * (uint64_t)reach + 9) - reach - 9);

            kit_set(&round, i, i % 2 == 0 ? x : -x);
        }
        cr_assert(kit_encode(&round, 1));
        kit_decode(&round);
        for (size_t i = 0; i < round.n; i++) {
            cr_assert_leq(fabs(kit_error(&round, i)), kit_bound(&round, 0, 0, i));
        }
        kit_round_done(&round);
    }
}
