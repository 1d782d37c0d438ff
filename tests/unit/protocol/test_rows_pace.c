/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/replica/rows_pace.h: rows keep to their limits, and use them. */
#include "protocol/replica/rows_pace.h"

#include <criterion/criterion.h>
#include <stdint.h>

#include "base/alloc.h"
#include "protocol/shard/shard_state.h"

#define PART UINT64_C(10000)
#define RATE UINT64_C(1000000)
#define PART_MS 10 /* that a part takes at that rate */
#define START_MS 5000

static ps_shard_t *shard;
static ps_partition_t partition;
static ps_giving_t giving;

static void setup(void)
{
    const ps_shard_args_t args = {.copy_bytes_per_s = RATE};

    cr_assert_eq(ps_shard_new(&args, &shard, NULL), PSD_OK);
    shard->step.now_ms = START_MS;
    partition = (ps_partition_t){.deadline_ms = UINT64_MAX};
    giving = (ps_giving_t){.number = 1};
}

static void teardown(void)
{
    ps_shard_destroy(&shard);
}

TestSuite(rows_pace, .init = setup, .fini = teardown);

/* What goes in that time, of parts of which `bytes` are used, looked at every
 * step_ms; no more than `most` in one step. */
static uint64_t given_in(uint64_t ms, uint64_t step_ms, uint64_t bytes, uint64_t most)
{
    uint64_t end_ms = shard->step.now_ms + ms;
    uint64_t sum = 0;

    for (; shard->step.now_ms < end_ms; shard->step.now_ms += step_ms) {
        for (uint64_t step = 0;
             step < most && ps_pace_has_turn(&shard->step, &partition, &giving, PART);
             step += bytes) {
            ps_pace_gone(&shard->step, &giving, PART, bytes);
            sum += bytes;
        }
    }
    return sum;
}

static void expect_about(uint64_t is, uint64_t wanted)
{
    cr_expect_geq(is, wanted * 95 / 100);
    cr_expect_leq(is, wanted * 105 / 100);
}

Test(rows_pace, limit_is_kept)
{
    expect_about(given_in(1000, 1, PART, UINT64_MAX), RATE);
}

/* Enough was under way, so no turn was asked for; the next one was counted from
 * then, and the time before it was lost. */
Test(rows_pace, turns_that_were_asked_for_late_are_made_good)
{
    expect_about(given_in(1000, 20, PART, 2 * PART), RATE);
}

Test(rows_pace, long_silence_is_not_made_good)
{
    (void)given_in(100, 1, PART, UINT64_MAX);
    shard->step.now_ms += 60000;
    cr_expect_leq(given_in(1, 1, PART, UINT64_MAX), RATE / 20);
}

Test(rows_pace, small_parts_are_charged_what_they_take)
{
    expect_about(given_in(1000, 1, PART / 10, UINT64_MAX), RATE);
}

Test(rows_pace, no_turn_wakes_the_shard_when_there_is_one)
{
    while (ps_pace_has_turn(&shard->step, &partition, &giving, PART)) {
        ps_pace_gone(&shard->step, &giving, PART, PART);
    }
    cr_assert_gt(shard->step.deadline_ms, shard->step.now_ms);
    cr_assert_leq(shard->step.deadline_ms, shard->step.now_ms + 10);
    cr_assert_eq(partition.deadline_ms, shard->step.deadline_ms);
    shard->step.now_ms = shard->step.deadline_ms;
    cr_assert(ps_pace_has_turn(&shard->step, &partition, &giving, PART));
}

Test(rows_pace, shards_that_give_at_once_share_the_limit)
{
    shard->step.other_giving = 3;
    expect_about(given_in(1000, 1, PART, UINT64_MAX), RATE / 4);
}

Test(rows_pace, the_cluster_may_set_the_limits)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    const uint64_t slow_after_ms = shard->step.args.slow_after_ms;
    ps_event_t event = {.kind = PS_EVENT_TICK, .now_ms = shard->step.now_ms};

    cr_assert_eq(ps_shard_step(shard, &event, &outbox, NULL), PSD_OK);
    cr_assert_eq(shard->step.args.copy_bytes_per_s, RATE, "none were told");
    cr_assert_eq(shard->step.args.slow_after_ms, slow_after_ms);
    event.limits = (ps_shard_limits_t){.slow_after_ms = 777, .copy_bytes_per_s = RATE / 4};
    cr_assert_eq(ps_shard_step(shard, &event, &outbox, NULL), PSD_OK);
    cr_assert_eq(shard->step.args.slow_after_ms, 777);
    expect_about(given_in(1000, 1, PART, UINT64_MAX), RATE / 4);
}

Test(rows_pace, requests_slow_rows_down)
{
    shard->step.args.copy_bytes_per_s = 0;
    shard->step.args.busy_copy_bytes_per_s = RATE / 2;
    shard->step.asked_ms = shard->step.now_ms + 9900; /* and before, as it goes on */
    expect_about(given_in(10000, 1, PART, UINT64_MAX), 10 * RATE / 2);
}

/* In each of so many steps of 1 ms, what goes. */
static size_t count_steps_that_give(size_t n_steps)
{
    size_t n = 0;

    for (size_t i = 0; i < n_steps; i++) {
        n += given_in(1, 1, PART, UINT64_MAX) > 0 ? 1 : 0;
    }
    return n;
}

Test(rows_pace, rows_beside_requests_go_in_bursts)
{
    shard->step.asked_ms = shard->step.now_ms + 900;
    cr_expect_leq(count_steps_that_give(1000), 1000 / 50);
    cr_expect_geq(count_steps_that_give(1000), 1000 / 200);
}

Test(rows_pace, without_requests_rows_go_as_they_may)
{
    cr_expect_geq(count_steps_that_give(1000), 1000 / PART_MS / 2);
}

Test(rows_pace, without_requests_rows_have_the_shard)
{
    shard->step.args.copy_bytes_per_s = 0;
    shard->step.args.busy_copy_bytes_per_s = RATE / 2;
    shard->step.asked_ms = shard->step.now_ms - 1000;
    cr_assert_not(ps_pace_is_busy(&shard->step));
    cr_assert_geq(given_in(100, 1, PART, 50 * PART), 100 * 50 * PART);
}

Test(rows_pace, requests_to_the_copys_shard_count_as_well)
{
    shard->step.args.copy_bytes_per_s = 0;
    shard->step.args.busy_copy_bytes_per_s = RATE / 2;
    ps_pace_heard(&shard->step, &giving, true);
    cr_assert_leq(given_in(50, 1, PART, UINT64_MAX), RATE / 2 / 10);
    ps_pace_heard(&shard->step, &giving, false);
    cr_assert_geq(given_in(100, 1, PART, 50 * PART), 100 * 50 * PART);
}

Test(rows_pace, limit_of_busy_shards_is_no_leave_to_pass_the_other)
{
    shard->step.args.busy_copy_bytes_per_s = 10 * RATE;
    shard->step.asked_ms = shard->step.now_ms + 9900;
    expect_about(given_in(10000, 1, PART, UINT64_MAX), 10 * RATE);
}

Test(rows_pace, shard_gives_rows_for_a_while_behind_the_last)
{
    cr_assert_not(ps_shard_gives_rows(shard, shard->step.now_ms));
    (void)given_in(1, 1, PART, PART);
    cr_assert(ps_shard_gives_rows(shard, START_MS + 999));
    cr_assert_not(ps_shard_gives_rows(shard, START_MS + 1000));
}
