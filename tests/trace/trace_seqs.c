/* SPDX-License-Identifier: Apache-2.0 */
/* Stories about sequence numbers: repeated, missing, refused; and places. */
#include "trace_world.h"

Test(trace_seqs, repeated_push_is_acknowledged_and_not_applied)
{
    WORLD(w, 1, -1);

    push(w, 10, 0, 1, 0, 3, 8);
    push(w, 20, 0, 1, 0, 3, 8);
    probe(w, 30, 0, 1);
    pull(w, 40, 0, 1, 0, 3);
    EXPECT_STORY(w, "[ 10] worker 0 at 0 pushes 8 to row 3, seq 1\n"
                    "    push_applied session=1 seq=1 lsn=2 worker=0 clock=0\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 20] worker 0 at 0 pushes 8 to row 3, seq 1\n"
                    "    push_duplicate session=1 seq=1\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 30] worker 0 asks about seq 1\n"
                    "    push_duplicate session=1 seq=1\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 40] worker 0 at 0 pulls row 3\n"
                    "    worker 0 gets VALUES 8\n"
                    "    pull_served session=1 worker=0 clock=0 rows=1\n");
}

Test(trace_seqs, gap_names_what_is_missing)
{
    WORLD(w, 1, -1);

    push(w, 10, 0, 2, 0, 0, 20);
    probe(w, 15, 0, 1);
    push(w, 20, 0, 1, 0, 0, 10);
    push(w, 30, 0, 2, 0, 0, 20);
    pull(w, 40, 0, 2, 0, 0);
    EXPECT_STORY(w, "[ 10] worker 0 at 0 pushes 20 to row 0, seq 2\n"
                    "    push_gap session=1 seq=2 expected=1\n"
                    "    worker 0 gets REFUSED GAP: gap, expected 1\n"
                    "[ 15] worker 0 asks about seq 1\n"
                    "    push_gap session=1 seq=1 expected=1\n"
                    "    worker 0 gets REFUSED GAP: gap, expected 1\n"
                    "[ 20] worker 0 at 0 pushes 10 to row 0, seq 1\n"
                    "    push_applied session=1 seq=1 lsn=2 worker=0 clock=0\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 30] worker 0 at 0 pushes 20 to row 0, seq 2\n"
                    "    push_applied session=1 seq=2 lsn=3 worker=0 clock=0\n"
                    "    worker 0 gets ACK of seq 2\n"
                    "[ 40] worker 0 at 0 pulls row 0\n"
                    "    worker 0 gets VALUES 30\n"
                    "    pull_served session=1 worker=0 clock=0 rows=1\n");
}

Test(trace_seqs, marker_does_not_overtake_a_push)
{
    WORLD(w, 2, 0);

    mark(w, 10, 1, 1, 1);
    mark(w, 11, 0, 2, 1); /* its push, seq 1, was lost */
    pull(w, 12, 1, 1, 1, 0);
    push(w, 20, 0, 1, 0, 0, 6);
    mark(w, 30, 0, 2, 1);
    EXPECT_STORY(w, "[ 10] worker 1 ticks to 1, seq 1\n"
                    "    clock_marked job=3 worker=1 member=0 clock=1\n"
                    "    worker 1 gets ACK of seq 1\n"
                    "[ 11] worker 0 ticks to 1, seq 2\n"
                    "    push_gap session=1 seq=2 expected=1\n"
                    "    worker 0 gets REFUSED GAP: gap, expected 1\n"
                    "[ 12] worker 1 at 1 pulls row 0\n"
                    "    request_held session=2 worker=1 clock=1 "
                    "waits_for_worker=0 at_clock=0\n"
                    "[ 20] worker 0 at 0 pushes 6 to row 0, seq 1\n"
                    "    push_logged session=1 seq=1 lsn=3 worker=0 clock=0\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 30] worker 0 ticks to 1, seq 2\n"
                    "    clock_marked job=3 worker=0 member=0 clock=1\n"
                    "    clock_closed job=3 clock=1 pushes=1\n"
                    "    worker 0 gets ACK of seq 2\n"
                    "    worker 1 gets VALUES 6\n"
                    "    pull_served session=2 worker=1 clock=1 rows=1\n");
}

Test(trace_seqs, pull_waits_behind_the_push_before_it)
{
    WORLD(w, 1, -1);

    pull(w, 10, 0, 1, 0, 1); /* overtook the push */
    push(w, 12, 0, 1, 0, 1, 4);
    EXPECT_STORY(w, "[ 10] worker 0 at 0 pulls row 1\n"
                    "    request_held session=1 worker=0 clock=0 "
                    "waits_for_worker=0 at_clock=0\n"
                    "[ 12] worker 0 at 0 pushes 4 to row 1, seq 1\n"
                    "    push_applied session=1 seq=1 lsn=2 worker=0 clock=0\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "    worker 0 gets VALUES 4\n"
                    "    pull_served session=1 worker=0 clock=0 rows=1\n");
}

Test(trace_seqs, refusal_uses_the_seq_up_and_is_remembered)
{
    WORLD(w, 1, -1);

    push(w, 10, 0, 1, 0, 17, 1);
    push(w, 20, 0, 1, 0, 17, 1);
    push(w, 30, 0, 2, 0, 0, 1);
    EXPECT_STORY(w, "[ 10] worker 0 at 0 pushes 1 to row 17, seq 1\n"
                    "    push_refused session=1 seq=1 status=RANGE\n"
                    "    worker 0 gets REFUSED RANGE: row 17 is outside 0..3\n"
                    "[ 20] worker 0 at 0 pushes 1 to row 17, seq 1\n"
                    "    push_duplicate session=1 seq=1\n"
                    "    push_refused session=1 seq=1 status=RANGE\n"
                    "    worker 0 gets REFUSED RANGE: row 17 is outside 0..3\n"
                    "[ 30] worker 0 at 0 pushes 1 to row 0, seq 2\n"
                    "    push_applied session=1 seq=2 lsn=3 worker=0 clock=0\n"
                    "    worker 0 gets ACK of seq 2\n");
}

Test(trace_seqs, moved_partition_sends_its_clients_away)
{
    WORLD(w, 2, 0);

    mark(w, 10, 0, 1, 1);
    pull(w, 11, 0, 1, 1, 0);
    w->route.epoch = 6;
    w->route.incarnation = 78;
    tell(w, "[ 20] the partition moves away\n");
    table_changes(w);
    push(w, 30, 1, 1, 0, 0, 5);
    EXPECT_STORY(w, "[ 10] worker 0 ticks to 1, seq 1\n"
                    "    clock_marked job=3 worker=0 member=0 clock=1\n"
                    "    worker 0 gets ACK of seq 1\n"
                    "[ 11] worker 0 at 1 pulls row 0\n"
                    "    request_held session=1 worker=0 clock=1 "
                    "waits_for_worker=1 at_clock=0\n"
                    "[ 20] the partition moves away\n"
                    "    worker 0 gets MOVED\n"
                    "[ 30] worker 1 at 0 pushes 5 to row 0, seq 1\n"
                    "    worker 1 gets MOVED\n");
}
