/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of copies when nodes start again, with or without their log, and
 * when they are removed. */
#include "support/registry_copies_test.h"

TestSuite(registry_nodes, .init = make_three, .fini = drop_registry);

Test(registry_nodes, of_a_node_that_starts_again_catch_up)
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
    assert_commits("partition 0 of table w now has its primary on node n1");
}

/* A node starts again with what its logs had. */
static void start_kept(const char *name, uint64_t incarnation)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node(name, incarnation, 2, shards);

    node.kept = true;
    do_planned(ps_registry_plan_node(registry, &node, 2, &command, err));
}

/* A table with a log. */
static const ps_copies_t *make_logged(uint32_t replicas)
{
    ps_table_spec_t spec = fixture_spec("w");

    spec.n_partitions = 1;
    spec.replicas = replicas;
    cr_assert_eq(ps_registry_plan_table(registry, &spec, 3, &command, err), PSD_OK);
    command.table.spec.ack = PS_ACK_DISK; /* not offered yet */
    do_planned(PSD_OK);
    return ps_registry_table(registry, "w")->copies;
}

/* What was acknowledged at `replica`, and not flushed, is in the other one. */
Test(registry_nodes, that_were_kept_catch_up_where_another_one_is_whole)
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
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert_eq(copies->at[1].incarnation, 9);
    cr_assert_eq(copies->at[1].state, PS_COPY_CATCHING_UP);
    cr_assert_not(ps_registry_table(registry, "w")->rows_lost);
}

/* Its primary was not heard since, and may be gone, too. */
Test(registry_nodes, that_were_kept_are_let_go_when_the_primary_is_heard)
{
    const ps_copies_t *copies = make_logged(2);

    now_ms += 100;
    start_kept("n1", 8);
    cr_assert_not(copies->fenced);
    cr_assert_eq(copies->at[1].state, PS_COPY_KEPT);
    assert_rests();
    now_ms += 100;
    beat(1, 0);
    assert_commits("partition 0 of table w catches up on node n1, which restarted");
    cr_assert_eq(copies->at[1].state, PS_COPY_CATCHING_UP);
}

/* All nodes were killed at once: the longest log is the one to go on with, and
 * nobody goes on before leases from before the start have ended. */
Test(registry_nodes, that_were_all_kept_are_compared)
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
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert_eq(ps_copies_n_heirs(copies), 1);
    cr_assert_eq(copies->at[1].state, PS_COPY_CATCHING_UP);
    cr_assert_not(ps_registry_table(registry, "w")->rows_lost);
}

/* A node that does not come back is waited for, but not for ever. */
Test(registry_nodes, that_were_kept_do_not_wait_for_ever)
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
    assert_commits("partition 0 of table w now has its primary on node n1");
}

Test(registry_nodes, of_which_one_was_kept_and_one_not)
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

Test(registry_nodes, of_tables_without_a_log_are_not_kept)
{
    const ps_table_t *table = make_copied("w", 1, 1);

    start_kept("n0", 9);
    cr_assert(table->rows_lost);
}

Test(registry_nodes, keep_a_node_from_being_removed)
{
    const ps_table_t *table = make_copied("w", 1, 1);

    assert_refused(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED, true, 1, &command, err),
        PSD_NODE_HELD, "node n0 has copies of 1 partitions; drain it first");
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    assert_refused(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED, false, 1, &command, err),
        PSD_NODE_HELD,
        "node n0 has copies of 1 partitions, the last ones of 1 of them (tables: w); restart it to "
        "recover what is on its disk; if it is lost, use --force: those 1 start empty");
    cr_assert_eq(ps_registry_last_copies(registry, table, ps_registry_node(registry, "n0")).n, 1);
    cr_assert_eq(ps_registry_last_copies(registry, table, ps_registry_node(registry, "n1")).n, 0);
    assert_refused(ps_registry_plan_node_state(registry, "n9", PS_NODE_UP, true, 1, &command, err),
                   PSD_NO_NODE, "node \"n9\" does not exist");
    for (int force = 0; force < 2; force++) {
        assert_refused(ps_registry_plan_node_state(registry, "n1", PS_NODE_REMOVED, force == 1, 1,
                                                   &command, err),
                       PSD_NODE_HELD, "node n1 is up and would join again; stop it first");
    }
    cr_assert(ps_registry_node_ends(registry, "n1", 2, now_ms));
    do_planned(
        ps_registry_plan_node_state(registry, "n1", PS_NODE_REMOVED, false, 1, &command, err));
    cr_assert_eq(ps_registry_n_nodes(registry), 2);
    cr_assert_eq(table->copies[0].n, 1);
    cr_assert_not(table->rows_lost);
    do_planned(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED, true, 1, &command, err));
    cr_assert(table->rows_lost, "there is a new one, which is empty");
    cr_assert_eq(ps_copies_primary(&table->copies[0])->incarnation, 3);
    cr_assert(ps_registry_node_ends(registry, "n2", 3, now_ms));
    assert_refused(
        ps_registry_plan_node_state(registry, "n2", PS_NODE_REMOVED, true, 1, &command, err),
        PSD_NODE_HELD,
        "the last copy of partition 0 of table w would be lost, and no other node can take a new "
        "one");
}

