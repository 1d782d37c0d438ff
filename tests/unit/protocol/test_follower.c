/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/replica/follower.h: what another copy has, and what it is sent. */
#include "protocol/replica/follower.h"

#include "tail_kit.h"

#define START_MS 1000
#define SIZE 1000 /* of each record */

static const ps_follower_limits_t limits = {
    .lease_ms = 300, .slow_after_ms = 2000, .flight_bytes = 2500};

typedef struct bench {
    ps_tail_t tail;
    ps_follower_t follower;
    uint64_t now_ms;
} bench_t;

/* A primary with so many records, and a copy of which nothing is known. */
static void open_bench(bench_t *self, uint64_t n)
{
    *self = (bench_t){.now_ms = START_MS};
    ps_tail_init(&self->tail, 0, 0);
    for (uint64_t i = 0; i < n; i++) {
        cr_assert(tail_put(&self->tail, 4, SIZE));
    }
    ps_follower_init(&self->follower, 9, 2, &self->tail, self->now_ms);
}

static ps_follower_want_t next(const bench_t *self)
{
    return ps_follower_next(&self->follower, &self->tail, &limits, self->now_ms);
}

static uint64_t deadline(const bench_t *self)
{
    return ps_follower_deadline(&self->follower, &limits, self->now_ms);
}

static void send(bench_t *self, uint32_t n)
{
    ps_follower_sent(&self->follower, &self->tail, n, self->now_ms);
}

static void hear(bench_t *self, ps_appended_status_t status, uint64_t lsn, uint64_t sent_ms)
{
    const ps_msg_appended_t appended = {.status = (uint16_t)status, .lsn = lsn, .sent_ms = sent_ms};

    ps_follower_heard(&self->follower, &self->tail, &limits, &appended, self->now_ms);
}

Test(follower, is_asked_first_and_sent_what_it_lacks)
{
    bench_t bench;

    open_bench(&bench, 5);
    cr_assert_eq(next(&bench), PS_FOLLOWER_ASK);
    send(&bench, 0);
    cr_assert_eq(next(&bench), PS_FOLLOWER_NOTHING);
    bench.now_ms += 10;
    hear(&bench, PS_APPENDED_GAP, 3, START_MS);
    cr_assert_eq(next(&bench), PS_FOLLOWER_RECORDS);
    cr_assert_eq(bench.follower.sent_lsn, 3);
    cr_assert_eq(bench.follower.acked_lsn, 0, "what it says is not proved");
    send(&bench, 2);
    cr_assert_eq(next(&bench), PS_FOLLOWER_NOTHING);
    hear(&bench, PS_APPENDED_OK, 5, bench.now_ms);
    cr_assert_eq(bench.follower.acked_lsn, 5);
    ps_tail_done(&bench.tail);
}

Test(follower, bytes_in_flight_are_bounded)
{
    bench_t bench;

    open_bench(&bench, 0);
    send(&bench, 0);
    for (int i = 0; i < 5; i++) {
        cr_assert(tail_put(&bench.tail, 4, SIZE));
    }
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(next(&bench), PS_FOLLOWER_RECORDS);
        send(&bench, 1);
    }
    cr_assert_eq(next(&bench), PS_FOLLOWER_NOTHING);
    hear(&bench, PS_APPENDED_OK, 1, START_MS);
    cr_assert_eq(next(&bench), PS_FOLLOWER_RECORDS);
    ps_tail_done(&bench.tail);
}

Test(follower, messages_in_flight_are_bounded_so_that_small_ones_gather)
{
    bench_t bench;

    open_bench(&bench, 0);
    for (int i = 0; i < 4; i++) {
        cr_assert(tail_put(&bench.tail, 4, 8));
        cr_assert_eq(next(&bench), PS_FOLLOWER_RECORDS);
        send(&bench, 1);
    }
    cr_assert(tail_put(&bench.tail, 4, 8));
    cr_assert_eq(next(&bench), PS_FOLLOWER_NOTHING);
    hear(&bench, PS_APPENDED_OK, 1, START_MS);
    cr_assert_eq(next(&bench), PS_FOLLOWER_RECORDS);
    ps_tail_done(&bench.tail);
}

