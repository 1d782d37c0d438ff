/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry/registry.h: signs of life, and the tables that a job has open. */
#include "support/registry_test.h"

TestSuite(registry_live, .init = make_registry_with_node, .fini = drop_registry);

/* Tables of a job */

static psd_status_t plan_open(uint32_t job, uint32_t table)
{
    return ps_registry_plan_job_table(registry, job, table, 5, &command, err);
}

Test(registry_live, tables_are_listed_in_the_order_of_opening)
{
    const uint32_t *tables = NULL;

    (void)make_table("a", 1);
    (void)make_table("b", 1);
    run_worker("lr", 0, 1, 0);
    do_planned(plan_open(1, 2));
    do_planned(plan_open(1, 1));
    cr_assert_eq(ps_registry_job_tables(registry, 1, &tables), 2);
    cr_assert_eq(tables[0], 2);
    cr_assert_eq(tables[1], 1);
    cr_assert_eq(ps_registry_job(registry, "lr")->version, 4);
    assert_nothing_to_do(plan_open(1, 2));
}

Test(registry_live, a_change_of_workers_keeps_the_tables)
{
    const uint32_t *tables = NULL;

    (void)make_table("a", 1);
    run_worker("lr", 0, 2, 0);
    do_planned(plan_open(1, 1));
    run_worker("lr", 1, 2, 0);
    cr_assert_eq(ps_registry_job_tables(registry, 1, &tables), 1);
    cr_assert_eq(tables[0], 1);
}

/* Each worker asked for the tables whenever another joined or left: n workers
 * made n * n questions to all nodes. */
Test(registry_live, a_change_of_workers_is_none_of_the_tables)
{
    uint64_t version = 0;

    (void)make_table("a", 1);
    (void)make_table("b", 1);
    run_worker("lr", 0, 2, 0);
    cr_assert_eq(ps_registry_job_tables_version(registry, 2), 0);
    do_planned(plan_open(1, 1));
    version = ps_registry_job_tables_version(registry, 1);
    cr_assert_eq(version, ps_registry_job(registry, "lr")->version);
    run_worker("lr", 1, 2, 0);
    cr_assert_eq(ps_registry_job_tables_version(registry, 1), version);
    do_planned(plan_open(1, 2));
    cr_assert_gt(ps_registry_job_tables_version(registry, 1), version);
    version = ps_registry_job_tables_version(registry, 1);
    do_planned(ps_registry_plan_drop(registry, "a", 5, &command, err));
    cr_assert_gt(ps_registry_job_tables_version(registry, 1), version);
}

Test(registry_live, a_dropped_table_is_no_longer_open)
{
    const uint32_t *tables = NULL;
    uint64_t version = 0;

    (void)make_table("a", 1);
    (void)make_table("b", 1);
    run_worker("lr", 0, 1, 0);
    do_planned(plan_open(1, 1));
    do_planned(plan_open(1, 2));
    version = ps_registry_job(registry, "lr")->version;
    do_planned(ps_registry_plan_drop(registry, "a", 5, &command, err));
    cr_assert_eq(ps_registry_job_tables(registry, 1, &tables), 1);
    cr_assert_eq(tables[0], 2);
    cr_assert_eq(ps_registry_job(registry, "lr")->version, version + 1);
}

Test(registry_live, wrong_openings_are_refused)
{
    assert_refused(plan_open(1, 1), PSD_NO_JOB, "job number 1 does not exist");
    run_worker("lr", 0, 1, 0);
    assert_refused(plan_open(1, 1), PSD_NO_TABLE, "table number 1 does not exist");
    (void)make_table("a", 1);
    do_planned(ps_registry_plan_stop(registry, "lr", 5, &command, err));
    assert_refused(plan_open(1, 1), PSD_JOB_STOPPED, "job \"lr\" was stopped");
}

/* Signs of life */

static psd_status_t beat(uint32_t worker, uint32_t joins, uint64_t clock)
{
    return ps_registry_heartbeat(registry, 1, worker, joins, clock, now_ms, err);
}

Test(registry_live, silence_makes_a_worker_overdue)
{
    uint32_t job = 0;
    uint32_t worker = 0;

    now_ms = 100;
    run_worker("lr", 0, 1, 0);
    cr_assert_eq(ps_registry_deadline(registry), 100 + FIXTURE_LOST_AFTER_MS);
    now_ms = 600;
    cr_assert_eq(beat(0, 1, 3), PSD_OK);
    cr_assert_eq(ps_registry_deadline(registry), 600 + FIXTURE_LOST_AFTER_MS);
    cr_assert_not(ps_registry_overdue(registry, 599 + FIXTURE_LOST_AFTER_MS, &job, &worker));
    cr_assert(ps_registry_overdue(registry, 600 + FIXTURE_LOST_AFTER_MS, &job, &worker));
    cr_assert_eq(job, 1);
    cr_assert_eq(worker, 0);
    end_worker("lr", 0, PS_WORKER_LOST);
    cr_assert_not(ps_registry_overdue(registry, UINT64_MAX, &job, &worker));
    cr_assert_eq(ps_registry_deadline(registry), UINT64_MAX);
}