Test(registry_nodes, that_are_left_on_a_node_are_counted)
{
    ps_node_left_t left;

    (void)make_copied("w", 6, 1);
    (void)make_copied("v", 3, 3);
    cr_assert(ps_registry_set_bytes(registry, 1, 1, 0, 500));
    cr_assert_not(ps_registry_set_bytes(registry, 2, 1, 0, 900), "it is not the primary");
    cr_assert_not(ps_registry_set_bytes(registry, 1, 1, 6, 900));
    cr_assert(ps_registry_node_left(registry, "n0", &left));
    cr_assert_eq(left.n_copies, 5);
    cr_assert_eq(left.n_primaries, 3);
    cr_assert_eq(left.last.n, 2);
    cr_assert_eq(left.bytes, 500);
    cr_assert_not(ps_registry_node_left(registry, "n9", &left));
}

/* psd said that other nodes had these copies, too, and they were never heard of again. */
Test(registry_nodes, that_are_down_have_nothing_for_sure)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    ps_node_left_t left;
    ps_last_t last;

    cr_assert_eq(table->copies[0].at[1].incarnation, 2);
    (void)make_copied("v", 3, 1);
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    assert_refused(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED, false, 1, &command, err),
        PSD_NODE_HELD,
        "node n0 has copies of 2 partitions, the last ones of 1 of them (tables: v); restart it to "
        "recover what is on its disk; if it is lost, use --force: those 1 start empty");
    cr_assert(ps_registry_node_ends(registry, "n1", 2, now_ms));
    assert_refused(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED, false, 1, &command, err),
        PSD_NODE_HELD,
        "node n0 has copies of 2 partitions; of 2 of them (tables: w, v) no node that is up has "
        "another; restart it to recover what is on its disk; if it is lost, use --force: 1 start "
        "empty, and 1 wait for other nodes that are down");
    cr_assert(ps_registry_node_left(registry, "n0", &left));
    cr_expect_eq(left.last.n, 2);
    cr_expect_eq(left.last.n_down, 1);
    last = ps_registry_last_copies(registry, table, ps_registry_node(registry, "n0"));
    cr_expect_eq(last.n, 1);
    cr_expect_eq(last.n_down, 1);
    start_node("n1", 9, 2);
    last = ps_registry_last_copies(registry, table, ps_registry_node(registry, "n0"));
    cr_expect_eq(last.n, 1, "it has started with nothing");
    cr_expect_eq(last.n_down, 0);
}

Test(registry_nodes, hear_only_nodes_that_are_known)
{
    cr_assert_eq(ps_registry_node_beat(registry, "n9", 1, 0, now_ms, err), PSD_NO_NODE);
    psd_error_clear(err);
    cr_assert_eq(ps_registry_node_beat(registry, "n0", 7, 0, now_ms, err), PSD_INCARNATION);
    psd_error_clear(err);
    cr_assert_not(ps_registry_node_ends(registry, "n0", 7, now_ms));
    beat(1, 500);
    cr_assert_eq(make_copied("w", 1, 1)->copies[0].epoch, 501, "above all that a node has seen");
    assert_refused(ps_registry_node_beat(registry, "n0", 1, UINT64_MAX / 4, now_ms, err),
                   PSD_INVALID,
                   "node n0 claims epoch 4611686018427387903; the map's is "
                   "501");
}

/* The copy of node n1 is dropped from "n0 primary, n1 in sync". */
static const ps_copies_t *drop_second(void)
{
    const ps_table_t *table = make_copied("w", 1, 2);

    cr_assert_eq(table->copies[0].at[1].incarnation, 2);
    cr_assert(say(PS_REPORT_SLOW, 1, 2));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    cr_assert_eq(table->copies[0].at[1].state, PS_COPY_CATCHING_UP);
    cr_assert(table->copies[0].at[1].dropped);
    return table->copies;
}

/* The primary was lost before it heard that: all that it acknowledged is in the
 * copy that it went on waiting for. */
