/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry/registry.h: jobs and the lives of their workers. */
#include "support/registry_test.h"

TestSuite(registry_job, .init = make_registry_with_node, .fini = drop_registry);

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

/* The workers that the command of a plan names. */
static void assert_names(psd_status_t planned, const char *ranks)
{
    char named[64] = "";

    cr_assert_eq(planned, PSD_OK, "%s", psd_error_text(err));
    for (size_t i = 0; i < command.job.n_workers && i < 9; i++) {
        size_t length = strlen(named);

        (void)snprintf(named + length, sizeof named - length, "%u ", command.job.workers[i].worker);
    }
    cr_expect_str_eq(named, ranks);
    do_planned(planned);
}

Test(registry_job, a_command_names_the_workers_that_it_changes)
{
    assert_names(plan_join("lr", 1, 4, 2), "0 1 2 3 ");
    assert_names(plan_start(1, 1), "1 ");
    assert_names(plan_join("lr", 9, 4, 2), "9 ");
    assert_names(plan_attach("lr", 1), "1 ");
    assert_names(plan_end(1, 1, PS_WORKER_FINISHED), "1 ");
    assert_names(ps_registry_plan_give_up(registry, 1, 9, 5, &command, err), "9 ");
    cr_expect_eq(ps_registry_job(registry, "lr")->n_workers, 5);
    cr_expect_eq(worker_of("lr", 1)->state, PS_WORKER_FINISHED);
    cr_expect_eq(worker_of("lr", 2)->state, PS_WORKER_EXPECTED);
    assert_names(ps_registry_plan_stop(registry, "lr", 5, &command, err), "0 2 3 ");
    cr_expect_str_eq(ps_registry_job_state(registry, 1), "stopped");
    assert_names(plan_join("svm", 0, 3, 2), "0 1 2 ");
    assert_names(ps_registry_plan_give_up(registry, 2, 0, 5, &command, err), "0 1 2 ");
    /* All members of the registry know that from this machine version on. */
    registry->cluster.sm_version = 3;
    assert_names(plan_join("mf", 0, 3, 2), "0 1 2 ");
    assert_names(plan_start(3, 0), "0 1 2 ");
    assert_names(ps_registry_plan_silent(registry, UINT32_MAX, 5, &command, err), "0 1 2 ");
}

Test(registry_job, what_changed_since_a_version)
{
    static const struct {
        uint64_t since;
        const char *ranks;
    } ROWS[] = {{0, "0 1 2 3 "}, {1, "1 3 "}, {2, "1 3 "}, {3, "3 "}, {4, ""}, {9, ""}};
    ps_job_t job = {0};

    assert_names(plan_join("lr", 1, 4, 2), "0 1 2 3 ");
    assert_names(plan_join("lr", 3, 4, 2), "3 ");
    assert_names(plan_start(1, 1), "1 ");
    assert_names(plan_start(1, 3), "3 ");
    cr_assert_not(ps_registry_job_changes(registry, 2, 0, &job), "there is no job 2");
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        char named[64] = "";

        cr_assert(ps_registry_job_changes(registry, 1, ROWS[i].since, &job));
        cr_expect_eq(job.version, 4);
        for (size_t k = 0; k < job.n_workers; k++) {
            size_t length = strlen(named);

            (void)snprintf(named + length, sizeof named - length, "%u ", job.workers[k].worker);
        }
        cr_expect_str_eq(named, ROWS[i].ranks, "since %d", (int)ROWS[i].since);
        ps_job_done(&job);
    }
}

Test(registry_job, wrong_joins_are_refused)
{
    assert_refused(plan_join("a/b", 0, 1, 0), PSD_INVALID,
                   "job is \"a/b\"; allowed: 1..63 of letters, digits, \"_\", "
                   "\".\", \"-\"");
    assert_refused(plan_join("lr", 4096, 1, 0), PSD_INVALID, "worker is 4096; allowed: 0..4095");
    assert_refused(plan_join("lr", 0, 0, 0), PSD_INVALID, "workers is 0; allowed: 1..4096");
    assert_refused(plan_join("lr", 0, 4097, 0), PSD_INVALID, "workers is 4097; allowed: 1..4096");
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
    assert_refused(plan_join("more", 0, 1, 0), PSD_LIMIT, "4 jobs are running; allowed: 4");
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
        do_planned(ps_registry_plan_start(registry, id, 1, ranks, clocks, 1, 5, &command, err));
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
    do_planned(ps_registry_plan_start(registry, 1, 7, ranks, clocks, 3, 5, &command, err));
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
        do_planned(ps_registry_plan_start(registry, id, 7, ranks, clocks, 3, 5, &command, err));
        cr_assert_eq(worker_of(name, 7)->start, 9);
    }
}

