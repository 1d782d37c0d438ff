/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/overlay/overlay_turns.h: sums that can be made, over ways that there are, and the same
 * as what all possible plans say is best. */
#include "protocol/overlay/overlay_turns.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/fail_alloc.h"

#define MOST 16
#define NODES PS_OVERLAY_NODES

typedef struct game {
    ps_rng_t rng;
    ps_overlay_turns_t turns;
    uint32_t positions[MOST];
    double rates[MOST * MOST];
    bool known[MOST * MOST];
    double late_s[MOST];
    uint32_t parents[MOST];
} game_t;

static double *rate(game_t *game, uint32_t from, uint32_t to)
{
    return &game->rates[from * game->turns.n_workers + to];
}

static void open_game(game_t *game, uint64_t seed, uint32_t n)
{
    *game = (game_t){.rng = {.state = seed}};
    game->turns = (ps_overlay_turns_t){.n_workers = n,
                                       .positions = game->positions,
                                       .rates = game->rates,
                                       .known = game->known,
                                       .late_s = game->late_s,
                                       .bytes = 100,
                                       .num = 1,
                                       .greed = 1,
                                       .rng = &game->rng};
    for (uint32_t i = 0; i < n; i++) {
        game->positions[i] = i;
        for (uint32_t j = 0; j < n; j++) {
            *rate(game, i, j) = i == j ? 0 : 1 + ps_rng_f64(&game->rng);
            game->known[i * n + j] = true;
        }
    }
}

static void play(game_t *game)
{
    cr_assert_eq(ps_overlay_turns_play(&game->turns, game->parents, NULL), PSD_OK);
}

/* ---- any network, any time ---- */

/* The workers whose deltas come through this one, by bit. */
static uint32_t through(const uint32_t *parents, uint32_t n, uint32_t worker)
{
    uint32_t all = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i;
        uint32_t steps = 0;

        while (at != worker && at != NODES && steps++ < n) {
            at = parents[at];
        }
        all |= at == worker ? UINT32_C(1) << i : 0;
    }
    return all;
}

/* Into how few sums can these be added? Halves of the positions, where all of both are there. */
static uint32_t count_sums(const game_t *game, uint32_t all)
{
    uint32_t n_sums = 0;

    for (uint32_t i = 0; i < game->turns.n_workers;) {
        uint32_t n_best = 1;

        if ((all >> i & 1) == 0) {
            i++;
            continue;
        }
        for (uint32_t bits = 1; bits <= 8; bits++) {
            uint32_t n = 0;
            bool has_all = i == 0 || game->positions[i - 1] >> bits != game->positions[i] >> bits;

            for (; i + n < game->turns.n_workers &&
                   game->positions[i + n] >> bits == game->positions[i] >> bits;
                 n++) {
                has_all = has_all && (all >> (i + n) & 1) != 0;
            }
            n_best = has_all ? n : n_best;
        }
        n_sums++;
        i += n_best;
    }
    return n_sums;
}

/* Sums that come to the nodes; UINT32_MAX: a worker sends more than one, where there is no way,
 * or round in a circle. */
static uint32_t judge(game_t *game, const uint32_t *parents)
{
    uint32_t n = game->turns.n_workers;
    uint32_t n_sums = 0;
    uint32_t arrived = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t all = through(parents, n, i);

        if (parents[i] == NODES) {
            n_sums += count_sums(game, all);
            arrived |= all;
        } else if (parents[i] >= n || *rate(game, i, parents[i]) <= 0 ||
                   count_sums(game, all) != 1) {
            return UINT32_MAX;
        }
    }
    return arrived == (UINT32_C(1) << n) - 1 ? n_sums : UINT32_MAX;
}