Test(registry_nodes, that_lose_their_rows_give_way_to_what_was_dropped)
{
    const ps_copies_t *copies = drop_second();

    start_node("n0", 9, 2);
    cr_assert_not(ps_registry_table(registry, "w")->rows_lost);
    cr_assert(copies->fenced);
    cr_assert_eq(copies->at[0].incarnation, 2);
    cr_assert_eq(copies->at[0].state, PS_COPY_KEPT);
    cr_assert_eq(copies->at[1].incarnation, 9);
    assert_asks(2, 2);
    cr_assert(answer(9, 0));
    assert_rests();
    cr_assert(answer(2, 0)); /* nothing was ever pushed */
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert_not(copies->at[0].dropped);
    cr_assert_eq(copies->at[1].state, PS_COPY_CATCHING_UP);
    cr_assert_not(ps_registry_table(registry, "w")->rows_lost);
}

/* It would come back with all that there is, so nobody goes on with nothing. */
Test(registry_nodes, wait_for_what_was_dropped_until_it_has_nothing)
{
    const ps_copies_t *copies = drop_second();

    cr_assert(ps_registry_node_ends(registry, "n1", 2, now_ms));
    start_node("n0", 9, 2);
    assert_asks(1, 9);
    cr_assert(answer(9, 0));
    for (int i = 0; i < 40; i++) {
        now_ms += 1000;
        beat(9, 0);
        assert_rests();
    }
    start_node("n1", 10, 2);
    assert_asks(2, 10);
    cr_assert(answer(9, 0));
    cr_assert(answer(10, 0));
    now_ms += 300;
    beat(9, 0);
    beat(10, 0);
    assert_commits(
        "partition 0 of table w now has its primary on node n1, empty: its rows are lost");
    cr_assert(ps_registry_table(registry, "w")->rows_lost);
    cr_assert_not(copies->fenced);
}

/* It has thrown away what it had, and rows of the primary that is lost came
 * only in part. */
Test(registry_nodes, go_on_with_nothing_where_what_was_dropped_began_anew)
{
    ps_report_t partial = {.kind = PS_REPORT_PARTIAL, .table = 1};
    const ps_copies_t *copies = drop_second();

    start_node("n0", 9, 2);
    now_ms += 300;
    beat(2, 0);
    beat(9, 0);
    assert_asks(2, 2);
    partial.epoch = copies->epoch;
    cr_assert(ps_registry_fenced(registry, 2, &partial));
    cr_assert(answer(9, 0));
    assert_commits(
        "partition 0 of table w now has its primary on node n0, empty: its rows are lost");
    cr_assert(ps_registry_table(registry, "w")->rows_lost);
}

/* Of three copies the last one that was waited for is marked, until another one
 * is in sync: then it lacks what is acknowledged. */
Test(registry_nodes, give_way_only_to_what_was_dropped_last)
{
    const ps_copies_t *copies = make_copied("w", 1, 3)->copies;

    cr_assert(say(PS_REPORT_SLOW, 1, 2));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    cr_assert_not(ps_copies_has_dropped(copies));
    cr_assert(say(PS_REPORT_SLOW, 1, 3));
    assert_commits("partition 0 of table w is no longer in sync on node n2: it "
                   "lags");
    cr_assert(ps_copies_on(copies, 3)->dropped);
    cr_assert_not(ps_copies_on(copies, 2)->dropped);
    cr_assert(say(PS_REPORT_CAUGHT_UP, 1, 2));
    assert_commits("partition 0 of table w is in sync on node n1");
    cr_assert_not(ps_copies_has_dropped(copies));
}

/* The operator says that it does not come back. */
Test(registry_nodes, that_are_removed_leave_what_was_dropped)
{
    const ps_copies_t *copies = drop_second();

    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    do_planned(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED, true, 1, &command, err));
    cr_assert_not(ps_registry_table(registry, "w")->rows_lost);
    assert_asks(1, 2);
    cr_assert(answer(2, 30));
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert_eq(copies->n, 1);
}

/* It is told to throw away what it has. */
Test(registry_nodes, lose_their_rows_at_once_where_the_dropped_one_diverged)
{
    const ps_table_t *table = make_copied("w", 1, 2);

    cr_assert(say(PS_REPORT_DIVERGED, 1, 2));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    cr_assert_not(ps_copies_has_dropped(table->copies));
    start_node("n0", 9, 2);
    cr_assert_not(table->copies[0].fenced);
    cr_assert(table->rows_lost);
}

/* The operator is told what a second removal would cost. */
Test(registry_nodes, count_what_was_dropped_as_the_last_where_it_is)
{
    const ps_copies_t *copies = drop_second();
    ps_node_left_t left;

    cr_assert(ps_registry_node_left(registry, "n0", &left));
    cr_assert_eq(left.last.n, 0);
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    do_planned(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED, true, 1, &command, err));
    cr_assert_eq(copies->n, 1);
    cr_assert(ps_registry_node_left(registry, "n1", &left));
    cr_assert_eq(left.last.n, 1);
}

