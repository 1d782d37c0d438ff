/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of copies whose files were found damaged at a start. */
#include "protocol/facts/lost.h"

#include "support/registry_copies_test.h"

TestSuite(registry_lost, .init = make_three, .fini = drop_registry);

static const ps_copies_t *make_logged(uint32_t replicas)
{
    ps_table_spec_t spec = fixture_spec("w");

    spec.n_partitions = 3;
    spec.replicas = replicas;
    cr_assert_eq(ps_registry_plan_table(registry, &spec, 3, &command, err), PSD_OK);
    command.table.spec.ack = PS_ACK_DISK; /* this shell does not offer it */
    do_planned(PSD_OK);
    return ps_registry_table(registry, "w")->copies;
}

static psd_status_t plan_start_lost(const char *name, uint64_t incarnation, const ps_lost_t *lost,
                                    bool accepts)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node(name, incarnation, 2, shards);

    node.kept = true;
    node.lost = lost;
    node.n_lost = 1;
    node.accepts_loss = accepts;
    return ps_registry_plan_node(registry, &node, 2, &command, err);
}

static const ps_copy_t *on(const ps_copies_t *copies, uint64_t incarnation)
{
    return ps_copies_on(copies, incarnation);
}

Test(registry_lost, costs_only_the_copies_that_are_named)
{
    const ps_copies_t *copies = make_logged(3);
    const ps_lost_t lost = {on(&copies[1], 2)->shard, 1, 1, 1};

    cr_assert_eq(on(&copies[0], 2)->state, PS_COPY_IN_SYNC);
    do_planned(plan_start_lost("n1", 8, &lost, false));
    cr_assert_eq(on(&copies[0], 8)->state, PS_COPY_KEPT);
    cr_assert_eq(on(&copies[1], 8)->state, PS_COPY_CATCHING_UP);
    cr_assert_eq(on(&copies[2], 8)->state, PS_COPY_KEPT);
    cr_assert_not(ps_registry_table(registry, "w")->rows_lost);
}

Test(registry_lost, on_another_shard_costs_nothing)
{
    const ps_copies_t *copies = make_logged(3);
    const ps_lost_t lost = {1 - on(&copies[1], 2)->shard, 1, 1, 1};

    do_planned(plan_start_lost("n1", 8, &lost, false));
    cr_assert_eq(on(&copies[1], 8)->state, PS_COPY_KEPT);
}

/* The one that has nothing is asked for nothing, and never promoted. */
Test(registry_lost, is_never_promoted)
{
    const ps_copies_t *copies = make_logged(2);
    const ps_copy_t *first = &copies[0].at[0];
    const ps_lost_t lost = {first->shard, 0, 0, 0};
    uint64_t second = copies[0].at[1].incarnation;

    cr_assert_eq(first->incarnation, 1);
    do_planned(plan_start_lost("n0", 9, &lost, false));
    cr_assert(copies[0].fenced);
    cr_assert_not(answer_of(9, 9, 99), "it may not be asked");
    cr_assert_eq(copies[0].at[0].incarnation, second);
    cr_assert_eq(on(&copies[0], 9)->state, PS_COPY_CATCHING_UP);
}

/* All nodes are damaged: the last one that could still have been read stays
 * what it is until the operator has said so. */
Test(registry_lost, of_all_copies_wants_the_operator)
{
    const ps_copies_t *copies = make_logged(2);
    const ps_lost_t lost = {on(&copies[0], 1)->shard, 1, 0, 0};
    const char *second = copies[0].at[1].incarnation == 2 ? "n1" : "n2";
    const ps_lost_t other = {copies[0].at[1].shard, 1, 0, 0};

    do_planned(plan_start_lost("n0", 9, &lost, false));
    assert_refused(plan_start_lost(second, 10, &other, false), PSD_DAMAGED,
                   "no other copy of 1 partition is whole (the first is partition 0 of table w); "
                   "restore the files from a backup, or start psd once with --accept-loss, and "
                   "those partitions start empty");
    cr_assert_eq(copies[0].at[0].state, PS_COPY_IN_SYNC);
    cr_assert_not(ps_registry_table(registry, "w")->rows_lost);
    do_planned(plan_start_lost(second, 10, &other, true));
    cr_assert(ps_registry_table(registry, "w")->rows_lost);
}

