/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/overlay/rates.h"

#include <criterion/criterion.h>

#define MIB (1024u * 1024)

static ps_rates_t *make_rates(uint32_t n_ends, uint64_t expiry)
{
    ps_rates_t *links = NULL;

    cr_assert_eq(ps_rates_new(n_ends, expiry, &links, NULL), PSD_OK);
    return links;
}

Test(rates, are_known_for_expiry_clocks)
{
    ps_rates_t *links = make_rates(3, 5);

    ps_rates_measured(links, 0, 1, 10 * MIB, 1000000, 7);
    cr_assert_float_eq(ps_rates_of(links, 0, 1, 7), 10.0 * MIB, 1);
    cr_assert_float_eq(ps_rates_of(links, 0, 1, 12), 10.0 * MIB, 1);
    cr_assert_eq(ps_rates_of(links, 0, 1, 13), 0);
    cr_assert_eq(ps_rates_of(links, 1, 0, 7), 0);
    /* What is known again begins from nothing. */
    ps_rates_measured(links, 0, 1, MIB, 1000000, 20);
    cr_assert_float_eq(ps_rates_of(links, 0, 1, 20), 1.0 * MIB, 1);
    ps_rates_destroy(&links);
}

Test(rates, younger_bytes_count_more)
{
    ps_rates_t *links = make_rates(2, 5);

    for (int i = 0; i < 10; i++) {
        ps_rates_measured(links, 0, 1, 16 * MIB, 160000, 1);
    }
    ps_rates_measured(links, 0, 1, 16 * MIB, 1600000, 1);
    ps_rates_measured(links, 0, 1, 16 * MIB, 1600000, 1);
    cr_assert_lt(ps_rates_of(links, 0, 1, 1), 20.0 * MIB);
    cr_assert_gt(ps_rates_of(links, 0, 1, 1), 10.0 * MIB);
    ps_rates_destroy(&links);
}

Test(rates, ignores_what_says_nothing)
{
    ps_rates_t *links = make_rates(2, 5);

    ps_rates_measured(links, 0, 1, PS_RATES_MEASURE_BYTES - 1, 10, 1);
    ps_rates_measured(links, 0, 1, MIB, 0, 1);
    ps_rates_measured(links, 0, 0, MIB, 10, 1);
    ps_rates_measured(links, 0, 2, MIB, 10, 1);
    ps_rates_measured(links, 9, 0, MIB, 10, 1);
    cr_assert_eq(ps_rates_of(links, 0, 1, 1), 0);
    ps_rates_destroy(&links);
}

Test(rates, forgets_the_links_of_an_end)
{
    ps_rates_t *links = make_rates(3, 5);

    ps_rates_measured(links, 0, 1, MIB, 1000, 1);
    ps_rates_measured(links, 1, 2, MIB, 1000, 1);
    ps_rates_measured(links, 0, 2, MIB, 1000, 1);
    ps_rates_forget(links, 1);
    cr_assert_eq(ps_rates_of(links, 0, 1, 1), 0);
    cr_assert_eq(ps_rates_of(links, 1, 2, 1), 0);
    cr_assert_gt(ps_rates_of(links, 0, 2, 1), 0);
    ps_rates_destroy(&links);
}

Test(rates, refuses_sizes)
{
    ps_rates_t *links = NULL;

    cr_assert_eq(ps_rates_new(PS_RATES_ENDS_MAX + 1, 5, &links, NULL), PSD_INVALID);
    cr_assert_eq(ps_rates_new(4, 0, &links, NULL), PSD_INVALID);
    cr_assert_null(links);
    ps_rates_destroy(&links);
}
