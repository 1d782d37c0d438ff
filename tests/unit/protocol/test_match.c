/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks of workers that ask, send, are lost: each delta reaches the nodes, and sums are
 * added in the fixed order only. */
#include "protocol/overlay/match.h"

#include <criterion/criterion.h>
#include <string.h>

#define MOST 16
#define ENDS (MOST + 1)

typedef struct world {
    ps_rng_t rng;
    ps_match_settings_t settings;
    ps_network_t network;
    uint32_t positions[MOST];
    double rates[ENDS * ENDS];
    bool measured[ENDS * ENDS];
    ps_match_t *match;
} world_t;

static void make_world(world_t *world, uint64_t seed, uint32_t n, uint32_t num, bool any_order)
{
    memset(world, 0, sizeof *world);
    world->rng.state = seed;
    for (uint32_t i = 0; i < n; i++) {
        world->positions[i] = i;
    }
    for (uint32_t i = 0; i < (n + 1) * (n + 1); i++) {
        world->rates[i] = 1 + ps_rng_f64(&world->rng);
    }
    world->network = (ps_network_t){
        .n_workers = n, .n_nodes = 1, .positions = world->positions, .rates = world->rates};
    world->settings = (ps_match_settings_t){.n_workers = n,
                                            .positions = world->positions,
                                            .num = num,
                                            .any_order = any_order,
                                            .greed = 0.5,
                                            .seed = seed};
    cr_assert_eq(ps_match_new(&world->settings, &world->match, NULL), PSD_OK);
}

static double *rate(world_t *world, uint32_t from, uint32_t to)
{
    return &world->rates[from * (world->network.n_workers + 1) + to];
}

static uint32_t decide(world_t *world, bool late, ps_match_answer_t *answers)
{
    uint32_t n = 0;

    cr_assert_eq(ps_match_decide(world->match, &world->network, late, answers, &n, NULL), PSD_OK);
    cr_assert_leq(n, world->network.n_workers);
    return n;
}

/* ---- one clock, event by event ---- */

typedef struct clock {
    world_t *world;
    bool asked[MOST];
    bool lost[MOST];
    uint32_t sum[MOST];   /* deltas that each worker holds, by bit */
    uint32_t sends[MOST]; /* the sum on its way */
    uint32_t to[MOST];
    bool is_sending[MOST];
    uint32_t arrived; /* at the nodes */
    uint32_t n_sums;  /* that went to the nodes */
} clock_t_;

/* An aligned interval that has all workers that are there. */
static void check_interval(const world_t *world, uint32_t sum)
{
    uint32_t first = (uint32_t)__builtin_ctz(sum);
    uint32_t last = 31 - (uint32_t)__builtin_clz(sum);

    for (uint32_t size = 1;; size *= 2) {
        uint32_t base = first / size * size;

        if (last / size == first / size) {
            for (uint32_t i = base; i < base + size && i < world->network.n_workers; i++) {
                cr_assert(sum >> i & 1, "the sum 0x%x lacks worker %u", sum, i);
            }
            return;
        }
    }
}

static void take_answers(clock_t_ *clock, const ps_match_answer_t *answers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = answers[i].from;

        cr_assert(clock->asked[from] && !clock->is_sending[from] && !clock->lost[from]);
        cr_assert_neq(clock->sum[from], 0);
        if (!clock->world->settings.any_order) {
            check_interval(clock->world, clock->sum[from]);
        }
        if (answers[i].to == PS_OVERLAY_NODES) {
            clock->arrived |= clock->sum[from];
            clock->sum[from] = 0;
            clock->n_sums++;
            continue;
        }
        cr_assert_gt(*rate(clock->world, from, answers[i].to), 0, "there is no way");
        cr_assert(!clock->lost[answers[i].to]);
        for (uint32_t j = 0; j < clock->world->network.n_workers; j++) {
            cr_assert(!clock->is_sending[j] || clock->to[j] != answers[i].to, "one at a time");
        }
        clock->is_sending[from] = true;
        clock->to[from] = answers[i].to;
        clock->sends[from] = clock->sum[from];
    }
}

static void arrive(clock_t_ *clock, uint32_t from)
{
    uint32_t to = clock->to[from];

    clock->is_sending[from] = false;
    if (clock->lost[to]) {
        return; /* told by its loss */
    }
    if (ps_rng_below(&clock->world->rng, 10) == 0) {
        ps_match_refused(clock->world->match, from, to);
        clock->arrived |= clock->sum[from];
        clock->n_sums++;
    } else {
        ps_match_taken(clock->world->match, from, to);
        clock->sum[to] |= clock->sends[from];
    }
    clock->sum[from] = 0;
}

