/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/overlay/overlay_matcher.h: plans of what was measured. */
#include "protocol/overlay/overlay_matcher.h"

#include <criterion/criterion.h>
#include <string.h>

#include "support/fail_alloc.h"

#define N 4
#define NODES PS_OVERLAY_NODES
#define MB 1000000u

static const uint32_t positions[N] = {0, 1, 2, 3};
static ps_overlay_matcher_t matcher;
static uint32_t parents[PS_OVERLAY_COLOURS * N];
static bool may[N * N];

static void begin_num(ps_policy_t policy, bool is_listed, double greed, uint32_t num)
{
    const ps_overlay_rules_t rules = {.policy = policy,
                                      .is_listed = is_listed,
                                      .num = num,
                                      .ratio = 0.1,
                                      .expiry = 5,
                                      .greed = greed};

    cr_assert_eq(ps_overlay_matcher_begin(&matcher, &rules, N, 1, NULL), PSD_OK);
    memset(may, is_listed ? 0 : 1, sizeof may);
}

static void begin(ps_policy_t policy, bool is_listed, double greed)
{
    begin_num(policy, is_listed, greed, N);
}

static void end(void)
{
    ps_overlay_matcher_done(&matcher);
}

TestSuite(overlay_matcher, .fini = end);

static void plan(uint32_t n_colours, bool goes_on)
{
    const ps_overlay_ways_t ways = {.positions = positions,
                                    .may = may,
                                    .parents = goes_on ? parents : NULL,
                                    .n_colours = n_colours};

    cr_assert_eq(ps_overlay_matcher_plan(&matcher, &ways, 0, parents, NULL), PSD_OK);
}

static bool hear(uint32_t worker, uint64_t clock, uint64_t at_us)
{
    const ps_overlay_said_t said = {
        .clock = clock, .at_us = at_us, .now_us = at_us, .bytes = clock * MB, .has_plan = true};

    return ps_overlay_matcher_heard(&matcher, worker, &said);
}

/* Whether a few are served together, or one by one. */
Test(overlay_matcher, goes_by_what_was_measured)
{
    const uint32_t wanted[N] = {1, NODES, 1, 2};

    for (uint32_t num = 1; num <= N; num++) {
        begin_num(PS_POLICY_PAIRS, false, 1, num);
        ps_overlay_matcher_link(&matcher, 0, 1, MB, 1000); /* 1 GB/s; others are unknown */
        ps_overlay_matcher_link(&matcher, 1, 0, MB, 100000);
        ps_overlay_matcher_link(&matcher, 2, 3, MB, 100000);
        ps_overlay_matcher_link(&matcher, 3, 2, MB, 1000);
        ps_overlay_matcher_link(&matcher, 1, 2, MB, 100000);
        ps_overlay_matcher_link(&matcher, 2, 1, MB, 1000);
        plan(1, false);
        cr_assert_arr_eq(parents, wanted, sizeof wanted, "num %u", num);
    }
    cr_assert_float_eq(ps_overlay_matcher_rate(&matcher, 0, 1), 1e9, 1);
    cr_assert_eq(ps_overlay_matcher_rate(&matcher, 0, 2), 0);
}

/* A link that is unknown counts as the others do on average: 505 MB/s here. */
Test(overlay_matcher, forgets_a_link_after_so_many_turns)
{
    begin(PS_POLICY_PAIRS, false, 1);
    ps_overlay_matcher_link(&matcher, 0, 1, MB, 1000);
    for (uint64_t clock = 1; clock <= 6; clock++) {
        cr_assert_eq(ps_overlay_matcher_rate(&matcher, 0, 1) > 0, clock <= 6);
        (void)hear(0, clock, clock * MB);
    }
    cr_assert_eq(ps_overlay_matcher_rate(&matcher, 0, 1), 0, "6 turns old");
    ps_overlay_matcher_link(&matcher, 1, 0, MB, 1000);
    ps_overlay_matcher_link(&matcher, 2, 3, MB, 100000);
    plan(1, false);
    cr_assert_eq(parents[1], 0, "faster than the average");
    cr_assert_eq(parents[3], 2, "the other one is slower than that");
}

Test(overlay_matcher, a_plan_is_due_after_expiry_turns_and_two_seconds)
{
    begin(PS_POLICY_PAIRS, false, 1);
    for (uint64_t clock = 1; clock <= 4; clock++) {
        cr_assert_not(hear(0, clock, clock * MB));
        cr_assert_not(hear(1, clock, clock * MB), "only the first worker's clocks count");
    }
    cr_assert(hear(0, 5, 5 * MB));
    cr_assert_not(hear(0, 5, 6 * MB), "no clock is new");
    begin(PS_POLICY_PAIRS, false, 1);
    for (uint64_t clock = 1; clock <= 20; clock++) {
        cr_assert_eq(hear(0, clock, clock * 100000), clock == 20, "2 s have not passed");
    }
}

Test(overlay_matcher, a_plan_begins_when_all_have_it)
{
    begin(PS_POLICY_PAIRS, false, 1);
    cr_assert_eq(matcher.stride, 0, "the first one begins at once");
    (void)hear(0, 5000, 1);
    cr_assert_eq(matcher.stride, 1, "nobody knows how many there were since the last heartbeat");
    (void)hear(0, 5030, 2);
    cr_assert_eq(matcher.stride, 30);
}

