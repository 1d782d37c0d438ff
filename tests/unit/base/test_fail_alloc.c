/* SPDX-License-Identifier: Apache-2.0 */
/* support/fail_alloc.h: the helper that other rooms trust must itself fail
 * what is wrong. */
#include "support/fail_alloc.h"

#include <criterion/criterion.h>

#include "base/alloc.h"

static psd_status_t two_blocks(void *fixture)
{
    PSD_AUTO(ps_free_at) char *a = ps_strdup("a");
    PSD_AUTO(ps_free_at) char *b = NULL;
    int *n_runs = fixture;

    (*n_runs)++;
    if (a == NULL) {
        return PSD_NOMEM;
    }
    b = ps_strdup("b");
    return b == NULL ? PSD_NOMEM : PSD_OK;
}

static psd_status_t hides_failures(void *fixture)
{
    PSD_AUTO(ps_free_at) char *a = ps_strdup("a");

    (void)a;
    (void)fixture;
    return PSD_OK;
}

static psd_status_t fails_without_reason(void *fixture)
{
    (void)fixture;
    return PSD_NOMEM;
}

static psd_status_t allocates_nothing(void *fixture)
{
    (void)fixture;
    return PSD_OK;
}

Test(fail_alloc, sweep_fails_each_allocation_once)
{
    int n_runs = 0;

    cr_assert_null(fail_alloc_sweep(two_blocks, &n_runs));
    cr_assert_eq(n_runs, 3);
}

Test(fail_alloc, sweep_complains_about_a_hidden_failure)
{
    cr_assert_str_eq(fail_alloc_sweep(hides_failures, NULL),
                     "allocation 0 failed, but the step returned OK");
}

Test(fail_alloc, sweep_complains_about_a_failure_without_cause)
{
    cr_assert_str_eq(fail_alloc_sweep(fails_without_reason, NULL),
                     "allocation 0 was not made, but the step returned NOMEM");
}

Test(fail_alloc, sweep_complains_when_there_is_nothing_to_fail)
{
    cr_assert_str_eq(fail_alloc_sweep(allocates_nothing, NULL), "the step allocates nothing");
}

Test(fail_alloc, only_the_asked_for_call_fails)
{
    void *blocks[3] = {NULL};

    fail_alloc_at(1);
    for (int i = 0; i < 3; i++) {
        blocks[i] = ps_alloc(1, 1);
    }
    cr_assert_not_null(blocks[0]);
    cr_assert_null(blocks[1]);
    cr_assert_not_null(blocks[2]);
    cr_assert_eq(fail_alloc_calls(), 3);
    ps_free(blocks[0]);
    ps_free(blocks[2]);
}