Test(follower, what_was_lost_goes_again_once)
{
    bench_t bench;

    open_bench(&bench, 0);
    for (int i = 0; i < 2; i++) {
        cr_assert(tail_put(&bench.tail, 4, SIZE));
        send(&bench, 1);
    }
    bench.now_ms += 5;
    hear(&bench, PS_APPENDED_GAP, 0, START_MS);
    cr_assert_eq(bench.follower.sent_lsn, 0);
    cr_assert_eq(next(&bench), PS_FOLLOWER_RECORDS);
    send(&bench, 2);
    hear(&bench, PS_APPENDED_GAP, 0, START_MS);
    cr_assert_eq(bench.follower.sent_lsn, 2, "an answer to an older APPEND");
    bench.now_ms += 75;
    cr_assert_eq(next(&bench), PS_FOLLOWER_ASK, "if it is lost again");
    ps_tail_done(&bench.tail);
}

Test(follower, stale_answer_takes_nothing_back)
{
    bench_t bench;

    open_bench(&bench, 5);
    hear(&bench, PS_APPENDED_OK, 4, START_MS);
    hear(&bench, PS_APPENDED_OK, 2, START_MS);
    cr_assert_eq(bench.follower.acked_lsn, 4);
    hear(&bench, PS_APPENDED_GAP, 2, START_MS);
    cr_assert_eq(bench.follower.sent_lsn, 4);
    ps_tail_done(&bench.tail);
}

Test(follower, more_than_the_primary_has_does_not_count)
{
    bench_t bench;

    open_bench(&bench, 5);
    hear(&bench, PS_APPENDED_OK, 9, START_MS);
    cr_assert_eq(bench.follower.acked_lsn, 5);
    ps_tail_done(&bench.tail);
}

Test(follower, lease_runs_from_the_time_of_sending_and_ends_early)
{
    bench_t bench;

    open_bench(&bench, 0);
    cr_assert_not(ps_follower_lends(&bench.follower, START_MS));
    bench.now_ms += 100;
    hear(&bench, PS_APPENDED_OK, 0, START_MS);
    cr_assert(ps_follower_lends(&bench.follower, START_MS + 293));
    cr_assert_not(ps_follower_lends(&bench.follower, START_MS + 294));
    hear(&bench, PS_APPENDED_OK, 0, START_MS - 200);
    cr_assert(ps_follower_lends(&bench.follower, START_MS + 293));
    hear(&bench, PS_APPENDED_GAP, 0, START_MS + 50);
    cr_assert(ps_follower_lends(&bench.follower, START_MS + 343));
    hear(&bench, PS_APPENDED_OK, 0, START_MS + 101);
    cr_assert_not(ps_follower_lends(&bench.follower, START_MS + 344), "sent in the future");
    ps_tail_done(&bench.tail);
}

Test(follower, refusals_lend_nothing)
{
    bench_t bench;

    open_bench(&bench, 0);
    hear(&bench, PS_APPENDED_EPOCH, 0, START_MS);
    cr_assert_not(ps_follower_lends(&bench.follower, START_MS));
    hear(&bench, PS_APPENDED_DIVERGED, 0, START_MS);
    cr_assert_not(ps_follower_lends(&bench.follower, START_MS));
    cr_assert(bench.follower.needs_rows);
    cr_assert_eq(next(&bench), PS_FOLLOWER_NOTHING);
    cr_assert_eq(deadline(&bench), UINT64_MAX);
    ps_tail_done(&bench.tail);
}

Test(follower, is_asked_every_quarter_of_a_lease)
{
    bench_t bench;

    open_bench(&bench, 0);
    send(&bench, 0);
    hear(&bench, PS_APPENDED_OK, 0, START_MS);
    cr_assert_eq(deadline(&bench), START_MS + 75);
    bench.now_ms += 74;
    cr_assert_eq(next(&bench), PS_FOLLOWER_NOTHING);
    bench.now_ms += 1;
    cr_assert_eq(next(&bench), PS_FOLLOWER_ASK);
    ps_tail_done(&bench.tail);
}

/* It takes nothing by a map that it does not know yet, and says nothing to
 * that: a new primary waited for a quarter of a lease. */