Test(registry_job, who_says_no_clock_is_at_its_own_start)
{
    uint32_t ranks[] = {0};
    uint64_t clocks[] = {20};

    run_worker("lr", 0, 1, 4);
    do_planned(plan_join("lr", 5, 1, 4));
    do_planned(ps_registry_plan_start(registry, 1, 5, ranks, clocks, 1, 5, &command, err));
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
    do_planned(ps_registry_plan_start(registry, 1, 5, ranks, clocks, 1, 5, &command, err));
    cr_assert_eq(worker_of("lr", 5)->start, 0, "worker 1 is still at 0");
}

Test(registry_job, one_that_never_came_and_comes_late_is_late)
{
    uint32_t ranks[] = {0};
    uint64_t clocks[] = {8};

    run_worker("lr", 0, 2, 0);
    end_worker("lr", 1, PS_WORKER_LOST);
    do_planned(plan_join("lr", 1, 2, 0));
    do_planned(ps_registry_plan_start(registry, 1, 1, ranks, clocks, 1, 5, &command, err));
    cr_assert_eq(worker_of("lr", 1)->start, 8);
}

Test(registry_job, start_wants_one_that_joins)
{
    assert_refused(plan_start(1, 0), PSD_NO_JOB, "job number 1 does not exist");
    do_planned(plan_join("lr", 0, 2, 0));
    assert_refused(plan_start(1, 1), PSD_NO_WORKER, "worker 1 of job lr is expected");
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
    assert_refused(plan_attach("rl", 2), PSD_NO_JOB, "job \"rl\" does not exist");
    end_worker("lr", 1, PS_WORKER_LOST);
    assert_refused(plan_attach("lr", 1), PSD_WORKER_LOST, "worker 1 of job lr was declared lost");
    do_planned(ps_registry_plan_stop(registry, "lr", 5, &command, err));
    assert_refused(plan_attach("lr", 0), PSD_JOB_STOPPED, "job \"lr\" was stopped");
}

Test(registry_job, a_worker_ends_once)
{
    run_worker("lr", 0, 2, 0);
    do_planned(plan_join("lr", 1, 2, 0));
    assert_refused(plan_end(1, 1, PS_WORKER_FINISHED), PSD_NO_WORKER,
                   "worker 1 of job lr is joining");
    assert_refused(plan_end(1, 0, PS_WORKER_RUNNING), PSD_INVALID,
                   "a worker ends as finished or lost, not as running");
    assert_refused(plan_end(2, 0, PS_WORKER_LOST), PSD_NO_JOB, "job number 2 does not exist");
    end_worker("lr", 0, PS_WORKER_FINISHED);
    assert_nothing_to_do(plan_end(1, 0, PS_WORKER_FINISHED));
    assert_nothing_to_do(plan_end(1, 0, PS_WORKER_LOST));
    end_worker("lr", 1, PS_WORKER_LOST);
    assert_nothing_to_do(plan_end(1, 1, PS_WORKER_LOST));
    assert_refused(plan_end(1, 1, PS_WORKER_FINISHED), PSD_WORKER_LOST,
                   "worker 1 of job lr was declared lost");
}

static psd_status_t plan_give_up(uint32_t job, uint32_t worker)
{
    return ps_registry_plan_give_up(registry, job, worker, 5, &command, err);
}

/* Who came first to a job that all had given up was alone in it. */
Test(registry_job, a_job_that_all_give_up_has_ended)
{
    run_worker("lr", 0, 3, 0);
    do_planned(plan_join("lr", 1, 3, 0));
    do_planned(plan_give_up(1, 1));
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "running", "worker 0 is in it");
    do_planned(plan_give_up(1, 0));
    cr_assert_str_neq(ps_registry_job_state(registry, 1), "running");
    assert_nothing_to_do(plan_give_up(1, 0));
    do_planned(plan_join("lr", 2, 3, 0));
    cr_assert_eq(ps_registry_job(registry, "lr")->id, 2);
    cr_assert_eq(worker_of("lr", 0)->state, PS_WORKER_EXPECTED);
}

