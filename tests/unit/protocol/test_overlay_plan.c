/* SPDX-License-Identifier: Apache-2.0 */
/* Plans against all plans of small networks, and against what theory says of large ones. */
#include "protocol/overlay/overlay_plan.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "protocol/overlay/overlay_auto.h"

#define MOST 64
#define ENDS (MOST + 4)
#define MBIT (1e6 / 8)
#define MB 1000000u

typedef struct world {
    ps_network_t network;
    ps_load_t load;
    uint32_t positions[MOST];
    double rates[ENDS * ENDS];
    double out[ENDS];
    double in[ENDS];
    uint64_t bytes[PS_OVERLAY_COLOURS_MAX * 4];
} world_t;

/* Workers with one wire each, nodes with another; links as fast as their ends. */
static void make_world(world_t *world, uint32_t n_workers, uint32_t n_nodes, double worker_rate,
                       double node_rate, uint64_t bytes)
{
    uint32_t n_ends = n_workers + n_nodes;

    memset(world, 0, sizeof *world);
    for (uint32_t i = 0; i < n_ends; i++) {
        world->out[i] = i < n_workers ? worker_rate : node_rate;
        world->in[i] = world->out[i];
        for (uint32_t j = 0; j < n_ends; j++) {
            double to = j < n_workers ? worker_rate : node_rate;

            world->rates[i * n_ends + j] = i == j ? 0 : fmin(world->out[i], to);
        }
    }
    for (uint32_t i = 0; i < n_workers; i++) {
        world->positions[i] = i;
    }
    for (uint32_t i = 0; i < n_nodes; i++) {
        world->bytes[i] = bytes / n_nodes;
    }
    world->network = (ps_network_t){.n_workers = n_workers,
                                    .n_nodes = n_nodes,
                                    .positions = world->positions,
                                    .rates = world->rates,
                                    .out = world->out,
                                    .in = world->in,
                                    .latency_s = 0.0001};
    world->load = (ps_load_t){.n_colours = 1, .bytes = world->bytes, .chunk_bytes = 256u * 1024};
}

static void set_rate(world_t *world, uint32_t from, uint32_t to, double rate)
{
    world->rates[from * (world->network.n_workers + world->network.n_nodes) + to] = rate;
}

static void make_plan(world_t *world, ps_overlay_plan_t *plan)
{
    cr_assert_eq(ps_overlay_plan_make(&world->network, &world->load, plan, NULL), PSD_OK);
}

/* Adds up as a clock would: each worker's delta arrives at the nodes once, and only
 * halves of one interval are added. */
static void check_tournament(const world_t *world, const ps_overlay_plan_t *plan, uint32_t n_direct)
{
    for (uint32_t colour = 0; colour < plan->n_colours; colour++) {
        const uint32_t *parents = &plan->parents[(size_t)colour * plan->n_workers];
        uint32_t n = 0;

        for (uint32_t i = 0; i < plan->n_workers; i++) {
            if (parents[i] == PS_OVERLAY_NODES) {
                n++;
                continue;
            }
            uint32_t differ = world->positions[i] ^ world->positions[parents[i]];
            uint32_t span = 1;

            while (differ >> 1 >= span) {
                span <<= 1;
            }
            /* i sends the sum of its aligned interval of `span`: nobody else of it sends
             * out of it, and its sibling holds the receiver. */
            for (uint32_t j = 0; j < plan->n_workers; j++) {
                bool inside = world->positions[j] / span == world->positions[i] / span;
                bool leaves = parents[j] == PS_OVERLAY_NODES ||
                              world->positions[parents[j]] / span != world->positions[i] / span;

                cr_assert(j == i || !inside || !leaves, "worker %u beside %u", j, i);
            }
        }
        cr_assert_eq(n, n_direct, "%u go to the nodes, not %u", n, n_direct);
    }
}

/* ---- all plans of a small network ---- */

typedef struct every {
    const world_t *world;
    uint32_t parents[MOST];
    uint32_t merged[MOST]; /* losers and winners by bit */
    double best;
} every_t;

/* Holder of [first, first + size) under these bits; uses up one bit for each merge. */
static uint32_t hold(every_t *self, uint32_t first, uint32_t size, uint32_t *bits)
{
    if (size == 1) {
        return first;
    }
    uint32_t half = size / 2;
    uint32_t left = hold(self, first, half, bits);

    if (first + half >= self->world->network.n_workers) {
        return left;
    }
    uint32_t right = hold(self, first + half, half, bits);
    bool right_wins = (*bits & 1) != 0;

    *bits >>= 1;
    self->parents[right_wins ? left : right] = right_wins ? right : left;
    return right_wins ? right : left;
}