static void lose(clock_t_ *clock, uint32_t worker)
{
    clock->lost[worker] = true;
    clock->is_sending[worker] = false;
    ps_match_lost(clock->world->match, worker);
    for (uint32_t i = 0; i < clock->world->network.n_workers; i++) {
        if (clock->is_sending[i] && clock->to[i] == worker) {
            clock->is_sending[i] = false; /* it has its sum still */
        }
    }
    /* Origins send what it held again, directly. */
    clock->arrived |= clock->sum[worker];
    clock->sum[worker] = 0;
}

/* One random event; false: nothing can happen. */
static bool step(clock_t_ *clock, bool loses)
{
    uint32_t n = clock->world->network.n_workers;
    uint32_t first = (uint32_t)ps_rng_below(&clock->world->rng, n);

    if (loses && ps_rng_below(&clock->world->rng, 40) == 0 && !clock->lost[first]) {
        lose(clock, first);
        return true;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t worker = (first + i) % n;

        if (clock->is_sending[worker]) {
            arrive(clock, worker);
            return true;
        }
        if (!clock->asked[worker] && !clock->lost[worker]) {
            clock->asked[worker] = true;
            ps_match_ask(clock->world->match, worker);
            return true;
        }
    }
    return false;
}

static uint32_t run_clock(world_t *world, bool loses)
{
    clock_t_ clock = {.world = world};
    uint32_t n = world->network.n_workers;
    ps_match_answer_t answers[MOST];

    ps_match_begin(world->match);
    for (uint32_t i = 0; i < n; i++) {
        clock.sum[i] = 1u << i;
    }
    while (step(&clock, loses)) {
        for (uint32_t n_now = 1; n_now > 0;) {
            n_now = decide(world, false, answers);
            take_answers(&clock, answers, n_now);
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        cr_assert(clock.arrived >> i & 1, "worker %u of %u is forgotten", i, n);
        ps_match_returned(world->match, i);
    }
    return clock.n_sums;
}

Test(match, every_delta_arrives)
{
    for (uint64_t seed = 1; seed <= 4000; seed++) {
        ps_rng_t rng = {.state = seed};
        world_t world;
        uint32_t n = 1 + (uint32_t)ps_rng_below(&rng, MOST);

        make_world(&world, seed, n, 1 + (uint32_t)ps_rng_below(&rng, n), seed % 2 == 0);
        if (seed % 3 == 0) { /* some ways are missing; to the nodes there is always one */
            for (uint32_t i = 0; i < n; i++) {
                for (uint32_t j = 0; j < n; j++) {
                    *rate(&world, i, j) *= (double)ps_rng_below(&rng, 2);
                }
            }
        }
        for (int clock = 0; clock < 5; clock++) {
            run_clock(&world, clock % 2 == 1);
        }
        ps_match_destroy(&world.match);
    }
}

/* ---- what is decided ---- */

Test(match, siblings_meet_over_the_faster_way)
{
    world_t world;
    ps_match_answer_t answers[MOST];

    make_world(&world, 1, 4, 4, false);
    *rate(&world, 0, 1) = 1;
    *rate(&world, 1, 0) = 2;
    *rate(&world, 2, 3) = 3;
    *rate(&world, 3, 2) = 1;
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(decide(&world, false, answers), 0, "not before all have asked");
        ps_match_ask(world.match, i);
    }
    cr_assert_eq(decide(&world, false, answers), 2);
    cr_assert_eq(answers[0].from, 1);
    cr_assert_eq(answers[0].to, 0);
    cr_assert_eq(answers[1].from, 2);
    cr_assert_eq(answers[1].to, 3);
    ps_match_taken(world.match, 1, 0);
    ps_match_taken(world.match, 2, 3);
    *rate(&world, 0, 3) = 5;
    *rate(&world, 3, 0) = 4;
    cr_assert_eq(decide(&world, false, answers), 1);
    cr_assert_eq(answers[0].from, 0);
    cr_assert_eq(answers[0].to, 3);
    ps_match_taken(world.match, 0, 3);
    cr_assert_eq(decide(&world, false, answers), 1);
    cr_assert_eq(answers[0].from, 3);
    cr_assert_eq(answers[0].to, PS_OVERLAY_NODES);
    ps_match_destroy(&world.match);
}

Test(match, the_first_goes_to_one_that_still_works)
{
    world_t world;
    ps_match_answer_t answers[MOST];

    make_world(&world, 1, 2, 1, false);
    ps_match_ask(world.match, 1);
    cr_assert_eq(decide(&world, false, answers), 1);
    cr_assert_eq(answers[0].to, 0);
    ps_match_destroy(&world.match);
}

