/* SPDX-License-Identifier: Apache-2.0 */
/* What a seed decides: the table, the workers, the weather, and every line of
 * every client's script. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "sim.h"

static uint64_t between(ps_rng_t *rng, uint64_t low, uint64_t high)
{
    return low + ps_rng_below(rng, high - low + 1);
}

static bool chance(ps_rng_t *rng, uint32_t percent)
{
    return ps_rng_below(rng, 100) < percent;
}

static void plan_table(sim_plan_t *plan, ps_rng_t *rng)
{
    ps_table_spec_t *spec = &plan->spec;
    bool bsp = plan->max_delay == 0;

    ps_table_spec_init(spec);
    (void)snprintf(spec->name, sizeof spec->name, "ledger");
    plan->n_rows = (uint32_t)between(rng, 4, SIM_ROWS_MAX);
    spec->keys = chance(rng, 50) ? PS_KEYS_RANGE : PS_KEYS_HASH;
    spec->n_rows = spec->keys == PS_KEYS_RANGE ? plan->n_rows : 0;
    spec->n_cols = plan->n_clients + 1;
    spec->type = chance(rng, 50) ? PS_TYPE_I64 : PS_TYPE_I32;
    if (bsp && chance(rng, 40)) {
        spec->type = PS_TYPE_F32;
    }
    spec->row_format = (ps_row_format_t)between(rng, 1, 3);
    spec->partition_by = chance(rng, 50) ? PS_PARTITION_BY_RANGE : PS_PARTITION_BY_HASH;
    spec->n_partitions = (uint32_t)between(rng, 1, SIM_PARTITIONS_MAX);
    spec->n_col_slices = 1;
    for (uint32_t i = 0; i < plan->n_rows; i++) {
        plan->keys[i] = spec->keys == PS_KEYS_RANGE ? i : ps_hash_u64(i + UINT64_C(1000));
    }
}

/* Of its own draws, so that the rest of a seed's world stays as it is. A mean is
 * no whole number: only other runs can check its bits. */
static void plan_combine(sim_plan_t *plan, uint64_t seed)
{
    ps_rng_t rng = {.state = ps_hash_u64(seed ^ (UINT64_C(1) << 61))};
    uint64_t last = plan->spec.type == PS_TYPE_F32 ? PS_COMBINE_CLOCK_MEAN : PS_COMBINE_CLOCK_SUM;

    if (chance(&rng, 60)) {
        plan->spec.combine = (ps_combine_t)between(&rng, PS_COMBINE_CLOCK_SUM, last);
    }
}

void sim_plan_make(uint64_t seed, sim_plan_t *ret_plan)
{
    static const int32_t delays[] = {0, 0, 1, 2, 3, -1};
    ps_rng_t rng = {.state = ps_hash_u64(seed * 2 + 1)};
    sim_plan_t *plan = ret_plan;

    *plan = (sim_plan_t){.late = UINT32_MAX, .killed = UINT32_MAX};
    plan->n_shards = (uint32_t)between(&rng, 1, SIM_SHARDS_MAX);
    plan->n_workers = (uint32_t)between(&rng, 1, SIM_WORKERS_MAX);
    plan->n_members = chance(&rng, 25) ? 2 : 1;
    plan->n_clients = plan->n_workers * plan->n_members;
    plan->max_delay = delays[ps_rng_below(&rng, 6)];
    plan->n_clocks = between(&rng, 2, 7);
    plan->pipelined = chance(&rng, 30);
    if (plan->n_workers > 1 && chance(&rng, 25)) {
        plan->killed = (uint32_t)ps_rng_below(&rng, plan->n_workers);
        plan->again = chance(&rng, 40);
    }
    if (plan->again) {
        plan->n_clients += plan->n_members;
    }
    plan_table(plan, &rng);
    plan_combine(plan, seed);
    if (plan->n_workers > 1 && chance(&rng, 25)) {
        plan->late = (uint32_t)ps_rng_below(&rng, plan->n_workers);
        plan->expected = chance(&rng, 50);
    }
    if (plan->killed == plan->late) {
        plan->late = UINT32_MAX; /* also when there is neither */
    }
    plan->resend_ms = between(&rng, 20, 200);
    plan->shard = (ps_shard_args_t){
        .cluster = {.bytes = {1, 2, 3}},
        .incarnation = SIM_INCARNATION,
        .credit_requests = (uint32_t)between(&rng, 1, 12),
        .credit_bytes = between(&rng, 64, 2048),
        .chunk_bytes = chance(&rng, 50) ? 64 : 4096,
        .slice_bytes = between(&rng, 200, 4096),
        .held_bytes = between(&rng, 256, 8192),
        .keys_bytes = chance(&rng, 50) ? 1200 : 1 << 20, /* few, or all */
        .sessions_max = 64,
        .trace = true,
        .log = true,
    };
    if (plan->max_delay == 0) {
        /* The shard refuses for good what a clock would keep beyond this. */
        plan->shard.held_bytes = UINT64_C(1) << 30;
    }
    if (plan->spec.type == PS_TYPE_F32) {
        /* A cut answer continues in another clock, if pipelined; luck
         * decides in which one. */
        plan->shard.slice_bytes = 4096;
    }
}

