/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry_decide.h, and what plans do to copies: one step at a time.
 * Lives of many steps are walk_registry's. */
#include "protocol/registry_decide.h"

#include "support/fail_alloc.h"
#include "support/registry_test.h"

/* Three nodes of two shards, incarnations 1, 2, 3, and an even number of time.
 */
static void
make_three(void)
{
    ps_registry_args_t args = fixture_args();

    args.copies_max = 3;
    args.nodes_max = 4;
    now_ms = 1000;
    err = psd_error_new();
    cr_assert_eq(ps_registry_new(&args, &registry, err), PSD_OK);
    make_cluster();
    start_node("n0", 1, 2);
    start_node("n1", 2, 2);
    start_node("n2", 3, 2);
    now_ms += 1000; /* leases from before the start have ended */
    for (size_t i = 0; i < 3; i++) {
        const ps_node_t *node = ps_registry_node_at(registry, i);

        cr_assert_eq(ps_registry_node_beat(registry, node->name,
                                           node->incarnation, 0, now_ms, err),
                     PSD_OK);
    }
}

TestSuite(registry_copies, .init = make_three, .fini = drop_registry);

static const ps_table_t *
make_copied(const char *name, uint32_t n_partitions, uint32_t replicas)
{
    ps_table_spec_t spec = fixture_spec(name);

    spec.n_partitions = n_partitions;
    spec.replicas = replicas;
    do_planned(ps_registry_plan_table(registry, &spec, 3, &command, err));
    return ps_registry_table(registry, name);
}

static void
beat(uint64_t incarnation, uint64_t max_epoch)
{
    const ps_node_t *node =
        ps_registry_node_by_incarnation(registry, incarnation);

    cr_assert_eq(ps_registry_node_beat(registry, node->name, incarnation,
                                       max_epoch, now_ms, err),
                 PSD_OK);
}

static ps_decision_t
decide(void)
{
    ps_decision_t decision;

    cr_assert_eq(ps_registry_decide(registry, now_ms, 9, &decision, err),
                 PSD_OK);
    return decision;
}

/* The next decision is a command of that text; it is done. */
static void
assert_commits(const char *text)
{
    ps_decision_t decision = decide();

    cr_assert_eq(decision.kind, PS_DECIDE_COMMIT);
    cr_assert_str_eq(decision.command.text, text);
    cr_assert_eq(ps_registry_apply(registry, &decision.command, now_ms, err),
                 PSD_OK, "%s", psd_error_text(err));
    ps_decision_done(&decision);
}

static void
assert_rests(void)
{
    ps_decision_t decision = decide();

    cr_assert_eq(decision.kind, PS_DECIDE_NOTHING, "%s", decision.command.text);
}

/* Partition 0 is asked, on n nodes of which the first is given. */
static void
assert_asks(uint32_t n, uint64_t first)
{
    PSD_AUTO(ps_decision_done) ps_decision_t decision = decide();

    cr_assert_eq(decision.kind, PS_DECIDE_FENCE);
    cr_assert_eq(decision.n_fences, 1);
    cr_assert_eq(decision.fences[0].partition, 0);
    cr_assert_eq(decision.fences[0].epoch, ps_registry_epoch(registry));
    cr_assert_eq(decision.fences[0].n, n);
    cr_assert_eq(decision.fences[0].to[0], first);
}

static bool
say(ps_report_kind_t kind, uint64_t from, uint64_t copy)
{
    ps_report_t report = {.kind = kind,
                          .table = 1,
                          .epoch = ps_registry_epoch(registry),
                          .incarnation = copy};

    return ps_registry_report(registry, from, &report);
}

/* Its last record has that lsn and is of that epoch. */
static bool
answer_of(uint64_t incarnation, uint64_t lsn_epoch, uint64_t lsn)
{
    ps_report_t position = {.kind = PS_REPORT_POSITION,
                            .table = 1,
                            .epoch = ps_registry_epoch(registry),
                            .lsn = lsn,
                            .lsn_epoch = lsn_epoch};

    return ps_registry_fenced(registry, incarnation, &position);
}