Test(overlay_turns, every_worker_sends_one_sum_where_there_is_a_way)
{
    for (uint64_t seed = 1; seed <= 6000; seed++) {
        ps_rng_t rng = {.state = seed};
        uint32_t n = 1 + (uint32_t)ps_rng_below(&rng, MOST);
        bool is_complete = seed % 3 == 0;
        uint32_t position = 0;
        game_t game;

        open_game(&game, seed, n);
        game.turns.num = 1 + (uint32_t)ps_rng_below(&rng, n);
        game.turns.greed = ps_rng_f64(&rng);
        for (uint32_t i = 0; i < n; i++) {
            position += 1 + (uint32_t)ps_rng_below(&rng, 4);
            game.positions[i] = position;
            game.late_s[i] = (double)ps_rng_below(&rng, 300);
            for (uint32_t j = 0; j < n && !is_complete; j++) {
                *rate(&game, i, j) *= (double)ps_rng_below(&rng, 2);
                game.known[i * n + j] = ps_rng_below(&rng, 2) == 0;
            }
        }
        play(&game);
        cr_assert_neq(judge(&game, game.parents), UINT32_MAX, "seed %lu", (unsigned long)seed);
        cr_assert(!is_complete || judge(&game, game.parents) == 1, "seed %lu", (unsigned long)seed);
    }
}

/* ---- against all plans there are ---- */

/* The fewest sums that come to the nodes, by any plan. */
static uint32_t find_fewest(game_t *game)
{
    uint32_t n = game->turns.n_workers;
    uint32_t parents[MOST] = {0};
    uint32_t fewest = UINT32_MAX;
    uint32_t n_plans = 1;

    for (uint32_t i = 0; i < n; i++) {
        n_plans *= n;
    }
    for (uint32_t k = 0; k < n_plans; k++) {
        for (uint32_t i = 0, left = k; i < n; i++, left /= n) {
            parents[i] = left % n == i ? NODES : left % n;
        }
        uint32_t n_sums = judge(game, parents);

        fewest = n_sums < fewest ? n_sums : fewest;
    }
    return fewest;
}

/* Who is first may take a way that leads nowhere later; not often. */
Test(overlay_turns, with_few_ways_hardly_more_sums_than_by_the_best_plan)
{
    uint32_t n_best = 0;
    uint32_t n_games = 0;

    for (uint64_t seed = 1; seed <= 1000; seed++) {
        ps_rng_t rng = {.state = seed};
        uint32_t n = 2 + (uint32_t)ps_rng_below(&rng, 4);
        uint32_t n_ways = 1 + (uint32_t)ps_rng_below(&rng, 4);
        game_t game;
        uint32_t fewest = 0;
        uint32_t n_sums = 0;

        open_game(&game, seed, n);
        game.turns.num = n;
        for (uint32_t i = 0; i < n * n; i++) {
            game.rates[i] *= ps_rng_below(&rng, 4) < n_ways ? 1 : 0;
        }
        play(&game);
        fewest = find_fewest(&game);
        n_sums = judge(&game, game.parents);
        cr_assert_geq(n_sums, fewest);
        n_games++;
        n_best += n_sums == fewest ? 1 : 0;
    }
    cr_log_info("%u of %u are best", n_best, n_games);
    cr_assert_geq(n_best * 20, n_games * 19, "%u of %u", n_best, n_games);
}

/* All are there at once, and all links are known: of each pair of halves that meet, the faster way
 * is taken, so the slowest of them is as fast as can be. */
Test(overlay_turns, pairs_take_the_fastest_slowest_way)
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        game_t game;
        double slowest = INFINITY;
        double best = 0;

        open_game(&game, seed, 8);
        game.turns.num = 8;
        play(&game);
        for (uint32_t i = 0; i < 8; i += 2) { /* the first four */
            cr_assert(game.parents[i] == i + 1 || game.parents[i + 1] == i);
            slowest = fmin(slowest, game.parents[i] == i + 1 ? *rate(&game, i, i + 1)
                                                             : *rate(&game, i + 1, i));
        }
        for (uint32_t k = 0; k < 16; k++) {
            double least = INFINITY;

            for (uint32_t i = 0; i < 4; i++) {
                bool turned = (k >> i & 1) != 0;

                least = fmin(least, *rate(&game, 2 * i + turned, 2 * i + !turned));
            }
            best = fmax(best, least);
        }
        cr_assert_float_eq(slowest, best, 1e-12);
    }
}