/* Of workers 0 and 1, who are ready at once. */
static void replan(uint32_t num, uint64_t there_us, uint64_t back_us, bool goes_on)
{
    begin_num(PS_POLICY_PAIRS, false, 1, num);
    ps_overlay_matcher_link(&matcher, 0, 1, MB, there_us);
    ps_overlay_matcher_link(&matcher, 1, 0, MB, back_us);
    plan(1, goes_on);
}

Test(overlay_matcher, the_ways_of_the_present_plan_are_kept_unless_others_are_much_better)
{
    for (uint32_t num = 1; num <= N; num += N - 1) {
        replan(num, 1000, 1010, false);
        cr_assert_eq(parents[0], 1);
        replan(num, 1200, 1000, true);
        cr_assert_eq(parents[0], 1, "1.2 times faster");
        replan(num, 1300, 1000, true);
        cr_assert_eq(parents[1], 0, "1.3 times faster");
    }
}

/* Deltas of 1 MB take 10 ms. */
Test(overlay_matcher, some_microseconds_do_not_turn_a_way_round)
{
    begin_num(PS_POLICY_PAIRS, false, 1, 1);
    ps_overlay_matcher_link(&matcher, 0, 1, MB, 10000);
    ps_overlay_matcher_link(&matcher, 1, 0, MB, 10000);
    matcher.bytes = MB;
    matcher.late_s[0] = 20e-6;
    plan(1, false);
    cr_assert_eq(parents[1], 0);
    matcher.late_s[1] = 50e-6;
    plan(1, true);
    cr_assert_eq(parents[1], 0);
    matcher.late_s[1] = 50e-3;
    plan(1, true);
    cr_assert_eq(parents[0], 1, "who is much later gets the sum");
}

/* All links are the same: each tree has another worker to which the others send, and neighbours
 * send to each other in turns. */
Test(overlay_matcher, trees_share_the_work)
{
    for (uint32_t num = 1; num <= N; num += N - 1) {
        uint32_t n_last[N] = {0};
        uint32_t n_up[N] = {0}; /* it sends to its neighbour */

        begin_num(PS_POLICY_PAIRS, false, 1, num);
        plan(4, false);
        for (uint32_t i = 0; i < 4 * N; i++) {
            n_last[i % N] += parents[i] == NODES ? 1 : 0;
            n_up[i % N] += parents[i] == (i % N ^ 1) ? 1 : 0;
        }
        for (uint32_t i = 0; i < N; i++) {
            cr_assert_leq(n_last[i], 2);
            cr_assert_eq(n_up[i], 2, "num %u: worker %u sends in %u trees", num, i, n_up[i]);
        }
    }
}

Test(overlay_matcher, queue_lets_who_is_late_have_the_sum)
{
    begin(PS_POLICY_QUEUE, false, 1);
    for (uint64_t clock = 1; clock <= 4; clock++) {
        (void)hear(0, clock, 10000 * MB + clock * MB);
        (void)hear(2, clock, 10000 * MB + clock * MB + 900000);
        (void)hear(1, clock, 10000 * MB + clock * MB - 900000); /* it was the first */
        (void)hear(3, clock, 10000 * MB + clock * MB + 1000000);
    }
    plan(1, false);
    cr_assert_eq(parents[1], 0, "0 is later than 1");
    cr_assert_eq(parents[2], 3);
    cr_assert_eq(parents[3], NODES);
}

Test(overlay_matcher, only_listed_ways_are_used)
{
    const uint32_t wanted[N] = {1, NODES, 1, 1};

    begin(PS_POLICY_PAIRS, true, 0);
    may[0 * N + 1] = may[2 * N + 1] = may[3 * N + 1] = true;
    plan(1, false);
    cr_assert_arr_eq(parents, wanted, sizeof wanted);
}

Test(overlay_matcher, before_it_begins_it_hears_nothing)
{
    const ps_overlay_matcher_t nothing = {.n_workers = 0};

    ps_overlay_matcher_link(&matcher, 0, 1, MB, 1000);
    cr_assert_not(hear(0, 1, 1));
    cr_assert_arr_eq(&matcher, &nothing, sizeof nothing);
}

Test(overlay_matcher, without_memory_there_is_an_error)
{
    const ps_overlay_rules_t rules = {.policy = PS_POLICY_PAIRS, .expiry = 5, .ratio = 1};
    const ps_overlay_ways_t ways = {.positions = positions, .may = may, .n_colours = 2};
    psd_status_t rc = PSD_NOMEM;

    for (size_t i = 0; rc != PSD_OK; i++) {
        fail_alloc_at(i);
        rc = ps_overlay_matcher_begin(&matcher, &rules, N, 1, NULL);
        fail_alloc_off();
        cr_assert(rc == PSD_OK || (rc == PSD_NOMEM && matcher.rates == NULL));
    }
    parents[0] = 77;
    rc = PSD_NOMEM;
    for (size_t i = 0; rc != PSD_OK; i++) {
        fail_alloc_at(i);
        rc = ps_overlay_matcher_plan(&matcher, &ways, 0, parents, NULL);
        fail_alloc_off();
        cr_assert(rc == PSD_OK || (rc == PSD_NOMEM && parents[0] == 77));
    }
}
