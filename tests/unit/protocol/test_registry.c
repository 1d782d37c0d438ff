/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry.h: the cluster, its nodes, sessions, tables and the map. */
#include "protocol/registry.h"

#include <criterion/criterion.h>

#include "support/fail_alloc.h"
#include "support/registry_walk.h"

static psd_error_t *err;
static ps_registry_t *registry;
static ps_command_t command;

static void
make_registry(void)
{
    ps_registry_args_t args = fixture_args();

    err = psd_error_new();
    cr_assert_not_null(err);
    cr_assert_eq(ps_registry_new(&args, &registry, err), PSD_OK);
}

static void
drop_registry(void)
{
    ps_command_done(&command);
    ps_registry_destroy(&registry);
    cr_assert_null(registry);
    psd_error_destroy(&err);
}

TestSuite(registry, .init = make_registry, .fini = drop_registry);

/* Plans are given as they come; this does what a shell does with them. */
static void
do_planned(psd_status_t planned)
{
    cr_assert_eq(fixture_do(registry, planned, &command, 0, NULL, NULL, err),
                 PSD_OK, "%s", psd_error_text(err));
}

static void
assert_refused(psd_status_t got, psd_status_t status, const char *text)
{
    cr_assert_eq(got, status, "%s", psd_error_text(err));
    cr_assert_eq(psd_error_status(err), status);
    cr_assert_str_eq(psd_error_text(err), text);
    cr_assert_eq(command.kind, 0, "a refused plan is no command");
    psd_error_clear(err);
}

static void
make_cluster(void)
{
    ps_id_t uuid = fixture_uuid();

    do_planned(
        ps_registry_plan_cluster(registry, "psd", &uuid, 1, &command, err));
}

static void
start_node(const char *name, uint64_t incarnation, uint32_t n_shards)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node(name, incarnation, n_shards, shards);

    do_planned(ps_registry_plan_node(registry, &node, 2, &command, err));
}

static const ps_table_t *
make_table(const char *name, uint32_t n_partitions)
{
    ps_table_spec_t spec = fixture_spec(name);

    spec.n_partitions = n_partitions;
    do_planned(ps_registry_plan_table(registry, &spec, 3, &command, err));
    return ps_registry_table(registry, name);
}

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
    cr_assert_eq(
        ps_registry_plan_cluster(registry, "other", &uuid, 1, &command, err),
        PSD_OK);
    cr_assert_eq(command.kind, 0, "there is nothing to change");
}

Test(registry, cluster_needs_a_name_and_a_uuid)
{
    ps_id_t uuid = fixture_uuid();
    ps_id_t zero = {{0}};

    assert_refused(
        ps_registry_plan_cluster(registry, "a b", &uuid, 1, &command, err),
        PSD_INVALID,
        "cluster name is \"a b\"; allowed: 1..63 of letters, digits, \"_\", "
        "\".\", \"-\"");
    assert_refused(
        ps_registry_plan_cluster(registry, "psd", &zero, 1, &command, err),
        PSD_INVALID, "the cluster's UUID is 0");
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
    assert_refused(ps_registry_plan_node(registry, &node, 1, &command, err),
                   PSD_INVALID, "incarnation of node n0 is 0");
    node = fixture_node("n0", 7, 1, shards);
    assert_refused(ps_registry_plan_node(registry, &node, 1, &command, err),
                   PSD_INVALID,
                   "incarnation 0000000000000007 of node n0 is taken");
    node = fixture_node("n0", 8, 1, shards);
    node.n_shards = 0;
    assert_refused(ps_registry_plan_node(registry, &node, 1, &command, err),
                   PSD_INVALID, "node n0 has 0 shards; allowed: 1..1024");
    node.n_shards = 1;
    shards[0].tcp[0] = '\0';
    assert_refused(ps_registry_plan_node(registry, &node, 1, &command, err),
                   PSD_INVALID, "shard 0 of node n0 has no endpoint");
    node = fixture_node("n 0", 8, 1, shards);
    cr_assert_eq(ps_registry_plan_node(registry, &node, 1, &command, err),
                 PSD_INVALID);
}

