/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry.h: jobs and the lives of their workers. */
#include <criterion/criterion.h>

#include "support/registry_fixture.h"

static psd_error_t *err;
static ps_registry_t *registry;
static ps_command_t command;
static uint64_t now_ms;

static void
do_planned(psd_status_t planned)
{
    cr_assert_eq(
        fixture_do(registry, planned, &command, now_ms, NULL, NULL, err),
        PSD_OK, "%s", psd_error_text(err));
}

static void
make_registry(void)
{
    ps_registry_args_t args = fixture_args();
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n0", 7, 2, shards);
    ps_id_t uuid = fixture_uuid();

    now_ms = 0;
    err = psd_error_new();
    cr_assert_eq(ps_registry_new(&args, &registry, err), PSD_OK);
    do_planned(
        ps_registry_plan_cluster(registry, "psd", &uuid, 1, &command, err));
    do_planned(ps_registry_plan_node(registry, &node, 1, &command, err));
}

static void
drop_registry(void)
{
    ps_command_done(&command);
    ps_registry_destroy(&registry);
    psd_error_destroy(&err);
}

TestSuite(registry_job, .init = make_registry, .fini = drop_registry);

static psd_status_t
plan_join(const char *job, uint32_t worker, uint32_t n, int32_t max_delay)
{
    ps_join_t join = {
        .job = job, .worker = worker, .n_workers = n, .max_delay = max_delay};

    return ps_registry_plan_join(registry, &join, 5, &command, err);
}

static psd_status_t
plan_attach(const char *job, uint32_t worker)
{
    ps_join_t join = {.job = job, .worker = worker, .attach = true};

    return ps_registry_plan_join(registry, &join, 5, &command, err);
}

static psd_status_t
plan_end(uint32_t job, uint32_t worker, ps_worker_state_t state)
{
    return ps_registry_plan_end(registry, job, worker, state, 5, &command, err);
}

static psd_status_t
plan_start(uint32_t job, uint32_t worker)
{
    return ps_registry_plan_start(registry, job, worker, NULL, NULL, 0, 5,
                                  &command, err);
}

static void
assert_refused(psd_status_t got, psd_status_t status, const char *text)
{
    cr_assert_eq(got, status, "%s", psd_error_text(err));
    cr_assert_str_eq(psd_error_text(err), text);
    cr_assert_eq(command.kind, 0);
    psd_error_clear(err);
}

static void
assert_nothing_to_do(psd_status_t got)
{
    cr_assert_eq(got, PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(command.kind, 0);
}

static const ps_worker_t *
worker_of(const char *job, uint32_t worker)
{
    const ps_worker_t *found =
        ps_job_worker(ps_registry_job(registry, job), worker);

    cr_assert_not_null(found);
    return found;
}

/* Joins and starts; 0-based clock. */
static void
run_worker(const char *job, uint32_t worker, uint32_t n, int32_t max_delay)
{
    do_planned(plan_join(job, worker, n, max_delay));
    do_planned(plan_start(ps_registry_job(registry, job)->id, worker));
}

static void
end_worker(const char *job, uint32_t worker, ps_worker_state_t state)
{
    do_planned(plan_end(ps_registry_job(registry, job)->id, worker, state));
}

Test(registry_job, the_first_worker_makes_the_job_with_all_it_counts_on)
{
    const ps_job_t *job = NULL;
    uint32_t n_expected = 0;
    uint64_t created = 0;

    do_planned(plan_join("lr", 1, 3, 2));
    job = ps_registry_job(registry, "lr");
    cr_assert_not_null(job);
    cr_assert_eq(job->id, 1);
    cr_assert_eq(ps_registry_job_by_id(registry, 1), job);
    cr_assert_eq(job->max_delay, 2);
    cr_assert_eq(job->version, 1);
    cr_assert_eq(job->n_workers, 3);
    cr_assert_eq(worker_of("lr", 0)->state, PS_WORKER_EXPECTED);
    cr_assert_eq(worker_of("lr", 1)->state, PS_WORKER_JOINING);
    cr_assert_eq(worker_of("lr", 1)->n_members, 1);
    cr_assert_eq(worker_of("lr", 1)->joins, 1);
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "running");
    cr_assert(ps_registry_job_facts(registry, 1, &n_expected, &created));
    cr_assert_eq(n_expected, 3);
    cr_assert_eq(created, 5);
    cr_assert_eq(ps_registry_epoch(registry), 1, "jobs are not on the map");
}

