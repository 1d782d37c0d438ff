/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/overlay/overlay_sites.h: one worker of each site sends out of it. */
#include "protocol/overlay/overlay_sites.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/rng.h"
#include "protocol/relay/relay_plan.h"

#define NODES PS_OVERLAY_NODES
#define MOST 64
#define ROUNDS 2000

static uint32_t positions[MOST];
static uint32_t sites[MOST];
static uint32_t parents[MOST];
static bool may[MOST * MOST];

Test(overlay_sites, each_colour_has_a_gateway_of_its_own)
{
    static const uint32_t first[8] = {NODES, 0, 0, 2, NODES, 4, 4, 6};
    static const uint32_t last[8] = {1, 3, 3, NODES, 5, 7, 7, NODES};
    static const uint32_t between[8] = {NODES, 0, 0, 2, 0, 4, 4, 6};
    ps_overlay_sites_t map = {.n_workers = 8, .positions = positions, .sites = sites};

    for (uint32_t i = 0; i < 8; i++) {
        positions[i] = i;
        sites[i] = i / 4;
    }
    ps_overlay_sites_tree(&map, 0, parents);
    cr_assert_arr_eq(parents, first, sizeof first);
    ps_overlay_sites_tree(&map, 3, parents);
    cr_assert_arr_eq(parents, last, sizeof last);
    map.between = true;
    ps_overlay_sites_tree(&map, 0, parents);
    cr_assert_arr_eq(parents, between, sizeof between);
    map =
        (ps_overlay_sites_t){.n_workers = 8, .positions = positions, .sites = sites, .apart = true};
    ps_overlay_sites_tree(&map, 0, parents);
    for (uint32_t i = 0; i < 8; i++) {
        cr_assert_eq(parents[i], NODES);
    }
}

/* Workers with random ranks in random sites. */
static ps_overlay_sites_t any_map(ps_rng_t *rng)
{
    uint32_t most = 1 + (uint32_t)ps_rng_below(rng, MOST);
    uint32_t n_sites = 1 + (uint32_t)ps_rng_below(rng, 6);
    ps_overlay_sites_t map = {.positions = positions, .sites = sites};
    uint32_t at = 0;

    for (; map.n_workers < most; at += 1 + (uint32_t)ps_rng_below(rng, 3)) {
        positions[map.n_workers] = at;
        sites[map.n_workers++] = 70 * (uint32_t)ps_rng_below(rng, n_sites);
    }
    map.between = ps_rng_below(rng, 2) == 1;
    return map;
}

/* Some of them die. */
static void kill_some(ps_rng_t *rng, ps_overlay_sites_t *map)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < map->n_workers; i++) {
        if (i + 1 == map->n_workers || ps_rng_below(rng, 3) != 0) {
            positions[n] = positions[i];
            sites[n++] = sites[i];
        }
    }
    map->n_workers = n;
}

/* Ways out of that site, by looking at every worker; *ret_n: workers that it has. */
static uint32_t count_ways_out(const ps_overlay_sites_t *map, uint32_t site, uint32_t *ret_n)
{
    uint32_t n_out = 0;

    *ret_n = 0;
    for (uint32_t i = 0; i < map->n_workers; i++) {
        if (sites[i] == site) {
            (*ret_n)++;
            n_out += parents[i] == NODES || sites[parents[i]] != site ? 1 : 0;
        }
    }
    return n_out;
}

static void check_taken(const ps_overlay_sites_t *map)
{
    uint32_t members[MOST];
    ps_relay_tree_t tree = {.version = 0};
    const ps_relay_plan_t plan = {.version = 1,
                                  .n_workers = map->n_workers,
                                  .n_colours = 1,
                                  .positions = positions,
                                  .members = members,
                                  .parents = parents};

    for (uint32_t i = 0; i < map->n_workers; i++) {
        members[i] = 1;
    }
    cr_assert_eq(ps_relay_tree_make(&plan, positions[0], &tree, NULL), PSD_OK);
    ps_relay_tree_done(&tree);
}