Test(registry_job, who_was_lost_may_give_a_job_up)
{
    run_worker("lr", 0, 2, 0);
    end_worker("lr", 0, PS_WORKER_LOST);
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "running");
    do_planned(plan_give_up(1, 0));
    cr_assert_str_neq(ps_registry_job_state(registry, 1), "running");
}

Test(registry_job, a_job_that_somebody_finished_is_not_given_up)
{
    run_worker("lr", 0, 3, 0);
    run_worker("lr", 1, 3, 0);
    end_worker("lr", 1, PS_WORKER_FINISHED);
    do_planned(plan_give_up(1, 0));
    cr_assert_eq(worker_of("lr", 2)->state, PS_WORKER_EXPECTED);
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "running");
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
    assert_nothing_to_do(ps_registry_plan_stop(registry, "lr", 5, &command, err));
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
    assert_refused(ps_registry_plan_stop(registry, "lr", 5, &command, err), PSD_NO_JOB,
                   "job \"lr\" does not exist");
    run_worker("lr", 0, 1, 0);
    end_worker("lr", 0, PS_WORKER_FINISHED);
    assert_nothing_to_do(ps_registry_plan_stop(registry, "lr", 5, &command, err));
}

Test(registry_job, a_loss_of_rows_ends_the_jobs_that_used_them)
{
    uint32_t table = make_table("w", 1)->id;
    ps_job_t *job = NULL;

    do_planned(ps_registry_plan_sessions(registry, 10, 5, &command, err));
    cr_assert_eq(ps_registry_take_session(registry), 1);
    run_worker("a", 0, 3, 0);
    run_worker("a", 1, 3, 0);
    end_worker("a", 1, PS_WORKER_FINISHED);
    run_worker("b", 0, 1, 0);
    do_planned(ps_registry_plan_job_table(registry, 1, table, 5, &command, err));
    assert_nothing_to_do(ps_registry_plan_loss(registry, 5, &command, err));
    start_node("n0", 8, 2);
    cr_assert(ps_registry_table(registry, "w")->rows_lost);
    cr_assert_eq(ps_registry_table(registry, "w")->lost_sessions, 10);
    do_planned(ps_registry_plan_loss(registry, 5, &command, err));
    assert_nothing_to_do(ps_registry_plan_loss(registry, 5, &command, err));
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "lost");
    cr_assert_str_eq(ps_registry_job_state(registry, 2), "running", "it did not use them");
    job = (ps_job_t *)ps_registry_job(registry, "a");
    cr_assert_eq(ps_job_worker(job, 1)->state, PS_WORKER_FINISHED);
    cr_assert_eq(ps_job_worker(job, 2)->state, PS_WORKER_LOST);
    cr_assert_str_eq(job->lost_table, "w");
    cr_assert_eq(job->lost_sessions, 10);
    cr_assert_str_eq(ps_registry_job(registry, "b")->lost_table, "");
}

/* Rows that were gone before it began are no loss of its. */
Test(registry_job, a_later_job_may_use_a_table_that_has_lost_rows)
{
    uint32_t table = make_table("w", 1)->id;

    start_node("n0", 8, 2);
    run_worker("a", 0, 1, 0);
    do_planned(ps_registry_plan_job_table(registry, 1, table, 5, &command, err));
    assert_nothing_to_do(ps_registry_plan_loss(registry, 5, &command, err));
}

/* It was there before, and used other tables: the loss was none of its. */
Test(registry_job, a_table_may_be_opened_behind_its_loss)
{
    uint32_t table = make_table("w", 1)->id;

    run_worker("a", 0, 1, 0);
    start_node("n0", 8, 2);
    cr_assert(ps_registry_table(registry, "w")->rows_lost);
    assert_nothing_to_do(ps_registry_plan_loss(registry, 5, &command, err));
    do_planned(ps_registry_plan_job_table(registry, 1, table, 5, &command, err));
    start_node("n1", 9, 2); /* any node joins: nothing is lost */
    assert_nothing_to_do(ps_registry_plan_loss(registry, 5, &command, err));
    start_node("n0", 10, 2); /* lost once more: now it is its loss */
    do_planned(ps_registry_plan_loss(registry, 5, &command, err));
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "lost");
}