Test(registry_job, every_change_grows_the_version)
{
    do_planned(plan_join("lr", 0, 2, 0));
    cr_assert_eq(ps_registry_job(registry, "lr")->version, 1);
    do_planned(plan_start(1, 0));
    cr_assert_eq(ps_registry_job(registry, "lr")->version, 2);
    do_planned(plan_join("lr", 1, 2, 0));
    cr_assert_eq(ps_registry_job(registry, "lr")->version, 3);
}

Test(registry_job, wrong_joins_are_refused)
{
    assert_refused(plan_join("a/b", 0, 1, 0), PSD_INVALID,
                   "job is \"a/b\"; allowed: 1..63 of letters, digits, \"_\", "
                   "\".\", \"-\"");
    assert_refused(plan_join("lr", 4096, 1, 0), PSD_INVALID,
                   "worker is 4096; allowed: 0..4095");
    assert_refused(plan_join("lr", 0, 0, 0), PSD_INVALID,
                   "workers is 0; allowed: 1..4096");
    assert_refused(plan_join("lr", 0, 4097, 0), PSD_INVALID,
                   "workers is 4097; allowed: 1..4096");
}

Test(registry_job, a_rank_runs_once)
{
    do_planned(plan_join("lr", 0, 2, 0));
    assert_refused(plan_join("lr", 0, 2, 0), PSD_WORKER_EXISTS,
                   "worker 0 of job lr is joining already");
    do_planned(plan_start(1, 0));
    assert_refused(plan_join("lr", 0, 2, 0), PSD_WORKER_EXISTS,
                   "worker 0 of job lr is running already");
}

Test(registry_job, all_workers_agree_on_the_job)
{
    do_planned(plan_join("lr", 0, 2, 0));
    assert_refused(plan_join("lr", 1, 2, 1), PSD_JOB_MISMATCH,
                   "job \"lr\" runs with max_delay 0 and workers 2, not 1 and "
                   "2");
    assert_refused(plan_join("lr", 1, 3, 0), PSD_JOB_MISMATCH,
                   "job \"lr\" runs with max_delay 0 and workers 2, not 0 and "
                   "3");
}

Test(registry_job, a_rank_that_nobody_counted_on_may_come)
{
    do_planned(plan_join("lr", 9, 1, 0));
    do_planned(plan_join("lr", 4, 1, 0));
    cr_assert_eq(ps_registry_job(registry, "lr")->n_workers, 3);
    cr_assert_eq(ps_registry_job(registry, "lr")->workers[1].worker, 4);
    cr_assert_eq(worker_of("lr", 4)->state, PS_WORKER_JOINING);
    cr_assert_eq(worker_of("lr", 9)->state, PS_WORKER_JOINING);
    cr_assert_eq(worker_of("lr", 0)->state, PS_WORKER_EXPECTED);
}

Test(registry_job, running_jobs_are_limited)
{
    char name[16];

    for (int i = 0; i < FIXTURE_JOBS_MAX; i++) {
        (void)snprintf(name, sizeof name, "j%d", i);
        do_planned(plan_join(name, 0, 1, 0));
    }
    assert_refused(plan_join("more", 0, 1, 0), PSD_LIMIT,
                   "4 jobs are running; allowed: 4");
    end_worker("j0", 0, PS_WORKER_LOST);
    do_planned(plan_join("more", 0, 1, 0));
}

