/* SPDX-License-Identifier: Apache-2.0 */
/* model/updaters/exact_math.h: near libm everywhere, and the same bits for ever. */
#include "model/updaters/exact_math.h"

#include <criterion/criterion.h>
#include <math.h>

#include "base/rng.h"

#define N_DRAWS 200000

Test(exact_math, log_is_within_1e15_of_libm)
{
    ps_rng_t rng = {7};

    for (int i = 0; i < N_DRAWS; i++) {
        double x = 1 - ps_rng_f64(&rng);
        double want = log(x);

        cr_assert_leq(fabs(ps_exact_log(x) - want), 1e-15 * (1 + fabs(want)), "log(%a)", x);
    }
}

Test(exact_math, log_holds_at_its_ends)
{
    cr_assert_eq(ps_exact_log(1), 0);
    cr_assert_leq(fabs(ps_exact_log(0x1p-53) + 53 * log(2)), 1e-13);
    cr_assert_leq(fabs(ps_exact_log(0x1p-1022) + 1022 * log(2)), 1e-12);
}

Test(exact_math, cosine_is_within_1e15_of_libm)
{
    ps_rng_t rng = {8};

    for (int i = 0; i < N_DRAWS; i++) {
        double x = ps_rng_f64(&rng);
        double want = cos(2 * 3.14159265358979323846 * x);

        cr_assert_leq(fabs(ps_exact_cos_turn(x) - want), 2e-15, "cos(%a)", x);
    }
}

Test(exact_math, cosine_is_exact_at_quarter_turns)
{
    cr_assert_eq(ps_exact_cos_turn(0), 1);
    cr_assert_eq(ps_exact_cos_turn(0.25), 0);
    cr_assert_eq(ps_exact_cos_turn(0.5), -1);
    cr_assert_eq(ps_exact_cos_turn(0.75), 0);
    cr_assert_leq(ps_exact_cos_turn(0x1.fffffffffffffp-1), 1);
}

/* A change here changes the first values of every table with normal init. */
Test(exact_math, bits_are_pinned)
{
    cr_assert_eq(ps_exact_log(0.3), -0x1.34378fcbda72p+0);
    cr_assert_eq(ps_exact_log(0.7), -0x1.6d3c324e13f4fp-2);
    cr_assert_eq(ps_exact_cos_turn(0.1), 0x1.9e3779b97f4a8p-1);
    cr_assert_eq(ps_exact_cos_turn(0.45), -0x1.e6f0e134455p-1);
}