Test(registry, nodes_are_limited)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n3", 4, 1, shards);

    make_cluster();
    start_node("n0", 1, 1);
    start_node("n1", 2, 1);
    start_node("n2", 3, 1);
    assert_refused(ps_registry_plan_node(registry, &node, 1, &command, err),
                   PSD_LIMIT, "the cluster has 3 nodes; allowed: 3");
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
    cr_assert_eq(ps_registry_plan_sessions(registry, 4, 1, &command, err),
                 PSD_OK);
    cr_assert_eq(command.kind, 0);
    assert_refused(ps_registry_plan_sessions(registry, 0, 1, &command, err),
                   PSD_INVALID, "sessions are 0; allowed: 1 ..");
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
        cr_assert_str_eq(table->routes[i].tcp,
                         ps_registry_node(registry, "n0")->shards[i % 3].tcp);
    }
    cr_assert_eq(ps_registry_epoch(registry), 2);
    /* the next one begins one shard further */
    cr_assert_eq(make_table("v", 1)->routes[0].shard, 1);
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
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err),
                   PSD_NO_NODE, "no node is up to hold table w");
    start_node("n0", 7, 1);
    (void)make_table("w", 1);
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err),
                   PSD_TABLE_EXISTS, "table \"w\" exists already");
    spec = fixture_spec("v");
    spec.replicas = 2;
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err),
                   PSD_UNSUPPORTED, "replicas is 2; supported: 1");
    spec.replicas = 1;
    spec.ack = PS_ACK_DISK;
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err),
                   PSD_UNSUPPORTED, "ack is disk; supported: memory");
    spec.ack = PS_ACK_MEMORY;
    spec.n_cols = 0;
    cr_assert_eq(ps_registry_plan_table(registry, &spec, 1, &command, err),
                 PSD_INVALID);
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
    assert_refused(ps_registry_plan_table(registry, &spec, 1, &command, err),
                   PSD_LIMIT, "the cluster has 64 tables; allowed: 64");
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
    cr_assert_eq(ps_registry_table_by_id(registry, 3),
                 ps_registry_table(registry, "b"));
    assert_refused(ps_registry_plan_drop(registry, "a", 1, &command, err),
                   PSD_NO_TABLE, "table \"a\" does not exist");
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
        cr_assert_str_eq(table->routes[i].tcp,
                         i == 0 ? "tcp://n0:90" : "tcp://n0:91");
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

/* Commands that no plan makes, but a damaged disk may hold. */

static ps_command_t
table_command(ps_route_t *route)
{
    ps_command_t made = {.kind = PS_COMMAND_TABLE, .epoch = 5};

    made.table.id = 9;
    made.table.spec = fixture_spec("w");
    made.table.spec.n_partitions = 1;
    made.table.spec.n_col_slices = 1;
    *route = (ps_route_t){.epoch = 5, .incarnation = 7};
    made.table.routes = route;
    return made;
}

static ps_command_t
job_command(ps_worker_t workers[2])
{
    ps_command_t made = {.kind = PS_COMMAND_JOB, .epoch = 5, .n_expected = 1};

    made.job = (ps_job_t){
        .id = 1, .name = "j", .version = 9, .workers = workers, .n_workers = 2};
    workers[0] = (ps_worker_t){0, PS_WORKER_RUNNING, 1, 1, 0};
    workers[1] = (ps_worker_t){1, PS_WORKER_EXPECTED, 0, 0, 0};
    return made;
}

static void
assert_damaged(const ps_command_t *bad, const char *says)
{
    PSD_AUTO(ps_free_at) char *before = fixture_dump(registry);
    PSD_AUTO(ps_free_at) char *after = NULL;

    psd_error_clear(err);
    cr_assert_eq(ps_registry_apply(registry, bad, 0, err), PSD_DAMAGED, "%s",
                 says);
    cr_assert_eq(psd_error_status(err), PSD_DAMAGED);
    cr_assert_not_null(strstr(psd_error_text(err), says), "%s",
                       psd_error_text(err));
    after = fixture_dump(registry);
    cr_assert_str_eq(before, after);
}

static void
assert_applies(const ps_command_t *good)
{
    cr_assert_eq(ps_registry_apply(registry, good, 0, err), PSD_OK, "%s",
                 psd_error_text(err));
}

Test(registry, nothing_fits_before_the_cluster)
{
    ps_command_t bad = {.kind = PS_COMMAND_SESSIONS, .number = 5};

    assert_damaged(&bad, "there is no cluster yet");
}