Test(registry_lost, is_a_list_of_ranges)
{
    const ps_lost_t lost[] = {{1, 2, 3, 4}, {0, 0, 0, UINT32_MAX}};

    cr_assert(ps_lost_has(lost, 2, 1, 2, 4));
    cr_assert_not(ps_lost_has(lost, 2, 1, 2, 5));
    cr_assert_not(ps_lost_has(lost, 2, 1, 1, 4));
    cr_assert(ps_lost_has(lost, 2, 0, 9, 7), "table 0 is all");
}

static void assert_partial(uint64_t incarnation)
{
    const ps_report_t report = {
        .kind = PS_REPORT_PARTIAL, .table = 1, .epoch = ps_registry_epoch(registry)};

    cr_assert(ps_registry_fenced(registry, incarnation, &report));
}

/* The primary of two copies falls silent; the other one has diverged. */
static const ps_table_t *fence_partial(void)
{
    const ps_table_t *table = make_copied("w", 1, 2);

    now_ms += 500;
    beat(2, 0);
    beat(3, 0);
    assert_commits("partition 0 of table w is fenced: node n0 is silent");
    assert_asks(1, 2);
    assert_partial(2);
    return table;
}

/* The primary may be back with all that there is, so it is waited for. */
Test(registry_lost, while_the_only_whole_copy_is_silent_are_none)
{
    const ps_table_t *table = fence_partial();

    for (int i = 0; i < 100; i++) {
        now_ms += 100;
        beat(2, 0);
        beat(3, 0);
        assert_rests();
    }
    cr_assert(table->copies[0].fenced);
    cr_assert_not(table->rows_lost);
}

/* It was fenced for ever. */
Test(registry_lost, of_a_primary_that_left_half_a_copy_are_said_to_be)
{
    const ps_table_t *table = make_copied("w", 1, 2);

    start_node("n0", 9, 2);
    cr_assert_not(table->rows_lost);
    assert_asks(1, 2);
    assert_partial(2);
    now_ms += 300;
    beat(2, 0);
    beat(9, 0);
    assert_commits(
        "partition 0 of table w now has its primary on node n1, empty: its rows are lost");
    cr_assert(table->rows_lost);
    cr_assert_not(table->copies[0].fenced);
}

/* The same, where that is known when the primary's node starts again. */
Test(registry_lost, at_a_start_that_leaves_half_a_copy_are_said_to_be)
{
    const ps_table_t *table = fence_partial();

    start_node("n0", 9, 2);
    cr_assert(table->rows_lost);
    cr_assert_eq(on(table->copies, 9)->state, PS_COPY_IN_SYNC);
}

/* What was dropped had begun anew when its primary was removed by force. */
Test(registry_lost, behind_a_removal_that_leaves_half_a_copy_are_said_to_be)
{
    const ps_table_t *table = make_copied("w", 1, 2);

    cr_assert(say(PS_REPORT_SLOW, 1, 2));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    cr_assert(ps_registry_node_ends(registry, "n0", 1, now_ms));
    do_planned(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_REMOVED, true, 1, &command, err));
    cr_assert_not(table->rows_lost);
    assert_asks(1, 2);
    assert_partial(2);
    assert_commits(
        "partition 0 of table w now has its primary on node n1, empty: its rows are lost");
    cr_assert(table->rows_lost);
}

/* With a log nobody but the operator gives rows up. */
Test(registry_lost, beside_half_a_copy_want_the_operator)
{
    const ps_copies_t *copies = make_logged(2);
    const ps_lost_t lost = {on(&copies[0], 1)->shard, 1, 0, 0};
    uint64_t second = copies[0].at[1].incarnation;
    ps_decision_t decision;

    now_ms += 500;
    beat(2, 0);
    beat(3, 0);
    decision = decide();
    cr_assert_eq(ps_registry_apply(registry, &decision.command, now_ms, err), PSD_OK);
    ps_decision_done(&decision);
    cr_assert(copies[0].fenced);
    assert_partial(second);
    cr_assert_eq(plan_start_lost("n0", 9, &lost, false), PSD_DAMAGED);
    do_planned(plan_start_lost("n0", 9, &lost, true));
    cr_assert(ps_registry_table(registry, "w")->rows_lost);
    cr_assert_eq(on(copies, 9)->state, PS_COPY_IN_SYNC);
}