Test(registry_job, expected_workers_start_at_clock_0_however_late_they_come)
{
    /* The others were held at clock 0 for them: to begin behind those who
     * finished clock 1 would leave out what they were to push in it, and two
     * runs of one job would differ. */
    static const int32_t delays[] = {0, 3, -1};
    uint32_t ranks[] = {0};
    uint64_t clocks[] = {1};

    for (int i = 0; i < 3; i++) {
        char name[16];
        uint32_t id = 0;

        (void)snprintf(name, sizeof name, "j%d", i);
        run_worker(name, 0, 2, delays[i]);
        do_planned(plan_join(name, 1, 2, delays[i]));
        id = ps_registry_job(registry, name)->id;
        do_planned(ps_registry_plan_start(registry, id, 1, ranks, clocks, 1, 5,
                                          &command, err));
        cr_assert_eq(worker_of(name, 1)->state, PS_WORKER_RUNNING);
        cr_assert_eq(worker_of(name, 1)->start, 0);
    }
}

Test(registry_job, a_late_worker_of_bsp_starts_behind_the_highest_clock)
{
    uint32_t ranks[] = {0, 1, 2};
    uint64_t clocks[] = {10, 12, 11};

    run_worker("lr", 0, 3, 0);
    run_worker("lr", 1, 3, 0);
    run_worker("lr", 2, 3, 0);
    end_worker("lr", 1, PS_WORKER_LOST); /* what it finished counts too */
    do_planned(plan_join("lr", 7, 3, 0));
    do_planned(ps_registry_plan_start(registry, 1, 7, ranks, clocks, 3, 5,
                                      &command, err));
    cr_assert_eq(worker_of("lr", 7)->start, 12);
}

Test(registry_job, a_late_worker_of_ssp_and_asp_starts_at_the_slowest_live_one)
{
    static const int32_t delays[] = {5, -1};
    uint32_t ranks[] = {0, 1, 2};
    uint64_t clocks[] = {10, 3, 9};

    for (int i = 0; i < 2; i++) {
        char name[16];
        uint32_t id = 0;

        (void)snprintf(name, sizeof name, "j%d", i);
        for (uint32_t worker = 0; worker < 3; worker++) {
            run_worker(name, worker, 3, delays[i]);
        }
        end_worker(name, 1, PS_WORKER_LOST); /* holds nobody any more */
        id = ps_registry_job(registry, name)->id;
        do_planned(plan_join(name, 7, 3, delays[i]));
        do_planned(ps_registry_plan_start(registry, id, 7, ranks, clocks, 3, 5,
                                          &command, err));
        cr_assert_eq(worker_of(name, 7)->start, 9);
    }
}

Test(registry_job, who_says_no_clock_is_at_its_own_start)
{
    uint32_t ranks[] = {0};
    uint64_t clocks[] = {20};

    run_worker("lr", 0, 1, 4);
    do_planned(plan_join("lr", 5, 1, 4));
    do_planned(ps_registry_plan_start(registry, 1, 5, ranks, clocks, 1, 5,
                                      &command, err));
    cr_assert_eq(worker_of("lr", 5)->start, 20);
    end_worker("lr", 0, PS_WORKER_FINISHED);
    do_planned(plan_join("lr", 6, 1, 4));
    do_planned(plan_start(1, 6));
    cr_assert_eq(worker_of("lr", 6)->start, 20);
}

Test(registry_job, an_expected_worker_holds_the_start_of_a_late_one)
{
    uint32_t ranks[] = {0};
    uint64_t clocks[] = {4};

    run_worker("lr", 0, 2, 4);
    do_planned(plan_join("lr", 5, 2, 4));
    do_planned(ps_registry_plan_start(registry, 1, 5, ranks, clocks, 1, 5,
                                      &command, err));
    cr_assert_eq(worker_of("lr", 5)->start, 0, "worker 1 is still at 0");
}

