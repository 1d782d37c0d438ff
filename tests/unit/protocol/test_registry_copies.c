/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/placement/registry_decide.h: where copies are, and how they change; one step
 * at a time. Lives of many steps are walk_registry's. */
#include "support/fail_alloc.h"
#include "support/registry_copies_test.h"

#define LEASE_MS 300 /* the registry's default */

TestSuite(registry_copies, .init = make_three, .fini = drop_registry);

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
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err), PSD_UNSUPPORTED,
                   "replicas is 4; supported: 1..3");
    spec.replicas = 1;
    spec.ack = PS_ACK_REPLICA;
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err), PSD_INVALID,
                   "ack is replica, which takes 2 replicas or more; replicas "
                   "is 1");
    spec.replicas = 3;
    spec.ack = PS_ACK_DISK;
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err), PSD_UNSUPPORTED,
                   "ack is disk; supported: memory, replica");
    spec.ack = PS_ACK_REPLICA;
    do_planned(
        ps_registry_plan_node_state(registry, "n1", PS_NODE_DRAINING, false, 1, &command, err));
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err), PSD_FEW_NODES,
                   "table w wants copies on 3 nodes; 2 are up and not "
                   "draining");
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
    assert_commits("partition 0 of table w now has its primary on node n2");
    cr_assert_eq(ps_copies_primary(&table->copies[0])->incarnation, 3);
    cr_assert_eq(table->routes[0].incarnation, 3);
    cr_assert_eq(ps_copies_on(&table->copies[0], 1)->state, PS_COPY_CATCHING_UP);
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
    assert_commits("partition 0 of table w now has its primary on node n2");
}

Test(registry_copies, of_many_partitions_are_asked_at_once)
{
    PSD_AUTO(ps_decision_done) ps_decision_t decision = {0};

    (void)make_copied("w", 6, 2);
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    decision = decide();
    cr_assert_eq(decision.command.n_changes, 2);
    cr_assert_eq(ps_registry_apply(registry, &decision.command, now_ms, err), PSD_OK);
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
    assert_commits("partition 0 of table w now has its primary on node n1");
}

/* The primary was lost, and a moment before that was seen its only heir was
 * taken out of sync. */
Test(registry_copies, a_silent_one_stays_in_sync_while_its_primary_may_be_lost)
{
    const ps_table_t *table = make_copied("w", 1, 2);

    now_ms += 20;
    beat(1, 0);
    assert_rests();
    now_ms += 80;
    for (int i = 0; i < 4; i++) {
        beat(3, 0);
        assert_rests();
        now_ms += i < 3 ? 100 : 80;
    }
    cr_assert(ps_registry_node(registry, "n1")->suspect);
    assert_rests();
    cr_assert_eq(table->copies[0].at[1].state, PS_COPY_IN_SYNC);
    now_ms += 20;
    beat(2, 0);
    assert_commits("partition 0 of table w is fenced: node n0 is silent");
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
    for (int i = 0; i < 100 && !ps_registry_node(registry, "n0")->suspect; i++) {
        ps_decision_t decision = decide();
        uint64_t at = ps_registry_decide_at(registry);

        ps_decision_done(&decision);
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
    assert_commits("partition 0 of table w no longer catches up on node n1");
    cr_assert_gt(table->copies[0].epoch, epoch);
    cr_assert_eq(table->copies[0].at[1].state, PS_COPY_CATCHING_UP);
    assert_rests();
}

Test(registry_copies, move_off_a_draining_node)
{
    const ps_table_t *table = make_copied("w", 1, 1);

    do_planned(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_DRAINING, false, 1, &command, err));
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
    assert_commits("partition 0 of table w now has its primary on node n1");
    assert_commits("partition 0 of table w no longer has a copy on node n0");
    cr_assert_eq(table->copies[0].n, 1);
    assert_rests();
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    do_planned(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED, false, 1, &command, err));
}

/* It was fenced at once, and stood still until the leases of the node's life
 * before had ended. */
Test(registry_copies, a_primary_serves_until_who_takes_over_may)
{
    (void)make_copied("w", 1, 1);
    start_node("n1", 5, 2);
    start_node("n2", 6, 2);
    do_planned(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_DRAINING, false, 1, &command, err));
    assert_commits("partition 0 of table w gets a copy on node n1");
    cr_assert(say(PS_REPORT_CAUGHT_UP, 1, 5));
    assert_commits("partition 0 of table w is in sync on node n1");
    assert_rests();
    now_ms += LEASE_MS;
    assert_commits("partition 0 of table w is fenced: its primary moves from "
                   "node n0 to node n1");
}