static void check_sites(const ps_overlay_sites_t *map, uint32_t n_to_nodes)
{
    uint32_t n_found = 0;

    for (uint32_t site = 0; site <= 5 * 70; site += 70) {
        uint32_t n = 0;
        uint32_t n_out = count_ways_out(map, site, &n);

        cr_assert_eq(n_out, n > 0 ? 1 : 0, "site %u of %u workers has %u ways out", site, n, n_out);
    }
    for (uint32_t i = 0; i < map->n_workers; i++) {
        n_found += parents[i] == NODES ? 1 : 0;
    }
    cr_assert(n_to_nodes == 0 || n_found == n_to_nodes);
    check_taken(map);
}

static uint32_t count_sites(const ps_overlay_sites_t *map)
{
    uint32_t n_sites = 0;

    for (uint32_t site = 0; site <= 5 * 70; site += 70) {
        uint32_t n = 0;

        (void)count_ways_out(map, site, &n);
        n_sites += n > 0 ? 1 : 0;
    }
    return n_sites;
}

Test(overlay_sites, one_of_each_site_sends_out_of_it)
{
    ps_rng_t rng = {.state = 36};

    for (uint32_t round = 0; round < ROUNDS; round++) {
        ps_overlay_sites_t map = any_map(&rng);

        for (uint32_t deaths = 0; deaths < 3; deaths++) {
            ps_overlay_sites_tree(&map, round, parents);
            check_sites(&map, map.between ? 1 : count_sites(&map));
            kill_some(&rng, &map);
        }
    }
}

/* Any plan without circles, as pairs and queue make them. */
static void any_plan(ps_rng_t *rng, const ps_overlay_sites_t *map)
{
    uint32_t order[MOST];
    uint32_t n = map->n_workers;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t other = (uint32_t)ps_rng_below(rng, i + 1);

        order[i] = order[other];
        order[other] = i;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t to = order[ps_rng_below(rng, i + 1)]; /* itself: to the nodes */
        bool can = to != order[i] && ps_overlay_sites_may(map, order[i], to);

        parents[order[i]] = can ? to : NODES;
    }
}

Test(overlay_sites, of_several_that_send_out_one_is_left)
{
    ps_rng_t rng = {.state = 63};

    memset(may, 1, sizeof may);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        ps_overlay_sites_t map = any_map(&rng);

        any_plan(&rng, &map);
        ps_overlay_sites_join(&map, may, parents);
        check_sites(&map, 0);
    }
}

Test(overlay_sites, who_may_not_send_to_the_gateway_sends_out_itself)
{
    ps_overlay_sites_t map = {.n_workers = 3, .positions = positions, .sites = sites};

    for (uint32_t i = 0; i < 3; i++) {
        positions[i] = i;
        sites[i] = 0;
        parents[i] = NODES;
    }
    memset(may, 0, sizeof may);
    may[2 * 3 + 0] = true;
    ps_overlay_sites_join(&map, may, parents);
    cr_assert_eq(parents[0], NODES);
    cr_assert_eq(parents[1], NODES);
    cr_assert_eq(parents[2], 0);
    memset(may, 1, sizeof may);
    map.apart = true;
    parents[2] = NODES;
    ps_overlay_sites_join(&map, may, parents);
    cr_assert_eq(parents[2], NODES);
}

Test(overlay_sites, who_may_send_to_whom)
{
    const uint32_t two[3] = {5, 5, 9};
    ps_overlay_sites_t map = {.n_workers = 3, .positions = positions, .sites = two};

    cr_assert(ps_overlay_sites_may(&map, 0, 1));
    cr_assert_not(ps_overlay_sites_may(&map, 0, 2));
    map.between = true;
    cr_assert(ps_overlay_sites_may(&map, 2, 0));
    map.apart = true;
    cr_assert_not(ps_overlay_sites_may(&map, 1, 0));
}