Test(registry_job, one_that_never_came_and_comes_late_is_late)
{
    uint32_t ranks[] = {0};
    uint64_t clocks[] = {8};

    run_worker("lr", 0, 2, 0);
    end_worker("lr", 1, PS_WORKER_LOST);
    do_planned(plan_join("lr", 1, 2, 0));
    do_planned(ps_registry_plan_start(registry, 1, 1, ranks, clocks, 1, 5,
                                      &command, err));
    cr_assert_eq(worker_of("lr", 1)->start, 8);
}

Test(registry_job, start_wants_one_that_joins)
{
    assert_refused(plan_start(1, 0), PSD_NO_JOB, "job number 1 does not exist");
    do_planned(plan_join("lr", 0, 2, 0));
    assert_refused(plan_start(1, 1), PSD_NO_WORKER,
                   "worker 1 of job lr is expected");
    assert_refused(plan_start(1, 2), PSD_NO_WORKER, "job lr has no worker 2");
    do_planned(plan_start(1, 0));
    assert_nothing_to_do(plan_start(1, 0));
    do_planned(plan_join("lr", 1, 2, 0));
    end_worker("lr", 1, PS_WORKER_LOST);
    assert_refused(plan_start(1, 1), PSD_WORKER_LOST,
                   "worker 1 of job lr was declared lost while it joined");
}

Test(registry_job, a_running_worker_gets_more_clients)
{
    run_worker("lr", 0, 2, 0);
    do_planned(plan_attach("lr", 0));
    cr_assert_eq(worker_of("lr", 0)->n_members, 2);
    for (int i = 2; i < PS_MEMBERS_MAX; i++) {
        do_planned(plan_attach("lr", 0));
    }
    assert_refused(plan_attach("lr", 0), PSD_LIMIT,
                   "worker 0 of job lr has 256 clients; allowed: 256");
    assert_refused(plan_attach("lr", 1), PSD_NO_WORKER,
                   "worker 1 of job lr is expected, not running");
    assert_refused(plan_attach("lr", 2), PSD_NO_WORKER,
                   "worker 2 of job lr is unknown, not running");
    assert_refused(plan_attach("rl", 2), PSD_NO_JOB,
                   "job \"rl\" does not exist");
    end_worker("lr", 1, PS_WORKER_LOST);
    assert_refused(plan_attach("lr", 1), PSD_WORKER_LOST,
                   "worker 1 of job lr was declared lost");
    do_planned(ps_registry_plan_stop(registry, "lr", 5, &command, err));
    assert_refused(plan_attach("lr", 0), PSD_JOB_STOPPED,
                   "job \"lr\" was stopped");
}

Test(registry_job, a_worker_ends_once)
{
    run_worker("lr", 0, 2, 0);
    do_planned(plan_join("lr", 1, 2, 0));
    assert_refused(plan_end(1, 1, PS_WORKER_FINISHED), PSD_NO_WORKER,
                   "worker 1 of job lr is joining");
    assert_refused(plan_end(1, 0, PS_WORKER_RUNNING), PSD_INVALID,
                   "a worker ends as finished or lost, not as running");
    assert_refused(plan_end(2, 0, PS_WORKER_LOST), PSD_NO_JOB,
                   "job number 2 does not exist");
    end_worker("lr", 0, PS_WORKER_FINISHED);
    assert_nothing_to_do(plan_end(1, 0, PS_WORKER_FINISHED));
    assert_nothing_to_do(plan_end(1, 0, PS_WORKER_LOST));
    end_worker("lr", 1, PS_WORKER_LOST);
    assert_nothing_to_do(plan_end(1, 1, PS_WORKER_LOST));
    assert_refused(plan_end(1, 1, PS_WORKER_FINISHED), PSD_WORKER_LOST,
                   "worker 1 of job lr was declared lost");
}

