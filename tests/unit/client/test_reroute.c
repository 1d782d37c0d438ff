/* SPDX-License-Identifier: Apache-2.0 */
/* How often the registry is asked where the partitions of a silent shard are.
 */
#include <criterion/criterion.h>

#include "client/connection/client_state.h"
#include "protocol/placement/registry_decide.h"

#define QUICK_MS 1
#define SLOW_MS 3000

Test(reroute, is_asked_often_at_first)
{
    cr_expect_eq(ps_reroute_gap_ms(0, QUICK_MS, false), 50);
    cr_expect_eq(ps_reroute_gap_ms(1999, 100, false), 400);
    cr_expect_eq(ps_reroute_gap_ms(2000, QUICK_MS, false), 1000);
    cr_expect_eq(ps_reroute_gap_ms(0, QUICK_MS, true), 1000);
    cr_expect_eq(ps_reroute_gap_ms(0, SLOW_MS, false), 1000);
}

/* It has to hear in time that a client does not reach a node. */
Test(reroute, is_asked_every_two_seconds_over_a_quick_link)
{
    cr_expect_eq(ps_reroute_gap_ms(6000, QUICK_MS, false), 1500);
    cr_expect_eq(ps_reroute_gap_ms(60000, QUICK_MS, false), 2000);
    cr_expect_eq(ps_reroute_gap_ms(60000, 500, true), 2000);
}

Test(reroute, is_asked_more_seldom_over_a_slow_link)
{
    cr_expect_eq(ps_reroute_gap_ms(6000, SLOW_MS, false), 1500);
    cr_expect_eq(ps_reroute_gap_ms(60000, 1000, false), 4000);
    cr_expect_eq(ps_reroute_gap_ms(60000, SLOW_MS, false), 5000);
    cr_expect_lt(ps_reroute_gap_ms(600000, 60000, true), PS_UNREACHED_MS);
}
