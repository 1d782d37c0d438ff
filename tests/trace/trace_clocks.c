/* SPDX-License-Identifier: Apache-2.0 */
/* Stories about clocks: who waits for whom, and what a pull then sees. */
#include "trace_world.h"

Test(trace_clocks, bsp_applies_when_the_clock_closes)
{
    WORLD(w, 2, 0);

    push(w, 10, 1, 1, 0, 2, 5);
    push(w, 12, 0, 1, 0, 2, 7);
    pull(w, 15, 0, 1, 0, 2);
    mark(w, 20, 0, 2, 1);
    pull(w, 21, 0, 2, 1, 2);
    push(w, 22, 0, 3, 1, 2, 100);
    mark(w, 40, 1, 2, 1);
    EXPECT_STORY(w, "[ 10] worker 1 at 0 pushes 5 to row 2, seq 1\n"
                    "    push_logged session=2 seq=1 lsn=2 worker=1 clock=0\n"
                    "    worker 1 gets ACK of seq 1\n"
                    "[ 12] worker 0 at 0 pushes 7 to row 2, seq 1\n"
                    "    push_logged session=1 seq=1 lsn=3 worker=0 clock=0\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 15] worker 0 at 0 pulls row 2\n"
                    "    worker 0 gets VALUES 0\n"
                    "    pull_served session=1 worker=0 clock=0 rows=1\n"
                    "[ 20] worker 0 ticks to 1, seq 2\n"
                    "    clock_marked job=3 worker=0 member=0 clock=1\n"
                    "    worker 0 gets ACK of seq 2\n"
                    "[ 21] worker 0 at 1 pulls row 2\n"
                    "    request_held session=1 worker=0 clock=1 "
                    "waits_for_worker=1 at_clock=0\n"
                    "[ 22] worker 0 at 1 pushes 100 to row 2, seq 3\n"
                    "    request_held session=1 worker=0 clock=1 "
                    "waits_for_worker=1 at_clock=0\n"
                    "[ 40] worker 1 ticks to 1, seq 2\n"
                    "    clock_marked job=3 worker=1 member=0 clock=1\n"
                    "    clock_closed job=3 clock=1 pushes=2\n"
                    "    worker 1 gets ACK of seq 2\n"
                    "    worker 0 gets VALUES 12\n"
                    "    pull_served session=1 worker=0 clock=1 rows=1\n"
                    "    push_logged session=1 seq=3 lsn=6 worker=0 clock=1\n"
                    "    worker 0 gets ACK of seq 3\n");
}

Test(trace_clocks, ssp_holds_the_one_that_is_ahead)
{
    WORLD(w, 2, 1);

    push(w, 10, 0, 1, 0, 0, 3);
    mark(w, 11, 0, 2, 1);
    pull(w, 12, 0, 2, 1, 0);
    mark(w, 20, 0, 3, 2);
    pull(w, 21, 0, 3, 2, 0);
    push(w, 30, 1, 1, 0, 0, 4);
    mark(w, 31, 1, 2, 1);
    EXPECT_STORY(w, "[ 10] worker 0 at 0 pushes 3 to row 0, seq 1\n"
                    "    push_applied session=1 seq=1 lsn=2 worker=0 clock=0\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 11] worker 0 ticks to 1, seq 2\n"
                    "    clock_marked job=3 worker=0 member=0 clock=1\n"
                    "    worker 0 gets ACK of seq 2\n"
                    "[ 12] worker 0 at 1 pulls row 0\n"
                    "    worker 0 gets VALUES 3\n"
                    "    pull_served session=1 worker=0 clock=1 rows=1\n"
                    "[ 20] worker 0 ticks to 2, seq 3\n"
                    "    clock_marked job=3 worker=0 member=0 clock=2\n"
                    "    worker 0 gets ACK of seq 3\n"
                    "[ 21] worker 0 at 2 pulls row 0\n"
                    "    request_held session=1 worker=0 clock=2 "
                    "waits_for_worker=1 at_clock=0\n"
                    "[ 30] worker 1 at 0 pushes 4 to row 0, seq 1\n"
                    "    push_applied session=2 seq=1 lsn=5 worker=1 clock=0\n"
                    "    worker 1 gets ACK of seq 1\n"
                    "[ 31] worker 1 ticks to 1, seq 2\n"
                    "    clock_marked job=3 worker=1 member=0 clock=1\n"
                    "    worker 1 gets ACK of seq 2\n"
                    "    worker 0 gets VALUES 7\n"
                    "    pull_served session=1 worker=0 clock=2 rows=1\n");
}