static bool
answer(uint64_t incarnation, uint64_t lsn)
{
    return answer_of(incarnation, 0, lsn);
}

/* Places */

Test(registry_copies, lie_on_different_nodes_and_even)
{
    const ps_table_t *table = make_copied("w", 6, 2);
    uint32_t counts[4] = {0};

    for (uint32_t i = 0; i < 6; i++) {
        const ps_copies_t *copies = &table->copies[i];

        cr_assert_eq(copies->n, 2);
        cr_assert_eq(ps_copies_n_whole(copies), 2, "all are empty");
        cr_assert_eq(ps_copies_check(copies, NULL), PSD_OK);
        cr_assert_eq(copies->epoch, ps_registry_epoch(registry));
        cr_assert_eq(table->routes[i].incarnation, copies->at[0].incarnation);
        cr_assert_str_eq(table->routes[i].tcp, copies->at[0].tcp);
        counts[copies->at[0].incarnation]++;
        counts[copies->at[1].incarnation]++;
    }
    cr_assert_eq(counts[1], 4);
    cr_assert_eq(counts[2], 4);
    cr_assert_eq(counts[3], 4);
}

Test(registry_copies, follow_the_weights_of_nodes)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n3", 4, 2, shards);
    const ps_table_t *table = NULL;
    uint32_t n = 0;

    node.weight = 6;
    do_planned(ps_registry_plan_node(registry, &node, 2, &command, err));
    table = make_copied("w", 12, 1);
    for (uint32_t i = 0; i < 12; i++) {
        n += table->copies[i].at[0].incarnation == 4 ? 1 : 0;
    }
    cr_assert_eq(n, 6, "as much as the three others");
}

Test(registry_copies, that_cannot_be_are_refused)
{
    ps_table_spec_t spec = fixture_spec("w");

    spec.replicas = 4;
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err),
                   PSD_UNSUPPORTED, "replicas is 4; supported: 1..3");
    spec.replicas = 1;
    spec.ack = PS_ACK_REPLICA;
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err),
                   PSD_INVALID,
                   "ack is replica, which takes 2 replicas or more; replicas "
                   "is 1");
    spec.replicas = 3;
    spec.ack = PS_ACK_DISK;
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err),
                   PSD_UNSUPPORTED, "ack is disk; supported: memory, replica");
    spec.ack = PS_ACK_REPLICA;
    do_planned(ps_registry_plan_node_state(registry, "n1", PS_NODE_DRAINING,
                                           false, 1, &command, err));
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err),
                   PSD_NO_NODE,
                   "table w wants copies on 3 nodes; 2 are up and not "
                   "draining");
}

/* Nodes */

Test(registry_copies, of_a_node_that_starts_again_catch_up)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    uint64_t second = table->copies[0].at[1].incarnation;

    start_node("n0", 9, 2);
    cr_assert_not(table->rows_lost);
    cr_assert(table->copies[0].fenced);
    cr_assert_eq(table->copies[0].at[0].incarnation, second);
    cr_assert_eq(table->copies[0].at[1].incarnation, 9);
    cr_assert_eq(table->copies[0].at[1].state, PS_COPY_CATCHING_UP);
    start_node(second == 2 ? "n1" : "n2", 10, 2);
    cr_assert(table->rows_lost, "that was the last whole one");
    cr_assert_eq(table->copies[0].at[0].incarnation, 10);
    cr_assert(table->copies[0].fenced);
    assert_asks(1, 10);
    cr_assert(answer(10, 0));
    assert_rests(); /* leases that it granted before its start */
    now_ms += 300;
    beat(10, 0);
    beat(9, 0);
    assert_commits("partition 0 of table w has its primary on node n1 now");
}

