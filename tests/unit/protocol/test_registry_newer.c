/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry/registry_newer.h: a registry that is older than what nodes have. */
#include "protocol/registry/registry_newer.h"

#include "support/registry_copies_test.h"

TestSuite(registry_newer, .init = make_three, .fini = drop_registry);

static const uint64_t ALL[] = {1, 2, 3};

static ps_witness_t copy(uint32_t partition, uint64_t incarnation, uint64_t epoch)
{
    return (ps_witness_t){
        .table = 1, .partition = partition, .incarnation = incarnation, .epoch = epoch};
}

/* The first n_nodes of them have said all that they have. */
static psd_status_t plan(const ps_witness_t *copies, size_t n, size_t n_nodes)
{
    const ps_testimony_t testimony = {
        .copies = copies, .n_copies = n, .nodes = ALL, .n_nodes = n_nodes};

    return ps_registry_plan_newer(registry, &testimony, 5, &command, err);
}

static const ps_copy_t *on(const ps_table_t *table, uint64_t incarnation)
{
    return ps_copies_on(&table->copies[0], incarnation);
}

/* n0 was the primary, and n1 followed. Since then n2 came, n1 became the primary, and n0
 * went. n0 was told that it serves, with nothing, and n2 dropped what it had. */
Test(registry_newer, copies_take_over)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    const ps_witness_t copies[] = {copy(0, 2, 70), copy(0, 3, 70)};

    cr_assert_eq(table->copies[0].at[0].incarnation, 1);
    do_planned(plan(copies, 2, 3));
    cr_assert(table->copies[0].fenced);
    cr_assert_eq(table->copies[0].epoch, 71, "above all that nodes have");
    cr_assert_eq(table->copies[0].n, 2, "n0 has nothing");
    cr_assert_eq(on(table, 2)->state, PS_COPY_IN_SYNC);
    cr_assert_eq(on(table, 3)->state, PS_COPY_IN_SYNC);
    assert_asks(2, 2);
    cr_assert(answer_of(2, 70, 9));
    cr_assert(answer_of(3, 70, 8));
    assert_commits("partition 0 of table w now has its primary on node n1");
    cr_assert_not(table->rows_lost);
}

/* The registry's node starts, and its copies change with it, in an epoch above all. */
Test(registry_newer, are_compared_to_the_lines_before_nodes_came)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    const ps_witness_t before = copy(0, 0, table->copies[0].epoch);
    const ps_witness_t copies[] = {copy(0, 3, 70)};
    ps_testimony_t testimony = {.copies = copies, .n_copies = 1};

    beat(3, 90);
    start_node("n0", 9, 2);
    cr_assert_eq(table->copies[0].epoch, 91);
    assert_nothing_to_do(ps_registry_plan_newer(registry, &testimony, 5, &command, err));
    testimony.before = &before;
    testimony.n_before = 1;
    do_planned(ps_registry_plan_newer(registry, &testimony, 5, &command, err));
    cr_assert_eq(table->copies[0].epoch, 92);
    cr_assert_eq(table->copies[0].at[0].incarnation, 3);
}

Test(registry_newer, copies_of_an_epoch_between_catch_up)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    const ps_witness_t copies[] = {copy(0, 1, 60), copy(0, 3, 70), copy(0, 2, 50)};

    do_planned(plan(copies, 3, 3));
    cr_assert_eq(table->copies[0].n, 3);
    cr_assert_eq(on(table, 3)->state, PS_COPY_IN_SYNC);
    cr_assert_eq(on(table, 1)->state, PS_COPY_CATCHING_UP);
    cr_assert_eq(on(table, 2)->state, PS_COPY_CATCHING_UP);
}

/* What a node has that says nothing, nobody knows: it is no heir, but keeps its copy. */
Test(registry_newer, copies_of_a_silent_node_catch_up)
{
    const ps_table_t *table = make_copied("w", 1, 3);
    const ps_witness_t copies[] = {copy(0, 2, 70)};

    do_planned(plan(copies, 1, 2));
    cr_assert_eq(table->copies[0].n, 2);
    cr_assert_eq(on(table, 2)->state, PS_COPY_IN_SYNC);
    cr_assert_eq(on(table, 3)->state, PS_COPY_CATCHING_UP);
}

Test(registry_newer, are_none_where_the_registry_knows_it_all)
{
    const ps_copies_t *lines = make_copied("w", 2, 2)->copies;
    const uint64_t epoch = lines[0].epoch;
    const ps_witness_t copies[] = {copy(0, lines[0].at[0].incarnation, epoch),
                                   copy(0, lines[0].at[1].incarnation, epoch),
                                   copy(1, lines[1].at[0].incarnation, epoch - 1),
                                   copy(1, lines[1].at[1].incarnation, epoch), copy(7, 1, 90)};
    const ps_witness_t other = {.table = 9, .incarnation = 1, .epoch = 90};

    assert_nothing_to_do(plan(copies, 4, 3));
    assert_nothing_to_do(plan(copies, 5, 3));
    assert_nothing_to_do(plan(&other, 1, 0));
    assert_nothing_to_do(plan(NULL, 0, 0));
}

/* A follower left, and nothing else has changed since: it would have been promoted with
 * nothing. */
Test(registry_newer, copies_that_are_gone_are_no_heirs)
{
    const ps_table_t *table = make_copied("w", 1, 3);
    const uint64_t epoch = table->copies[0].epoch;
    const ps_witness_t two[] = {copy(0, 1, epoch), copy(0, 3, epoch)};
    const ps_witness_t one[] = {copy(0, 3, epoch)};

    do_planned(plan(two, 2, 3));
    cr_assert_not(table->copies[0].fenced);
    cr_assert_eq(table->copies[0].at[0].incarnation, 1);
    cr_assert_eq(on(table, 2)->state, PS_COPY_CATCHING_UP);
    cr_assert_eq(on(table, 3)->state, PS_COPY_IN_SYNC);
    do_planned(plan(one, 1, 3));
    cr_assert(table->copies[0].fenced);
    cr_assert_eq(table->copies[0].at[0].incarnation, 3);
    cr_assert_eq(on(table, 1)->state, PS_COPY_CATCHING_UP);
    assert_nothing_to_do(plan(NULL, 0, 3));
}

Test(registry_newer, copies_are_of_nodes_and_shards_that_there_are)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    ps_witness_t copies[] = {copy(0, 8, 70), copy(0, 3, 70), copy(0, 3, 70)};

    copies[1].shard = 2;
    assert_nothing_to_do(plan(copies, 2, 3));
    copies[1].shard = 1;
    do_planned(plan(copies, 3, 3));
    cr_assert_eq(table->copies[0].n, 1);
    cr_assert_eq(table->copies[0].at[0].shard, 1);
}

Test(registry_newer, order_is_by_table_then_by_partition)
{
    const ps_witness_t a = {.table = 1, .partition = 7};
    const ps_witness_t b = {.table = 2, .partition = 3};
    const ps_witness_t c = {.table = 2, .partition = 4};

    cr_assert_lt(ps_witness_compare(&a, &b), 0);
    cr_assert_lt(ps_witness_compare(&b, &c), 0);
    cr_assert_gt(ps_witness_compare(&c, &a), 0);
    cr_assert_eq(ps_witness_compare(&b, &b), 0);
}