Test(registry, commands_that_do_not_fit_are_damage)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_command_t bad = {.kind = (ps_command_kind_t)99, .epoch = 5};

    make_cluster();
    start_node("n0", 7, 2);
    assert_damaged(&bad, "command kind is 99");
    bad.kind = PS_COMMAND_CLUSTER;
    assert_damaged(&bad, "there is a cluster already");
    bad.kind = PS_COMMAND_DROP;
    bad.number = 3;
    assert_damaged(&bad, "there is no table 3 to drop");
    bad.number = UINT64_MAX;
    assert_damaged(&bad, "there is no table");
    bad.kind = PS_COMMAND_SESSIONS;
    assert_damaged(&bad, "sessions would shrink");
    bad.epoch = 0;
    assert_damaged(&bad, "the epoch is 1, behind 0");
    bad.epoch = UINT64_MAX;
    assert_damaged(&bad, "the epoch is 1");
    bad = (ps_command_t){.kind = PS_COMMAND_NODE, .epoch = 5};
    bad.node = fixture_node("n1", 7, 1, shards);
    assert_damaged(&bad, "nodes n1 and n0 have one incarnation");
    memset(bad.node.name, 'x', sizeof bad.node.name);
    assert_damaged(&bad, "name of the node");
    bad.node = fixture_node("n1", 8, 1, shards);
    memset(bad.node.control, 'x', sizeof bad.node.control);
    assert_damaged(&bad, "control endpoint");
    bad.node = fixture_node("n1", 8, 1, shards);
    bad.node.shards = NULL;
    assert_damaged(&bad, "shards");
}

Test(registry, tables_that_do_not_fit_are_damage)
{
    ps_route_t route;
    ps_command_t bad = table_command(&route);

    make_cluster();
    start_node("n0", 7, 2);
    route.shard = 2;
    assert_damaged(&bad, "partition 0 of table w is on a shard that does not");
    bad = table_command(&route);
    route.incarnation = 8;
    assert_damaged(&bad, "on a shard that does not exist");
    bad = table_command(&route);
    route.partition = 1;
    assert_damaged(&bad, "partition 0 of table w is number 1");
    bad = table_command(&route);
    route.epoch = 6;
    assert_damaged(&bad, "of epoch 6");
    bad = table_command(&route);
    bad.table.routes = NULL;
    assert_damaged(&bad, "table w has no partitions");
    bad = table_command(&route);
    bad.table.spec.n_cols = 0;
    assert_damaged(&bad, "table w: ");
    bad = table_command(&route);
    memset(bad.table.spec.name, 'x', sizeof bad.table.spec.name);
    assert_damaged(&bad, "name of the table");
    bad = table_command(&route);
    bad.table.id = 0;
    assert_damaged(&bad, "is there already");
    bad = table_command(&route);
    assert_applies(&bad);
    assert_damaged(&bad, "table w with id 9 is there already");
    bad.table.id = 10;
    assert_damaged(&bad, "table w with id 10 is there already");
    cr_assert_eq(make_table("v", 1)->id, 10, "ids go on behind the highest");
}

Test(registry, jobs_that_do_not_fit_are_damage)
{
    ps_worker_t workers[2];
    ps_command_t bad = job_command(workers);

    make_cluster();
    bad.job.name[0] = '.';
    assert_damaged(&bad, "name of the job");
    bad = job_command(workers);
    bad.job.n_workers = 0;
    assert_damaged(&bad, "0 workers");
    bad = job_command(workers);
    bad.n_expected = PS_WORKERS_MAX + 1;
    assert_damaged(&bad, "4097 expected");
    bad = job_command(workers);
    workers[1].worker = 0;
    assert_damaged(&bad, "worker 0 of job j is out of order or range");
    bad = job_command(workers);
    workers[1].worker = PS_WORKERS_MAX;
    assert_damaged(&bad, "out of order or range");
    bad = job_command(workers);
    workers[1].state = (ps_worker_state_t)6;
    assert_damaged(&bad, "worker 1 of job j has state 6");
    bad = job_command(workers);
    workers[0].n_members = 0;
    assert_damaged(&bad, "0 members");
    bad = job_command(workers);
    workers[0].start = UINT64_MAX;
    assert_damaged(&bad, "start 18446744073709551615");
    bad = job_command(workers);
    assert_applies(&bad);
    assert_damaged(&bad, "job 1 is j at version 9, not j before 9");
    bad.job.version = 10;
    bad.job.name[0] = 'k';
    assert_damaged(&bad, "not k before 10");
}

