/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "base/alloc.h"
#include "protocol/partition/window.h"
#include "support/fail_alloc.h"

static ps_window_t *window;

static void setup(void)
{
    window = ps_window_new(7);
    cr_assert_not_null(window);
}

static void teardown(void)
{
    ps_window_destroy(&window);
    cr_assert_null(window);
}

TestSuite(window, .init = setup, .fini = teardown);

Test(window, begins_with_seq_one)
{
    cr_expect_eq(ps_window_admit(window, 1), PS_ADMIT_NEXT);
    cr_expect_eq(ps_window_admit(window, 2), PS_ADMIT_GAP);
}

Test(window, what_has_its_end_is_a_duplicate)
{
    ps_window_finish(window, 1);
    cr_expect_eq(ps_window_admit(window, 1), PS_ADMIT_DUPLICATE);
    cr_expect_eq(ps_window_admit(window, 2), PS_ADMIT_NEXT);
}

Test(window, what_is_held_is_queued_and_the_next_may_come)
{
    ps_window_hold(window);
    cr_expect_eq(ps_window_admit(window, 1), PS_ADMIT_QUEUED);
    cr_expect_eq(ps_window_admit(window, 2), PS_ADMIT_NEXT);
    cr_expect_eq(ps_window_admit(window, 3), PS_ADMIT_GAP);
    ps_window_finish(window, 1);
    cr_expect_eq(ps_window_admit(window, 1), PS_ADMIT_DUPLICATE);
    cr_expect_eq(ps_window_admit(window, 2), PS_ADMIT_NEXT);
}

Test(window, a_refusal_uses_up_its_seq_and_is_remembered)
{
    const ps_refusal_t *refusal = NULL;

    cr_assert(ps_window_refuse(window, 1, PSD_RANGE, "row 9 is outside 0..3", 4));
    cr_expect_eq(ps_window_admit(window, 1), PS_ADMIT_DUPLICATE);
    refusal = ps_window_refusal(window, 1);
    cr_assert_not_null(refusal);
    cr_expect_eq(refusal->status, PSD_RANGE);
    cr_expect_str_eq(refusal->text, "row 9 is outside 0..3");
    cr_expect_null(ps_window_refusal(window, 2));
}

Test(window, refusals_older_than_what_may_be_in_flight_are_dropped)
{
    for (uint64_t seq = 1; seq <= 100; seq++) {
        cr_assert(ps_window_refuse(window, seq, PSD_SHAPE, "wide", 4));
    }
    cr_expect_null(ps_window_refusal(window, 95));
    cr_expect_not_null(ps_window_refusal(window, 96));
    cr_expect_eq(window->n_refusals, 5);
    cr_expect(ps_window_is_unsure(window, 95));
    cr_expect_not(ps_window_is_unsure(window, 96));
}

static psd_status_t refuse_one(void *fixture)
{
    PSD_AUTO(ps_window_destroy) ps_window_t *each = ps_window_new(1);

    (void)fixture;
    if (each == NULL || !ps_window_refuse(each, 1, PSD_SHAPE, "wide", 4)) {
        cr_assert(each == NULL || ps_window_admit(each, 1) == PS_ADMIT_NEXT);
        return PSD_NOMEM;
    }
    cr_assert_eq(ps_window_admit(each, 1), PS_ADMIT_DUPLICATE);
    cr_assert_str_eq(ps_window_refusal(each, 1)->text, "wide");
    return PSD_OK;
}

Test(window, survives_every_failed_allocation)
{
    cr_assert_null(fail_alloc_sweep(refuse_one, NULL));
}