/* ---- what is decided ---- */

Test(overlay_turns, who_is_first_sends_to_who_still_works)
{
    const uint32_t wanted[4] = {1, 3, 3, NODES};
    game_t game;

    open_game(&game, 1, 4);
    for (uint32_t i = 0; i < 4; i++) {
        game.late_s[i] = 1000.0 * i;
    }
    play(&game);
    cr_assert_arr_eq(game.parents, wanted, sizeof wanted);
}

Test(overlay_turns, those_that_wait_together_take_the_faster_way)
{
    const uint32_t wanted[4] = {1, 2, NODES, 2};
    game_t game;

    open_game(&game, 1, 4);
    game.turns.num = 4;
    *rate(&game, 0, 1) = 4;
    *rate(&game, 3, 2) = 4;
    *rate(&game, 1, 2) = 4;
    for (uint32_t i = 0; i < 4; i++) {
        game.late_s[i] = 1000.0 * i;
    }
    play(&game);
    cr_assert_arr_eq(game.parents, wanted, sizeof wanted);
}

/* Worker 0 is ready, and 1 is in 10 s. One way takes 50 s, and the other one 39 s or 41 s. */
Test(overlay_turns, who_is_first_waits_for_a_way_that_is_so_much_faster)
{
    for (uint32_t is_faster = 0; is_faster < 2; is_faster++) {
        game_t game;

        open_game(&game, 1, 2);
        game.late_s[1] = 10;
        *rate(&game, 0, 1) = 2;
        *rate(&game, 1, 0) = 100.0 / (is_faster == 1 ? 39 : 41);
        play(&game);
        cr_assert_eq(game.parents[0], is_faster == 1 ? NODES : 1);
        cr_assert_eq(game.parents[1], is_faster == 1 ? 0 : NODES);
    }
}

/* Worker 0 is the only one to which others have a way. */
Test(overlay_turns, one_may_gather_what_all_others_have)
{
    const uint32_t wanted[4] = {NODES, 0, 0, 0};
    game_t game;

    open_game(&game, 1, 4);
    memset(game.rates, 0, sizeof game.rates);
    for (uint32_t i = 1; i < 4; i++) {
        *rate(&game, i, 0) = i;
    }
    play(&game);
    cr_assert_arr_eq(game.parents, wanted, sizeof wanted);
}

/* Over the faster way worker 0 would have the sum, and nobody to give it to. */
Test(overlay_turns, a_slower_way_that_leads_on_is_taken)
{
    const uint32_t wanted[4] = {1, 2, NODES, 2};
    game_t game;

    open_game(&game, 1, 4);
    game.turns.num = 4;
    memset(game.rates, 0, sizeof game.rates);
    *rate(&game, 0, 1) = 1;
    *rate(&game, 1, 0) = 9;
    *rate(&game, 1, 2) = 1;
    *rate(&game, 3, 2) = 1;
    play(&game);
    cr_assert_arr_eq(game.parents, wanted, sizeof wanted);
}

Test(overlay_turns, without_ways_all_go_to_the_nodes)
{
    game_t game;

    open_game(&game, 1, 5);
    memset(game.rates, 0, sizeof game.rates);
    play(&game);
    for (uint32_t i = 0; i < 5; i++) {
        cr_assert_eq(game.parents[i], NODES);
    }
}

/* Of 4000 choices between two ways, how often the slower one is taken. */
static uint32_t count_slower(double greed, bool is_known, uint32_t num)
{
    game_t game;
    uint32_t n = 0;

    open_game(&game, 7, 2);
    game.turns.num = num;
    game.turns.greed = greed;
    *rate(&game, 0, 1) = 3;
    game.known[1] = is_known;
    for (uint32_t i = 0; i < 4000; i++) {
        play(&game);
        n += game.parents[1] == 0 ? 1 : 0;
    }
    return n;
}

