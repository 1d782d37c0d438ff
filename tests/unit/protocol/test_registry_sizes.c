/* SPDX-License-Identifier: Apache-2.0 */
/* ps_registry: what partitions take, and what is planned by it. */
#include "support/fail_alloc.h"
#include "support/registry_copies_test.h"

#define GB (UINT64_C(1) << 30)
#define MB (UINT64_C(1) << 20)

TestSuite(registry_sizes, .init = make_three, .fini = drop_registry);

/* Each partition of which that node has the primary. */
static void fill_node(const ps_table_t *table, uint64_t incarnation, uint64_t bytes)
{
    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        if (table->copies[i].at[0].incarnation == incarnation) {
            cr_assert(ps_registry_set_bytes(registry, incarnation, table->id, i, bytes));
        }
    }
}

static uint32_t count_on(const ps_table_t *table, uint64_t incarnation)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        n += ps_copies_on(&table->copies[i], incarnation) != NULL ? 1 : 0;
    }
    return n;
}

Test(registry_sizes, weigh_more_than_the_number_of_copies)
{
    const ps_table_t *table = make_copied("w", 6, 1);

    cr_assert_eq(count_on(table, 1), 2);
    assert_rests();
    fill_node(table, 1, GB);
    assert_commits("partition 0 of table w moves a copy from node n0 to node "
                   "n1; 1 others alike"); /* an empty one of n1, to n2 */
    assert_rests();                       /* they are on their way, and count there already */
}

Test(registry_sizes, that_are_small_move_nothing)
{
    const ps_table_t *table = make_copied("w", 6, 1);

    fill_node(table, 1, MB);
    assert_rests();
    fill_node(table, 2, 3 * MB);
    assert_rests();
}

Test(registry_sizes, and_weights_are_evened_out_together)
{
    const ps_table_t *table = make_copied("w", 6, 1);
    PSD_AUTO(ps_free_at) ps_move_t *moves = NULL;
    size_t n_big = 0;
    size_t n = 0;

    start_node("n3", 4, 4);
    fill_node(table, 1, GB);
    fill_node(table, 2, GB);
    fill_node(table, 3, GB);
    cr_assert_eq(ps_registry_plan_rebalance(registry, &moves, &n, err), PSD_OK);
    for (size_t i = 0; i < n; i++) {
        cr_assert_str_eq(moves[i].to, "n3");
        n_big += moves[i].bytes == GB ? 1 : 0;
    }
    cr_assert_eq(n_big, 3, "6 GB on weights of 2, 2, 2 and 4: %zu", n_big);
}

Test(registry_sizes, of_a_new_place_count_the_copy_that_comes)
{
    const ps_table_t *big = make_copied("v", 3, 1);
    PSD_AUTO(ps_free_at) ps_move_t *moves = NULL;
    size_t n = 0;

    fill_node(big, 2, 8 * GB);
    cr_assert_eq(ps_registry_plan_drain(registry, "n0", &moves, &n, err), PSD_OK);
    cr_assert_eq(n, 2);
    cr_assert_str_eq(moves[0].to, "n2", "n1 has 8 GB");
    cr_assert_str_eq(moves[1].to, "n2");
}

Test(registry_sizes, show_what_a_repair_copies)
{
    const ps_table_t *table = make_copied("w", 1, 2);
    PSD_AUTO(ps_free_at) ps_move_t *moves = NULL;
    size_t n = 9;

    cr_assert(ps_registry_set_bytes(registry, 1, 1, 0, 5 * MB));
    cr_assert_eq(ps_registry_plan_repair(registry, &moves, &n, err), PSD_OK);
    cr_assert_eq(n, 0, "nothing is missing");
    ps_free_at(&moves);
    moves = NULL;
    cr_assert(say(PS_REPORT_SLOW, 1, 2));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    cr_assert_eq(ps_registry_plan_repair(registry, &moves, &n, err), PSD_OK);
    cr_assert_eq(n, 1);
    cr_assert(moves[0].under_way);
    cr_assert_str_eq(moves[0].from, "n0");
    cr_assert_str_eq(moves[0].to, "n1");
    cr_assert_eq(moves[0].bytes, 5 * MB);
    ps_free_at(&moves);
    moves = NULL;
    cr_assert(ps_registry_node_ends(registry, "n1", 2, now_ms));
    cr_assert_eq(ps_registry_plan_repair(registry, &moves, &n, err), PSD_OK);
    cr_assert_eq(n, 1);
    cr_assert_not(moves[0].under_way);
    cr_assert_str_eq(moves[0].to, "n2");
    cr_assert_eq(table->copies[0].n, 2, "it is only shown");
    ps_free_at(&moves);
    moves = NULL;
    cr_assert(ps_registry_node_ends(registry, "n2", 3, now_ms));
    cr_assert_eq(ps_registry_plan_repair(registry, &moves, &n, err), PSD_OK);
    cr_assert_eq(n, 1);
    cr_assert_str_eq(moves[0].to, "", "nobody could have it");
}

