/* SPDX-License-Identifier: Apache-2.0 */
/* base/rng.h: against the numbers that the authors published. */
#include "base/rng.h"

#include <criterion/criterion.h>

static void check_philox(uint64_t seed, uint64_t row, uint64_t column, const uint32_t wanted[4])
{
    uint32_t words[4] = {0};

    ps_rng_at(seed, row, column, words);
    cr_assert_arr_eq(words, wanted, sizeof words);
}

/* Random123's kat_vectors, the rows "philox4x32 10". */
Test(rng, philox_gives_the_known_answers)
{
    static const uint32_t zeros[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    static const uint32_t ones[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
    static const uint32_t digits_of_pi[] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};

    check_philox(0, 0, 0, zeros);
    check_philox(UINT64_MAX, UINT64_MAX, UINT64_MAX, ones);
    check_philox(UINT64_C(0x299f31d0a4093822), UINT64_C(0x85a308d3243f6a88),
                 UINT64_C(0x0370734413198a2e), digits_of_pi);
}

/* Five numbers from seed 1234567, as the reference program prints them. */
Test(rng, splitmix_gives_the_known_answers)
{
    static const uint64_t wanted[] = {UINT64_C(6457827717110365317), UINT64_C(3203168211198807973),
                                      UINT64_C(9817491932198370423), UINT64_C(4593380528125082431),
                                      UINT64_C(16408922859458223821)};
    ps_rng_t rng = {.state = 1234567};

    for (size_t i = 0; i < 5; i++) {
        cr_assert_eq(ps_rng_u64(&rng), wanted[i]);
    }
}

Test(rng, same_seed_same_numbers)
{
    ps_rng_t a = {.state = 42};
    ps_rng_t b = {.state = 42};

    for (int i = 0; i < 100; i++) {
        cr_assert_eq(ps_rng_below(&a, 1000), ps_rng_below(&b, 1000));
    }
}

Test(rng, below_stays_below_and_reaches_everything)
{
    ps_rng_t rng = {.state = 1};
    int seen[6] = {0};

    cr_assert_eq(ps_rng_below(&rng, 1), 0);
    for (int i = 0; i < 6000; i++) {
        seen[ps_rng_below(&rng, 6)]++;
    }
    for (int i = 0; i < 6; i++) {
        /* 1000 expected, standard deviation 29. */
        cr_assert_gt(seen[i], 850);
        cr_assert_lt(seen[i], 1150);
    }
}

Test(rng, below_a_large_bound_is_without_bias)
{
    ps_rng_t rng = {.state = 1};
    uint64_t bound = UINT64_C(3) << 62;
    int low = 0;

    /* Plain modulo would put half of all numbers into the lowest third. */
    for (int i = 0; i < 3000; i++) {
        uint64_t value = ps_rng_below(&rng, bound);

        cr_assert_lt(value, bound);
        low += value < UINT64_C(1) << 62;
    }
    cr_assert_gt(low, 850);
    cr_assert_lt(low, 1150);
}

Test(rng, f64_lies_in_zero_to_one)
{
    ps_rng_t rng = {.state = 7};
    double sum = 0;

    for (int i = 0; i < 10000; i++) {
        double value = ps_rng_f64(&rng);

        cr_assert_geq(value, 0.0);
        cr_assert_lt(value, 1.0);
        sum += value;
    }
    cr_assert_float_eq(sum / 10000, 0.5, 0.02);
}