Test(trace_clocks, asp_holds_nobody)
{
    WORLD(w, 2, -1);

    mark(w, 10, 0, 1, 1);
    mark(w, 11, 0, 2, 2);
    mark(w, 12, 0, 3, 3);
    push(w, 13, 0, 4, 3, 1, 9);
    pull(w, 14, 1, 0, 0, 1);
    EXPECT_STORY(w, "[ 10] worker 0 ticks to 1, seq 1\n"
                    "    clock_marked job=3 worker=0 member=0 clock=1\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 11] worker 0 ticks to 2, seq 2\n"
                    "    clock_marked job=3 worker=0 member=0 clock=2\n"
                    "    worker 0 gets ACK of seq 2\n"
                    "[ 12] worker 0 ticks to 3, seq 3\n"
                    "    clock_marked job=3 worker=0 member=0 clock=3\n"
                    "    worker 0 gets ACK of seq 3\n"
                    "[ 13] worker 0 at 3 pushes 9 to row 1, seq 4\n"
                    "    push_applied session=1 seq=4 lsn=5 worker=0 clock=3\n"
                    "    worker 0 gets ACK of seq 4\n"
                    "[ 14] worker 1 at 0 pulls row 1\n"
                    "    worker 1 gets VALUES 9\n"
                    "    pull_served session=2 worker=1 clock=0 rows=1\n");
}

Test(trace_clocks, held_pull_ends_at_its_deadline_and_a_mark_stays)
{
    WORLD(w, 2, 0);

    mark(w, 10, 0, 1, 1);
    pull(w, 11, 0, 1, 1, 0);
    mark(w, 12, 0, 2, 2);
    probe(w, 20, 0, 2);
    tick(w, 511);
    tick(w, 512);
    mark(w, 600, 1, 1, 1);
    EXPECT_STORY(w, "[ 10] worker 0 ticks to 1, seq 1\n"
                    "    clock_marked job=3 worker=0 member=0 clock=1\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 11] worker 0 at 1 pulls row 0\n"
                    "    request_held session=1 worker=0 clock=1 "
                    "waits_for_worker=1 at_clock=0\n"
                    "[ 12] worker 0 ticks to 2, seq 2\n"
                    "    request_held session=1 worker=0 clock=2 "
                    "waits_for_worker=1 at_clock=0\n"
                    "[ 20] worker 0 asks about seq 2\n"
                    "    worker 0 gets PARKED: waiting for worker 0 at clock "
                    "1, worker 1 at clock 0; clock 2 is needed\n"
                    "[511] time passes\n"
                    "    push_refused session=1 seq=0 status=DEADLINE\n"
                    "    worker 0 gets REFUSED DEADLINE: waiting for worker 1 "
                    "at clock 0; clock 1 is needed\n"
                    "[512] time passes\n"
                    "    worker 0 gets PARKED: waiting for worker 0 at clock "
                    "1, worker 1 at clock 0; clock 2 is needed\n"
                    "[600] worker 1 ticks to 1, seq 1\n"
                    "    clock_marked job=3 worker=1 member=0 clock=1\n"
                    "    clock_closed job=3 clock=1 pushes=0\n"
                    "    worker 1 gets ACK of seq 1\n"
                    "    clock_marked job=3 worker=0 member=0 clock=2\n"
                    "    worker 0 gets ACK of seq 2\n");
}