/* The nodes are heard for that long, and nothing is decided before its end. */
static void rest_for(uint64_t ms)
{
    for (uint64_t until = now_ms + ms; now_ms < until;) {
        now_ms += 100;
        for (uint64_t i = 1; i <= 3; i++) {
            beat(i, 0);
        }
        if (now_ms < until) {
            assert_rests();
        }
    }
}

/* A copy in sync that nobody reaches answers the registry: the primary was
 * moved to it, and back, again and again, and never had the time to report it.
 */
Test(registry_copies, that_do_not_take_over_are_reported_first)
{
    (void)make_copied("w", 1, 1);
    do_planned(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_DRAINING, false, 1, &command, err));
    assert_commits("partition 0 of table w gets a copy on node n1");
    cr_assert(say(PS_REPORT_CAUGHT_UP, 1, 2));
    assert_commits("partition 0 of table w is in sync on node n1");
    assert_commits("partition 0 of table w is fenced: its primary moves from "
                   "node n0 to node n1");
    assert_asks(1, 1);
    cr_assert(answer(1, 50));
    assert_asks(1, 2);
    cr_assert(answer(2, 40));
    assert_commits("partition 0 of table w now has its primary on node n0");
    rest_for(3000);
    assert_commits("partition 0 of table w is fenced: its primary moves from "
                   "node n0 to node n1");
}

/* A primary says it of itself when its disk takes nothing: the other copy
 * serves. While that is not known to, it was no heir any more, and all was lost
 * with the one that was. */
Test(registry_copies, a_primary_without_a_disk_leaves)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    uint64_t second = table->copies[0].at[1].incarnation;

    cr_assert_not(say(PS_REPORT_CAUGHT_UP, 1, 1), "it is the primary");
    cr_assert(say(PS_REPORT_SLOW, 1, 1));
    assert_commits("partition 0 of table w leaves node n0, whose disk accepts no writes");
    cr_assert(table->copies[0].fenced);
    cr_assert_eq(ps_copies_n_heirs(&table->copies[0]), 2);
    assert_asks(1, 1);
    cr_assert(answer(1, 50));
    assert_asks(1, second);
    cr_assert(answer(second, 50));
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert_eq(table->copies[0].at[1].state, PS_COPY_IN_SYNC);
    cr_assert(say(PS_REPORT_SLOW, second, 1));
    assert_commits("partition 0 of table w is no longer in sync on node n0: it "
                   "lags");
    cr_assert(table->copies[0].at[1].dropped);
    assert_rests();
}

Test(registry_copies, a_primary_without_a_disk_that_is_alone_stays)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    uint64_t second = table->copies[0].at[1].incarnation;

    cr_assert(say(PS_REPORT_SLOW, 1, second));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    cr_assert(say(PS_REPORT_SLOW, 1, 1));
    assert_rests();
    cr_assert_not(table->copies[0].fenced);
}

/* Pushes to a node whose beats came, and that no client could reach, waited for
 * ever. */
Test(registry_copies, a_primary_that_clients_do_not_reach_leaves)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    const ps_copies_t *copies = &table->copies[0];
    uint64_t second = copies->at[1].incarnation;
    uint32_t shard = copies->at[0].shard;

    cr_assert_not(ps_registry_unreached(registry, 1, shard, 1999, now_ms));
    cr_assert_not(ps_registry_unreached(registry, 1, shard + 1, 2000, now_ms));
    cr_assert_not(ps_registry_unreached(registry, second, shard, 2000, now_ms));
    cr_assert_not(ps_registry_unreached(registry, 9, shard, 2000, now_ms));
    assert_rests();
    cr_assert(ps_registry_unreached(registry, 1, shard, 2000, now_ms));
    assert_commits("partition 0 of table w leaves node n0, which clients cannot reach");
    cr_assert(copies->fenced);
    cr_assert_not(ps_registry_unreached(registry, 1, shard, 3000, now_ms),
                  "it is the primary no more");
    assert_asks(1, 1); /* it hands over all it has */
    cr_assert(answer(1, 50));
    assert_asks(1, 2);
    cr_assert(answer(2, 50));
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert_eq(copies->at[0].incarnation, second);
    cr_assert_eq(copies->at[1].state, PS_COPY_CATCHING_UP, "it is not waited for");
}

