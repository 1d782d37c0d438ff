/* SPDX-License-Identifier: Apache-2.0 */
/* The search through many seeds, and the trace of the one that fails. */
#include <stdio.h>

#include "sim_overlay.h"
#include "sim_story.h"

#define SEEDS_MANY 100 /* enough for chances to even out */

typedef struct again {
    uint64_t seed;
    uint64_t weather;
} again_t;

static void tell_story(void *context, FILE *trace)
{
    const again_t *again = context;
    overlay_result_t result;

    overlay_run(again->seed, again->weather, trace, &result);
}

static void show(uint64_t seed, uint64_t weather, const char *violation)
{
    again_t again = {seed, weather};

    (void)printf("seed %" PRIu64 ", weather %" PRIu64 ": %s\n", seed, weather, violation);
    sim_story_show(tell_story, &again);
    (void)printf("seed %" PRIu64 ", weather %" PRIu64 ": %s\n", seed, weather, violation);
}

static void add(overlay_result_t *sum, const overlay_result_t *result)
{
    sum->n_events += result->n_events;
    sum->n_pulls += result->n_pulls;
    sum->n_bundles += result->n_bundles;
    sum->n_sums += result->n_sums;
    sum->n_relayed += result->n_relayed;
    sum->n_rows += result->n_rows;
    sum->n_back += result->n_back;
    sum->n_forgot += result->n_forgot;
    sum->n_turned += result->n_turned;
}

/* The same work without relays and faults. */
static bool has_same_bits(uint64_t seed, overlay_result_t *result)
{
    overlay_result_t plain;

    if (!result->is_repeatable) {
        return true;
    }
    overlay_run(seed, 0, NULL, &plain);
    if (plain.failed) {
        show(seed, 0, plain.violation);
        return false;
    }
    if (plain.digest != result->digest) {
        show(seed, seed, "C2: other bits than without relays");
        return false;
    }
    return true;
}

/* So little proves nothing. */
static bool is_enough(const overlay_result_t *sum, uint64_t n)
{
    return n < SEEDS_MANY ||
           (sum->n_bundles > 10 * n && sum->n_sums > n / 2 && sum->n_relayed > 4 * n &&
            sum->n_rows > n && sum->n_back > n && sum->n_forgot > n / 2 && sum->n_turned > n / 20);
}

uint64_t overlay_search(uint64_t first, uint64_t n, bool verbose)
{
    overlay_result_t sum = {.failed = false};

    for (uint64_t seed = first; seed < first + n; seed++) {
        overlay_result_t result;

        overlay_run(seed, seed, verbose ? stdout : NULL, &result);
        add(&sum, &result);
        if (result.failed) {
            show(seed, seed, result.violation);
            return seed;
        }
        if (!has_same_bits(seed, &result)) {
            return seed;
        }
    }
    (void)printf("%" PRIu64 " seeds from %" PRIu64 ": clean; %" PRIu64 " events, %" PRIu64
                 " pulls checked, %" PRIu64 " bundles taken, %" PRIu64 " with sums, %" PRIu64
                 " by other relays, %" PRIu64 " pulls from workers, %" PRIu64
                 " deltas given back, %" PRIu64 " relays forgot all, %" PRIu64 " rows turned\n",
                 n, first, sum.n_events, sum.n_pulls, sum.n_bundles, sum.n_sums, sum.n_relayed,
                 sum.n_rows, sum.n_back, sum.n_forgot, sum.n_turned);
    if (!is_enough(&sum, n)) {
        (void)printf("so little of that proves nothing\n");
        return first;
    }
    return UINT64_MAX;
}