Test(registry_live, expected_workers_have_longer_to_come)
{
    uint32_t job = 0;
    uint32_t worker = 0;

    now_ms = 100;
    run_worker("lr", 0, 2, 0);
    now_ms = 4000;
    cr_assert_eq(beat(0, 0, 0), PSD_OK);
    do_planned(plan_attach("lr", 0)); /* no change of worker 1's wait */
    cr_assert_not(ps_registry_overdue(registry, 4900, &job, &worker));
    now_ms = 5000;
    cr_assert_eq(beat(0, 0, 0), PSD_OK);
    cr_assert(ps_registry_overdue(registry, 100 + FIXTURE_JOIN_WITHIN_MS, &job, &worker));
    cr_assert_eq(worker, 1);
}

Test(registry_live, joining_begins_a_new_wait)
{
    uint32_t job = 0;
    uint32_t worker = 0;

    run_worker("lr", 0, 2, 0);
    now_ms = 4000;
    cr_assert_eq(beat(0, 0, 0), PSD_OK);
    do_planned(plan_join("lr", 1, 2, 0));
    cr_assert_not(ps_registry_overdue(registry, 3999 + FIXTURE_LOST_AFTER_MS, &job, &worker));
    cr_assert(ps_registry_overdue(registry, 4000 + FIXTURE_LOST_AFTER_MS, &job, &worker));
}

Test(registry_live, clocks_near_the_end_of_time_never_wrap)
{
    uint32_t job = 0;
    uint32_t worker = 0;

    now_ms = UINT64_MAX - 5;
    run_worker("lr", 0, 1, 0);
    cr_assert_eq(ps_registry_deadline(registry), UINT64_MAX);
    cr_assert_not(ps_registry_overdue(registry, UINT64_MAX - 1, &job, &worker));
}

Test(registry_live, signs_of_life_are_remembered_and_belong_to_one_life)
{
    uint64_t seen_ms = 0;
    uint64_t clock = 0;

    now_ms = 60;
    run_worker("lr", 0, 2, 0);
    run_worker("lr", 1, 2, 0);
    cr_assert(ps_registry_last_seen(registry, 1, 0, &seen_ms, &clock));
    cr_assert_eq(seen_ms, 60, "one that falls silent before it beats, too");
    cr_assert_eq(clock, 0);
    cr_assert_not(ps_registry_last_seen(registry, 1, 9, &seen_ms, &clock));
    now_ms = 70;
    cr_assert_eq(beat(0, 0, 12), PSD_OK);
    cr_assert(ps_registry_last_seen(registry, 1, 0, &seen_ms, &clock));
    cr_assert_eq(seen_ms, 70);
    cr_assert_eq(clock, 12);
    now_ms = 90;
    end_worker("lr", 0, PS_WORKER_LOST);
    cr_assert(ps_registry_last_seen(registry, 1, 0, &seen_ms, &clock));
    cr_assert_eq(seen_ms, 70, "an operator wants to know when it fell silent");
    do_planned(plan_join("lr", 0, 2, 0));
    cr_assert_not(ps_registry_last_seen(registry, 1, 0, &seen_ms, &clock));
}

Test(registry_live, heartbeats_of_who_is_not_there_are_refused)
{
    cr_assert_eq(beat(0, 0, 0), PSD_NO_JOB);
    psd_error_clear(err);
    run_worker("lr", 0, 2, 0);
    assert_refused(beat(1, 0, 0), PSD_NO_WORKER, "worker 1 of job lr is expected");
    assert_refused(beat(2, 0, 0), PSD_NO_WORKER, "job lr has no worker 2");
    assert_refused(beat(0, 2, 0), PSD_WORKER_LOST, "worker 0 of job lr was declared lost");
    do_planned(plan_join("lr", 1, 2, 0));
    cr_assert_eq(beat(1, 1, 0), PSD_OK, "joining is life");
    end_worker("lr", 0, PS_WORKER_FINISHED);
    cr_assert_eq(beat(0, 1, 0), PSD_OK, "one that has finished is not minded");
    end_worker("lr", 1, PS_WORKER_LOST);
    assert_refused(beat(1, 1, 0), PSD_WORKER_LOST, "worker 1 of job lr was declared lost");
}