/* A node starts again with what its logs had. */
static void
start_kept(const char *name, uint64_t incarnation)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node(name, incarnation, 2, shards);

    node.kept = true;
    do_planned(ps_registry_plan_node(registry, &node, 2, &command, err));
}

/* A table with a log. */
static const ps_copies_t *
make_logged(uint32_t replicas)
{
    ps_table_spec_t spec = fixture_spec("w");

    spec.n_partitions = 1;
    spec.replicas = replicas;
    cr_assert_eq(ps_registry_plan_table(registry, &spec, 3, &command, err),
                 PSD_OK);
    command.table.spec.ack = PS_ACK_DISK; /* not offered yet */
    do_planned(PSD_OK);
    return ps_registry_table(registry, "w")->copies;
}

/* What was acknowledged at `replica`, and not flushed, is in the other one. */
Test(registry_copies, that_were_kept_catch_up_where_another_one_is_whole)
{
    const ps_copies_t *copies = make_logged(2);

    start_kept("n0", 9);
    cr_assert(copies->fenced);
    cr_assert_eq(copies->at[1].incarnation, 9);
    cr_assert_eq(copies->at[1].state, PS_COPY_KEPT);
    assert_asks(2, 2);
    cr_assert(answer_of(9, 4, 31));
    assert_rests();
    cr_assert(answer_of(2, 3, 30));
    assert_commits("partition 0 of table w has its primary on node n1 now");
    cr_assert_eq(copies->at[1].incarnation, 9);
    cr_assert_eq(copies->at[1].state, PS_COPY_CATCHING_UP);
    cr_assert_not(ps_registry_table(registry, "w")->rows_lost);
}

/* Its primary was not heard since, and may be gone, too. */
Test(registry_copies, that_were_kept_are_let_go_when_the_primary_is_heard)
{
    const ps_copies_t *copies = make_logged(2);

    now_ms += 100;
    start_kept("n1", 8);
    cr_assert_not(copies->fenced);
    cr_assert_eq(copies->at[1].state, PS_COPY_KEPT);
    assert_rests();
    now_ms += 100;
    beat(1, 0);
    assert_commits("partition 0 of table w is to catch up on node n1, which "
                   "started again");
    cr_assert_eq(copies->at[1].state, PS_COPY_CATCHING_UP);
}

/* All nodes were killed at once: the longest log is the one to go on with, and
 * nobody goes on before leases from before the start have ended. */
Test(registry_copies, that_were_all_kept_are_compared)
{
    const ps_copies_t *copies = make_logged(3);

    start_kept("n1", 8);
    start_kept("n0", 9);
    start_kept("n2", 10);
    cr_assert(copies->fenced);
    cr_assert_eq(ps_copies_n_whole(copies), 0);
    cr_assert_eq(ps_copies_n_heirs(copies), 3);
    assert_asks(3, copies->at[0].incarnation);
    cr_assert(answer_of(9, 3, 31));
    cr_assert(answer_of(8, 3, 32));
    assert_rests();
    cr_assert(answer_of(10, 2, 50));
    now_ms += 299;
    assert_rests();
    now_ms += 1;
    assert_commits("partition 0 of table w has its primary on node n1 now");
    cr_assert_eq(ps_copies_n_heirs(copies), 1);
    cr_assert_eq(copies->at[1].state, PS_COPY_CATCHING_UP);
    cr_assert_not(ps_registry_table(registry, "w")->rows_lost);
}

/* A node that does not come back is waited for, but not for ever. */
Test(registry_copies, that_were_kept_do_not_wait_for_ever)
{
    const ps_copies_t *copies = make_logged(2);
    uint64_t until = now_ms + 30000;

    start_kept("n1", 8);
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    while (now_ms + 100 < until) {
        now_ms += 100;
        beat(8, 0);
        beat(3, 0);
        assert_rests();
        cr_assert_not(copies->fenced);
    }
    now_ms += 100;
    beat(8, 0);
    beat(3, 0);
    assert_commits("partition 0 of table w is fenced: node n0 is silent");
    assert_asks(1, 8);
    cr_assert(answer(8, 30));
    assert_commits("partition 0 of table w has its primary on node n1 now");
}