Test(match, late_askers_go_to_the_nodes)
{
    world_t world;
    ps_match_answer_t answers[MOST];

    make_world(&world, 1, 4, 4, false);
    ps_match_ask(world.match, 0);
    ps_match_ask(world.match, 2);
    cr_assert_eq(decide(&world, false, answers), 0);
    cr_assert_eq(decide(&world, true, answers), 2);
    cr_assert_eq(answers[0].to, PS_OVERLAY_NODES);
    /* What is left of their intervals follows: nobody can add it up. */
    ps_match_ask(world.match, 1);
    ps_match_ask(world.match, 3);
    cr_assert_eq(decide(&world, false, answers), 2);
    cr_assert_eq(answers[0].to, PS_OVERLAY_NODES);
    cr_assert_eq(answers[1].to, PS_OVERLAY_NODES);
    ps_match_destroy(&world.match);
}

Test(match, half_of_many_askers_receive)
{
    world_t world;
    ps_match_answer_t answers[MOST];
    uint32_t n_to_nodes = 0;

    make_world(&world, 3, 8, 8, true);
    for (uint32_t i = 0; i < 8; i++) {
        ps_match_ask(world.match, i);
    }
    uint32_t n = decide(&world, false, answers);

    for (uint32_t i = 0; i < n; i++) {
        n_to_nodes += answers[i].to == PS_OVERLAY_NODES ? 1 : 0;
    }
    cr_assert(n == 4 || n == 5, "%u", n);
    cr_assert_leq(n_to_nodes, 1);
    ps_match_destroy(&world.match);
}

/* ---- down ---- */

Test(match, everyone_is_served_once_in_few_rounds)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        world_t world;
        uint32_t holders[ENDS] = {PS_OVERLAY_NODES};
        uint32_t n_holders = 1;
        uint32_t served = 0;
        int rounds = 0;

        make_world(&world, seed, 15, 1, false);
        for (uint32_t now = 1; now > 0; rounds++) {
            uint32_t before = n_holders;

            now = 0;
            for (uint32_t i = 0; i < before; i++) {
                uint32_t to =
                    ps_match_receiver(world.match, &world.network, world.measured, holders[i]);

                if (to != PS_MATCH_NOBODY) {
                    cr_assert_eq(served >> to & 1, 0);
                    served |= 1u << to;
                    holders[n_holders++] = to;
                    now++;
                }
            }
        }
        cr_assert_eq(served, 0x7fff);
        cr_assert_leq(rounds, 5, "four rounds and one that finds nobody");
        ps_match_destroy(&world.match);
    }
}

/* How often the best of 4 is chosen, of 4000. */
static uint32_t n_best(double greed, bool measured)
{
    world_t world;
    uint32_t n = 0;

    make_world(&world, 9, 4, 1, false);
    ps_match_destroy(&world.match);
    world.settings.greed = greed;
    cr_assert_eq(ps_match_new(&world.settings, &world.match, NULL), PSD_OK);
    memset(world.measured, measured, sizeof world.measured);
    for (uint32_t i = 0; i < 4; i++) {
        *rate(&world, 4, i) = i == 2 ? 9 : 1;
    }
    for (int i = 0; i < 4000; i++) {
        ps_match_begin(world.match);
        n += ps_match_receiver(world.match, &world.network, world.measured, PS_OVERLAY_NODES) == 2
                 ? 1
                 : 0;
    }
    ps_match_destroy(&world.match);
    return n;
}

Test(match, greed_is_how_often_the_best_is_taken)
{
    cr_assert_eq(n_best(1, true), 4000);
    cr_assert_eq(n_best(0, true), 0);
    cr_assert_eq(n_best(0, false), 4000, "an unmeasured best is tried");
    cr_assert(abs((int)n_best(0.5, true) - 2000) < 200, "%u of 4000", n_best(0.5, true));
}

Test(match, unmeasured_links_are_tried_first)
{
    world_t world;

    make_world(&world, 9, 4, 1, false);
    ps_match_destroy(&world.match);
    world.settings.greed = 0;
    cr_assert_eq(ps_match_new(&world.settings, &world.match, NULL), PSD_OK);
    memset(world.measured, true, sizeof world.measured);
    world.measured[4 * 5 + 1] = false;
    *rate(&world, 4, 1) = 0.5;
    for (int i = 0; i < 100; i++) {
        ps_match_begin(world.match);
        cr_assert_eq(
            ps_match_receiver(world.match, &world.network, world.measured, PS_OVERLAY_NODES), 1);
    }
    ps_match_destroy(&world.match);
}

Test(match, who_was_not_served_is_served_by_another)
{
    world_t world;

    make_world(&world, 9, 2, 1, false);
    uint32_t first =
        ps_match_receiver(world.match, &world.network, world.measured, PS_OVERLAY_NODES);
    uint32_t second =
        ps_match_receiver(world.match, &world.network, world.measured, PS_OVERLAY_NODES);

    cr_assert_eq(first + second, 1);
    cr_assert_eq(ps_match_receiver(world.match, &world.network, world.measured, first),
                 PS_MATCH_NOBODY);
    ps_match_unserved(world.match, second);
    cr_assert_eq(ps_match_receiver(world.match, &world.network, world.measured, first), second);
    ps_match_destroy(&world.match);
}
