/* SPDX-License-Identifier: Apache-2.0 */
/* What the seeds decide: the table and the workers; the weather. */
#include <stdio.h>

#include "base/hash.h"
#include "sim_overlay.h"

#define BITS 62 /* of an i64 that deltas may have */

static uint64_t between(ps_rng_t *rng, uint64_t low, uint64_t high)
{
    return low + ps_rng_below(rng, high - low + 1);
}

static bool chance(ps_rng_t *rng, uint32_t percent)
{
    return ps_rng_below(rng, 100) < percent;
}

static void plan_table(overlay_plan_t *plan, ps_rng_t *rng)
{
    ps_table_spec_t *spec = &plan->spec;
    uint32_t partition = 0;

    ps_table_spec_init(spec);
    (void)snprintf(spec->name, sizeof spec->name, "ledger");
    spec->n_partitions = (uint32_t)between(rng, 1, OVERLAY_PARTITIONS_MAX);
    spec->n_rows = between(rng, spec->n_partitions, spec->n_partitions * UINT64_C(4));
    spec->n_cols = (uint32_t)between(rng, 1, 2);
    spec->n_col_slices = 1;
    spec->type = PS_TYPE_I64;
    if (plan->max_delay == 0) {
        spec->type = chance(rng, 50) ? PS_TYPE_F32 : PS_TYPE_I64;
        spec->combine = PS_COMBINE_CLOCK_SUM;
    }
    if (spec->type == PS_TYPE_F32) {
        spec->combine = chance(rng, 30) ? PS_COMBINE_CLOCK_MEAN : PS_COMBINE_CLOCK_SUM;
        plan->is_huge = chance(rng, 15);
    }
    for (uint32_t row = 0; row < spec->n_rows; row++) {
        while (partition < ps_row_slice_of(spec, row)) {
            plan->first_row[++partition] = row;
        }
    }
    while (partition < spec->n_partitions) {
        plan->first_row[++partition] = (uint32_t)spec->n_rows;
    }
}

/* Ranks, which are positions, often with gaps. */
static void plan_workers(overlay_plan_t *plan, ps_rng_t *rng)
{
    uint32_t rank = (uint32_t)ps_rng_below(rng, 2);

    plan->n_ranks = (uint32_t)between(rng, 2, OVERLAY_RANKS_MAX);
    for (uint32_t i = 0; i < plan->n_ranks; i++) {
        plan->ranks[i] = rank;
        rank += chance(rng, 20) ? (uint32_t)between(rng, 2, 3) : 1;
    }
    if (plan->n_ranks > 2 && chance(rng, 35)) {
        plan->killed[0] = (uint32_t)ps_rng_below(rng, plan->n_ranks);
        plan->again = chance(rng, 50);
    }
    if (plan->killed[0] != UINT32_MAX && chance(rng, 20)) {
        plan->killed[1] = (plan->killed[0] + 1) % plan->n_ranks;
    }
}

void overlay_plan_make(uint64_t seed, overlay_plan_t *ret_plan)
{
    static const int32_t delays[] = {0, 0, 0, 1, 2, -1};
    ps_rng_t rng = {.state = ps_hash_u64(seed * 2 + 1)};
    overlay_plan_t *plan = ret_plan;

    *plan = (overlay_plan_t){.killed = {UINT32_MAX, UINT32_MAX}};
    plan->max_delay = delays[ps_rng_below(&rng, 6)];
    plan->n_shards = (uint32_t)between(&rng, 1, OVERLAY_SHARDS_MAX);
    plan_workers(plan, &rng);
    plan_table(plan, &rng);
    plan->n_pushes = BITS / (plan->n_ranks + (plan->again ? 1 : 0));
    plan->n_clocks = between(&rng, 4, 12);
    if (plan->spec.type == PS_TYPE_F32) {
        plan->n_pushes = 2 * (uint32_t)plan->n_clocks;
    }
    plan->in_step = chance(&rng, 60);
    plan->shares_rows = plan->max_delay == 0 && chance(&rng, 70);
}

/* Workers that are in time for each other, and little that goes wrong: whole sums are made. */
static void make_gentle(overlay_weather_t *weather, ps_rng_t *rng)
{
    weather->loss = 0;
    weather->crash = chance(rng, 70) ? 0 : weather->crash;
    weather->fault_ms = chance(rng, 70) ? 0 : weather->fault_ms;
    weather->plan_ms = chance(rng, 60) ? 0 : weather->plan_ms;
    weather->ignorant = 0;
    weather->think_ms = (uint32_t)between(rng, 1, 20);
    weather->delay_ms = (uint32_t)between(rng, 1, 6);
    weather->hold_ms = 300;
    weather->chunk_bytes = OVERLAY_CHUNK_BYTES;
    weather->limit_bytes = 1 << 20;
}

void overlay_weather_make(uint64_t seed, overlay_weather_t *ret_weather)
{
    static const uint32_t losses[] = {0, 0, 0, 5, 30, 150};
    static const uint32_t repeats[] = {0, 0, 30, 150};
    static const uint32_t late[] = {0, 0, 40, 150};
    static const uint32_t turned[] = {0, 0, 50, 400};
    static const uint32_t crashes[] = {0, 0, 20, 60, 150};
    static const uint32_t ignorants[] = {0, 0, 200, 600};
    static const uint32_t limits[] = {1 << 20, 1 << 20, 1 << 20, 6000, 2500};
    static const uint32_t faults[] = {0, 0, 1500, 500, 150};
    static const uint32_t plans[] = {0, 1000, 300, 120, 60};
    static const uint32_t thoughts[] = {1, 5, 20, 30, 50, 300};
    static const uint32_t holds[] = {5, 50, 50, 150, 300};
    ps_rng_t rng = {.state = ps_hash_u64(seed * 2)};

    *ret_weather = (overlay_weather_t){.delay_ms = 1,
                                       .think_ms = 20,
                                       .hold_ms = 50,
                                       .chunk_bytes = OVERLAY_CHUNK_BYTES,
                                       .resend_ms = 250,
                                       .limit_bytes = 1 << 20};
    if (seed == 0) {
        return;
    }
    ret_weather->has_relays = true;
    ret_weather->loss = losses[ps_rng_below(&rng, 6)];
    ret_weather->repeat = repeats[ps_rng_below(&rng, 4)];
    ret_weather->late = late[ps_rng_below(&rng, 4)];
    ret_weather->turned = turned[ps_rng_below(&rng, 4)];
    ret_weather->crash = crashes[ps_rng_below(&rng, 5)];
    ret_weather->ignorant = ignorants[ps_rng_below(&rng, 4)];
    ret_weather->limit_bytes = limits[ps_rng_below(&rng, 5)];
    ret_weather->fault_ms = faults[ps_rng_below(&rng, 5)];
    ret_weather->plan_ms = plans[ps_rng_below(&rng, 5)];
    ret_weather->think_ms = thoughts[ps_rng_below(&rng, 6)];
    ret_weather->delay_ms = (uint32_t)between(&rng, 1,
                                              chance(&rng, 50)   ? 4
                                              : chance(&rng, 80) ? 30
                                                                 : 300);
    ret_weather->hold_ms = holds[ps_rng_below(&rng, 5)];
    ret_weather->chunk_bytes = chance(&rng, 80) ? OVERLAY_CHUNK_BYTES : 320;
    ret_weather->calm_ms = between(&rng, 1000, 12000);
    if (chance(&rng, 35)) {
        make_gentle(ret_weather, &rng);
    }
}
