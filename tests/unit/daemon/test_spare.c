/* SPDX-License-Identifier: Apache-2.0 */
/* When free memory goes back to the system. */
#include <criterion/criterion.h>

#include "daemon/spare.h"

#define MIB ((uint64_t)1 << 20)

/* So many looks that find as much; how many of them say that it is due. */
static int looks(ps_spare_t *spare, int n, uint64_t bytes)
{
    int n_due = 0;

    for (int i = 0; i < n; i++) {
        n_due += ps_spare_is_due(spare, bytes) ? 1 : 0;
    }
    return n_due;
}

Test(spare, what_is_kept_is_not_given_back)
{
    ps_spare_t spare = {0};

    cr_assert_eq(looks(&spare, 10, 0), 0);
    cr_assert_eq(looks(&spare, 10, 100 * MIB), 0);
    cr_assert_eq(looks(&spare, 10, 100 * MIB - PS_SPARE_BYTES + 1), 0);
}

Test(spare, is_due_once_after_a_while_of_less)
{
    ps_spare_t spare = {0};

    cr_assert_eq(looks(&spare, 1, 100 * MIB), 0);
    cr_assert_eq(looks(&spare, PS_SPARE_LOOKS - 1, 10 * MIB), 0, "too early");
    cr_assert_eq(looks(&spare, 1, 10 * MIB), 1);
    cr_assert_eq(looks(&spare, 10, 10 * MIB), 0, "it has gone");
    cr_assert_eq(looks(&spare, 10, 0), 1, "10 MiB more are free");
}

/* A job that pushes now and then: what it frees it needs again. */
Test(spare, is_not_due_while_much_comes_again_and_again)
{
    ps_spare_t spare = {0};

    for (int i = 0; i < 100; i++) {
        cr_assert_eq(looks(&spare, 1, 100 * MIB), 0);
        cr_assert_eq(looks(&spare, PS_SPARE_LOOKS - 1, 0), 0);
    }
}