Test(registry_copies, of_which_one_was_kept_and_one_not)
{
    const ps_copies_t *copies = make_logged(2);

    start_kept("n1", 8);
    start_node("n0", 9, 2);
    cr_assert(copies->fenced);
    cr_assert_eq(copies->at[0].incarnation, 8);
    cr_assert_eq(copies->at[0].state, PS_COPY_KEPT);
    cr_assert_eq(copies->at[1].state, PS_COPY_CATCHING_UP);
    cr_assert_not(ps_registry_table(registry, "w")->rows_lost);
    start_node("n1", 10, 2);
    cr_assert(ps_registry_table(registry, "w")->rows_lost);
    cr_assert_eq(copies->at[0].state, PS_COPY_IN_SYNC);
    cr_assert(copies->fenced, "the lease is waited for first");
}

Test(registry_copies, of_tables_without_a_log_are_not_kept)
{
    const ps_table_t *table = make_copied("w", 1, 1);

    start_kept("n0", 9);
    cr_assert(table->rows_lost);
}

Test(registry_copies, keep_a_node_from_being_removed)
{
    const ps_table_t *table = make_copied("w", 1, 1);

    assert_refused(ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED,
                                               true, 1, &command, err),
                   PSD_BUSY,
                   "node n0 has copies of 1 partitions; drain it first");
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    assert_refused(ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED,
                                               false, 1, &command, err),
                   PSD_BUSY,
                   "node n0 has copies of 1 partitions, of 1 of them the last; "
                   "start it again, or force it if it is lost");
    assert_refused(ps_registry_plan_node_state(registry, "n9", PS_NODE_UP, true,
                                               1, &command, err),
                   PSD_NO_NODE, "node \"n9\" does not exist");
    do_planned(ps_registry_plan_node_state(registry, "n1", PS_NODE_REMOVED,
                                           false, 1, &command, err));
    cr_assert_eq(ps_registry_n_nodes(registry), 2);
    cr_assert_eq(table->copies[0].n, 1);
    cr_assert_not(table->rows_lost);
    do_planned(ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED,
                                           true, 1, &command, err));
    cr_assert(table->rows_lost, "there is a new one, which is empty");
    cr_assert_eq(ps_copies_primary(&table->copies[0])->incarnation, 3);
    cr_assert(ps_registry_node_ends(registry, "n2", 3, now_ms));
    assert_refused(ps_registry_plan_node_state(registry, "n2", PS_NODE_REMOVED,
                                               true, 1, &command, err),
                   PSD_BUSY,
                   "the last copy of partition 0 of table w would be lost, and "
                   "no other node can have a new one");
}

Test(registry_copies, that_are_left_on_a_node_are_counted)
{
    ps_node_left_t left;

    (void)make_copied("w", 6, 1);
    (void)make_copied("v", 3, 3);
    cr_assert(ps_registry_set_bytes(registry, 1, 1, 0, 500));
    cr_assert_not(ps_registry_set_bytes(registry, 2, 1, 0, 900),
                  "it is not the primary");
    cr_assert_not(ps_registry_set_bytes(registry, 1, 1, 6, 900));
    cr_assert(ps_registry_node_left(registry, "n0", &left));
    cr_assert_eq(left.n_copies, 5);
    cr_assert_eq(left.n_primaries, 3);
    cr_assert_eq(left.n_last, 2);
    cr_assert_eq(left.bytes, 500);
    cr_assert_not(ps_registry_node_left(registry, "n9", &left));
}

