/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "base/alloc.h"
#include "protocol/partition/gate.h"
#include "support/fail_alloc.h"

/* A job of n running workers with one member each, from clock 0. */
static void make_job(ps_job_t *job, ps_worker_t *workers, size_t n, int32_t max_delay)
{
    *job = (ps_job_t){
        .id = 1, .max_delay = max_delay, .version = 1, .workers = workers, .n_workers = n};
    for (size_t i = 0; i < n; i++) {
        workers[i] = (ps_worker_t){
            .worker = (uint32_t)i, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
    }
}

static ps_gate_t *make_gate(const ps_job_t *job)
{
    ps_gate_t *gate = NULL;

    cr_assert_eq(ps_gate_new(job, &gate, NULL), PSD_OK);
    return gate;
}

Test(gate, bsp_waits_for_the_slowest)
{
    ps_worker_t workers[3];
    ps_job_t job;
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;

    make_job(&job, workers, 3, 0);
    gate = make_gate(&job);
    cr_expect(ps_gate_is_bsp(gate));
    cr_expect(ps_gate_is_open(gate, 0));
    cr_expect_not(ps_gate_is_open(gate, 1));
    ps_gate_mark(gate, 0, 0, 1);
    ps_gate_mark(gate, 1, 0, 1);
    cr_expect_not(ps_gate_is_open(gate, 1));
    ps_gate_mark(gate, 2, 0, 1);
    cr_expect(ps_gate_is_open(gate, 1));
    cr_expect_eq(ps_gate_closed(gate), 1);
}

Test(gate, ssp_lets_max_delay_clocks_ahead)
{
    ps_worker_t workers[2];
    ps_job_t job;
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;

    make_job(&job, workers, 2, 2);
    gate = make_gate(&job);
    cr_expect(ps_gate_is_open(gate, 2));
    cr_expect_not(ps_gate_is_open(gate, 3));
    ps_gate_mark(gate, 0, 0, 3);
    ps_gate_mark(gate, 1, 0, 1);
    cr_expect(ps_gate_is_open(gate, 3));
}

Test(gate, asp_is_always_open)
{
    ps_worker_t workers[2];
    ps_job_t job;
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;

    make_job(&job, workers, 2, -1);
    gate = make_gate(&job);
    cr_expect(ps_gate_is_open(gate, UINT64_MAX));
}

Test(gate, a_lost_worker_holds_nobody)
{
    ps_worker_t workers[2];
    ps_job_t job;
    uint32_t slowest = 9;
    uint64_t finished = 9;
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;

    make_job(&job, workers, 2, 0);
    gate = make_gate(&job);
    ps_gate_mark(gate, 0, 0, 1);
    cr_assert(ps_gate_slowest(gate, 1, &slowest, &finished));
    cr_expect_eq(slowest, 1);
    cr_expect_eq(finished, 0);
    workers[1].state = PS_WORKER_LOST;
    job.version++;
    cr_assert_eq(ps_gate_update(gate, &job, NULL), PSD_OK);
    cr_expect(ps_gate_is_open(gate, 1));
    cr_expect_not(ps_gate_slowest(gate, 1, &slowest, &finished));
    cr_expect_eq(ps_gate_check(gate, 1, 1, 0, NULL), PSD_WORKER_LOST);
}

Test(gate, a_worker_has_finished_what_all_its_members_have)
{
    ps_worker_t workers[1];
    ps_job_t job;
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;

    make_job(&job, workers, 1, 0);
    workers[0].n_members = 2;
    gate = make_gate(&job);
    ps_gate_mark(gate, 0, 1, 1);
    cr_expect_eq(ps_gate_closed(gate), 0);
    ps_gate_mark(gate, 0, 0, 1);
    cr_expect_eq(ps_gate_closed(gate), 1);
}

Test(gate, a_joining_worker_holds_every_further_clock)
{
    ps_worker_t workers[2];
    ps_job_t job;
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;

    make_job(&job, workers, 2, 0);
    job.n_workers = 1;
    gate = make_gate(&job);
    ps_gate_mark(gate, 0, 0, 5);
    cr_expect_eq(ps_gate_closed(gate), 5);
    job.n_workers = 2;
    workers[1].state = PS_WORKER_JOINING;
    cr_assert_eq(ps_gate_update(gate, &job, NULL), PSD_OK);
    ps_gate_mark(gate, 0, 0, 6);
    cr_expect_eq(ps_gate_closed(gate), 5);
    workers[1].state = PS_WORKER_RUNNING;
    workers[1].start = 6;
    cr_assert_eq(ps_gate_update(gate, &job, NULL), PSD_OK);
    cr_expect_eq(ps_gate_closed(gate), 6);
}

Test(gate, a_rank_that_joins_again_begins_at_its_new_start)
{
    ps_worker_t workers[1];
    ps_job_t job;
    uint32_t rank = 9;
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;

    make_job(&job, workers, 1, 1);
    gate = make_gate(&job);
    ps_gate_mark(gate, 0, 0, 9);
    workers[0].joins = 2;
    workers[0].start = 4;
    workers[0].state = PS_WORKER_JOINING;
    cr_assert_eq(ps_gate_update(gate, &job, NULL), PSD_OK);
    cr_expect_eq(ps_gate_check(gate, 0, 1, 0, NULL), PSD_WORKER_LOST, "its next life joins");
    cr_expect_eq(ps_gate_check(gate, 0, 2, 0, NULL), PSD_NO_WORKER);
    workers[0].state = PS_WORKER_RUNNING;
    cr_assert_eq(ps_gate_update(gate, &job, NULL), PSD_OK);
    cr_expect_eq(ps_gate_check(gate, 0, 1, 0, NULL), PSD_WORKER_LOST, "its earlier life is over");
    cr_expect_eq(ps_gate_check(gate, 0, 2, 0, NULL), PSD_OK);
    cr_expect_eq(ps_gate_finished(gate, 0, &rank), 4);
    cr_expect_eq(rank, 0);
    cr_expect_eq(ps_gate_closed(gate), 9, "closed never falls");
    cr_expect_not(ps_gate_is_settled(gate), "it is behind that");
}

Test(gate, without_live_workers_everything_is_closed)
{
    ps_worker_t workers[2];
    ps_job_t job;
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;

    make_job(&job, workers, 2, 0);
    gate = make_gate(&job);
    ps_gate_mark(gate, 0, 0, 7);
    workers[0].state = PS_WORKER_FINISHED;
    workers[1].state = PS_WORKER_LOST;
    cr_assert_eq(ps_gate_update(gate, &job, NULL), PSD_OK);
    cr_expect(ps_gate_is_deserted(gate));
    cr_expect_eq(ps_gate_closed(gate), 7);
}

/* A table that is opened late gets its first mark from every worker as a leap;
 * held at the gate, each would wait for the others for ever. */
Test(gate, a_mark_that_leaps_is_not_held)
{
    ps_worker_t workers[2];
    ps_job_t job;
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;

    make_job(&job, workers, 2, 0);
    gate = make_gate(&job);
    cr_expect(ps_gate_takes_mark(gate, 0, 0, 10));
    ps_gate_mark(gate, 0, 0, 10);
    cr_expect_not(ps_gate_takes_mark(gate, 0, 0, 11));
    ps_gate_mark(gate, 1, 0, 10);
    cr_expect(ps_gate_takes_mark(gate, 0, 0, 11));
}

Test(gate, says_who_is_waited_for)
{
    ps_worker_t workers[5];
    ps_job_t job;
    char text[200];
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;

    make_job(&job, workers, 5, 0);
    workers[4].state = PS_WORKER_EXPECTED;
    gate = make_gate(&job);
    for (uint32_t i = 0; i < 3; i++) {
        ps_gate_mark(gate, i, 0, 1);
    }
    ps_gate_reason(gate, 1, text, sizeof text);
    cr_expect_str_eq(text, "waiting for worker 3 at clock 0, worker 4 at clock 0 "
                           "(not joined yet); clock 1 is needed");
}

Test(gate, refuses_who_may_not_work)
{
    ps_worker_t workers[2];
    ps_job_t job;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;

    make_job(&job, workers, 2, 0);
    workers[1].state = PS_WORKER_EXPECTED;
    gate = make_gate(&job);
    cr_expect_eq(ps_gate_check(gate, 0, 1, 0, err), PSD_OK);
    cr_expect_eq(ps_gate_check(gate, 0, 1, 1, err), PSD_NO_WORKER);
    cr_expect_str_eq(psd_error_text(err), "worker 0 has no member 1; it has 1");
    cr_expect_eq(ps_gate_check(gate, 1, 1, 0, NULL), PSD_NO_WORKER);
    cr_expect_eq(ps_gate_check(gate, 5, 1, 0, NULL), PSD_NO_WORKER);
    job.stopped = true;
    cr_assert_eq(ps_gate_update(gate, &job, NULL), PSD_OK);
    cr_expect_eq(ps_gate_check(gate, 0, 1, 0, NULL), PSD_JOB_STOPPED);
}

/* Worker 0 has marked 2 and gone; it comes again behind what is closed. */
Test(gate, remembers_the_highest_mark_of_those_that_have_gone)
{
    ps_worker_t workers[2];
    ps_job_t job;
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;
    PSD_AUTO(ps_gate_destroy) ps_gate_t *copy = NULL;
    const uint64_t marks[2] = {0, 0};

    make_job(&job, workers, 2, 2);
    gate = make_gate(&job);
    ps_gate_mark(gate, 0, 0, 2);
    workers[0].state = PS_WORKER_FINISHED;
    cr_assert_eq(ps_gate_update(gate, &job, NULL), PSD_OK);
    cr_expect_eq(ps_gate_highest(gate), 2);
    workers[0].state = PS_WORKER_RUNNING;
    workers[0].joins = 2;
    cr_assert_eq(ps_gate_update(gate, &job, NULL), PSD_OK);
    cr_expect_eq(ps_gate_closed(gate), 0);
    cr_expect_eq(ps_gate_highest(gate), 2);
    copy = make_gate(&job);
    cr_expect(ps_gate_is_settled(gate));
    ps_gate_restore(copy, 0, ps_gate_highest(gate), marks);
    cr_expect_eq(ps_gate_highest(copy), 2);
}

static psd_status_t make_and_update(void *fixture)
{
    ps_worker_t workers[3];
    ps_job_t job;
    PSD_AUTO(ps_gate_destroy) ps_gate_t *gate = NULL;
    psd_status_t rc;

    (void)fixture;
    make_job(&job, workers, 3, 0);
    rc = ps_gate_new(&job, &gate, NULL);
    if (rc != PSD_OK) {
        cr_assert_null(gate);
        return rc;
    }
    ps_gate_mark(gate, 0, 0, 1);
    workers[1].state = PS_WORKER_LOST;
    workers[2].state = PS_WORKER_LOST;
    rc = ps_gate_update(gate, &job, NULL);
    cr_assert_eq(ps_gate_closed(gate), rc == PSD_OK ? 1u : 0u);
    return rc;
}

Test(gate, survives_every_failed_allocation)
{
    cr_assert_null(fail_alloc_sweep(make_and_update, NULL));
}
