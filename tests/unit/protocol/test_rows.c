/* SPDX-License-Identifier: Apache-2.0 */
/* Copies catch up with rows by messages while records go on, and end as their
 * primary, whatever is lost, comes twice, breaks or ends on the way. */
#include "rows_kit.h"

#include <stdlib.h>

#include "model/store/store_growth.h"
#include "support/fail_alloc.h"
#include "support/seeds.h"

#define SEEDS 200 /* or as ROWS_SEEDS says; from ROWS_FROM on */
#define END_MS 120000

static const ps_shard_args_t default_args = {.credit_requests = 3,
                                             .credit_bytes = 1 << 20,
                                             .chunk_bytes = 1 << 20,
                                             .slice_bytes = 1 << 24,
                                             .held_bytes = 1 << 24,
                                             .keys_bytes = 1 << 20,
                                             .sessions_max = 8};

static uint64_t n_ahead; /* pushes that copies were told of only */

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void plan(world_t *self)
{
    static const uint64_t flights[] = {0, 1000, 8000, 100000};
    story_t *story = &self->story;
    ps_shard_args_t args = default_args;

    args.flight_bytes = flights[below(story, 4)];
    args.tail_bytes = below(story, 3) == 0 ? 3000 : 0;
    args.copy_bytes_per_s = below(story, 4) == 0 ? 500000 : 0;
    args.record_bytes = below(story, 4) == 0 ? 3000 : 0;
    self->args = args;
    self->delay_ms = 1 + (uint32_t)below(story, below(story, 2) == 0 ? 2 : 40);
    self->loss = below(story, 2) == 0 ? 0 : (uint32_t)below(story, 12);
    self->repeat = below(story, 2) == 0 ? 0 : (uint32_t)below(story, 12);
    for (uint32_t i = 0; i < self->n_nodes; i++) {
        self->nodes[i].shard->step.args.flight_bytes =
            args.flight_bytes == 0 ? self->nodes[i].shard->step.args.flight_bytes
                                   : args.flight_bytes;
        self->nodes[i].shard->step.args.tail_bytes =
            args.tail_bytes == 0 ? self->nodes[i].shard->step.args.tail_bytes : args.tail_bytes;
        self->nodes[i].shard->step.args.copy_bytes_per_s = args.copy_bytes_per_s;
        self->nodes[i].shard->step.args.record_bytes = args.record_bytes;
    }
}

static void disturb(world_t *self)
{
    uint32_t node = (uint32_t)below(&self->story, self->n_nodes);

    switch (below(&self->story, 4)) {
    case 0:
        world_break_link(self, node);
        break;
    case 1:
        world_end_node(self, node);
        break;
    case 2:
        world_diverge(self, node);
        break;
    default:
        break;
    }
}

/* Until all is well, or it takes too long. */
static void settle(world_t *self)
{
    self->calm = true;
    while (!world_is_done(self) && world_next(self, END_MS)) {
    }
}

static side_t side_of(const world_t *self, uint32_t node)
{
    return (side_t){.shard = self->nodes[node].shard, .partition = world_partition(self, node)};
}

static void expect_same(world_t *self, uint64_t seed)
{
    cr_assert(world_is_done(self), "seed %llu: not in sync in the end", (unsigned long long)seed);
    /* Reading fills blocks, and giving finishes clocks that nobody waits for:
     * both may have happened at some of them only. */
    for (uint32_t i = 0; i < self->n_nodes; i++) {
        side_t side = side_of(self, i);

        cr_assert(side.partition != NULL && hands_out_the_same(&side, &side, 100000) &&
                  reads_the_same(&self->story, &side, &side, NULL));
    }
    for (uint32_t i = 0; i < self->n_nodes; i++) {
        side_t side = side_of(self, i);

        cr_assert(side.partition != NULL && is_same(&self->story, &side, true),
                  "seed %llu: node %u differs", (unsigned long long)seed, i);
    }
}

static void run(uint64_t seed, bool disturbed)
{
    PSD_AUTO(world_close) world_t world;

    world_open(&world, seed, &default_args);
    plan(&world);
    for (uint64_t n = below(&world.story, 80); n > 0; n--) {
        (void)world_record(&world);
    }
    for (uint32_t i = 1; i < world.n_nodes; i++) {
        world_join(&world, i);
    }
    for (uint64_t n = 20 + below(&world.story, 600); n > 0; n--) {
        if (below(&world.story, 6) == 0) {
            (void)world_record(&world);
        }
        (void)world_next(&world, world.now_ms + 5);
        if (disturbed && below(&world.story, 60) == 0) {
            disturb(&world);
        }
    }
    n_ahead += world.n_ahead;
    settle(&world);
    expect_same(&world, seed);
    for (int n = 0; n < 10; n++) {
        (void)world_record(&world);
    }
    settle(&world);
    expect_same(&world, seed);
}

/* As fast as the primary takes records, more than the link carries, while
 * copies catch up. How many copies began again: large records one after the other may
 * push what one copy lacks out of the tail. */