Test(registry_copies, hear_only_nodes_that_are_known)
{
    cr_assert_eq(ps_registry_node_beat(registry, "n9", 1, 0, now_ms, err),
                 PSD_NO_NODE);
    psd_error_clear(err);
    cr_assert_eq(ps_registry_node_beat(registry, "n0", 7, 0, now_ms, err),
                 PSD_INCARNATION);
    psd_error_clear(err);
    cr_assert_not(ps_registry_node_ends(registry, "n0", 7, now_ms));
    beat(1, 500);
    cr_assert_eq(make_copied("w", 1, 1)->copies[0].epoch, 501,
                 "above all that a node has seen");
    assert_refused(
        ps_registry_node_beat(registry, "n0", 1, UINT64_MAX / 4, now_ms, err),
        PSD_INVALID,
        "node n0 claims epoch 4611686018427387903; the map's is "
        "501");
}

/* Decisions */

Test(registry_copies, the_one_with_most_takes_over)
{
    const ps_table_t *table = make_copied("w", 1, 3);
    ps_report_t old = {.kind = PS_REPORT_POSITION, .table = 1, .epoch = 1};
    ps_decision_t decision;

    assert_rests();
    for (int i = 0; i < 4; i++) {
        now_ms += 100;
        beat(2, 0);
        beat(3, 0);
        decision = i < 3 ? decide() : (ps_decision_t){0};
        cr_assert_eq(decision.kind, PS_DECIDE_NOTHING, "n0 may be late");
    }
    assert_commits("partition 0 of table w is fenced: node n0 is silent");
    cr_assert(table->copies[0].fenced);
    assert_asks(2, table->copies[0].at[1].incarnation);
    assert_rests();
    now_ms += 100;
    assert_asks(2, table->copies[0].at[1].incarnation);
    cr_assert_not(ps_registry_fenced(registry, 2, &old), "old epoch");
    cr_assert_not(answer(9, 70));
    cr_assert(answer(2, 40));
    assert_rests();
    cr_assert(answer(3, 41));
    assert_commits("partition 0 of table w has its primary on node n2 now");
    cr_assert_eq(ps_copies_primary(&table->copies[0])->incarnation, 3);
    cr_assert_eq(table->routes[0].incarnation, 3);
    cr_assert_eq(ps_copies_on(&table->copies[0], 1)->state,
                 PS_COPY_CATCHING_UP);
    cr_assert_eq(ps_copies_on(&table->copies[0], 2)->state, PS_COPY_IN_SYNC);
}

/* A copy of a later primary's records has what was acknowledged since, though
 * the other one's are more. */
Test(registry_copies, what_they_have_counts_by_epoch_first)
{
    (void)make_copied("w", 1, 3);
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    assert_commits("partition 0 of table w is fenced: node n0 is silent");
    assert_asks(2, 2);
    cr_assert(answer_of(2, 3, 90));
    cr_assert(answer_of(3, 4, 40));
    assert_commits("partition 0 of table w has its primary on node n2 now");
}

Test(registry_copies, of_many_partitions_are_asked_at_once)
{
    PSD_AUTO(ps_decision_done) ps_decision_t decision = {0};

    (void)make_copied("w", 6, 2);
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    decision = decide();
    cr_assert_eq(decision.command.n_changes, 2);
    cr_assert_eq(ps_registry_apply(registry, &decision.command, now_ms, err),
                 PSD_OK);
    ps_decision_done(&decision);
    decision = decide();
    cr_assert_eq(decision.kind, PS_DECIDE_FENCE);
    cr_assert_eq(decision.n_fences, 2);
    cr_assert_lt(decision.fences[0].partition, decision.fences[1].partition);
}

Test(registry_copies, a_silent_one_is_not_waited_for)
{
    (void)make_copied("w", 1, 3);
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    assert_commits("partition 0 of table w is fenced: node n0 is silent");
    assert_asks(2, 2);
    cr_assert(answer(2, 40));
    assert_rests();
    for (int i = 0; i < 4; i++) {
        now_ms += 100;
        beat(2, 0);
        if (i < 3) {
            PSD_AUTO(ps_decision_done) ps_decision_t decision = decide();

            cr_assert_neq(decision.kind, PS_DECIDE_COMMIT);
        }
    }
    assert_commits("partition 0 of table w has its primary on node n1 now");
}