Test(follower, that_may_not_know_its_primary_is_asked_often_at_first)
{
    bench_t bench;

    open_bench(&bench, 0);
    send(&bench, 0);
    cr_assert_eq(deadline(&bench), START_MS + 10);
    bench.now_ms += 10;
    cr_assert_eq(next(&bench), PS_FOLLOWER_ASK);
    bench.now_ms = START_MS + 300;
    send(&bench, 0);
    cr_assert_eq(deadline(&bench), START_MS + 375, "not one that is gone");
    ps_tail_done(&bench.tail);
}

Test(follower, short_of_memory_has_a_pause)
{
    bench_t bench;

    open_bench(&bench, 0);
    cr_assert(tail_put(&bench.tail, 4, SIZE));
    send(&bench, 1);
    hear(&bench, PS_APPENDED_NOMEM, 0, START_MS);
    cr_assert_eq(next(&bench), PS_FOLLOWER_NOTHING);
    cr_assert_eq(deadline(&bench), START_MS + 20);
    bench.now_ms += 20;
    cr_assert_eq(next(&bench), PS_FOLLOWER_RECORDS);
    send(&bench, 1);
    hear(&bench, PS_APPENDED_OK, 1, START_MS + 20);
    cr_assert_eq(deadline(&bench), START_MS + 20 + 75,
                 "a pause that is over asked for ticks without an end");
    ps_tail_done(&bench.tail);
}

Test(follower, too_far_behind_needs_rows)
{
    bench_t bench;

    open_bench(&bench, 5);
    ps_tail_cut(&bench.tail, 3);
    hear(&bench, PS_APPENDED_GAP, 1, START_MS);
    cr_assert(bench.follower.needs_rows);
    ps_tail_done(&bench.tail);
}

Test(follower, new_connection_begins_behind_what_is_acknowledged)
{
    bench_t bench;

    open_bench(&bench, 0);
    cr_assert(tail_put(&bench.tail, 4, SIZE) && tail_put(&bench.tail, 4, SIZE));
    send(&bench, 2);
    hear(&bench, PS_APPENDED_OK, 1, START_MS);
    ps_follower_rewind(&bench.follower, &bench.tail, START_MS);
    cr_assert_eq(bench.follower.sent_lsn, 1);
    cr_assert_eq(next(&bench), PS_FOLLOWER_RECORDS);
    ps_tail_done(&bench.tail);
}

Test(follower, flushed_is_never_more_than_there)
{
    bench_t bench;
    const ps_msg_appended_t appended = {.lsn = 3, .flushed_lsn = 2, .sent_ms = START_MS};

    open_bench(&bench, 5);
    ps_follower_heard(&bench.follower, &bench.tail, &limits, &appended, START_MS);
    cr_assert_eq(bench.follower.flushed_lsn, 2);
    hear(&bench, PS_APPENDED_OK, 5, START_MS);
    cr_assert_eq(bench.follower.flushed_lsn, 2);
    ps_tail_done(&bench.tail);
}

/* What the copy before it had counted as its own. */
Test(follower, that_lacks_what_it_had_is_another_one)
{
    bench_t bench;

    open_bench(&bench, 5);
    hear(&bench, PS_APPENDED_OK, 5, START_MS);
    bench.now_ms += 10;
    hear(&bench, PS_APPENDED_GAP, 0, START_MS);
    cr_assert_eq(bench.follower.acked_lsn, 5, "said before its OK");
    send(&bench, 0);
    bench.now_ms += 10;
    hear(&bench, PS_APPENDED_GAP, 0, START_MS + 10);
    cr_assert_eq(bench.follower.acked_lsn, 0);
    cr_assert_eq(next(&bench), PS_FOLLOWER_ASK);
    hear(&bench, PS_APPENDED_GAP, 0, START_MS + 19);
    cr_assert_eq(bench.follower.sent_lsn, 5, "said before it was asked");
    bench.now_ms += 75;
    send(&bench, 0);
    hear(&bench, PS_APPENDED_GAP, 2, START_MS + 95);
    cr_assert_eq(bench.follower.sent_lsn, 2);
    cr_assert_eq(next(&bench), PS_FOLLOWER_RECORDS);
    ps_tail_done(&bench.tail);
}