void sim_weather_make(uint64_t seed, sim_weather_t *ret_weather)
{
    static const uint32_t losses[] = {0, 10, 50, 200, 400};
    static const uint32_t repeats[] = {0, 0, 50, 200};
    static const uint32_t cuts[] = {0, 2000, 700, 200};
    static const uint32_t lanes[] = {0, 50, 50, 100};
    static const uint32_t relayed[] = {0, 60, 95, 100};
    ps_rng_t rng = {.state = ps_hash_u64(seed * 2)};

    *ret_weather = (sim_weather_t){
        .loss = losses[ps_rng_below(&rng, 5)],
        .repeat = repeats[ps_rng_below(&rng, 4)],
        .delay_ms = (uint32_t)between(&rng, 1, 80),
        .cut_ms = cuts[ps_rng_below(&rng, 4)],
        .calm_ms = between(&rng, 1000, 8000),
        .lanes = lanes[ps_rng_below(&rng, 4)],
    };
    rng.state = ps_hash_u64(seed ^ (UINT64_C(1) << 61)); /* the rest stays as it is */
    ret_weather->relayed = relayed[ps_rng_below(&rng, 4)];
}

uint32_t sim_partition_of(const sim_plan_t *plan, uint32_t row)
{
    return ps_row_slice_of(&plan->spec, plan->keys[row]) * plan->spec.n_col_slices;
}

static void pick_rows(const sim_plan_t *plan, ps_rng_t *rng, sim_step_t *step)
{
    uint32_t most = plan->n_rows < SIM_OP_ROWS_MAX ? plan->n_rows : SIM_OP_ROWS_MAX;
    uint32_t want = (uint32_t)between(rng, 1, most);

    while (step->n_rows < want) {
        uint32_t row = (uint32_t)ps_rng_below(rng, plan->n_rows);
        bool taken = false;

        for (uint32_t i = 0; i < step->n_rows; i++) {
            taken = taken || step->rows[i] == row;
        }
        if (!taken) {
            step->deltas[step->n_rows] = (int64_t)between(rng, 1, 1000);
            step->rows[step->n_rows++] = row;
        }
    }
}

static sim_step_t *add_step(sim_client_t *client, size_t *capacity, sim_step_kind_t kind)
{
    sim_need(ps_grow(&client->script, capacity, client->n_steps + 1, sizeof *client->script),
             "memory for a script");
    client->script[client->n_steps] = (sim_step_t){.kind = kind};
    return &client->script[client->n_steps++];
}

static void add_clock(const sim_plan_t *plan, ps_rng_t *rng, sim_client_t *client, size_t *capacity)
{
    uint64_t n = ps_rng_below(rng, 5);

    for (uint64_t i = 0; i < n; i++) {
        uint64_t dice = ps_rng_below(rng, 100);
        sim_step_kind_t kind = dice < 29   ? SIM_PULL
                               : dice < 35 ? SIM_SUM
                               : dice < 84 ? SIM_PUSH
                               : dice < 90 ? SIM_SCALE
                                           : SIM_PUSHPULL;
        sim_step_t *step = add_step(client, capacity, kind);

        pick_rows(plan, rng, step);
        step->layout = (uint32_t)ps_rng_below(rng, 4);
        if (kind == SIM_PUSHPULL) {
            step->layout = 1 + step->layout % 2; /* all columns come back */
        }
        if (!sim_is_push(kind) && plan->spec.type != PS_TYPE_F32 && chance(rng, 20)) {
            step->timeout_ms = (uint32_t)between(rng, 50, 500);
        }
        if (kind == SIM_PUSH && plan->spec.keys == PS_KEYS_RANGE && chance(rng, 5)) {
            step->bad = true;
        }
        if (kind != SIM_PUSH && kind != SIM_SCALE && !plan->pipelined) {
            (void)add_step(client, capacity, SIM_WAIT);
        }
    }
    (void)add_step(client, capacity, SIM_MARK);
    if (chance(rng, 30)) {
        (void)add_step(client, capacity, SIM_WAIT);
    }
}

void sim_script_make(const sim_plan_t *plan, uint64_t seed, sim_client_t *client)
{
    ps_rng_t rng = {.state = ps_hash_u64(seed) + client->number};
    size_t capacity = 0;

    if (client->reader) {
        for (uint32_t i = 0; i < plan->n_rows; i++) {
            sim_step_t *step = add_step(client, &capacity, SIM_PULL);

            step->n_rows = 1;
            step->rows[0] = i;
            (void)add_step(client, &capacity, SIM_WAIT);
        }
        return;
    }
    for (uint64_t clock = 0; clock < plan->n_clocks; clock++) {
        add_clock(plan, &rng, client, &capacity);
    }
    (void)add_step(client, &capacity, SIM_WAIT);
}