Test(registry_job, an_ended_rank_may_join_again_while_others_run)
{
    run_worker("lr", 0, 2, 0);
    run_worker("lr", 1, 2, 0);
    do_planned(plan_attach("lr", 1));
    end_worker("lr", 1, PS_WORKER_LOST);
    do_planned(plan_join("lr", 1, 2, 0));
    cr_assert_eq(ps_registry_n_jobs(registry), 1, "it is the same job");
    cr_assert_eq(worker_of("lr", 1)->joins, 2);
    cr_assert_eq(worker_of("lr", 1)->n_members, 1);
}

Test(registry_job, the_end_of_a_job_says_how_it_ended)
{
    run_worker("good", 0, 1, 0);
    run_worker("bad", 0, 2, 0);
    run_worker("bad", 1, 2, 0);
    end_worker("good", 0, PS_WORKER_FINISHED);
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "finished");
    end_worker("bad", 0, PS_WORKER_LOST);
    cr_assert_str_eq(ps_registry_job_state(registry, 2), "running");
    end_worker("bad", 1, PS_WORKER_FINISHED);
    cr_assert_str_eq(ps_registry_job_state(registry, 2), "lost");
}

Test(registry_job, the_name_of_an_ended_job_is_free)
{
    run_worker("lr", 0, 1, 0);
    end_worker("lr", 0, PS_WORKER_FINISHED);
    do_planned(plan_join("lr", 0, 2, 3)); /* with other settings, too */
    cr_assert_eq(ps_registry_n_jobs(registry), 2);
    cr_assert_eq(ps_registry_job(registry, "lr")->id, 2, "the newest wins");
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "finished");
    cr_assert_eq(worker_of("lr", 0)->joins, 1);
}

Test(registry_job, a_stopped_job_takes_nobody_until_it_has_ended)
{
    run_worker("lr", 0, 3, 0);
    run_worker("lr", 1, 3, 0);
    do_planned(ps_registry_plan_stop(registry, "lr", 5, &command, err));
    cr_assert(ps_registry_job(registry, "lr")->stopped);
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "stopped");
    cr_assert_eq(worker_of("lr", 2)->state, PS_WORKER_LOST, "it never came");
    cr_assert_eq(worker_of("lr", 0)->state, PS_WORKER_RUNNING);
    assert_nothing_to_do(
        ps_registry_plan_stop(registry, "lr", 5, &command, err));
    assert_refused(plan_join("lr", 2, 3, 0), PSD_JOB_STOPPED,
                   "job \"lr\" was stopped and has workers that still run");
    end_worker("lr", 0, PS_WORKER_FINISHED);
    end_worker("lr", 1, PS_WORKER_LOST);
    do_planned(plan_join("lr", 2, 3, 0));
    cr_assert_eq(ps_registry_job(registry, "lr")->id, 2);
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "stopped");
}

Test(registry_job, only_a_running_job_can_be_stopped)
{
    assert_refused(ps_registry_plan_stop(registry, "lr", 5, &command, err),
                   PSD_NO_JOB, "job \"lr\" does not exist");
    run_worker("lr", 0, 1, 0);
    end_worker("lr", 0, PS_WORKER_FINISHED);
    assert_nothing_to_do(
        ps_registry_plan_stop(registry, "lr", 5, &command, err));
}

Test(registry_job, a_restart_loses_all_live_workers_of_all_jobs)
{
    run_worker("a", 0, 3, 0);
    run_worker("a", 1, 3, 0);
    end_worker("a", 1, PS_WORKER_FINISHED);
    run_worker("b", 0, 1, 0);
    run_worker("c", 0, 1, 0);
    end_worker("c", 0, PS_WORKER_FINISHED);
    do_planned(ps_registry_plan_restart(registry, 5, &command, err));
    do_planned(ps_registry_plan_restart(registry, 5, &command, err));
    assert_nothing_to_do(ps_registry_plan_restart(registry, 5, &command, err));
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "lost");
    cr_assert_str_eq(ps_registry_job_state(registry, 2), "lost");
    cr_assert_str_eq(ps_registry_job_state(registry, 3), "finished");
    cr_assert_eq(worker_of("a", 1)->state, PS_WORKER_FINISHED);
    cr_assert_eq(worker_of("a", 2)->state, PS_WORKER_LOST);
}

