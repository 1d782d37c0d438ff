/* SPDX-License-Identifier: Apache-2.0 */
/* The search through many seeds, and the trace of the one that fails. */
#include <inttypes.h>
#include <stdio.h>

#include "sim.h"
#include "sim_story.h"

#define SEEDS_MANY 100 /* enough for chances to even out */

typedef struct again {
    uint64_t seed;
    uint64_t weather;
} again_t;

static void tell_story(void *context, FILE *trace)
{
    const again_t *again = context;
    sim_result_t result;

    sim_run(again->seed, again->weather, trace, &result);
}

static void show(uint64_t seed, uint64_t weather, const char *violation)
{
    again_t again = {seed, weather};

    (void)printf("seed %" PRIu64 ", weather %" PRIu64 ": %s\n", seed, weather, violation);
    sim_story_show(tell_story, &again);
    (void)printf("seed %" PRIu64 ", weather %" PRIu64 ": %s\n", seed, weather, violation);
}

uint64_t sim_search(uint64_t first, uint64_t n, bool verbose)
{
    uint64_t n_events = 0;
    uint64_t n_pulls = 0;
    uint64_t n_batches = 0;
    uint64_t n_under_way = 0;
    uint64_t n_coded = 0;
    uint64_t n_bundles = 0;
    uint64_t n_sums = 0;

    for (uint64_t seed = first; seed < first + n; seed++) {
        uint64_t other = seed + (UINT64_C(1) << 32);
        sim_result_t result;
        sim_result_t again;

        sim_run(seed, seed, verbose ? stdout : NULL, &result);
        n_events += result.n_events;
        n_pulls += result.n_pulls;
        n_batches += result.n_batches;
        n_under_way += result.n_under_way;
        n_coded += result.n_coded;
        n_bundles += result.n_bundles;
        n_sums += result.n_sums;
        if (result.failed) {
            show(seed, seed, result.violation);
            return seed;
        }
        if (!result.is_repeatable) {
            continue;
        }
        sim_run(seed, other, NULL, &again);
        if (!again.failed && again.digest != result.digest) {
            again.failed = true;
            (void)snprintf(again.violation, sizeof again.violation,
                           "C2: other bits than in weather %" PRIu64, seed);
        }
        if (again.failed) {
            show(seed, other, again.violation);
            return seed;
        }
    }
    (void)printf("%" PRIu64 " seeds from %" PRIu64 ": clean; %" PRIu64 " events, %" PRIu64
                 " answers checked, %" PRIu64 " batches, %" PRIu64
                 " requests through filters, %" PRIu64 " repeated while their values came, %" PRIu64
                 " bundles, %" PRIu64 " with sums\n",
                 n, first, n_events, n_pulls, n_batches, n_coded, n_under_way, n_bundles, n_sums);
    if (n >= SEEDS_MANY && (n_batches < n || n_coded < n || n_under_way < n / 10 ||
                            n_bundles < n / 4 || n_sums < n / 50)) {
        (void)printf("so few batches, filters, repetitions and bundles prove nothing\n");
        return first;
    }
    return UINT64_MAX;
}