Test(trace_clocks, lost_worker_lets_the_others_go)
{
    WORLD(w, 3, 0);

    push(w, 10, 2, 1, 0, 0, 50);
    push(w, 11, 0, 1, 0, 0, 1);
    mark(w, 12, 0, 2, 1);
    pull(w, 13, 0, 2, 1, 0);
    mark(w, 14, 1, 1, 1);
    becomes(w, 900, 2, PS_WORKER_LOST);
    push(w, 910, 2, 2, 0, 0, 60);
    EXPECT_STORY(w, "[ 10] worker 2 at 0 pushes 50 to row 0, seq 1\n"
                    "    push_logged session=3 seq=1 lsn=2 worker=2 clock=0\n"
                    "    worker 2 gets ACK of seq 1\n"
                    "[ 11] worker 0 at 0 pushes 1 to row 0, seq 1\n"
                    "    push_logged session=1 seq=1 lsn=3 worker=0 clock=0\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 12] worker 0 ticks to 1, seq 2\n"
                    "    clock_marked job=3 worker=0 member=0 clock=1\n"
                    "    worker 0 gets ACK of seq 2\n"
                    "[ 13] worker 0 at 1 pulls row 0\n"
                    "    request_held session=1 worker=0 clock=1 "
                    "waits_for_worker=1 at_clock=0\n"
                    "[ 14] worker 1 ticks to 1, seq 1\n"
                    "    clock_marked job=3 worker=1 member=0 clock=1\n"
                    "    worker 1 gets ACK of seq 1\n"
                    "[900] worker 2 is lost\n"
                    "    clock_closed job=3 clock=1 pushes=2\n"
                    "    worker 0 gets VALUES 51\n"
                    "    pull_served session=1 worker=0 clock=1 rows=1\n"
                    "[910] worker 2 at 0 pushes 60 to row 0, seq 2\n"
                    "    push_refused session=3 seq=2 status=WORKER_LOST\n"
                    "    worker 2 gets REFUSED WORKER_LOST: worker 2 is lost\n");
}

Test(trace_clocks, finished_worker_holds_nobody)
{
    WORLD(w, 2, 1);

    mark(w, 10, 0, 1, 1);
    mark(w, 11, 0, 2, 2);
    pull(w, 12, 0, 2, 2, 0);
    becomes(w, 20, 1, PS_WORKER_FINISHED);
    EXPECT_STORY(w, "[ 10] worker 0 ticks to 1, seq 1\n"
                    "    clock_marked job=3 worker=0 member=0 clock=1\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 11] worker 0 ticks to 2, seq 2\n"
                    "    clock_marked job=3 worker=0 member=0 clock=2\n"
                    "    worker 0 gets ACK of seq 2\n"
                    "[ 12] worker 0 at 2 pulls row 0\n"
                    "    request_held session=1 worker=0 clock=2 "
                    "waits_for_worker=1 at_clock=0\n"
                    "[ 20] worker 1 is finished\n"
                    "    worker 0 gets VALUES 0\n"
                    "    pull_served session=1 worker=0 clock=2 rows=1\n");
}