Test(registry_job, the_jobs_that_ended_last_are_remembered)
{
    run_worker("long", 0, 1, 0);
    for (int i = 0; i < PS_JOBS_ENDED_MAX + 10; i++) {
        run_worker("short", 0, 1, 0);
        end_worker("short", 0, PS_WORKER_FINISHED);
    }
    cr_assert_eq(ps_registry_n_jobs(registry), PS_JOBS_ENDED_MAX + 1);
    cr_assert_null(ps_registry_job_by_id(registry, 2));
    end_worker("long", 0, PS_WORKER_FINISHED);
    cr_assert_eq(ps_registry_n_jobs(registry), PS_JOBS_ENDED_MAX);
    cr_assert_not_null(ps_registry_job(registry, "long"),
                       "the oldest job has ended last");
}

/* Tables of a job */

static void
make_table(const char *name)
{
    ps_table_spec_t spec = fixture_spec(name);

    do_planned(ps_registry_plan_table(registry, &spec, 3, &command, err));
}

static psd_status_t
plan_open(uint32_t job, uint32_t table)
{
    return ps_registry_plan_job_table(registry, job, table, 5, &command, err);
}

Test(registry_job, tables_are_listed_in_the_order_of_opening)
{
    const uint32_t *tables = NULL;

    make_table("a");
    make_table("b");
    run_worker("lr", 0, 1, 0);
    do_planned(plan_open(1, 2));
    do_planned(plan_open(1, 1));
    cr_assert_eq(ps_registry_job_tables(registry, 1, &tables), 2);
    cr_assert_eq(tables[0], 2);
    cr_assert_eq(tables[1], 1);
    cr_assert_eq(ps_registry_job(registry, "lr")->version, 4);
    assert_nothing_to_do(plan_open(1, 2));
}

Test(registry_job, a_change_of_workers_keeps_the_tables)
{
    const uint32_t *tables = NULL;

    make_table("a");
    run_worker("lr", 0, 2, 0);
    do_planned(plan_open(1, 1));
    run_worker("lr", 1, 2, 0);
    cr_assert_eq(ps_registry_job_tables(registry, 1, &tables), 1);
    cr_assert_eq(tables[0], 1);
}

Test(registry_job, a_dropped_table_is_no_longer_open)
{
    const uint32_t *tables = NULL;
    uint64_t version = 0;

    make_table("a");
    make_table("b");
    run_worker("lr", 0, 1, 0);
    do_planned(plan_open(1, 1));
    do_planned(plan_open(1, 2));
    version = ps_registry_job(registry, "lr")->version;
    do_planned(ps_registry_plan_drop(registry, "a", 5, &command, err));
    cr_assert_eq(ps_registry_job_tables(registry, 1, &tables), 1);
    cr_assert_eq(tables[0], 2);
    cr_assert_eq(ps_registry_job(registry, "lr")->version, version + 1);
}

Test(registry_job, wrong_openings_are_refused)
{
    assert_refused(plan_open(1, 1), PSD_NO_JOB, "job number 1 does not exist");
    run_worker("lr", 0, 1, 0);
    assert_refused(plan_open(1, 1), PSD_NO_TABLE,
                   "table number 1 does not exist");
    make_table("a");
    do_planned(ps_registry_plan_stop(registry, "lr", 5, &command, err));
    assert_refused(plan_open(1, 1), PSD_JOB_STOPPED, "job \"lr\" was stopped");
}

/* Signs of life */

static psd_status_t
beat(uint32_t worker, uint32_t joins, uint64_t clock)
{
    return ps_registry_heartbeat(registry, 1, worker, joins, clock, now_ms,
                                 err);
}