static double best_of_all(const world_t *world)
{
    every_t every = {.world = world, .best = INFINITY};
    uint32_t size = 1;

    while (size < world->network.n_workers) {
        size *= 2;
    }
    for (uint32_t plan = 0; plan < 1u << (world->network.n_workers - 1); plan++) {
        uint32_t bits = plan;
        uint32_t holder = hold(&every, 0, size, &bits);

        every.parents[holder] = PS_OVERLAY_NODES;
        every.best =
            fmin(every.best, ps_overlay_plan_seconds(&world->network, &world->load, every.parents));
    }
    return every.best;
}

static double log_uniform(ps_rng_t *rng, double least, double most)
{
    return least * exp(ps_rng_f64(rng) * log(most / least));
}

static void make_random(world_t *world, ps_rng_t *rng, uint32_t n_workers, uint64_t bytes)
{
    make_world(world, n_workers, 1, MBIT, MBIT, bytes);
    for (uint32_t i = 0; i <= n_workers; i++) {
        world->out[i] = log_uniform(rng, 5 * MBIT, 1000 * MBIT);
        world->in[i] = log_uniform(rng, 5 * MBIT, 1000 * MBIT);
    }
    for (uint32_t i = 0; i <= n_workers; i++) {
        for (uint32_t j = 0; j <= n_workers; j++) {
            double rate = log_uniform(rng, 5 * MBIT, 1000 * MBIT);

            set_rate(world, i, j, i == j ? 0 : fmin(rate, fmin(world->out[i], world->in[j])));
        }
    }
}

Test(overlay_plan, is_near_the_best_of_all_plans)
{
    ps_rng_t rng = {.state = 6};
    static world_t world;

    for (int i = 0; i < 10000; i++) {
        ps_overlay_plan_t plan;

        make_random(&world, &rng, 2 + (uint32_t)ps_rng_below(&rng, 5),
                    64u * 1024 + ps_rng_below(&rng, 20 * MB));
        make_plan(&world, &plan);

        double best = best_of_all(&world);

        cr_assert_leq(plan.seconds, best * 1.1, "network %d: %f of %f s", i, plan.seconds, best);
        cr_assert_geq(plan.seconds, best * (1 - 1e-6));
        check_tournament(&world, &plan, 1);
        ps_overlay_plan_done(&plan);
    }
}

/* ---- what theory says ---- */

Test(overlay_plan, one_slow_node_is_served_once)
{
    static world_t world;
    ps_overlay_plan_t plan;

    make_world(&world, 8, 1, 1000 * MBIT, 100 * MBIT, 10 * MB);
    make_plan(&world, &plan);
    cr_assert_float_eq(plan.star_s, 6.42, 0.03, "star %f s", plan.star_s);
    cr_assert_float_eq(plan.seconds, 0.83, 0.03, "tree %f s", plan.seconds);
    check_tournament(&world, &plan, 1);
    ps_overlay_plan_done(&plan);
}

Test(overlay_plan, a_slow_worker_receives_nothing)
{
    static world_t world;
    ps_overlay_plan_t plan;

    make_world(&world, 8, 1, 1000 * MBIT, 100 * MBIT, 10 * MB);
    for (uint32_t i = 0; i < 9; i++) {
        set_rate(&world, 4, i, i == 4 ? 0 : 20 * MBIT);
        set_rate(&world, i, 4, i == 4 ? 0 : 20 * MBIT);
    }
    world.out[4] = world.in[4] = 20 * MBIT;
    make_plan(&world, &plan);
    for (uint32_t i = 0; i < 8; i++) {
        cr_assert_neq(plan.parents[i], 4);
    }
    cr_assert_leq(plan.seconds, 1.5 * 10 * MB / (20 * MBIT));
    ps_overlay_plan_done(&plan);
}

Test(overlay_plan, colours_spread_over_workers)
{
    static world_t world;
    ps_overlay_plan_t one;
    ps_overlay_plan_t four;

    /* The workers' own wires limit: an inner one receives more than it sends. */
    make_world(&world, 8, 1, 100 * MBIT, 1000 * MBIT, 10 * MB);
    make_plan(&world, &one);
    world.load.n_colours = 4;
    for (uint32_t i = 0; i < 4; i++) {
        world.bytes[i] = 10 * MB / 4;
    }
    make_plan(&world, &four);
    cr_assert_leq(four.seconds, 0.6 * one.seconds, "%f of %f s", four.seconds, one.seconds);
    check_tournament(&world, &four, 1);
    ps_overlay_plan_done(&one);
    ps_overlay_plan_done(&four);
}

