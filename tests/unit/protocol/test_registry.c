/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry/registry.h: the cluster, its nodes, sessions, tables and the map. */
#include "protocol/registry/registry.h"

#include "support/registry_test.h"

TestSuite(registry, .init = make_registry, .fini = drop_registry);

Test(registry, arguments_of_zero_are_refused)
{
    ps_registry_args_t args = fixture_args();
    ps_registry_t *none = NULL;

    args.lost_after_ms = 0;
    cr_assert_eq(ps_registry_new(&args, &none, err), PSD_INVALID);
    cr_assert_null(none);
    ps_registry_destroy(&none);
    ps_registry_destroy(NULL);
}

Test(registry, begins_empty)
{
    const uint32_t *tables = NULL;

    cr_assert_null(ps_registry_cluster(registry, NULL));
    cr_assert_eq(ps_registry_epoch(registry), 0);
    cr_assert_eq(ps_registry_n_nodes(registry), 0);
    cr_assert_eq(ps_registry_n_tables(registry), 0);
    cr_assert_eq(ps_registry_n_jobs(registry), 0);
    cr_assert_null(ps_registry_node_at(registry, 0));
    cr_assert_null(ps_registry_table_at(registry, 0));
    cr_assert_null(ps_registry_job_at(registry, 0));
    cr_assert_null(ps_registry_node(registry, "n"));
    cr_assert_null(ps_registry_table(registry, "t"));
    cr_assert_null(ps_registry_job(registry, "j"));
    cr_assert_eq(ps_registry_job_tables(registry, 1, &tables), 0);
    cr_assert_null(tables);
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "?");
    cr_assert_eq(ps_registry_take_session(registry), 0);
    cr_assert_eq(ps_registry_deadline(registry), UINT64_MAX);
}

Test(registry, cluster_is_made_once)
{
    ps_id_t uuid = fixture_uuid();
    ps_id_t got = {{0}};

    make_cluster();
    cr_assert_str_eq(ps_registry_cluster(registry, &got), "psd");
    cr_assert(ps_id_equal(&got, &uuid));
    uuid.bytes[0]++;
    cr_assert_eq(ps_registry_plan_cluster(registry, "other", &uuid, 1, &command, err), PSD_OK);
    cr_assert_eq(command.kind, 0, "there is nothing to change");
}

Test(registry, cluster_needs_a_name_and_a_uuid)
{
    ps_id_t uuid = fixture_uuid();
    ps_id_t zero = {{0}};

    assert_refused(ps_registry_plan_cluster(registry, "a b", &uuid, 1, &command, err), PSD_INVALID,
                   "cluster name is \"a b\"; allowed: 1..63 of letters, digits, \"_\", "
                   "\".\", \"-\"");
    assert_refused(ps_registry_plan_cluster(registry, "psd", &zero, 1, &command, err), PSD_INVALID,
                   "the cluster's UUID is 0");
}

Test(registry, a_node_joins_and_grows_the_epoch)
{
    const ps_node_t *node = NULL;

    make_cluster();
    start_node("n0", 7, 2);
    node = ps_registry_node(registry, "n0");
    cr_assert_not_null(node);
    cr_assert_eq(ps_registry_node_at(registry, 0), node);
    cr_assert_eq(ps_registry_node_by_incarnation(registry, 7), node);
    cr_assert_eq(node->incarnation, 7);
    cr_assert(node->up);
    cr_assert_eq(node->n_shards, 2);
    cr_assert_str_eq(node->shards[1].tcp, "tcp://n0:71");
    cr_assert_eq(node->shards[1].shard, 1);
    cr_assert_eq(node->shards[1].incarnation, 7);
    cr_assert_eq(ps_registry_epoch(registry), 1);
}

Test(registry, wrong_nodes_are_refused)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n0", 0, 1, shards);

    make_cluster();
    start_node("other", 7, 1);
    assert_refused(ps_registry_plan_node(registry, &node, 1, &command, err), PSD_INVALID,
                   "incarnation of node n0 is 0");
    node = fixture_node("n0", 7, 1, shards);
    assert_refused(ps_registry_plan_node(registry, &node, 1, &command, err), PSD_INVALID,
                   "another node has the incarnation of node n0");
    node = fixture_node("n0", 8, 1, shards);
    node.n_shards = 0;
    assert_refused(ps_registry_plan_node(registry, &node, 1, &command, err), PSD_INVALID,
                   "node n0 has 0 shards; allowed: 1..1024");
    node.n_shards = 1;
    shards[0].tcp[0] = '\0'; /* ipc alone would do */
    shards[0].ipc[0] = '\0';
    assert_refused(ps_registry_plan_node(registry, &node, 1, &command, err), PSD_INVALID,
                   "shard 0 of node n0 has no endpoint");
    node = fixture_node("n 0", 8, 1, shards);
    cr_assert_eq(ps_registry_plan_node(registry, &node, 1, &command, err), PSD_INVALID);
}

