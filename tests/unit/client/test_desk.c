/* SPDX-License-Identifier: Apache-2.0 */
/* client/connection/desk.h: what a client that does not listen is told later. */
#include "client/connection/desk.h"

#include <criterion/criterion.h>

#define SOME 100

/* Reads all; how many there were of that kind. */
static size_t count(ps_desk_t *desk, ps_relay_news_t kind)
{
    ps_desk_news_t news[7];
    size_t n_found = 0;
    size_t n = 7;

    while (n == 7) {
        n = ps_desk_hear(desk, news, 7);
        for (size_t i = 0; i < n; i++) {
            n_found += news[i].news == kind ? 1 : 0;
        }
    }
    return n_found;
}

Test(desk, signs_of_life_do_not_pile_up_and_ends_are_kept)
{
    ps_desk_t *desk = NULL;

    cr_assert_eq(ps_desk_new("tcp://h:1", &desk, NULL), PSD_OK);
    for (uint64_t i = 0; i < PS_DESK_SIGNS_MAX + SOME; i++) {
        ps_desk_tell(desk, i, PS_RELAY_WAITS);
    }
    for (uint64_t i = 0; i < SOME; i++) {
        ps_desk_tell(desk, i, PS_RELAY_RETURNED);
    }
    cr_assert_eq(count(desk, PS_RELAY_RETURNED), SOME);
    for (uint64_t i = 0; i < PS_DESK_SIGNS_MAX + SOME; i++) {
        ps_desk_tell(desk, i, PS_RELAY_WAITS);
    }
    cr_assert_eq(count(desk, PS_RELAY_WAITS), PS_DESK_SIGNS_MAX);
    ps_desk_release(&desk);
}

Test(desk, news_come_in_order)
{
    ps_desk_news_t news[3];
    ps_desk_t *desk = NULL;

    cr_assert_eq(ps_desk_new("tcp://h:1", &desk, NULL), PSD_OK);
    for (uint64_t i = 0; i < 4; i++) {
        ps_desk_tell(desk, i, PS_RELAY_DONE);
    }
    cr_assert_eq(ps_desk_hear(desk, news, 3), 3);
    cr_assert_eq(news[2].request, 2);
    ps_desk_tell(desk, 4, PS_RELAY_WAITS);
    cr_assert_eq(ps_desk_hear(desk, news, 3), 2);
    cr_assert_eq(news[0].request, 3);
    cr_assert_eq(news[1].request, 4);
    cr_assert_eq(news[1].news, PS_RELAY_WAITS);
    cr_assert_eq(ps_desk_hear(desk, news, 3), 0);
    ps_desk_release(&desk);
}

Test(desk, a_report_has_what_was_measured_since_the_last_one)
{
    const ps_overlay_rules_t rules = {.policy = PS_POLICY_AUTO};
    const ps_site_t site = {"east"};
    const ps_may_t may = {{1}};
    ps_overlay_report_t report;
    ps_desk_t *desk = NULL;

    cr_assert_eq(ps_desk_new("tcp://h:1", &desk, NULL), PSD_OK);
    ps_desk_report(desk, 5, &report);
    cr_assert_eq(report.rules.policy, PS_POLICY_TREE);
    cr_assert_eq(report.ago_us, 0);
    cr_assert_eq(report.n_links, 0);
    cr_assert_eq(ps_desk_clock_bytes(desk), 0);
    ps_desk_set_rules(desk, &rules, &site, &may);
    ps_desk_pushed(desk, 700);
    ps_desk_clock(desk, 3, 1000);
    ps_desk_pushed(desk, 800);
    ps_desk_tell(desk, 1, PS_RELAY_RETURNED);
    ps_desk_tell(desk, 2, PS_RELAY_DONE);
    ps_desk_went_directly(desk);
    ps_desk_went_directly(desk);
    for (int i = 0; i < 5; i++) {
        ps_desk_bundle_ended(desk, i < 3);
    }
    ps_desk_moved(desk, 2, 100, 0, 10);
    ps_desk_moved(desk, PS_OVERLAY_NODES, 1000000, 100, 300);
    ps_desk_report(desk, 1500, &report);
    cr_assert_eq(report.rules.policy, PS_POLICY_AUTO);
    cr_assert_str_eq(report.site.name, "east");
    cr_assert(ps_may_has(&report.may, 0));
    cr_assert_not(ps_may_has(&report.may, 1));
    cr_assert_eq(report.clock, 3);
    cr_assert_eq(report.ago_us, 500);
    cr_assert_eq(ps_desk_clock_bytes(desk), 700 / 3);
    cr_assert_eq(report.bytes, 700, "what was pushed later is of the next clock");
    cr_assert_eq(report.n_links, 1, "100 bytes say nothing of a link");
    cr_assert_eq(report.links[0].to, PS_OVERLAY_NODES);
    cr_assert_eq(report.links[0].bytes, 1000000);
    cr_assert_eq(report.links[0].us, 200);
    cr_assert(report.counts.has);
    cr_assert_eq(report.counts.lent, 0);
    cr_assert_eq(report.counts.returned, 1);
    cr_assert_eq(report.counts.direct, 2);
    cr_assert_eq(report.counts.bundles, 3);
    cr_assert_eq(report.counts.refused, 2);
    ps_desk_moved(desk, 2, 1000000, 20, 30);
    ps_desk_report(desk, UINT64_MAX, &report);
    cr_assert_eq(report.n_links, 1);
    cr_assert_eq(report.links[0].to, 2);
    cr_assert_eq(report.links[0].us, 20);
    cr_assert_eq(report.ago_us, UINT64_C(3600000000));
    ps_desk_release(&desk);
}

Test(desk, more_ends_than_there_is_room_for_forget_the_least)
{
    ps_overlay_report_t report;
    ps_desk_t *desk = NULL;

    cr_assert_eq(ps_desk_new("tcp://h:1", &desk, NULL), PSD_OK);
    for (uint32_t i = 0; i < PS_OVERLAY_REPORT_LINKS; i++) {
        ps_desk_moved(desk, i, i == 5 ? 10 : 1000000, 0, 10);
    }
    ps_desk_moved(desk, 99, 1000000, 0, 10);
    ps_desk_report(desk, 0, &report);
    cr_assert_eq(report.n_links, PS_OVERLAY_REPORT_LINKS);
    cr_assert_eq(report.links[5].to, 99);
    ps_desk_release(&desk);
}