Test(overlay_turns, greed_says_how_often_the_best_is_taken)
{
    for (uint32_t num = 1; num <= 2; num++) {
        uint32_t n_slower = count_slower(0.75, true, num);

        cr_assert_eq(count_slower(1, true, num), 0);
        cr_assert_eq(count_slower(0, true, num), 4000);
        cr_assert_eq(count_slower(0, false, num), 0, "the faster way is not measured");
        cr_assert(n_slower > 850 && n_slower < 1150, "%u", n_slower); /* 1000, 5.5 sigma */
    }
}

/* ---- many workers ---- */

#define MANY 512u

typedef struct crowd {
    uint32_t positions[MANY];
    double rates[MANY * MANY];
    bool known[MANY * MANY];
    double late_s[MANY];
    uint32_t parents[MANY];
} crowd_t;

/* Which links there are. */
typedef enum net { NET_ALL, NET_FEW, NET_PAIRS, NET_EVEN, NETS } net_t;

static bool has_way(net_t net, uint32_t from, uint32_t to, ps_rng_t *rng)
{
    switch (net) {
    case NET_FEW:
        return ps_rng_below(rng, 64) == 0;
    case NET_PAIRS: /* and even ones to all even ones */
        return from / 2 == to / 2 || (from % 2 == 0 && to % 2 == 0);
    case NET_EVEN: /* no pair of neighbours */
        return from % 2 == 0 && to % 2 == 0;
    case NET_ALL:
    case NETS:
        break;
    }
    return true;
}

/* All workers send where there is a way, and not round in a circle. Returns those that send to the
 * nodes. */
static uint32_t count_last(const crowd_t *crowd)
{
    uint32_t n_last = 0;

    for (uint32_t i = 0; i < MANY; i++) {
        uint32_t at = i;
        uint32_t steps = 0;

        while (crowd->parents[at] != NODES && steps++ < MANY) {
            cr_assert_gt(crowd->rates[at * MANY + crowd->parents[at]], 0);
            at = crowd->parents[at];
        }
        cr_assert_eq(crowd->parents[at], NODES, "a circle");
        n_last += crowd->parents[i] == NODES ? 1 : 0;
    }
    return n_last;
}

/* The registry plays in its own thread. What it looks at does not grow faster than the links. */
Test(overlay_turns, five_hundred_workers_cost_a_few_looks_at_each_link)
{
    crowd_t *crowd = calloc(1, sizeof *crowd);
    ps_rng_t rng = {.state = 5};

    cr_assert_not_null(crowd);
    for (uint32_t k = 0; k < NETS * 2; k++) {
        uint64_t n_looks = 0;
        const ps_overlay_turns_t turns = {.n_workers = MANY,
                                          .positions = crowd->positions,
                                          .rates = crowd->rates,
                                          .known = crowd->known,
                                          .late_s = crowd->late_s,
                                          .bytes = 100,
                                          .num = k % 2 == 0 ? 1 : MANY / 10,
                                          .greed = 0.5,
                                          .rng = &rng,
                                          .n_looks = &n_looks};

        for (uint32_t i = 0; i < MANY; i++) {
            crowd->positions[i] = i;
            crowd->late_s[i] = i % 2 == 0 ? i : 1000 + i;
            for (uint32_t j = 0; j < MANY; j++) {
                bool has = i != j && has_way((net_t)(k / 2), i, j, &rng);

                crowd->rates[i * MANY + j] = has ? 1 + ps_rng_f64(&rng) : 0;
            }
        }
        cr_assert_eq(ps_overlay_turns_play(&turns, crowd->parents, NULL), PSD_OK);
        cr_assert(count_last(crowd) == 1 || k / 2 != NET_ALL);
        cr_assert_lt(n_looks, UINT64_C(6) * MANY * MANY, "net %u: %lu", k, (unsigned long)n_looks);
    }
    free(crowd);
}

Test(overlay_turns, without_memory_there_is_an_error)
{
    game_t game;
    psd_status_t rc = PSD_NOMEM;

    open_game(&game, 1, 3);
    for (size_t i = 0; rc != PSD_OK; i++) {
        fail_alloc_at(i);
        rc = ps_overlay_turns_play(&game.turns, game.parents, NULL);
        fail_alloc_off();
        cr_assert(rc == PSD_NOMEM || i == 3);
    }
}