/* The only node that is left has a copy that was still catching up: it was passed
 * over as one that has a copy already, and the removal was refused for ever. */
Test(registry_nodes, that_only_catch_up_take_over_empty_when_the_last_whole_one_is_removed)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    const ps_copies_t *copies = table->copies;

    cr_assert(say(PS_REPORT_DIVERGED, 1, 2));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    cr_assert(ps_registry_node_ends(registry, "n2", 3, now_ms));
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    do_planned(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED, true, 1, &command, err));
    cr_assert(table->rows_lost);
    cr_assert_eq(copies->n, 1);
    cr_assert_eq(ps_copies_primary(copies)->incarnation, 2);
}

/* Who joins a job starts where its clocks are: without the copies that may have
 * them nobody knows. Fenced partitions passed for ones without clocks. */
Test(registry_nodes, copies_that_may_take_over_have_the_clocks_of_a_job)
{
    (void)make_copied("w", 1, 2);
    run_worker("lr", 0, 1, 0);
    cr_assert_not(ps_registry_serves_job(registry, 1, 1), "not its table");
    do_planned(ps_registry_plan_job_table(registry, 1, 1, 5, &command, err));
    cr_assert(ps_registry_serves_job(registry, 1, 1));
    cr_assert_not(ps_registry_serves_job(registry, 2, 1));
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    assert_commits("partition 0 of table w is fenced: node n0 is silent");
    cr_assert(ps_registry_serves_job(registry, 1, 1), "it may come back");
    cr_assert(ps_registry_serves_job(registry, 2, 1));
    cr_assert_not(ps_registry_serves_job(registry, 3, 1), "it has no copy");
    assert_asks(1, 2);
    cr_assert(answer(2, 40));
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert(ps_registry_serves_job(registry, 2, 1));
    cr_assert_not(ps_registry_serves_job(registry, 1, 1));
    cr_assert_not(ps_registry_serves_job(registry, 2, 2), "no such job");
}

/* ---- wishes about members of the registry ---- */

Test(registry_nodes, a_node_is_held_over_its_starts_until_it_is_let_go_or_removed)
{
    assert_refused(ps_registry_plan_hold(registry, "n9", PS_HOLD_OUT, 1, &command, err),
                   PSD_NO_NODE, "node \"n9\" does not exist");
    assert_nothing_to_do(ps_registry_plan_hold(registry, "n1", PS_HOLD_NOT, 1, &command, err));
    do_planned(ps_registry_plan_hold(registry, "n1", PS_HOLD_OUT, 1, &command, err));
    cr_expect_eq(ps_registry_node(registry, "n1")->held, PS_HOLD_OUT);
    cr_expect_eq(ps_registry_node(registry, "n0")->held, PS_HOLD_NOT);
    assert_nothing_to_do(ps_registry_plan_hold(registry, "n1", PS_HOLD_OUT, 1, &command, err));
    start_node("n1", 9, 1);
    cr_expect_eq(ps_registry_node(registry, "n1")->held, PS_HOLD_OUT);
    cr_assert(ps_registry_node_ends(registry, "n1", 9, now_ms));
    do_planned(ps_registry_plan_hold(registry, "n1", PS_HOLD_VOTE, 1, &command, err));
    cr_expect_eq(ps_registry_node(registry, "n1")->held, PS_HOLD_VOTE);
    do_planned(ps_registry_plan_hold(registry, "n1", PS_HOLD_NOT, 1, &command, err));
    cr_expect_eq(ps_registry_node(registry, "n1")->held, PS_HOLD_NOT);
    do_planned(ps_registry_plan_hold(registry, "n1", PS_HOLD_OUT, 1, &command, err));
    do_planned(
        ps_registry_plan_node_state(registry, "n1", PS_NODE_REMOVED, true, 1, &command, err));
    start_node("n1", 10, 1);
    cr_expect_eq(ps_registry_node(registry, "n1")->held, PS_HOLD_NOT, "that is another one");
}

Test(registry_nodes, wishes_want_machine_version_5)
{
    registry->cluster.sm_version = 4;
    assert_refused(
        ps_registry_plan_hold(registry, "n0", PS_HOLD_VOTE, 1, &command, err), PSD_UNSUPPORTED,
        "the registry is of machine version 4 and remembers no wishes about its members, "
        "as a node that has a part of it runs an older psd");
    registry->cluster.sm_version = 5;
    do_planned(ps_registry_plan_hold(registry, "n0", PS_HOLD_VOTE, 1, &command, err));
}