Test(registry, job_tables_that_do_not_fit_are_damage)
{
    ps_worker_t workers[2];
    ps_route_t route;
    ps_command_t job = job_command(workers);
    ps_command_t table = table_command(&route);
    ps_command_t bad = {.kind = PS_COMMAND_JOB_TABLE, .epoch = 5, .number = 9};

    make_cluster();
    start_node("n0", 7, 2);
    bad.job.id = 1;
    bad.job.version = 9;
    assert_damaged(&bad, "there is no job 1 or no table 9");
    assert_applies(&job);
    assert_damaged(&bad, "there is no job 1 or no table 9");
    assert_applies(&table);
    bad.job.version = 8;
    assert_damaged(&bad, "job j is at version 9, not before 8");
    bad.job.version = 9;
    assert_applies(&bad);
    assert_damaged(&bad, "job j has table 9 open already");
}

/* Replay */

Test(registry, same_commands_give_the_same_state)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        PSD_AUTO(ps_registry_destroy) ps_registry_t *first = NULL;
        PSD_AUTO(ps_registry_destroy) ps_registry_t *second = NULL;
        ps_registry_args_t args = fixture_args();
        walk_t walk = {.rng = {seed}};
        int n_done = 0;

        cr_assert_eq(ps_registry_new(&args, &first, err), PSD_OK);
        cr_assert_eq(ps_registry_new(&args, &second, err), PSD_OK);
        for (int i = 0; i < 400; i++) {
            PSD_AUTO(ps_command_done) ps_command_t step = {0};

            if (walk_plan(&walk, first, &step, NULL) != PSD_OK ||
                step.kind == 0) {
                continue;
            }
            psd_error_clear(err);
            cr_assert_eq(ps_registry_apply(first, &step, 1, err), PSD_OK, "%s",
                         psd_error_text(err));
            cr_assert_eq(ps_registry_apply(second, &step, 2, err), PSD_OK);
            cr_assert_eq(ps_registry_take_session(first),
                         ps_registry_take_session(second));
            n_done++;
        }
        {
            PSD_AUTO(ps_free_at) char *a = fixture_dump(first);
            PSD_AUTO(ps_free_at) char *b = fixture_dump(second);

            cr_assert_str_eq(a, b);
        }
        cr_assert_gt(n_done, 100, "most of a life is no refusal");
    }
}

Test(registry, plans_change_nothing)
{
    walk_t walk = {.rng = {99}};

    for (int i = 0; i < 400; i++) {
        PSD_AUTO(ps_command_done) ps_command_t step = {0};
        PSD_AUTO(ps_free_at) char *before = fixture_dump(registry);
        psd_status_t rc = walk_plan(&walk, registry, &step, NULL);
        PSD_AUTO(ps_free_at) char *after = fixture_dump(registry);

        cr_assert_str_eq(before, after);
        if (rc == PSD_OK && step.kind != 0) {
            cr_assert_neq(step.text[0], '\0', "history is for people");
            cr_assert_eq(ps_registry_apply(registry, &step, 1, err), PSD_OK);
        }
    }
}

/* Memory */

/* Whatever fails, the state is that of before or of after. */
static psd_status_t
live_a_life(void *fixture)
{
    PSD_AUTO(ps_registry_destroy) ps_registry_t *self = NULL;
    ps_registry_args_t args = fixture_args();
    walk_t walk = {.rng = {*(uint64_t *)fixture}};
    psd_status_t rc = ps_registry_new(&args, &self, NULL);

    for (int i = 0; i < 60 && rc == PSD_OK; i++) {
        PSD_AUTO(ps_command_done) ps_command_t step = {0};

        rc = walk_plan(&walk, self, &step, NULL);
        if (rc == PSD_NOMEM) {
            cr_assert_eq(step.kind, 0);
        } else if (rc == PSD_OK && step.kind != 0) {
            uint64_t epoch = ps_registry_epoch(self);
            size_t n = ps_registry_n_tables(self) + ps_registry_n_jobs(self);

            rc = ps_registry_apply(self, &step, 1, NULL);
            if (rc != PSD_OK) {
                cr_assert_eq(ps_registry_epoch(self), epoch);
                cr_assert_eq(
                    ps_registry_n_tables(self) + ps_registry_n_jobs(self), n);
                /* the shell tries again */
                cr_assert_eq(ps_registry_apply(self, &step, 1, NULL), PSD_OK);
            }
        } else {
            rc = PSD_OK; /* refused, as may be */
        }
    }
    return rc;
}

Test(registry, no_memory_is_said_and_nothing_changes_or_leaks)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        cr_assert_null(fail_alloc_sweep(live_a_life, &seed));
    }
}