static uint64_t run_outrun(uint64_t seed)
{
    PSD_AUTO(world_close) world_t world;
    ps_shard_args_t args = default_args;

    args.flight_bytes = 8000;
    args.tail_bytes = 40000;
    world_open(&world, seed, &args);
    world.calm = true;
    world.bytes_per_ms = 1000;
    for (int n = 0; n < 60; n++) {
        (void)world_record(&world);
    }
    for (uint32_t i = 1; i < world.n_nodes; i++) {
        world_join(&world, i);
    }
    while (!world_is_in_sync(&world) && world.now_ms < END_MS) {
        for (int n = 0; n < 8; n++) {
            (void)world_record(&world);
        }
        while (world_next(&world, world.now_ms + 1)) {
        }
    }
    cr_assert(world_is_in_sync(&world), "seed %llu: never in sync", (unsigned long long)seed);
    cr_assert_leq(world.n_begun, 2 * (world.n_nodes - 1), "seed %llu: %llu copies began",
                  (unsigned long long)seed, (unsigned long long)world.n_begun);
    settle(&world);
    expect_same(&world, seed);
    return world.n_begun - (world.n_nodes - 1);
}

static void run_all(bool disturbed)
{
    uint64_t first = number("ROWS_FROM", 0);

    for (uint64_t n = 0; n < number("ROWS_SEEDS", SEEDS); n++) {
        run(first + n, disturbed);
    }
    cr_assert(n_ahead > 0 || getenv("ROWS_SEEDS") != NULL);
}

Test(rows, copies_that_begin_with_nothing_end_as_their_primary)
{
    run_all(false);
}

Test(rows, whatever_breaks_copies_end_as_their_primary)
{
    run_all(true);
}

/* Records had the way for themselves, until those that a copy lacked were gone
 * and it had to begin anew: again and again. */
Test(rows, copies_get_whole_though_records_come_faster_than_the_link_carries)
{
    uint64_t n_again = 0;

    for (uint64_t seed = 0; seed < seeds_of(40); seed++) {
        n_again += run_outrun(seed);
    }
    cr_assert_leq(n_again, 4, "%llu copies began again", (unsigned long long)n_again);
}

/* What comes is bounded by the node's memory: a copy that has no room for more
 * waits, keeps what it has, and goes on from there. */
static bool run_short(uint64_t seed)
{
    PSD_AUTO(world_close) world_t world;
    ps_shard_args_t args = default_args;
    uint64_t limit = 0;

    args.flight_bytes = 8000;
    world_open(&world, seed, &args);
    world.calm = true;
    for (int n = 0; n < 60; n++) {
        (void)world_record(&world);
    }
    limit = ps_store_footprint(world.story.primary.partition->store) * 3 / 4;
    if (world.story.spec.keys != PS_KEYS_HASH || limit < 100000) {
        return false; /* too small, or an array, whose memory is taken */
    }
    world.nodes[1].shard->step.args.memory_bytes = limit;
    world_join(&world, 1);
    while (world_next(&world, 30000)) {
    }
    cr_assert_eq(world.n_whole, 0, "seed %llu", (unsigned long long)seed);
    world.nodes[1].shard->step.args.memory_bytes = 0;
    while (world.n_whole == 0 && world_next(&world, END_MS)) {
    }
    cr_assert_eq(world.n_whole, 1, "seed %llu", (unsigned long long)seed);
    cr_assert_eq(world.n_begun, 1, "seed %llu: it began anew", (unsigned long long)seed);
    return true;
}

Test(rows, a_copy_without_room_waits_and_keeps_what_it_has)
{
    uint32_t n = 0;

    for (uint64_t seed = 0; n < 3; seed++) {
        cr_assert_lt(seed, 1000);
        n += run_short(seed) ? 1 : 0;
    }
}

/* A whole transfer, of which one allocation at either end fails. Whether one
 * did. */
static bool run_failing(uint64_t seed, size_t at)
{
    PSD_AUTO(world_close) world_t world;
    ps_shard_args_t args = default_args;

    args.flight_bytes = 8000;
    world_open(&world, seed, &args);
    world.calm = true;
    for (int n = 0; n < 30; n++) {
        (void)world_record(&world);
    }
    world_join(&world, 1);
    if (world.n_nodes > 2) {
        world_join(&world, 2);
    }
    world.fails = true;
    world.fail_at = at;
    for (int n = 0; n < 20; n++) {
        (void)world_next(&world, world.now_ms + 1);
        (void)world_record(&world);
    }
    settle(&world);
    expect_same(&world, seed);
    return !world.fails;
}

Test(rows, without_memory_copies_end_as_their_primary)
{
    for (uint64_t seed = 0; seed < number("ROWS_SWEEPS", 4); seed++) {
        size_t at = 0;

        while (run_failing(seed, at)) {
            at++;
        }
        cr_assert_gt(at, 50, "seed %llu", (unsigned long long)seed);
    }
}