/* Found by sim_cluster, seed 18699: the heir had died, and the only whole copy was left out. */
Test(registry_copies, a_primary_that_leaves_is_left_out_only_when_its_heir_is_there)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    const ps_copies_t *copies = &table->copies[0];

    cr_assert(ps_registry_unreached(registry, 1, copies->at[0].shard, 2000, now_ms));
    assert_commits("partition 0 of table w leaves node n0, which clients cannot reach");
    assert_asks(1, 1);
    cr_assert(answer(1, 50));
    for (int i = 0; i < 2; i++) {
        assert_asks(1, 2);
        now_ms += 125;
        beat(1, 0);
        beat(3, 0);
    }
    cr_assert(answer(2, 50));
    assert_rests(); /* not suspect yet, but not heard either */
    beat(2, 0);
    now_ms += 100; /* it looks again */
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert_eq(copies->at[1].state, PS_COPY_CATCHING_UP);
}

/* Of two clients that reach different nodes only, each gets its turns. */
Test(registry_copies, a_new_primary_may_show_that_it_is_reached)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    const ps_copies_t *copies = &table->copies[0];

    cr_assert(ps_registry_unreached(registry, 1, copies->at[0].shard, 2000, now_ms));
    assert_commits("partition 0 of table w leaves node n0, which clients cannot reach");
    assert_asks(1, 1);
    cr_assert(answer(1, 50));
    assert_asks(1, 2);
    cr_assert(answer(2, 50));
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert(say(PS_REPORT_CAUGHT_UP, 2, 1));
    assert_commits("partition 0 of table w is in sync on node n0");
    rest_for(3000);
    cr_assert(ps_registry_unreached(registry, 2, copies->at[0].shard, 2000, now_ms));
    assert_rests();
    rest_for(2000);
    assert_commits("partition 0 of table w leaves node n1, which clients cannot reach");
}

Test(registry_copies, a_primary_that_clients_do_not_reach_may_be_alone)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    const ps_copies_t *copies = &table->copies[0];
    uint64_t second = copies->at[1].incarnation;

    cr_assert(say(PS_REPORT_SLOW, 1, second));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    cr_assert(ps_registry_unreached(registry, 1, copies->at[0].shard, 9000, now_ms));
    assert_rests();
    cr_assert(say(PS_REPORT_CAUGHT_UP, 1, second));
    assert_commits("partition 0 of table w is in sync on node n1");
    assert_rests(); /* what was said is old */
    cr_assert(ps_registry_unreached(registry, 1, copies->at[0].shard, 9000, now_ms));
    assert_commits("partition 0 of table w leaves node n0, which clients cannot reach");
}

/* A client asks every 5 s at most, and says again what it does not reach: the
 * registry had forgotten it between two of its questions. */
Test(registry_copies, a_client_s_word_holds_until_its_next_question)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    const ps_copies_t *copies = &table->copies[0];
    uint32_t shard = copies->at[0].shard;

    cr_assert(ps_registry_unreached(registry, 1, shard, 2000, now_ms));
    assert_commits("partition 0 of table w leaves node n0, which clients cannot reach");
    assert_asks(1, 1);
    cr_assert(answer(1, 50));
    assert_asks(1, 2);
    cr_assert(answer(2, 50));
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert(say(PS_REPORT_CAUGHT_UP, 2, 1));
    assert_commits("partition 0 of table w is in sync on node n0");
    shard = copies->at[0].shard;
    cr_assert(ps_registry_unreached(registry, 2, shard, 20000, now_ms));
    assert_rests(); /* it is left alone for a while */
    rest_for(5000);
    assert_commits("partition 0 of table w leaves node n1, which clients cannot reach");
}

/* A node that stood still for a moment is not blamed for it later. */
Test(registry_copies, a_word_of_a_short_silence_does_not_hold_for_long)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    const ps_copies_t *copies = &table->copies[0];

    cr_assert(ps_registry_unreached(registry, 1, copies->at[0].shard, 2000, now_ms));
    assert_commits("partition 0 of table w leaves node n0, which clients cannot reach");
    assert_asks(1, 1);
    cr_assert(answer(1, 50));
    assert_asks(1, 2);
    cr_assert(answer(2, 50));
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert(say(PS_REPORT_CAUGHT_UP, 2, 1));
    assert_commits("partition 0 of table w is in sync on node n0");
    cr_assert(ps_registry_unreached(registry, 2, copies->at[0].shard, 2000, now_ms));
    assert_rests();
    rest_for(5000);
    assert_rests(); /* nobody has said it again */
}