Test(overlay_plan, colours_of_two_nodes)
{
    static world_t world;
    ps_overlay_plan_t plan;

    make_world(&world, 8, 2, 1000 * MBIT, 100 * MBIT, 10 * MB);
    world.load.n_colours = 2;
    memcpy(world.bytes, (uint64_t[]){5 * MB, 0, 0, 5 * MB}, 4 * sizeof *world.bytes);
    make_plan(&world, &plan);
    cr_assert_leq(plan.seconds * 4, plan.star_s);
    check_tournament(&world, &plan, 1);
    ps_overlay_plan_done(&plan);
}

/* ---- ways that are not there ---- */

Test(overlay_plan, uses_listed_links_only)
{
    static world_t world;
    ps_overlay_plan_t plan;

    make_world(&world, 4, 1, 1000 * MBIT, 100 * MBIT, 10 * MB);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t j = 0; j < 4; j++) {
            bool listed = (i == 1 && j == 0) || (i == 2 && j == 3) || (i == 3 && j == 0);

            set_rate(&world, i, j, listed ? 1000 * MBIT : 0);
        }
    }
    make_plan(&world, &plan);
    cr_assert_eq(plan.parents[0], PS_OVERLAY_NODES);
    cr_assert_eq(plan.parents[1], 0);
    cr_assert_eq(plan.parents[2], 3);
    cr_assert_eq(plan.parents[3], 0);
    ps_overlay_plan_done(&plan);
}

Test(overlay_plan, splits_where_there_is_no_way)
{
    static world_t world;
    ps_overlay_plan_t plan;

    /* 2 and 3 reach nobody: their interval is split, and so is the one above. */
    make_world(&world, 4, 1, 1000 * MBIT, 100 * MBIT, 10 * MB);
    for (uint32_t i = 0; i < 4; i++) {
        for (uint32_t j = 2; j < 4; j++) {
            set_rate(&world, i, j, 0);
            set_rate(&world, j, i, 0);
        }
    }
    make_plan(&world, &plan);
    cr_assert_eq(plan.parents[2], PS_OVERLAY_NODES);
    cr_assert_eq(plan.parents[3], PS_OVERLAY_NODES);
    cr_assert_eq((plan.parents[0] == PS_OVERLAY_NODES) + (plan.parents[1] == PS_OVERLAY_NODES), 1);
    check_tournament(&world, &plan, 3);
    ps_overlay_plan_done(&plan);
}

Test(overlay_plan, no_links_at_all_is_the_star)
{
    static world_t world;
    ps_overlay_plan_t plan;

    make_world(&world, 5, 1, 1000 * MBIT, 100 * MBIT, 10 * MB);
    for (uint32_t i = 0; i < 5; i++) {
        for (uint32_t j = 0; j < 5; j++) {
            set_rate(&world, i, j, 0);
        }
    }
    make_plan(&world, &plan);
    check_tournament(&world, &plan, 5);
    cr_assert_float_eq(plan.seconds, plan.star_s, 1e-9);
    ps_overlay_plan_done(&plan);
}

Test(overlay_plan, one_span_of_each_site_crosses)
{
    static world_t world;
    ps_overlay_plan_t plan;
    uint32_t n_cross = 0;

    /* Sites of 3 and 5 workers, each in an interval of its own. */
    make_world(&world, 8, 1, 1000 * MBIT, 1000 * MBIT, 10 * MB);
    for (uint32_t i = 3; i < 8; i++) {
        world.positions[i] = 8 + i - 3;
        for (uint32_t j = 0; j < 9; j++) {
            if (j < 3 || j == 8) {
                set_rate(&world, i, j, 20 * MBIT);
                set_rate(&world, j, i, 20 * MBIT);
            }
        }
    }
    make_plan(&world, &plan);
    for (uint32_t i = 0; i < 8; i++) {
        uint32_t to = plan.parents[i];

        n_cross += (i >= 3) != (to >= 3 && to < 8) ? 1 : 0;
    }
    cr_assert_eq(n_cross, 1);
    check_tournament(&world, &plan, 1);
    ps_overlay_plan_done(&plan);
}

