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

/* Some worker is to be lost; `command` has it. */
static bool is_overdue(uint64_t at_ms)
{
    ps_command_done(&command);
    cr_assert_eq(ps_registry_plan_silent(registry, at_ms, 5, &command, err), PSD_OK);
    return command.kind != 0;
}

Test(registry_live, silence_makes_a_worker_overdue)
{
    now_ms = 100;
    run_worker("lr", 0, 1, 0);
    cr_assert_eq(ps_registry_deadline(registry), 100 + FIXTURE_LOST_AFTER_MS);
    now_ms = 600;
    cr_assert_eq(beat(0, 1, 3), PSD_OK);
    cr_assert_eq(ps_registry_deadline(registry), 600 + FIXTURE_LOST_AFTER_MS);
    cr_assert_not(is_overdue(599 + FIXTURE_LOST_AFTER_MS));
    cr_assert(is_overdue(600 + FIXTURE_LOST_AFTER_MS));
    cr_assert_str_eq(command.text, "worker 0 of job lr was lost; the job has ended");
    do_planned(PSD_OK);
    cr_assert_not(is_overdue(UINT64_MAX));
    cr_assert_eq(ps_registry_deadline(registry), UINT64_MAX);
}

Test(registry_live, expected_workers_have_longer_to_come)
{
    now_ms = 100;
    run_worker("lr", 0, 2, 0);
    now_ms = 4000;
    cr_assert_eq(beat(0, 0, 0), PSD_OK);
    do_planned(plan_attach("lr", 0)); /* no change of worker 1's wait */
    cr_assert_not(is_overdue(4900));
    now_ms = 5000;
    cr_assert_eq(beat(0, 0, 0), PSD_OK);
    cr_assert(is_overdue(100 + FIXTURE_JOIN_WITHIN_MS));
    cr_assert_str_eq(command.text, "worker 1 of job lr was lost");
    do_planned(PSD_OK);
    cr_assert_eq(worker_of("lr", 0)->state, PS_WORKER_RUNNING);
}

Test(registry_live, joining_begins_a_new_wait)
{
    run_worker("lr", 0, 2, 0);
    now_ms = 4000;
    cr_assert_eq(beat(0, 0, 0), PSD_OK);
    do_planned(plan_join("lr", 1, 2, 0));
    cr_assert_not(is_overdue(3999 + FIXTURE_LOST_AFTER_MS));
    cr_assert(is_overdue(4000 + FIXTURE_LOST_AFTER_MS));
}

Test(registry_live, all_silent_workers_of_a_job_are_lost_by_one_command)
{
    now_ms = 100;
    for (uint32_t rank = 0; rank < 20; rank++) {
        run_worker("lr", rank, 20, 0);
    }
    run_worker("other", 0, 1, 0);
    now_ms = 600;
    cr_assert_eq(beat(3, 1, 0), PSD_OK);
    cr_assert(is_overdue(100 + FIXTURE_LOST_AFTER_MS));
    cr_assert_str_eq(command.text,
                     "workers 0, 1, 2, 4, 5, 6, 7, 8 and 11 more of job lr were lost");
    do_planned(PSD_OK);
    cr_assert_eq(ps_job_worker(ps_registry_job(registry, "lr"), 3)->state, PS_WORKER_RUNNING);
    cr_assert_eq(ps_job_worker(ps_registry_job(registry, "lr"), 19)->state, PS_WORKER_LOST);
    cr_assert(is_overdue(100 + FIXTURE_LOST_AFTER_MS));
    cr_assert_str_eq(command.text, "worker 0 of job other was lost; the job has ended");
    do_planned(PSD_OK);
    cr_assert_not(is_overdue(599 + FIXTURE_LOST_AFTER_MS));
    cr_assert(is_overdue(600 + FIXTURE_LOST_AFTER_MS));
    cr_assert_str_eq(command.text, "worker 3 of job lr was lost; the job has ended");
}

Test(registry_live, the_time_that_the_registry_was_late_is_no_silence)
{
    now_ms = 100;
    run_worker("lr", 0, 1, 0);
    ps_registry_forgive(registry, 50, 400);
    cr_assert_not(is_overdue(149 + FIXTURE_LOST_AFTER_MS));
    cr_assert(is_overdue(150 + FIXTURE_LOST_AFTER_MS));
    ps_registry_forgive(registry, 9000, 400); /* nothing was heard in the future */
    cr_assert_not(is_overdue(399 + FIXTURE_LOST_AFTER_MS));
    cr_assert(is_overdue(400 + FIXTURE_LOST_AFTER_MS));
}

Test(registry_live, clocks_near_the_end_of_time_never_wrap)
{
    now_ms = UINT64_MAX - 5;
    run_worker("lr", 0, 1, 0);
    cr_assert_eq(ps_registry_deadline(registry), UINT64_MAX);
    cr_assert_not(is_overdue(UINT64_MAX - 1));
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