Test(registry_copies, a_primary_without_another_whole_copy_is_left_alone)
{
    (void)make_copied("w", 1, 1);
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    assert_rests();
}

Test(registry_copies, time_in_which_the_registry_slept_is_forgiven)
{
    (void)make_copied("w", 1, 2);
    assert_rests();
    now_ms += 60000;
    assert_rests();
    cr_assert_not(ps_registry_node(registry, "n0")->suspect);
    cr_assert_gt(ps_registry_decide_at(registry), now_ms);
}

/* A shell that only asks when it was told to still sees who is silent. */
Test(registry_copies, the_timer_alone_finds_who_is_silent)
{
    (void)make_copied("w", 1, 2);
    for (int i = 0; i < 100 && !ps_registry_node(registry, "n0")->suspect;
         i++) {
        PSD_AUTO(ps_decision_done) ps_decision_t decision = decide();
        uint64_t at = ps_registry_decide_at(registry);

        now_ms = (now_ms < at ? at : now_ms) + 20; /* a timer is late */
    }
    cr_assert(ps_registry_node(registry, "n0")->suspect);
    cr_assert_lt(now_ms, 2000 + 400 + 200);
}

Test(registry_copies, that_lag_go_out_of_sync_and_come_back)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    uint64_t second = table->copies[0].at[1].incarnation;

    cr_assert_not(say(PS_REPORT_SLOW, second, 1), "it is not the primary");
    cr_assert_not(say(PS_REPORT_SLOW, 1, 9), "there is no such copy");
    cr_assert_not(say(PS_REPORT_POSITION, 1, second), "no report of a copy");
    cr_assert_not(say(PS_REPORT_FENCED, 1, second), "nor is this");
    cr_assert(say(PS_REPORT_SLOW, 1, second));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    cr_assert_eq(table->copies[0].at[1].state, PS_COPY_CATCHING_UP);
    assert_rests();
    cr_assert(say(PS_REPORT_CAUGHT_UP, 1, second));
    assert_commits("partition 0 of table w is in sync on node n1");
    cr_assert_eq(table->copies[0].at[1].state, PS_COPY_IN_SYNC);
    assert_rests();
}

/* Its primary waited for a copy that had died behind its report for good. */
Test(registry_copies, that_were_offered_and_lag_are_not_waited_for)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    uint64_t second = table->copies[0].at[1].incarnation;
    uint64_t epoch = 0;

    cr_assert(say(PS_REPORT_SLOW, 1, second));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    epoch = table->copies[0].epoch;
    cr_assert(say(PS_REPORT_DIVERGED, 1, second));
    assert_rests();
    cr_assert(say(PS_REPORT_SLOW, 1, second));
    assert_commits("partition 0 of table w is not caught up with on node n1 "
                   "any more");
    cr_assert_gt(table->copies[0].epoch, epoch);
    cr_assert_eq(table->copies[0].at[1].state, PS_COPY_CATCHING_UP);
    assert_rests();
}

Test(registry_copies, move_off_a_draining_node)
{
    const ps_table_t *table = make_copied("w", 1, 1);

    do_planned(ps_registry_plan_node_state(registry, "n0", PS_NODE_DRAINING,
                                           false, 1, &command, err));
    assert_commits("partition 0 of table w gets a copy on node n1");
    assert_rests();
    cr_assert(say(PS_REPORT_CAUGHT_UP, 1, 2));
    assert_commits("partition 0 of table w is in sync on node n1");
    assert_commits("partition 0 of table w is fenced: its primary moves from "
                   "node n0 to node n1");
    assert_asks(1, 1); /* it sends all it has first */
    cr_assert(answer(1, 50));
    assert_asks(1, 2);
    cr_assert(answer(2, 50));
    assert_commits("partition 0 of table w has its primary on node n1 now");
    assert_commits("partition 0 of table w has no copy on node n0 any more");
    cr_assert_eq(table->copies[0].n, 1);
    assert_rests();
    do_planned(ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED,
                                           false, 1, &command, err));
}

