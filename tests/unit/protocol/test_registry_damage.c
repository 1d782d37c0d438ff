/* SPDX-License-Identifier: Apache-2.0 */
/* ps_registry_apply: commands that no plan makes, but a damaged disk may hold.
 */
#include "support/registry_test.h"

TestSuite(registry_damage, .init = make_registry, .fini = drop_registry);

static ps_command_t table_command(ps_copies_t *copies)
{
    ps_command_t made = {.kind = PS_COMMAND_TABLE, .epoch = 5};

    made.table.id = 9;
    made.table.spec = fixture_spec("w");
    made.table.spec.n_partitions = 1;
    made.table.spec.n_col_slices = 1;
    *copies =
        (ps_copies_t){.epoch = 5, .n = 1, .at = {{.incarnation = 7, .state = PS_COPY_PRIMARY}}};
    made.table.copies = copies;
    return made;
}

static ps_command_t job_command(ps_worker_t workers[2])
{
    ps_command_t made = {.kind = PS_COMMAND_JOB, .epoch = 5, .n_expected = 1};

    made.job = (ps_job_t){.id = 1, .name = "j", .version = 9, .workers = workers, .n_workers = 2};
    workers[0] = (ps_worker_t){0, PS_WORKER_RUNNING, 1, 1, 0};
    workers[1] = (ps_worker_t){1, PS_WORKER_EXPECTED, 0, 0, 0};
    return made;
}

static void assert_damaged(const ps_command_t *bad, const char *says)
{
    PSD_AUTO(ps_free_at) char *before = fixture_dump(registry);
    PSD_AUTO(ps_free_at) char *after = NULL;

    psd_error_clear(err);
    cr_assert_eq(ps_registry_apply(registry, bad, 0, err), PSD_DAMAGED, "%s", says);
    cr_assert_eq(psd_error_status(err), PSD_DAMAGED);
    cr_assert_not_null(strstr(psd_error_text(err), says), "%s", psd_error_text(err));
    after = fixture_dump(registry);
    cr_assert_str_eq(before, after);
}

static void assert_applies(const ps_command_t *good)
{
    cr_assert_eq(ps_registry_apply(registry, good, 0, err), PSD_OK, "%s", psd_error_text(err));
}

Test(registry_damage, nothing_fits_before_the_cluster)
{
    ps_command_t bad = {.kind = PS_COMMAND_SESSIONS, .number = 5};

    assert_damaged(&bad, "there is no cluster yet");
}

Test(registry_damage, commands_that_do_not_fit_are_damage)
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
    assert_damaged(&bad, "the epoch is 1; a command has epoch 0");
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
    bad.node = fixture_node("n1", 8, 1, shards);
    bad.node.weight = 1025;
    assert_damaged(&bad, "weight of node n1 is 1025; allowed: 0..1024");
}

Test(registry_damage, tables_that_do_not_fit_are_damage)
{
    ps_copies_t copies;
    ps_command_t bad = table_command(&copies);

    make_cluster();
    start_node("n0", 7, 2);
    copies.at[0].shard = 2;
    assert_damaged(&bad, "partition 0 of table w is on a shard that does not");
    bad = table_command(&copies);
    copies.at[0].incarnation = 8;
    assert_damaged(&bad, "on a shard that does not exist");
    bad = table_command(&copies);
    copies.n = 0;
    assert_damaged(&bad, "partition 0 of table w: there are 0 copies");
    bad = table_command(&copies);
    copies.epoch = 6;
    assert_damaged(&bad, "of epoch 6");
    bad = table_command(&copies);
    bad.table.copies = NULL;
    assert_damaged(&bad, "table w has no partitions");
    bad = table_command(&copies);
    bad.table.spec.n_cols = 0;
    assert_damaged(&bad, "table w: ");
    bad = table_command(&copies);
    memset(bad.table.spec.name, 'x', sizeof bad.table.spec.name);
    assert_damaged(&bad, "name of the table");
    bad = table_command(&copies);
    bad.table.id = 0;
    assert_damaged(&bad, "exists already");
    bad = table_command(&copies);
    assert_applies(&bad);
    assert_damaged(&bad, "table w with id 9 exists already");
    bad.table.id = 10;
    assert_damaged(&bad, "table w with id 10 exists already");
    cr_assert_eq(make_table("v", 1)->id, 10, "ids go on behind the highest");
}