/* Whether it answered was all that was asked. */
Test(follower, lags_that_gets_no_further)
{
    bench_t bench;

    open_bench(&bench, 5);
    bench.follower.in_sync = true;
    hear(&bench, PS_APPENDED_OK, 3, START_MS);
    hear(&bench, PS_APPENDED_GAP, 3, START_MS);
    cr_assert_not(ps_follower_lags(&bench.follower, &limits, START_MS + 1999));
    bench.now_ms += 1000;
    hear(&bench, PS_APPENDED_OK, 3, START_MS + 1000);
    hear(&bench, PS_APPENDED_NOMEM, 3, START_MS + 1000);
    cr_assert(ps_follower_lags(&bench.follower, &limits, START_MS + 2000));
    bench.follower.told_ms = START_MS + 2000;
    cr_assert_not(ps_follower_lags(&bench.follower, &limits, START_MS + 3999));
    hear(&bench, PS_APPENDED_OK, 4, START_MS + 1000);
    cr_assert_not(ps_follower_lags(&bench.follower, &limits, START_MS + 2999));
    hear(&bench, PS_APPENDED_OK, 5, START_MS + 1000);
    bench.now_ms += 5000;
    hear(&bench, PS_APPENDED_OK, 5, START_MS + 6000);
    cr_assert_not(ps_follower_lags(&bench.follower, &limits, bench.now_ms + 9), "it has all");
    ps_tail_done(&bench.tail);
}

Test(follower, that_may_be_in_sync_lags_sooner)
{
    bench_t bench;

    open_bench(&bench, 0);
    cr_assert_not(ps_follower_lags(&bench.follower, &limits, START_MS + 9999));
    bench.follower.offered = true;
    cr_assert_not(ps_follower_lags(&bench.follower, &limits, START_MS + 599));
    cr_assert(ps_follower_lags(&bench.follower, &limits, START_MS + 600));
    ps_tail_done(&bench.tail);
}

/* It was to get records that were gone, for ever: a new primary's copies were
 * given up after slow_after_ms. */
Test(follower, unknown_one_on_a_new_connection_is_asked)
{
    bench_t bench;

    open_bench(&bench, 5);
    ps_tail_cut(&bench.tail, 3);
    ps_follower_rewind(&bench.follower, &bench.tail, START_MS);
    cr_assert_eq(bench.follower.sent_lsn, 5);
    cr_assert_eq(next(&bench), PS_FOLLOWER_ASK);
    ps_tail_done(&bench.tail);
}

/* The lag in seconds was the time without any progress: 0 for a copy that was
 * minutes behind and went on. */
Test(follower, that_lags_all_the_time_knows_of_when_it_has_everything)
{
    bench_t bench;
    uint64_t lsn = 4;

    open_bench(&bench, 4);
    send(&bench, 4);
    hear(&bench, PS_APPENDED_OK, 4, START_MS);
    cr_assert_eq(bench.follower.level_ms, START_MS);
    for (int i = 0; i < 20; i++) { /* ten records more each, five of them come */
        bench.now_ms += 100;
        for (int k = 0; k < 10; k++) {
            cr_assert(tail_put(&bench.tail, 4, SIZE));
        }
        send(&bench, 5);
        lsn += 5;
        hear(&bench, PS_APPENDED_OK, lsn, bench.now_ms);
        cr_assert_eq(bench.follower.moved_ms, bench.now_ms);
        cr_assert_leq(bench.follower.level_ms, START_MS + 100 * (lsn - 4) / 10,
                      "it has no more than that");
    }
    cr_assert_leq(bench.now_ms - bench.follower.level_ms, 1700);
    cr_assert_geq(bench.now_ms - bench.follower.level_ms, 1000);
    for (; lsn < 204; lsn++) {
        send(&bench, 1);
    }
    hear(&bench, PS_APPENDED_OK, 204, bench.now_ms);
    cr_assert_eq(bench.follower.level_ms, bench.now_ms, "it has all");
    ps_tail_done(&bench.tail);
}