Test(trace_clocks, joining_worker_holds_further_clocks_until_its_start)
{
    WORLD(w, 2, 0);

    becomes(w, 5, 1, PS_WORKER_FINISHED);
    mark(w, 10, 0, 1, 1);
    w->workers[1].joins++;
    becomes(w, 20, 1, PS_WORKER_JOINING);
    mark(w, 21, 0, 2, 2);
    pull(w, 22, 0, 2, 2, 0);
    w->workers[1].start = 2;
    becomes(w, 30, 1, PS_WORKER_RUNNING);
    pull(w, 31, 1, 0, 2, 0);
    EXPECT_STORY(w, "[  5] worker 1 is finished\n"
                    "[ 10] worker 0 ticks to 1, seq 1\n"
                    "    clock_marked job=3 worker=0 member=0 clock=1\n"
                    "    clock_closed job=3 clock=1 pushes=0\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 20] worker 1 is joining\n"
                    "[ 21] worker 0 ticks to 2, seq 2\n"
                    "    clock_marked job=3 worker=0 member=0 clock=2\n"
                    "    worker 0 gets ACK of seq 2\n"
                    "[ 22] worker 0 at 2 pulls row 0\n"
                    "    request_held session=1 worker=0 clock=2 "
                    "waits_for_worker=1 at_clock=0\n"
                    "[ 30] worker 1 is running\n"
                    "    clock_closed job=3 clock=2 pushes=0\n"
                    "    worker 0 gets VALUES 0\n"
                    "    pull_served session=1 worker=0 clock=2 rows=1\n"
                    "[ 31] worker 1 at 2 pulls row 0\n"
                    "    worker 1 gets VALUES 0\n"
                    "    pull_served session=2 worker=1 clock=2 rows=1\n");
}

/* A rank that came again while it was alone began at 0, behind the closed
 * clock: what its first life had marked was forgotten with it. */
Test(trace_clocks, rank_that_comes_again_is_behind_what_is_closed)
{
    WORLD(w, 1, 0);
    ps_clock_info_t *clocks = NULL;
    size_t n = 0;

    mark(w, 10, 0, 1, 1);
    mark(w, 11, 0, 2, 2);
    becomes(w, 500, 0, PS_WORKER_LOST);
    w->workers[0].joins++;
    becomes(w, 600, 0, PS_WORKER_JOINING);
    cr_assert_eq(ps_shard_clocks(w->shard, TRACE_JOB, &clocks, &n, NULL), PSD_OK);
    cr_assert_eq(n, 1);
    cr_assert_eq(clocks[0].max, 2);
    ps_free(clocks);
}

/* A worker that began anew after all others had finished was held by nothing
 * up to the clock that they had closed. */
Test(trace_clocks, worker_that_begins_anew_is_held_by_who_is_live)
{
    WORLD(w, 3, 1);

    mark(w, 10, 0, 1, 1);
    becomes(w, 11, 1, PS_WORKER_FINISHED);
    becomes(w, 12, 2, PS_WORKER_FINISHED);
    mark(w, 13, 0, 2, 2);
    mark(w, 14, 0, 3, 3);
    becomes(w, 15, 0, PS_WORKER_FINISHED);
    w->workers[1].joins++;
    w->workers[2].joins++;
    w->workers[1].state = PS_WORKER_RUNNING;
    becomes(w, 20, 2, PS_WORKER_RUNNING);
    w->text[0] = '\0';
    mark(w, 30, 1, 1, 1);
    mark(w, 31, 1, 2, 2);
    pull(w, 32, 1, 2, 2, 0);
    mark(w, 40, 2, 1, 1);
    EXPECT_STORY(w, "[ 30] worker 1 ticks to 1, seq 1\n"
                    "    clock_marked job=3 worker=1 member=0 clock=1\n"
                    "    worker 1 gets ACK of seq 1\n"
                    "[ 31] worker 1 ticks to 2, seq 2\n"
                    "    clock_marked job=3 worker=1 member=0 clock=2\n"
                    "    worker 1 gets ACK of seq 2\n"
                    "[ 32] worker 1 at 2 pulls row 0\n"
                    "    request_held session=2 worker=1 clock=2 "
                    "waits_for_worker=2 at_clock=0\n"
                    "[ 40] worker 2 ticks to 1, seq 1\n"
                    "    clock_marked job=3 worker=2 member=0 clock=1\n"
                    "    worker 2 gets ACK of seq 1\n"
                    "    worker 1 gets VALUES 0\n"
                    "    pull_served session=2 worker=1 clock=2 rows=1\n");
}
