/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "support/fail_alloc.h"
#include "train/values/row_set.h"

#define MANY 10000

static uint64_t nth(size_t i)
{
    return (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15);
}

Test(row_set, numbers_rows_in_the_order_of_their_coming)
{
    ps_row_set_t set = {.n = 0};
    size_t number = 77;

    cr_assert_eq(ps_row_set_find(&set, 5), PS_ROW_NONE);
    for (size_t i = 0; i < MANY; i++) {
        cr_assert(ps_row_set_add(&set, nth(i), &number));
        cr_assert_eq(number, i);
        cr_assert(ps_row_set_add(&set, nth(i / 2), &number));
        cr_assert_eq(number, i / 2);
    }
    cr_assert_eq(set.n, MANY);
    for (size_t i = 0; i < MANY; i++) {
        cr_assert_eq(ps_row_set_find(&set, nth(i)), i);
        cr_assert_eq(set.rows[i], nth(i));
    }
    cr_assert_eq(ps_row_set_find(&set, nth(MANY)), PS_ROW_NONE);
    ps_row_set_done(&set);
}

Test(row_set, is_empty_when_cleared)
{
    ps_row_set_t set = {.n = 0};
    size_t number = 77;

    cr_assert(ps_row_set_add(&set, UINT64_MAX, &number));
    ps_row_set_clear(&set);
    cr_assert_eq(ps_row_set_find(&set, UINT64_MAX), PS_ROW_NONE);
    cr_assert(ps_row_set_add(&set, 0, &number));
    cr_assert_eq(number, 0);
    ps_row_set_done(&set);
}

static psd_status_t fill(void *unused)
{
    ps_row_set_t set = {.n = 0};
    psd_status_t rc = PSD_OK;

    (void)unused;
    for (size_t i = 0; rc == PSD_OK && i < 200; i++) {
        size_t n = set.n;
        size_t number = 0;

        if (!ps_row_set_add(&set, nth(i), &number)) {
            rc = PSD_NOMEM;
            cr_assert_eq(set.n, n);
            cr_assert_eq(ps_row_set_find(&set, nth(i)), PS_ROW_NONE);
        }
        for (size_t k = 0; k < set.n; k++) {
            cr_assert_eq(ps_row_set_find(&set, nth(k)), k);
        }
    }
    ps_row_set_done(&set);
    return rc;
}

Test(row_set, stays_as_it_was_without_memory)
{
    cr_assert_null(fail_alloc_sweep(fill, NULL));
}