Test(registry_sizes, tell_the_speed_of_copies_that_were_made)
{
    (void)make_copied("w", 1, 2);
    cr_assert(ps_registry_set_bytes(registry, 1, 1, 0, 100 * MB));
    cr_assert_eq(ps_registry_copy_rate(registry), 0);
    cr_assert(say(PS_REPORT_SLOW, 1, 2));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    assert_rests();
    now_ms += 10;
    cr_assert(say(PS_REPORT_CAUGHT_UP, 1, 2));
    assert_commits("partition 0 of table w is in sync on node n1");
    cr_assert_eq(ps_registry_copy_rate(registry), 0, "few rows were written");
    cr_assert(say(PS_REPORT_SLOW, 1, 2));
    assert_commits("partition 0 of table w is no longer in sync on node n1: it "
                   "lags");
    assert_rests();
    now_ms += 200;
    beat(1, 0);
    beat(2, 0);
    beat(3, 0);
    cr_assert(say(PS_REPORT_CAUGHT_UP, 1, 2));
    assert_commits("partition 0 of table w is in sync on node n1");
    cr_assert_eq(ps_registry_copy_rate(registry), 500 * MB);
}

Test(registry_sizes, a_drain_under_way_shows_where_its_copies_go)
{
    PSD_AUTO(ps_free_at) ps_move_t *moves = NULL;
    const ps_table_t *table = make_copied("w", 1, 1);
    size_t n = 0;

    do_planned(
        ps_registry_plan_node_state(registry, "n0", PS_NODE_DRAINING, false, 1, &command, err));
    while (table->copies[0].n == 1) {
        PSD_AUTO(ps_decision_done) ps_decision_t decision = decide();

        cr_assert_eq(decision.kind, PS_DECIDE_COMMIT);
        cr_assert_eq(ps_registry_apply(registry, &decision.command, now_ms, err), PSD_OK);
    }
    cr_assert_eq(ps_registry_plan_drain(registry, "n0", &moves, &n, err), PSD_OK);
    cr_assert_eq(n, 1);
    cr_assert(moves[0].under_way);
    cr_assert_str_eq(
        moves[0].to,
        ps_registry_node_by_incarnation(registry, table->copies[0].at[1].incarnation)->name);
}

Test(registry_sizes, a_drain_is_shown_before_it_is_done)
{
    const ps_table_t *table = NULL;
    PSD_AUTO(ps_free_at) ps_move_t *moves = NULL;
    PSD_AUTO(ps_free_at) char *before = NULL;
    PSD_AUTO(ps_free_at) char *after = NULL;
    size_t n = 0;

    table = make_copied("w", 6, 2);
    for (uint32_t i = 0; i < 6; i++) {
        cr_assert(ps_registry_set_bytes(registry, table->copies[i].at[0].incarnation, 1, i, 1000));
    }
    before = fixture_dump(registry);
    cr_assert_eq(ps_registry_plan_drain(registry, "n0", &moves, &n, err), PSD_OK);
    cr_assert_eq(n, 4);
    for (size_t i = 0; i < n; i++) {
        cr_assert_str_eq(moves[i].from, "n0");
        cr_assert_str_neq(moves[i].to, "n0");
        cr_assert_str_neq(moves[i].to, "");
        cr_assert_eq(moves[i].bytes, 1000);
    }
    after = fixture_dump(registry);
    cr_assert_str_eq(before, after);
    cr_assert_eq(ps_registry_plan_drain(registry, "n9", &moves, &n, err), PSD_NO_NODE);
}

Test(registry_sizes, evening_out_is_shown_before_it_is_done)
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

static psd_status_t plan_repair(void *fixture)
{
    ps_move_t *moves = NULL;
    size_t n = 0;
    psd_status_t rc = ps_registry_plan_repair(registry, &moves, &n, NULL);

    (void)fixture;
    if (rc == PSD_OK) {
        ps_free(moves);
    }
    return rc;
}

Test(registry_sizes, a_repair_that_has_no_memory_is_not_shown)
{
    (void)make_copied("w", 6, 2);
    cr_assert(ps_registry_node_ends(registry, "n1", 2, now_ms));
    cr_assert_null(fail_alloc_sweep(plan_repair, NULL));
}
