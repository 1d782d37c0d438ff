/* SPDX-License-Identifier: Apache-2.0 */
/* model/tables/skew.h: which part of a table is too large. */
#include "model/tables/skew.h"

#include <criterion/criterion.h>

#define N 8

static bool find(const uint64_t sizes[N], size_t n, size_t *ret_part, uint64_t *ret_sum)
{
    return ps_skew_find(sizes, n, PS_SKEW_ROWS_MIN, ret_part, ret_sum);
}

Test(skew, more_than_three_shares_are_too_much)
{
    uint64_t sizes[N] = {[2] = 3000, [0] = 5000};
    size_t part = 99;
    uint64_t sum = 0;

    /* A share is 1000; exactly three of them are not too much. */
    cr_assert(find(sizes, N, &part, &sum));
    cr_expect(part == 0 && sum == 8000);
    sizes[0] = 3000;
    sizes[1] = 2000;
    part = 99;
    cr_expect_not(find(sizes, N, &part, &sum));
    cr_expect_eq(part, 99);
    sizes[2] = 3001;
    cr_assert(find(sizes, N, &part, &sum));
    cr_expect(part == 2 && sum == 8001);
}

Test(skew, small_parts_are_no_skew)
{
    uint64_t sizes[N] = {[7] = PS_SKEW_ROWS_MIN - 1};
    size_t part = 0;
    uint64_t sum = 0;

    cr_expect_not(find(sizes, N, &part, &sum));
    sizes[7]++;
    cr_assert(find(sizes, N, &part, &sum));
    cr_expect(part == 7 && sum == PS_SKEW_ROWS_MIN);
}

Test(skew, few_parts_cannot_have_more_than_three_shares)
{
    const uint64_t sizes[N] = {1 << 20};
    size_t part = 0;
    uint64_t sum = 0;

    for (size_t n = 0; n <= 3; n++) {
        cr_expect_not(find(sizes, n, &part, &sum), "%zu", n);
    }
    cr_expect(find(sizes, 4, &part, &sum));
}

Test(skew, sums_that_do_not_fit_do_not_hurt)
{
    const uint64_t sizes[N] = {UINT64_MAX};
    size_t part = 1;
    uint64_t sum = 0;

    cr_assert(find(sizes, N, &part, &sum));
    cr_expect_eq(part, 0);
}
