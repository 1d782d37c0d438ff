/* SPDX-License-Identifier: Apache-2.0 */
/* ps_spin: how long is looked for, and when not at all. */
#include <criterion/criterion.h>

#include "transport/threads/spin.h"

#define MOST_US 100
#define LONGEST_US (PS_SPIN_LONGER * MOST_US)
#define SECOND_NS UINT64_C(1000000000)

/* False: there is one processor, and no spinning. */
static bool can_spin(ps_spin_t *ret_spin)
{
    ps_spin_init(ret_spin, MOST_US);
    return ret_spin->most_us > 0;
}

/* Until its end, which is in vain or for want of a processor. */
static void spin_to_the_end(ps_spin_t *spin)
{
    while (ps_spin_go_on(spin)) {
    }
}

static uint32_t limit_after(ps_spin_t *spin, uint32_t gap_us, uint32_t n_vain, uint32_t work_us)
{
    spin->gap_us = gap_us;
    spin->n_vain = n_vain;
    cr_assert(ps_spin_begin(spin, PS_SPIN_FREE, work_us));
    return spin->limit_us;
}

Test(spin, of_nothing_never_begins)
{
    ps_spin_t spin;

    ps_spin_init(&spin, 0);
    cr_assert_not(ps_spin_begin(&spin, PS_SPIN_FREE, 1000));
    ps_spin_woken(&spin);
    cr_assert_eq(spin.gap_us, 0);
}

Test(spin, looks_for_twice_a_short_gap)
{
    ps_spin_t spin;

    if (!can_spin(&spin)) {
        return;
    }
    cr_assert_eq(limit_after(&spin, 0, 0, 0), MOST_US);
    cr_assert_eq(limit_after(&spin, MOST_US / 4, 0, 0), MOST_US);
    cr_assert_eq(limit_after(&spin, MOST_US, 0, 0), 2 * MOST_US);
    cr_assert_eq(limit_after(&spin, LONGEST_US, 0, 0), LONGEST_US);
    cr_assert_eq(limit_after(&spin, LONGEST_US + 1, 0, 0), MOST_US);
}

Test(spin, is_longer_by_the_work_and_less_so_after_some_in_vain)
{
    ps_spin_t spin;

    if (!can_spin(&spin)) {
        return;
    }
    cr_assert_eq(limit_after(&spin, 0, 0, 1000), MOST_US + 1000);
    cr_assert_eq(limit_after(&spin, 0, 2, 1000), MOST_US + 250);
}

Test(spin, pauses_when_it_was_in_vain)
{
    ps_spin_t spin;

    if (!can_spin(&spin)) {
        return;
    }
    for (int i = 0; i < 100 && ps_spin_begin(&spin, PS_SPIN_FREE, 0); i++) {
        spin_to_the_end(&spin);
    }
    cr_assert(spin.vain_until_ns > 0 || spin.taken_until_ns > 0);
    spin.taken_until_ns = 0;
    spin.vain_until_ns = UINT64_MAX;
    cr_assert_not(ps_spin_begin(&spin, PS_SPIN_FREE, 0));
}

Test(spin, begins_again_when_gaps_get_short)
{
    ps_spin_t spin;

    if (!can_spin(&spin)) {
        return;
    }
    spin.gap_us = 2 * LONGEST_US;
    spin.vain_until_ns = UINT64_MAX;
    for (int i = 0; i < 10 && spin.gap_us > LONGEST_US; i++) {
        cr_assert_not(ps_spin_begin(&spin, PS_SPIN_FREE, 0));
        spin.looked_ns = spin.begun_ns;
        ps_spin_paid(&spin);
    }
    cr_assert(ps_spin_begin(&spin, PS_SPIN_FREE, 0));
}

Test(spin, one_long_gap_hides_no_short_ones)
{
    ps_spin_t spin;

    if (!can_spin(&spin)) {
        return;
    }
    spin.gap_us = MOST_US / 2;
    cr_assert(ps_spin_begin(&spin, PS_SPIN_FREE, 0));
    spin.begun_ns -= SECOND_NS < spin.begun_ns ? SECOND_NS : spin.begun_ns;
    ps_spin_woken(&spin);
    cr_assert_gt(spin.gap_us, MOST_US / 2);
    cr_assert_leq(spin.gap_us, LONGEST_US);
}

Test(spin, a_processor_that_others_need_ends_it)
{
    ps_spin_t spin;

    if (!can_spin(&spin)) {
        return;
    }
    cr_assert(ps_spin_begin(&spin, PS_SPIN_FREE, 0));
    spin.taken_until_ns = UINT64_MAX;
    spin.looked_ns = spin.begun_ns;
    ps_spin_paid(&spin); /* what is found says nothing about the processor */
    cr_assert_not(ps_spin_begin(&spin, PS_SPIN_FREE, 0));
}

Test(spin, yields_at_the_first_look_only_where_others_take_turns)
{
    ps_spin_t spin;

    if (!can_spin(&spin)) {
        return;
    }
    cr_assert(ps_spin_begin(&spin, PS_SPIN_FREE, 0));
    (void)ps_spin_go_on(&spin);
    cr_assert_eq(spin.yielded_ns, spin.begun_ns);
    cr_assert(ps_spin_begin(&spin, PS_SPIN_FREE, 0));
    spin.crowded = true;
    (void)ps_spin_go_on(&spin);
    cr_assert_neq(spin.yielded_ns, spin.begun_ns);
}

/* How long the others ran counted as time since the last of them, so that one
 * who took whole slices never ended the spinning. */
Test(spin, ends_when_others_run_again_however_long_they_do)
{
    ps_spin_t spin = {.most_us = MOST_US, .looked_ns = SECOND_NS};

    cr_assert(ps_spin_taken(&spin, SECOND_NS - 4000000));
    spin.looked_ns = SECOND_NS + 5000000;
    cr_assert_not(ps_spin_taken(&spin, SECOND_NS + 500000));
    cr_assert_gt(spin.taken_until_ns, spin.looked_ns);
}

Test(spin, goes_on_when_others_run_now_and_then)
{
    ps_spin_t spin = {.most_us = MOST_US, .looked_ns = SECOND_NS};

    for (int i = 0; i < 10; i++) {
        cr_assert(ps_spin_taken(&spin, spin.looked_ns - 200000));
        spin.looked_ns += 2000000;
    }
    cr_assert_eq(spin.taken_until_ns, 0);
}

/* How far apart the looks are that cost more, as long as the spin lasts. */
static void check_looks(ps_spin_looks_t looks, uint64_t least_ns)
{
    ps_spin_t spin = {0};
    uint64_t last_ns = 0;

    if (!can_spin(&spin)) {
        return;
    }
    cr_assert(ps_spin_begin(&spin, looks, 1000));
    last_ns = spin.begun_ns;
    while (ps_spin_go_on(&spin)) {
        if (ps_spin_asks(&spin)) {
            cr_assert_geq(spin.looked_ns - last_ns, least_ns);
            last_ns = spin.looked_ns;
        }
    }
}

Test(spin, looks_that_cost_more_are_apart)
{
    check_looks(PS_SPIN_FREE, 5000);
    check_looks(PS_SPIN_CALLS, 1000);
}