Test(registry_damage, jobs_that_do_not_fit_are_damage)
{
    ps_worker_t workers[2];
    ps_command_t bad = job_command(workers);

    make_cluster();
    bad.job.name[0] = '.';
    assert_damaged(&bad, "name of the job");
    bad = job_command(workers);
    bad.job.n_workers = 0;
    assert_damaged(&bad, "0 workers"); /* of a job that is not known */
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
    bad.job.name[0] = 'j';
    bad.ended = 3;
    assert_damaged(&bad, "job j ends by command as 3");
    bad.ended = 0;
    bad.job.n_workers = 0; /* no worker of a known one need change */
    assert_applies(&bad);
}

Test(registry_damage, job_tables_that_do_not_fit_are_damage)
{
    ps_worker_t workers[2];
    ps_copies_t copies;
    ps_command_t job = job_command(workers);
    ps_command_t table = table_command(&copies);
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

Test(registry_damage, changes_of_copies_that_do_not_fit_are_damage)
{
    ps_change_t changes[2] = {{.table = 1}, {.table = 1, .partition = 1}};
    ps_command_t bad = {.kind = PS_COMMAND_COPIES, .epoch = 3};

    make_cluster();
    start_node("n0", 7, 2);
    changes[0].copies = make_table("w", 2)->copies[0];
    changes[1].copies = changes[0].copies;
    assert_damaged(&bad, "0 changes of copies in epoch 3; the epoch is 2 already");
    bad.changes = changes;
    bad.n_changes = 2;
    assert_damaged(&bad, "partition 0 of table w changes in epoch 3, not 2");
    bad.epoch = 2;
    assert_damaged(&bad, "2 changes of copies in epoch 2; the epoch is 2 already");
    bad.epoch = 3;
    changes[0].copies.epoch = 3;
    changes[1].copies.epoch = 3;
    changes[1].partition = 0;
    assert_damaged(&bad, "change 1 is of partition 0 of table 1, which does");
    changes[1].partition = 2;
    assert_damaged(&bad, "change 1 is of partition 2 of table 1, which does");
    changes[1].table = 4;
    assert_damaged(&bad, "of table 4, which does not exist");
    changes[1].table = 1;
    changes[1].partition = 1;
    changes[1].copies.at[0].incarnation = 8;
    assert_damaged(&bad, "partition 1 of table w is on a shard that does not");
    changes[1].copies.at[0].incarnation = 7;
    changes[1].copies.at[0].state = PS_COPY_IN_SYNC;
    assert_damaged(&bad, "partition 1 of table w: copy 0 of 1 is in_sync");
    changes[1].copies.fenced = true;
    assert_applies(&bad);
    cr_assert(ps_registry_table(registry, "w")->copies[1].fenced);
    cr_assert_eq(ps_registry_table(registry, "w")->routes[1].epoch, 3);
}

Test(registry_damage, nothing_may_stay_on_a_node_that_ends)
{
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_command_t bad = {.kind = PS_COMMAND_NODE, .epoch = 3};

    make_cluster();
    start_node("n0", 7, 2);
    (void)make_table("w", 2);
    bad.node = fixture_node("n0", 8, 2, shards);
    assert_damaged(&bad, "partition 0 of table w is left on a node that has");
    bad = (ps_command_t){.kind = PS_COMMAND_NODE_STATE, .epoch = 3};
    (void)snprintf(bad.name, sizeof bad.name, "n0");
    bad.number = PS_NODE_REMOVED;
    assert_damaged(&bad, "partition 0 of table w is left on a node that has");
    bad.number = PS_NODE_REMOVED + 1;
    assert_damaged(&bad, "a node that does not exist is in state 4");
    bad.number = PS_NODE_UP;
    bad.name[1] = '1';
    assert_damaged(&bad, "a node that does not exist is in state 1");
}
