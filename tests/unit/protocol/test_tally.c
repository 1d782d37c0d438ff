/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/relay/tally.h: what the workers of a plan have reported. */
#include "protocol/relay/tally.h"

#include <criterion/criterion.h>

#include "support/fail_alloc.h"

#define MB UINT64_C(1000000)

static ps_relay_member_t members[2] = {{.worker = 3}, {.worker = 7}};
static const ps_relay_facts_t facts = {.version = 1, .n_members = 2, .members = members};
static ps_relay_tally_t tally;

static void open_tally(void)
{
    cr_assert_eq(ps_relay_tally_begin(&tally, 2, NULL), PSD_OK);
}

static void close_tally(void)
{
    ps_relay_tally_done(&tally);
}

TestSuite(tally, .init = open_tally, .fini = close_tally);

Test(tally, keeps_links_by_their_places)
{
    const ps_overlay_report_t report = {
        .n_links = 4,
        .links = {{PS_OVERLAY_NODES, MB, 100000}, {3, 2 * MB, 1000}, {5, 1, 1}, {7, 1, 1}}};

    ps_relay_tally_hear(&tally, &facts, 7, &report, 50);
    ps_relay_tally_hear(&tally, &facts, 7, &report, 90);
    ps_relay_tally_hear(&tally, &facts, 5, &report, 90); /* it is in no plan */
    cr_assert_null(ps_relay_tally_link(&tally, 0, 1));
    cr_assert_null(ps_relay_tally_link(&tally, 1, 1));
    cr_assert_null(ps_relay_tally_link(&tally, 2, 0));
    cr_assert_null(ps_relay_tally_link(&tally, 0, 3));
    cr_assert_eq(ps_relay_tally_link(&tally, 1, 0)->bytes, 4 * MB);
    cr_assert_eq(ps_relay_tally_link(&tally, 1, 0)->at_us, 90);
    cr_assert_float_eq(ps_relay_tally_rate(ps_relay_tally_link(&tally, 1, 0)), 2e9, 1);
    cr_assert_float_eq(ps_relay_tally_rate(ps_relay_tally_link(&tally, 1, 2)), 1e7, 1);
}

Test(tally, measures_clocks_of_the_first_worker)
{
    ps_overlay_report_t report = {.clock = 5, .bytes = 10 * MB, .ago_us = 1000};

    ps_relay_tally_hear(&tally, &facts, 7, &report, 1000000);
    cr_assert_eq(tally.clock, 0, "it is the second one");
    ps_relay_tally_hear(&tally, &facts, 3, &report, 1000000);
    report.clock = 7;
    ps_relay_tally_hear(&tally, &facts, 3, &report, 2000000);
    cr_assert_eq(tally.clock_us, 0, "two clocks are few");
    report.clock = 8;
    report.bytes = 16 * MB;
    report.ago_us = 31000;
    ps_relay_tally_hear(&tally, &facts, 3, &report, 2000000);
    cr_assert_eq(tally.clock_us, 323333);
    cr_assert_eq(tally.clock_bytes, 2 * MB);
    report.clock = 9;
    ps_relay_tally_hear(&tally, &facts, 3, &report, 2000000 + PS_RELAY_TALLY_LONG_US);
    cr_assert_eq(tally.clock_us, PS_RELAY_TALLY_LONG_US, "one, and long");
    cr_assert_eq(tally.clock_bytes, 0);
    report.clock = 2; /* it is another life */
    ps_relay_tally_hear(&tally, &facts, 3, &report, 5000000);
    report.clock = 5;
    ps_relay_tally_hear(&tally, &facts, 3, &report, 5300000);
    cr_assert_eq(tally.clock_us, 100000);
}

Test(tally, counts_are_those_of_the_last_report_that_has_them)
{
    ps_overlay_report_t report = {.counts = {.has = true, .lent = 4, .refused = 1}};

    ps_relay_tally_hear(&tally, &facts, 7, &report, 1);
    cr_assert_not(tally.counts[0].has);
    cr_assert_eq(tally.counts[1].lent, 4);
    report.counts = (ps_overlay_counts_t){.has = false};
    ps_relay_tally_hear(&tally, &facts, 7, &report, 2);
    cr_assert_eq(tally.counts[1].lent, 4);
    cr_assert_eq(ps_relay_tally_begin(&tally, 2, NULL), PSD_OK);
    cr_assert_not(tally.counts[1].has);
    cr_assert_eq(tally.clock, 0);
}

Test(tally, of_many_workers_keeps_no_links)
{
    const ps_overlay_report_t report = {
        .counts = {.has = true, .direct = 2}, .n_links = 1, .links = {{PS_OVERLAY_NODES, MB, 1}}};

    cr_assert_eq(ps_relay_tally_begin(&tally, PS_RELAY_TALLY_WORKERS + 1, NULL), PSD_OK);
    ps_relay_tally_hear(&tally, &facts, 3, &report, 1);
    cr_assert_null(ps_relay_tally_link(&tally, 0, PS_RELAY_TALLY_WORKERS + 1));
    cr_assert_eq(tally.counts[0].direct, 2);
    cr_assert_eq(ps_relay_tally_begin(&tally, 0, NULL), PSD_OK);
    ps_relay_tally_hear(&tally, &facts, 3, &report, 1);
    cr_assert_null(ps_relay_tally_link(&tally, 0, 0));
}

Test(tally, without_memory_it_stays_as_it_is)
{
    size_t i = 0;

    tally.clock = 9;
    for (bool good = false; !good; i++) {
        fail_alloc_at(i);
        good = ps_relay_tally_begin(&tally, 2, NULL) == PSD_OK;
        fail_alloc_off();
        cr_assert_eq(tally.clock, good ? 0 : 9);
    }
    cr_assert_eq(i, 3);
}