Test(registry_job, silence_makes_a_worker_overdue)
{
    uint32_t job = 0;
    uint32_t worker = 0;

    now_ms = 100;
    run_worker("lr", 0, 1, 0);
    cr_assert_eq(ps_registry_deadline(registry), 100 + FIXTURE_LOST_AFTER_MS);
    now_ms = 600;
    cr_assert_eq(beat(0, 1, 3), PSD_OK);
    cr_assert_eq(ps_registry_deadline(registry), 600 + FIXTURE_LOST_AFTER_MS);
    cr_assert_not(ps_registry_overdue(registry, 599 + FIXTURE_LOST_AFTER_MS,
                                      &job, &worker));
    cr_assert(ps_registry_overdue(registry, 600 + FIXTURE_LOST_AFTER_MS, &job,
                                  &worker));
    cr_assert_eq(job, 1);
    cr_assert_eq(worker, 0);
    end_worker("lr", 0, PS_WORKER_LOST);
    cr_assert_not(ps_registry_overdue(registry, UINT64_MAX, &job, &worker));
    cr_assert_eq(ps_registry_deadline(registry), UINT64_MAX);
}

Test(registry_job, expected_workers_have_longer_to_come)
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
    cr_assert(ps_registry_overdue(registry, 100 + FIXTURE_JOIN_WITHIN_MS, &job,
                                  &worker));
    cr_assert_eq(worker, 1);
}

Test(registry_job, joining_begins_a_new_wait)
{
    uint32_t job = 0;
    uint32_t worker = 0;

    run_worker("lr", 0, 2, 0);
    now_ms = 4000;
    cr_assert_eq(beat(0, 0, 0), PSD_OK);
    do_planned(plan_join("lr", 1, 2, 0));
    cr_assert_not(ps_registry_overdue(registry, 3999 + FIXTURE_LOST_AFTER_MS,
                                      &job, &worker));
    cr_assert(ps_registry_overdue(registry, 4000 + FIXTURE_LOST_AFTER_MS, &job,
                                  &worker));
}

Test(registry_job, clocks_near_the_end_of_time_never_wrap)
{
    uint32_t job = 0;
    uint32_t worker = 0;

    now_ms = UINT64_MAX - 5;
    run_worker("lr", 0, 1, 0);
    cr_assert_eq(ps_registry_deadline(registry), UINT64_MAX);
    cr_assert_not(ps_registry_overdue(registry, UINT64_MAX - 1, &job, &worker));
}

Test(registry_job, heartbeats_are_remembered_and_belong_to_one_life)
{
    uint64_t seen_ms = 0;
    uint64_t clock = 0;

    run_worker("lr", 0, 2, 0);
    run_worker("lr", 1, 2, 0);
    cr_assert_not(ps_registry_last_seen(registry, 1, 0, &seen_ms, &clock));
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

Test(registry_job, heartbeats_of_who_is_not_there_are_refused)
{
    cr_assert_eq(beat(0, 0, 0), PSD_NO_JOB);
    psd_error_clear(err);
    run_worker("lr", 0, 2, 0);
    assert_refused(beat(1, 0, 0), PSD_NO_WORKER,
                   "worker 1 of job lr is expected");
    assert_refused(beat(2, 0, 0), PSD_NO_WORKER, "job lr has no worker 2");
    assert_refused(beat(0, 2, 0), PSD_WORKER_LOST,
                   "worker 0 of job lr was declared lost");
    do_planned(plan_join("lr", 1, 2, 0));
    cr_assert_eq(beat(1, 1, 0), PSD_OK, "joining is life");
    end_worker("lr", 0, PS_WORKER_FINISHED);
    cr_assert_eq(beat(0, 1, 0), PSD_OK, "one that has finished is not minded");
    end_worker("lr", 1, PS_WORKER_LOST);
    assert_refused(beat(1, 1, 0), PSD_WORKER_LOST,
                   "worker 1 of job lr was declared lost");
}