Test(overlay_plan, sixty_four_workers)
{
    static world_t world;
    ps_rng_t rng = {.state = 64};
    ps_overlay_plan_t plan;

    make_random(&world, &rng, 64, 10 * MB);
    make_plan(&world, &plan);
    check_tournament(&world, &plan, 1);
    cr_assert_lt(plan.seconds, plan.star_s);
    ps_overlay_plan_done(&plan);
}

Test(overlay_plan, one_worker)
{
    static world_t world;
    ps_overlay_plan_t plan;

    make_world(&world, 1, 1, 1000 * MBIT, 100 * MBIT, 10 * MB);
    make_plan(&world, &plan);
    cr_assert_eq(plan.parents[0], PS_OVERLAY_NODES);
    cr_assert_float_eq(plan.seconds, plan.star_s, 1e-9);
    ps_overlay_plan_done(&plan);
}

Test(overlay_plan, refuses_what_is_no_network)
{
    static world_t world;
    ps_overlay_plan_t plan;

    make_world(&world, 4, 1, MBIT, MBIT, MB);
    world.positions[2] = 1;
    cr_assert_eq(ps_overlay_plan_make(&world.network, &world.load, &plan, NULL), PSD_INVALID);
    world.positions[2] = 2;
    world.load.n_colours = PS_OVERLAY_COLOURS_MAX + 1;
    cr_assert_eq(ps_overlay_plan_make(&world.network, &world.load, &plan, NULL), PSD_INVALID);
    world.load.n_colours = 1;
    world.network.n_workers = 0;
    cr_assert_eq(ps_overlay_plan_make(&world.network, &world.load, &plan, NULL), PSD_INVALID);
}

/* ---- auto ---- */

Test(overlay_plan, auto_leaves_a_tree_that_does_not_keep_its_promise)
{
    ps_overlay_auto_t choice = {.uses_tree = false};
    ps_overlay_plan_t good = {.seconds = 1, .star_s = 6};
    ps_overlay_plan_t poor = {.seconds = 1, .star_s = 1.1};

    cr_assert(!ps_overlay_auto_choose(&choice, &poor, PS_OVERLAY_GAIN, 1));
    cr_assert(ps_overlay_auto_choose(&choice, &good, PS_OVERLAY_GAIN, 2));
    ps_overlay_auto_took(&choice, &good, 7, 2);
    ps_overlay_auto_took(&choice, &good, 7, 3);
    ps_overlay_auto_took(&choice, &good, 2, 4); /* one good clock: from the start again */
    ps_overlay_auto_took(&choice, &good, 7, 5);
    ps_overlay_auto_took(&choice, &good, 7, 6);
    cr_assert(ps_overlay_auto_choose(&choice, &good, PS_OVERLAY_GAIN, 7));
    ps_overlay_auto_took(&choice, &good, 7, 7);
    cr_assert(!ps_overlay_auto_choose(&choice, &good, PS_OVERLAY_GAIN, 8));
    cr_assert(!ps_overlay_auto_choose(&choice, &good, PS_OVERLAY_GAIN, 22));
    cr_assert(ps_overlay_auto_choose(&choice, &good, PS_OVERLAY_GAIN, 23));
    for (uint64_t clock = 23; clock < 26; clock++) {
        ps_overlay_auto_took(&choice, &good, 7, clock);
    }
    cr_assert(!ps_overlay_auto_choose(&choice, &good, PS_OVERLAY_GAIN, 25 + 31));
    cr_assert(ps_overlay_auto_choose(&choice, &good, PS_OVERLAY_GAIN, 25 + 32));
}

Test(overlay_plan, a_tree_that_lasts_makes_auto_forget_those_that_failed)
{
    ps_overlay_auto_t choice = {.wait = 64};
    ps_overlay_plan_t good = {.seconds = 1, .star_s = 6};

    cr_assert(ps_overlay_auto_choose(&choice, &good, PS_OVERLAY_GAIN, 100));
    ps_overlay_auto_took(&choice, &good, 2, 163);
    cr_assert_eq(choice.wait, 64);
    ps_overlay_auto_took(&choice, &good, 7, 164);
    cr_assert_eq(choice.wait, 64, "a slow clock is no reason");
    ps_overlay_auto_took(&choice, &good, 2, 165);
    cr_assert_eq(choice.wait, 0);
    for (uint64_t turn = 166; turn < 169; turn++) {
        ps_overlay_auto_took(&choice, &good, 7, turn);
    }
    cr_assert_eq(choice.wait, PS_OVERLAY_WAIT_TURNS);
}
