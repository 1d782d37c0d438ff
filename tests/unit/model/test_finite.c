/* SPDX-License-Identifier: Apache-2.0 */
/* model/updaters/finite.h: one bad value anywhere is seen, at any alignment. */
#include "model/updaters/finite.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/cursor.h"

#define N_VALUES 37 /* more than any vector, and not a multiple of one */

Test(finite, sees_every_bad_f32)
{
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    uint8_t bytes[N_VALUES * 4 + 1];

    for (size_t at = 0; at < N_VALUES; at++) {
        for (size_t k = 0; k < 4; k++) {
            memset(bytes, 0, sizeof bytes);
            cr_assert(ps_finite_all(PS_TYPE_F32, bytes + 1, N_VALUES));
            ps_store_f32(bytes + 1 + 4 * at, bad[k]);
            cr_assert_not(ps_finite_all(PS_TYPE_F32, bytes + 1, N_VALUES));
            cr_assert(ps_finite_all(PS_TYPE_F32, bytes + 1, at));
        }
    }
}

Test(finite, sees_every_bad_f64)
{
    const double bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    uint8_t bytes[N_VALUES * 8 + 1];

    for (size_t at = 0; at < N_VALUES; at++) {
        for (size_t k = 0; k < 4; k++) {
            memset(bytes, 0, sizeof bytes);
            cr_assert(ps_finite_all(PS_TYPE_F64, bytes + 1, N_VALUES));
            ps_store_f64(bytes + 1 + 8 * at, bad[k]);
            cr_assert_not(ps_finite_all(PS_TYPE_F64, bytes + 1, N_VALUES));
            cr_assert(ps_finite_all(PS_TYPE_F64, bytes + 1, at));
        }
    }
}

Test(finite, the_greatest_and_the_least_are_finite)
{
    uint8_t bytes[8];

    ps_store_f32(bytes, FLT_MAX);
    ps_store_f32(bytes + 4, -0x1p-149f);
    cr_assert(ps_finite_all(PS_TYPE_F32, bytes, 2));
    ps_store_f64(bytes, -DBL_MAX);
    cr_assert(ps_finite_all(PS_TYPE_F64, bytes, 1));
    ps_store_f64(bytes, -0.0);
    cr_assert(ps_finite_all(PS_TYPE_F64, bytes, 1));
}

Test(finite, integers_always_are)
{
    uint8_t bytes[16];

    memset(bytes, 0xff, sizeof bytes);
    cr_assert(ps_finite_all(PS_TYPE_I32, bytes, 4));
    cr_assert(ps_finite_all(PS_TYPE_I64, bytes, 2));
}
