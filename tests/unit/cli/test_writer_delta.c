/* SPDX-License-Identifier: Apache-2.0 */
/* cli/tables/writer_delta.h: what must be added. */
#include "cli/tables/writer_delta.h"

#include <criterion/criterion.h>
#include <stdint.h>

Test(writer_delta, integers_wrap_and_are_certain)
{
    int64_t wanted[] = {INT64_MIN, 5, 0};
    int64_t current[] = {INT64_MAX, 7, -3};
    int64_t deltas[3];

    cr_assert(ps_writer_delta(PS_TYPE_I64, wanted, current, 3, deltas));
    cr_assert_eq(deltas[0], 1);
    cr_assert_eq(deltas[1], -2);
    cr_assert_eq(deltas[2], 3);
}

Test(writer_delta, floats_are_certain_only_from_zero)
{
    float wanted[] = {0.1F, 1.0F};
    float current[] = {0, 0};
    float deltas[2];
    double wide_wanted[] = {0.1};
    double wide_current[] = {0.3};
    double wide_deltas[1];

    cr_assert(ps_writer_delta(PS_TYPE_F32, wanted, current, 2, deltas));
    cr_assert_eq(deltas[0], 0.1F);
    current[1] = 3.0F;
    cr_assert_not(ps_writer_delta(PS_TYPE_F32, wanted, current, 2, deltas));
    cr_assert_eq(deltas[1], -2.0F);
    cr_assert_not(ps_writer_delta(PS_TYPE_F64, wide_wanted, wide_current, 1, wide_deltas));
}
