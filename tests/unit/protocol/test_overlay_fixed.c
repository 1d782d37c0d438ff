/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a job whose network nobody has measured. */
#include "protocol/overlay/overlay_fixed.h"

#include <criterion/criterion.h>

#include "base/rng.h"
#include "protocol/relay/relay_plan.h"

#define MOST PS_OVERLAY_WORKERS_MAX

Test(overlay_fixed, eight_workers_send_in_three_steps)
{
    static const uint32_t positions[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    static const uint32_t first[8] = {PS_OVERLAY_NODES, 0, 0, 2, 0, 4, 4, 6};
    static const uint32_t last[8] = {1, 3, 3, 7, 5, 7, 7, PS_OVERLAY_NODES};
    uint32_t parents[8];

    ps_overlay_fixed(positions, 8, 0, parents);
    cr_assert_arr_eq(parents, first, sizeof first);
    ps_overlay_fixed(positions, 8, 7, parents);
    cr_assert_arr_eq(parents, last, sizeof last);
}

Test(overlay_fixed, absent_positions_are_passed_over)
{
    static const uint32_t positions[4] = {1, 6, 7, 900};
    static const uint32_t wanted[4] = {PS_OVERLAY_NODES, 0, 1, 0};
    uint32_t parents[4];

    ps_overlay_fixed(positions, 4, 0, parents);
    cr_assert_arr_eq(parents, wanted, sizeof wanted);
    ps_overlay_fixed(positions, 1, 3, parents);
    cr_assert_eq(parents[0], PS_OVERLAY_NODES);
}

/* Relays take it; one root, at most 12 steps, and at most 12 that send to any one. */
Test(overlay_fixed, relays_take_any)
{
    ps_rng_t rng = {.state = 25};

    for (uint32_t round = 0; round < 300; round++) {
        static uint32_t positions[MOST];
        static uint32_t members[MOST];
        static uint32_t parents[MOST];
        static uint32_t n_children[MOST];
        uint64_t rates[1] = {0};
        uint32_t most = 1 + (uint32_t)ps_rng_below(&rng, MOST);
        uint32_t n = 0;
        uint32_t n_roots = 0;
        ps_relay_tree_t tree = {.version = 0};

        for (uint32_t at = 0; n < most && at < 4096; at += 1 + (uint32_t)ps_rng_below(&rng, 8)) {
            positions[n] = at;
            members[n] = 1;
            n_children[n++] = 0;
        }
        ps_overlay_fixed(positions, n, round, parents);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t steps = 0;

            n_roots += parents[i] == PS_OVERLAY_NODES ? 1 : 0;
            if (parents[i] != PS_OVERLAY_NODES) {
                n_children[parents[i]]++;
                cr_assert_leq(n_children[parents[i]], 12);
            }
            for (uint32_t at = i; at != PS_OVERLAY_NODES; at = parents[at]) {
                steps++;
            }
            cr_assert_leq(steps, 13);
        }
        cr_assert_eq(n_roots, 1);
        cr_assert_eq(ps_relay_tree_make(&(ps_relay_plan_t){.version = 1,
                                                           .n_workers = n,
                                                           .n_colours = 1,
                                                           .positions = positions,
                                                           .members = members,
                                                           .parents = parents,
                                                           .rates = rates},
                                        positions[0], &tree, NULL),
                     PSD_OK);
        ps_relay_tree_done(&tree);
    }
}