Test(registry, nodes_are_limited)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n3", 4, 1, shards);

    make_cluster();
    start_node("n0", 1, 1);
    start_node("n1", 2, 1);
    start_node("n2", 3, 1);
    assert_refused(ps_registry_plan_node(registry, &node, 1, &command, err), PSD_LIMIT,
                   "the cluster has 3 nodes; allowed: 3");
    start_node("n2", 4, 1); /* a known one comes back nevertheless */
}

Test(registry, sessions_grow_and_are_never_given_twice)
{
    make_cluster();
    cr_assert_eq(ps_registry_take_session(registry), 0, "none is stored");
    do_planned(ps_registry_plan_sessions(registry, 4, 1, &command, err));
    for (uint64_t i = 1; i <= 3; i++) {
        cr_assert_eq(ps_registry_take_session(registry), i);
    }
    do_planned(ps_registry_plan_sessions(registry, 4, 1, &command, err));
    for (uint64_t i = 4; i <= 8; i++) {
        cr_assert_eq(ps_registry_take_session(registry), i);
    }
    cr_assert_eq(ps_registry_take_session(registry), 0);
    cr_assert_eq(ps_registry_old_sessions(registry), 0);
}

Test(registry, sessions_are_planned_only_when_few_are_left)
{
    make_cluster();
    do_planned(ps_registry_plan_sessions(registry, 4, 1, &command, err));
    cr_assert_eq(ps_registry_plan_sessions(registry, 4, 1, &command, err), PSD_OK);
    cr_assert_eq(command.kind, 0);
    assert_refused(ps_registry_plan_sessions(registry, 0, 1, &command, err), PSD_INVALID,
                   "sessions are 0; allowed: 1 ..");
}

Test(registry, one_session_at_a_time_works)
{
    make_cluster();
    for (uint64_t i = 1; i <= 3; i++) {
        do_planned(ps_registry_plan_sessions(registry, 1, 1, &command, err));
        cr_assert_eq(ps_registry_take_session(registry), i);
        cr_assert_eq(ps_registry_take_session(registry), 0);
    }
}

Test(registry, a_restart_leaves_no_old_session_to_give)
{
    make_cluster();
    start_node("n0", 1, 1);
    do_planned(ps_registry_plan_sessions(registry, 10, 1, &command, err));
    cr_assert_eq(ps_registry_take_session(registry), 1);
    start_node("n1", 2, 1);
    cr_assert_eq(ps_registry_old_sessions(registry), 0, "a new node has none");
    start_node("n0", 3, 1);
    cr_assert_eq(ps_registry_old_sessions(registry), 10);
    cr_assert_eq(ps_registry_take_session(registry), 0);
    do_planned(ps_registry_plan_sessions(registry, 10, 1, &command, err));
    cr_assert_eq(ps_registry_take_session(registry), 11);
}

Test(registry, partitions_go_round_the_shards)
{
    const ps_table_t *table = NULL;

    make_cluster();
    start_node("n0", 7, 3);
    table = make_table("w", 4);
    cr_assert_eq(table->id, 1);
    cr_assert_eq(table->created_unix_ms, 3);
    cr_assert_not(table->rows_lost);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(table->routes[i].partition, i);
        cr_assert_eq(table->routes[i].shard, i % 3);
        cr_assert_eq(table->routes[i].epoch, 2);
        cr_assert_eq(table->routes[i].incarnation, 7);
        cr_assert_str_eq(table->routes[i].tcp, ps_registry_node(registry, "n0")->shards[i % 3].tcp);
    }
    cr_assert_eq(ps_registry_epoch(registry), 2);
    /* small ones begin one shard further each; large ones lie alike */
    cr_assert_eq(make_table("u", 4)->routes[0].shard, 0);
    cr_assert_eq(make_table("v", 1)->routes[0].shard, 2);
}

Test(registry, partitions_go_round_all_nodes_that_are_up)
{
    const ps_table_t *table = NULL;

    make_cluster();
    start_node("n0", 7, 1);
    start_node("n1", 8, 2);
    table = make_table("w", 3);
    cr_assert_eq(table->routes[0].incarnation, 7);
    cr_assert_eq(table->routes[1].incarnation, 8);
    cr_assert_eq(table->routes[1].shard, 0);
    cr_assert_eq(table->routes[2].incarnation, 8);
    cr_assert_eq(table->routes[2].shard, 1);
}

