/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "cli/run/pace.h"

#define MB (UINT64_C(1) << 20)

static void assert_reads(const ps_pace_t *pace, const char *text)
{
    char here[PS_PACE_TEXT_SIZE];

    ps_pace_format(pace, here);
    cr_assert_str_eq(here, text);
}

Test(pace, knows_no_speed_at_first)
{
    ps_pace_t pace = {0};

    ps_pace_look(&pace, 100 * MB, 1);
    assert_reads(&pace, "0 B of 100 MiB");
    ps_pace_look(&pace, 90 * MB, 1.1);
    assert_reads(&pace, "10 MiB of 100 MiB");
}

Test(pace, says_how_long_the_rest_takes)
{
    ps_pace_t pace = {0};

    ps_pace_look(&pace, 100000000, 1);
    ps_pace_look(&pace, 80000000, 2);
    assert_reads(&pace, "19.1 MiB of 95.4 MiB, 20 MB/s, 4 s left");
    ps_pace_look(&pace, 0, 6);
    cr_assert_float_eq(pace.bytes_s, 20e6, 1);
}

Test(pace, of_something_that_stands_still_falls)
{
    ps_pace_t pace = {0};
    double before = 0;

    ps_pace_look(&pace, 100 * MB, 1);
    ps_pace_look(&pace, 50 * MB, 2);
    before = pace.bytes_s;
    ps_pace_look(&pace, 50 * MB, 3);
    cr_assert_lt(pace.bytes_s, before);
    cr_assert_gt(pace.bytes_s, 0);
}

/* A push into what moves made the bar go back, and the speed negative. */
Test(pace, is_not_below_nothing_when_more_has_come)
{
    ps_pace_t pace = {0};

    ps_pace_look(&pace, 10 * MB, 1);
    ps_pace_look(&pace, 6 * MB, 2);
    ps_pace_look(&pace, 30 * MB, 3);
    cr_assert_eq(pace.total, 34 * MB);
    cr_assert_eq(pace.total - pace.left, 4 * MB);
    cr_assert_geq(pace.bytes_s, 0);
    ps_pace_look(&pace, 0, 4);
    cr_assert_eq(pace.total, 34 * MB);
}

Test(pace, of_nothing_is_done)
{
    ps_pace_t pace = {0};

    ps_pace_look(&pace, 0, 1);
    ps_pace_look(&pace, 0, 2);
    assert_reads(&pace, "0 B of 0 B");
}