/* The word to a job could not be stored before another opened the table. */
Test(registry_job, who_is_not_told_yet_is_not_forgotten)
{
    uint32_t table = make_table("w", 1)->id;

    run_worker("a", 0, 1, 0);
    run_worker("b", 0, 1, 0);
    do_planned(ps_registry_plan_job_table(registry, 1, table, 5, &command, err));
    start_node("n0", 8, 2);
    do_planned(ps_registry_plan_job_table(registry, 2, table, 5, &command, err));
    do_planned(ps_registry_plan_loss(registry, 5, &command, err));
    cr_assert_str_eq(ps_registry_job_state(registry, 1), "lost");
}

/* Sessions that were given out before the loss, by a start or a removal, are
 * old; what comes is not. */
Test(registry_job, a_forced_removal_makes_sessions_old)
{
    start_node("n1", 8, 2);
    do_planned(ps_registry_plan_sessions(registry, 10, 5, &command, err));
    (void)make_table("w", 4);
    cr_assert_eq(ps_registry_take_session(registry), 1);
    ps_registry_set_node_up(registry, 8, false, 1);
    do_planned(
        ps_registry_plan_node_state(registry, "n1", PS_NODE_REMOVED, true, 5, &command, err));
    cr_assert(ps_registry_table(registry, "w")->rows_lost);
    cr_assert_eq(ps_registry_table(registry, "w")->lost_sessions, 10);
    cr_assert_eq(ps_registry_take_session(registry), 0);
    do_planned(ps_registry_plan_sessions(registry, 10, 5, &command, err));
    cr_assert_eq(ps_registry_take_session(registry), 11);
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
    cr_assert_not_null(ps_registry_job(registry, "long"), "the oldest job has ended last");
}

/* ---- what becomes of a clock's pushes ---- */

static psd_status_t plan_set(const char *name, ps_combine_t combine)
{
    return ps_registry_plan_set(registry, name, combine, 5, &command, err);
}

Test(registry_job, a_table_in_use_keeps_what_it_combines)
{
    uint32_t table = make_table("w", 1)->id;
    uint64_t revision = ps_registry_table(registry, "w")->revision;

    assert_refused(plan_set("v", PS_COMBINE_EACH), PSD_NO_TABLE, "table \"v\" does not exist");
    assert_nothing_to_do(plan_set("w", PS_COMBINE_EACH));
    do_planned(plan_set("w", PS_COMBINE_CLOCK_SUM));
    cr_assert_eq(ps_registry_table(registry, "w")->spec.combine, PS_COMBINE_CLOCK_SUM);
    cr_assert_gt(ps_registry_table(registry, "w")->revision, revision, "nodes are told");
    run_worker("a", 0, 1, 0);
    do_planned(plan_set("w", PS_COMBINE_EACH)); /* it has not opened it */
    do_planned(ps_registry_plan_job_table(registry, 1, table, 5, &command, err));
    assert_refused(plan_set("w", PS_COMBINE_CLOCK_MEAN), PSD_BUSY,
                   "table w is open in job a, of which worker 0 is running; its clock may have "
                   "pushes");
    cr_assert_eq(ps_registry_table(registry, "w")->spec.combine, PS_COMBINE_EACH);
    end_worker("a", 0, PS_WORKER_FINISHED);
    do_planned(plan_set("w", PS_COMBINE_CLOCK_MEAN));
    cr_assert_eq(ps_registry_table(registry, "w")->spec.combine, PS_COMBINE_CLOCK_MEAN);
}

Test(registry_job, what_the_updater_does_not_take_is_not_set)
{
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    (void)snprintf(spec.name, sizeof spec.name, "w");
    spec.n_rows = 10;
    cr_assert_eq(ps_updater_spec_parse("dcasgd", &spec.updater, NULL), PSD_OK);
    do_planned(ps_registry_plan_table(registry, &spec, 5, &command, err));
    cr_assert_eq(plan_set("w", PS_COMBINE_CLOCK_SUM), PSD_INVALID);
}