Test(registry_copies, that_do_not_catch_up_are_given_up)
{
    const ps_table_t *table = make_copied("w", 1, 2);

    cr_assert_eq(table->copies[0].at[1].incarnation, 2);
    cr_assert(ps_registry_set_bytes(registry, 1, 1, 0, 5000000));
    cr_assert(say(PS_REPORT_DIVERGED, 1, 2));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    assert_rests();
    rest_for(600000 + 5000);
    assert_commits("partition 0 of table w gives up its copy on node n1, which "
                   "did not catch up, for one on node n2");
    cr_assert_eq(table->copies[0].n, 2);
    cr_assert_eq(table->copies[0].at[1].incarnation, 3);
    assert_rests();
    rest_for(1000);
    cr_assert(say(PS_REPORT_CAUGHT_UP, 1, 3));
    assert_commits("partition 0 of table w is in sync on node n2");
}

/* What was dropped was removed for another one, which had nothing yet: then the primary's
 * node started with nothing, and all was lost. */
Test(registry_copies, that_were_dropped_stay_until_another_one_is_in_sync)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    const ps_copies_t *copies = &table->copies[0];

    cr_assert(say(PS_REPORT_SLOW, 1, 2));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    assert_rests();
    rest_for(600000);
    assert_commits("partition 0 of table w gives up its copy on node n1, which "
                   "did not catch up, for one on node n2");
    cr_assert_eq(copies->n, 3);
    cr_assert(ps_copies_on(copies, 2)->dropped);
    cr_assert(ps_copies_on(copies, 2)->leaving);
    rest_for(5000);
    start_node("n0", 9, 2);
    cr_assert_not(table->rows_lost);
    assert_asks(2, 2);
    cr_assert(answer(9, 0));
    cr_assert(answer(2, 40));
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert_not(table->rows_lost);
}

Test(registry_copies, that_were_dropped_go_when_another_one_is_in_sync)
{
    const ps_copies_t *copies = make_copied("w", 1, 2)->copies;

    cr_assert(say(PS_REPORT_SLOW, 1, 2));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    assert_rests();
    rest_for(600000);
    assert_commits("partition 0 of table w gives up its copy on node n1, which "
                   "did not catch up, for one on node n2");
    cr_assert(say(PS_REPORT_CAUGHT_UP, 1, 3));
    assert_commits("partition 0 of table w is in sync on node n2");
    assert_commits("partition 0 of table w no longer has a copy on node n1");
    cr_assert_eq(copies->n, 2);
    cr_assert_not(ps_copies_has_dropped(copies));
    assert_rests();
}

/* Pushes at replica stood still for repair_after. */
Test(registry_copies, the_last_whole_one_gets_another_at_once)
{
    ps_table_spec_t spec = fixture_spec("w");
    const ps_table_t *table = NULL;

    spec.n_partitions = 1;
    spec.replicas = 2;
    spec.ack = PS_ACK_REPLICA;
    do_planned(ps_registry_plan_table(registry, &spec, 3, &command, err));
    table = ps_registry_table(registry, "w");
    cr_assert(ps_registry_node_ends(registry, "n1", 2, now_ms));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "is silent");
    assert_commits("partition 0 of table w gets a copy on node n2");
    assert_rests();
    start_node("n1", 4, 2);
    beat(4, 0);
    beat(1, 0);
    assert_rests();
    cr_assert_eq(table->copies[0].n, 3, "whoever is whole first");
    cr_assert(say(PS_REPORT_CAUGHT_UP, 1, 3));
    assert_commits("partition 0 of table w is in sync on node n2");
    assert_commits("partition 0 of table w no longer has a copy on node n1");
    assert_rests();
}

/* A copy that lags is better than none. */
Test(registry_copies, that_do_not_catch_up_stay_where_there_is_no_other_node)
{
    (void)make_copied("w", 1, 3);
    cr_assert(say(PS_REPORT_SLOW, 1, 2));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    assert_rests();
    rest_for(700000);
    assert_rests();
}

/* A restore failed when the table that it had made was evened out meanwhile. */
Test(registry_copies, stay_where_they_are_while_a_checkpoint_wants_it)
{
    (void)make_copied("w", 6, 1);
    start_node("n3", 4, 2);
    beat(4, 0);
    ps_registry_keep_still(registry, true);
    assert_rests();
    ps_registry_keep_still(registry, false);
    {
        PSD_AUTO(ps_decision_done) ps_decision_t decision = decide();

        cr_assert_eq(decision.kind, PS_DECIDE_COMMIT, "one goes to n3");
    }
}

/* Memory */

static psd_status_t decide_and_plan(void *fixture)
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