/* Dry runs */

Test(registry_copies, a_drain_is_shown_before_it_is_done)
{
    const ps_table_t *table = NULL;
    PSD_AUTO(ps_free_at) ps_move_t *moves = NULL;
    PSD_AUTO(ps_free_at) char *before = NULL;
    PSD_AUTO(ps_free_at) char *after = NULL;
    size_t n = 0;

    table = make_copied("w", 6, 2);
    for (uint32_t i = 0; i < 6; i++) {
        cr_assert(ps_registry_set_bytes(
            registry, table->copies[i].at[0].incarnation, 1, i, 1000));
    }
    before = fixture_dump(registry);
    cr_assert_eq(ps_registry_plan_drain(registry, "n0", &moves, &n, err),
                 PSD_OK);
    cr_assert_eq(n, 4);
    for (size_t i = 0; i < n; i++) {
        cr_assert_str_eq(moves[i].from, "n0");
        cr_assert_str_neq(moves[i].to, "n0");
        cr_assert_str_neq(moves[i].to, "");
        cr_assert_eq(moves[i].bytes, 1000);
    }
    cr_assert_eq(ps_moves_ms(moves, n, 2000), 2000);
    cr_assert_eq(ps_moves_ms(moves, n, 0), 0, "nothing is known of it");
    after = fixture_dump(registry);
    cr_assert_str_eq(before, after);
    cr_assert_eq(ps_registry_plan_drain(registry, "n9", &moves, &n, err),
                 PSD_NO_NODE);
}

Test(registry_copies, evening_out_is_shown_before_it_is_done)
{
    PSD_AUTO(ps_free_at) ps_move_t *moves = NULL;
    size_t n = 9;

    (void)make_copied("w", 6, 1);
    cr_assert_eq(ps_registry_plan_rebalance(registry, &moves, &n, err), PSD_OK);
    cr_assert_eq(n, 0, "they are even");
    ps_free_at(&moves);
    moves = NULL;
    start_node("n3", 4, 2);
    cr_assert_eq(ps_registry_plan_rebalance(registry, &moves, &n, err), PSD_OK);
    cr_assert_eq(n, 1);
    cr_assert_str_eq(moves[0].to, "n3");
    cr_assert(moves[0].primary);
    cr_assert_not(moves[0].role);
}

/* Memory */

static psd_status_t
decide_and_plan(void *fixture)
{
    ps_move_t *moves = NULL;
    size_t n = 0;
    ps_decision_t decision = {0};
    psd_status_t rc = PSD_OK;

    (void)fixture;
    rc = ps_registry_decide(registry, now_ms, 1, &decision, NULL);
    ps_decision_done(&decision);
    if (rc == PSD_OK) {
        rc = ps_registry_plan_drain(registry, "n1", &moves, &n, NULL);
    }
    if (rc == PSD_OK) {
        ps_free(moves);
        rc = ps_registry_plan_rebalance(registry, &moves, &n, NULL);
    }
    if (rc == PSD_OK) {
        ps_free(moves);
    }
    return rc;
}

Test(registry_copies, no_memory_is_said_and_nothing_is_decided)
{
    PSD_AUTO(ps_free_at) char *before = NULL;
    PSD_AUTO(ps_free_at) char *after = NULL;

    (void)make_copied("w", 6, 2);
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    before = fixture_dump(registry);
    cr_assert_null(fail_alloc_sweep(decide_and_plan, NULL));
    after = fixture_dump(registry);
    cr_assert_str_eq(before, after);
}