Test(registry, a_spec_is_settled_when_it_names_no_partitions)
{
    const ps_table_t *table = NULL;

    make_cluster();
    start_node("n0", 7, 3);
    table = make_table("w", 0);
    cr_assert_eq(table->spec.n_partitions, 4, "the default");
    cr_assert_eq(table->spec.n_col_slices, 1);
}

Test(registry, wrong_tables_are_refused)
{
    ps_table_spec_t spec = fixture_spec("w");

    make_cluster();
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err), PSD_FEW_NODES,
                   "no node is up to hold table w");
    start_node("n0", 7, 1);
    (void)make_table("w", 1);
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err), PSD_TABLE_EXISTS,
                   "table \"w\" exists already");
    spec = fixture_spec("v");
    spec.replicas = 2;
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err), PSD_UNSUPPORTED,
                   "replicas is 2; supported: 1");
    spec.replicas = 1;
    spec.ack = PS_ACK_DISK;
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err), PSD_UNSUPPORTED,
                   "ack is disk; supported: memory");
    spec.ack = PS_ACK_MEMORY;
    spec.n_cols = 0;
    cr_assert_eq(ps_registry_plan_table(registry, &spec, 1, &command, err), PSD_INVALID);
    cr_assert_eq(ps_registry_n_tables(registry), 1);
}

Test(registry, tables_are_limited)
{
    ps_table_spec_t spec = fixture_spec("more");
    char name[16];

    make_cluster();
    start_node("n0", 7, 1);
    for (int i = 0; i < FIXTURE_TABLES_MAX; i++) {
        (void)snprintf(name, sizeof name, "t%d", i);
        (void)make_table(name, 1);
    }
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err), PSD_LIMIT,
                   "the cluster has 64 tables; allowed: 64");
}

Test(registry, a_dropped_table_is_gone_and_its_id_never_used_again)
{
    make_cluster();
    start_node("n0", 7, 1);
    (void)make_table("a", 1);
    (void)make_table("b", 1);
    do_planned(ps_registry_plan_drop(registry, "b", 1, &command, err));
    cr_assert_eq(ps_registry_epoch(registry), 4);
    cr_assert_null(ps_registry_table(registry, "b"));
    cr_assert_null(ps_registry_table_by_id(registry, 2));
    cr_assert_eq(ps_registry_n_tables(registry), 1);
    cr_assert_eq(make_table("b", 1)->id, 3);
    do_planned(ps_registry_plan_drop(registry, "a", 1, &command, err));
    cr_assert_eq(ps_registry_table_at(registry, 0)->id, 3);
    cr_assert_eq(ps_registry_table_by_id(registry, 3), ps_registry_table(registry, "b"));
    assert_refused(ps_registry_plan_drop(registry, "a", 1, &command, err), PSD_NO_TABLE,
                   "table \"a\" does not exist");
}

Test(registry, partitions_follow_a_node_that_is_started_again)
{
    const ps_table_t *table = NULL;

    make_cluster();
    start_node("n0", 7, 2);
    start_node("n1", 8, 1);
    (void)make_table("w", 3);
    start_node("n0", 9, 2);
    table = ps_registry_table(registry, "w");
    cr_assert(table->rows_lost);
    cr_assert_eq(ps_registry_epoch(registry), 4);
    cr_assert_eq(ps_registry_n_nodes(registry), 2);
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(table->routes[i].incarnation, 9);
        cr_assert_eq(table->routes[i].shard, i);
        cr_assert_eq(table->routes[i].epoch, 4);
        cr_assert_str_eq(table->routes[i].tcp, i == 0 ? "tcp://n0:90" : "tcp://n0:91");
    }
    cr_assert_eq(table->routes[2].incarnation, 8, "the other node ran on");
    cr_assert_eq(table->routes[2].epoch, 3);
    cr_assert_not(make_table("v", 1)->rows_lost);
}

Test(registry, partitions_are_dealt_anew_when_the_shards_are_others)
{
    const ps_table_t *table = NULL;

    make_cluster();
    start_node("n0", 7, 4);
    (void)make_table("w", 4);
    start_node("n0", 8, 2);
    table = ps_registry_table(registry, "w");
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(table->routes[i].shard, i % 2);
    }
    start_node("n0", 9, 3);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(table->routes[i].shard, i % 3);
    }
}
