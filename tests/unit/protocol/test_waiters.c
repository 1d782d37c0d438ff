/* SPDX-License-Identifier: Apache-2.0 */
/* lib/protocol/waiters/waiters.h: who waits, repeats, what is due, barriers. */
#include "protocol/waiters/waiters.h"

#include <criterion/criterion.h>

#include "base/alloc.h"

static ps_waiters_t waiters;
static ps_waiter_t barrier = {.kind = PS_FOR_BARRIER, .conn = 10, .session = 1, .id = 1, .job = 7};
static ps_waiter_t other;
static ps_waiter_t slice = {.kind = PS_FOR_SLICE, .session = 3, .id = 1, .job = 7, .queue = "q"};

static void open_waiters(void)
{
    ps_waiters_init(&waiters);
    barrier.number = 1;
    other = barrier;
    other.session = 2;
    other.worker = 2;
}

TestSuite(waiters, .init = open_waiters);

static bool is_at_barrier(uint32_t of_job, uint32_t worker)
{
    ps_ranks_t here;

    ps_waiters_ranks(&waiters, PS_FOR_BARRIER, of_job, &here);
    return ps_ranks_has(&here, worker);
}

static ps_worker_t workers[] = {
    {.worker = 0, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1},
    {.worker = 2, .state = PS_WORKER_RUNNING, .n_members = 2, .joins = 1},
    {.worker = 5, .state = PS_WORKER_LOST, .n_members = 1, .joins = 1},
};
static const ps_job_t job = {.id = 7, .name = "j", .workers = workers, .n_workers = 3};

Test(waiters, a_barrier_is_complete_with_every_live_worker)
{
    cr_assert(!ps_barrier_is_complete(&waiters, &job));
    ps_waiters_add(&waiters, &barrier);
    cr_assert(!ps_barrier_is_complete(&waiters, &job));
    ps_waiters_add(&waiters, &other);
    cr_assert(ps_barrier_is_complete(&waiters, &job));
    ps_waiters_remove(&waiters, &barrier);
    cr_assert(!is_at_barrier(7, 0));
    cr_assert(is_at_barrier(7, 2));
    cr_assert(!is_at_barrier(8, 2));
    cr_assert(!ps_barrier_is_complete(&waiters, &job));
}

Test(waiters, a_barrier_without_live_workers_is_complete_for_who_waits)
{
    const ps_job_t nobody = {.id = 7, .workers = &workers[2], .n_workers = 1};

    cr_assert(!ps_barrier_is_complete(&waiters, &nobody));
    ps_waiters_add(&waiters, &barrier);
    cr_assert(ps_barrier_is_complete(&waiters, &nobody));
}

Test(waiters, a_worker_that_waits_for_a_slice_is_not_at_the_barrier)
{
    ps_waiters_add(&waiters, &slice);
    cr_assert(!is_at_barrier(7, 0));
    cr_assert_null(ps_waiters_next(&waiters, NULL, PS_FOR_BARRIER, 7, PS_ANY_WORKER));
}

Test(waiters, ranks_of_every_size_are_in_a_set)
{
    slice.worker = PS_WORKERS_MAX - 1;
    slice.kind = PS_FOR_BARRIER;
    other.worker = 63;
    ps_waiters_add(&waiters, &slice);
    ps_waiters_add(&waiters, &other);
    cr_assert(is_at_barrier(7, PS_WORKERS_MAX - 1));
    cr_assert(is_at_barrier(7, 63));
    cr_assert(!is_at_barrier(7, 64));
    cr_assert(!is_at_barrier(7, PS_ANY_WORKER));
}

Test(waiters, who_may_wait_at_a_barrier)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_job_t stopped = job;

    cr_assert_eq(ps_barrier_check(&job, 2, err), PSD_OK);
    cr_assert_eq(ps_barrier_check(&job, 5, err), PSD_WORKER_LOST);
    cr_assert_str_eq(psd_error_text(err), "worker 5 of job \"j\" is lost");
    psd_error_clear(err);
    cr_assert_eq(ps_barrier_check(&job, 3, err), PSD_WORKER_LOST);
    cr_assert_str_eq(psd_error_text(err), "worker 3 of job \"j\" is gone");
    psd_error_clear(err);
    stopped.stopped = true;
    cr_assert_eq(ps_barrier_check(&stopped, 5, err), PSD_JOB_STOPPED);
    cr_assert_str_eq(psd_error_text(err), "job \"j\" was stopped");
}

Test(waiters, a_repeated_request_gets_the_newest_connection)
{
    ps_waiter_t again = {.conn = 11, .session = 1, .id = 1};

    cr_assert_null(ps_waiters_repeat(&waiters, &again));
    barrier.due_ms = 500;
    ps_waiters_add(&waiters, &other);
    ps_waiters_add(&waiters, &barrier);
    cr_assert_eq(ps_waiters_repeat(&waiters, &again), &barrier);
    cr_assert_eq(barrier.conn, 11);
    cr_assert_eq(barrier.due_ms, 500);
    cr_assert_eq(other.conn, 10);
    again.id = 2;
    cr_assert_null(ps_waiters_repeat(&waiters, &again));
    again.id = 1;
    again.session = 4;
    cr_assert_null(ps_waiters_repeat(&waiters, &again));
}

/* It was swallowed: taken for the parked request of that id, it got no answer. */
Test(waiters, another_operation_with_the_id_of_a_request_repeats_nothing)
{
    ps_waiter_t again = {.session = 1, .id = 1, .op = "leave"};

    slice.op = "next";
    slice.session = 1;
    ps_waiters_add(&waiters, &slice);
    cr_assert_null(ps_waiters_repeat(&waiters, &again));
    again.op = slice.op;
    cr_assert_eq(ps_waiters_repeat(&waiters, &again), &slice);
}

Test(waiters, sessions_that_share_a_list_are_told_apart)
{
    ps_waiter_t again = {.session = 1 + PS_WAITER_SESSIONS, .id = 1};

    ps_waiters_add(&waiters, &barrier);
    cr_assert_null(ps_waiters_repeat(&waiters, &again));
}

Test(waiters, a_worker_waits_once_at_a_barrier_whatever_the_request)
{
    ps_waiter_t again = barrier;

    again.id = 5;
    again.conn = 12;
    ps_waiters_add(&waiters, &barrier);
    cr_assert_eq(ps_waiters_repeat(&waiters, &again), &barrier);
    cr_assert_eq(barrier.id, 5);
    cr_assert_eq(barrier.conn, 12);
    again.id = 6;
    again.number = 2;
    cr_assert_null(ps_waiters_repeat(&waiters, &again));
    again.number = 1;
    again.worker = 2;
    cr_assert_null(ps_waiters_repeat(&waiters, &again));
    again.worker = 0;
    again.job = 8;
    cr_assert_null(ps_waiters_repeat(&waiters, &again));
}

Test(waiters, a_search_names_kinds_a_job_and_perhaps_a_worker)
{
    ps_waiter_t done = {.kind = PS_FOR_DONE, .job = 7, .worker = 2};
    ps_waiter_t elsewhere = {.kind = PS_FOR_SLICE, .job = 8};

    ps_waiters_add(&waiters, &slice);
    ps_waiters_add(&waiters, &elsewhere);
    ps_waiters_add(&waiters, &barrier);
    ps_waiters_add(&waiters, &done);
    cr_assert_eq(ps_waiters_next(&waiters, NULL, PS_FOR_WORK, 7, PS_ANY_WORKER), &slice);
    cr_assert_eq(ps_waiters_next(&waiters, &slice, PS_FOR_WORK, 7, PS_ANY_WORKER), &done);
    cr_assert_null(ps_waiters_next(&waiters, &done, PS_FOR_WORK, 7, PS_ANY_WORKER));
    cr_assert_eq(ps_waiters_next(&waiters, NULL, PS_FOR_WORK, 7, 2), &done);
}

Test(waiters, only_the_job_s_own_waiters_take_its_room)
{
    ps_waiter_t neighbour = {.kind = PS_FOR_SLICE, .job = 7 + PS_WAITER_JOBS}; /* in its list */

    cr_assert(!ps_waiters_has_room(&waiters, PS_FOR_WORK, 7, 0));
    ps_waiters_add(&waiters, &neighbour);
    ps_waiters_add(&waiters, &barrier);
    cr_assert(ps_waiters_has_room(&waiters, PS_FOR_WORK, 7, 1));
    ps_waiters_add(&waiters, &slice);
    cr_assert(!ps_waiters_has_room(&waiters, PS_FOR_WORK, 7, 1));
    cr_assert(ps_waiters_has_room(&waiters, PS_FOR_WORK, 7, 2));
    ps_waiters_remove(&waiters, &slice);
    cr_assert(ps_waiters_has_room(&waiters, PS_FOR_WORK, 7, 1));
}

Test(waiters, jobs_with_waiters_come_in_order)
{
    ps_waiter_t later = {.kind = PS_FOR_DONE, .job = 9};

    cr_assert_eq(ps_waiters_next_job(&waiters, PS_FOR_WORK, 0), 0);
    barrier.job = 8;
    ps_waiters_add(&waiters, &later);
    ps_waiters_add(&waiters, &slice);
    ps_waiters_add(&waiters, &barrier);
    cr_assert_eq(ps_waiters_next_job(&waiters, PS_FOR_WORK, 0), 7);
    cr_assert_eq(ps_waiters_next_job(&waiters, PS_FOR_WORK, 7), 9);
    cr_assert_eq(ps_waiters_next_job(&waiters, PS_FOR_WORK, 9), 0);
}

/* The first one that is due takes the others with it, and one comes again. */
Test(waiters, each_that_is_due_comes_once)
{
    ps_waiter_t asks = {.kind = PS_FOR_ANSWERS, .due_ms = PS_NOT_DUE};
    ps_waiter_t retries = {.kind = PS_FOR_RETRY, .due_ms = 300};

    cr_assert_eq(ps_waiters_deadline(&waiters), PS_NOT_DUE);
    cr_assert_null(ps_waiters_next_due(&waiters, 1000));
    barrier.due_ms = 300;
    other.due_ms = 301;
    slice.due_ms = 200;
    ps_waiters_add(&waiters, &asks);
    cr_assert_eq(ps_waiters_deadline(&waiters), PS_NOT_DUE);
    ps_waiters_add(&waiters, &barrier);
    ps_waiters_add(&waiters, &other);
    ps_waiters_add(&waiters, &retries);
    ps_waiters_add(&waiters, &slice);
    cr_assert_eq(ps_waiters_deadline(&waiters), 200);
    cr_assert_null(ps_waiters_next_due(&waiters, 199));
    cr_assert_eq(ps_waiters_next_due(&waiters, 300), &barrier);
    ps_waiters_remove(&waiters, &other);
    ps_waiters_remove(&waiters, &retries); /* the next one */
    ps_waiters_remove(&waiters, &barrier);
    cr_assert_eq(ps_waiters_next_due(&waiters, 300), &slice);
    ps_waiters_remove(&waiters, &slice);
    retries.kind = PS_FOR_RETRY;
    retries.due_ms = 350;
    ps_waiters_add(&waiters, &retries);
    cr_assert_null(ps_waiters_next_due(&waiters, 300));
    cr_assert_eq(ps_waiters_deadline(&waiters), 350);
}

Test(waiters, those_that_are_hastened_are_due_at_once)
{
    ps_waiter_t retries = {.kind = PS_FOR_RETRY, .due_ms = 300};

    barrier.due_ms = 400;
    ps_waiters_add(&waiters, &barrier);
    ps_waiters_add(&waiters, &retries);
    ps_waiters_hasten(&waiters, PS_FOR_RETRY);
    cr_assert_eq(ps_waiters_deadline(&waiters), 0);
    cr_assert_eq(ps_waiters_next_due(&waiters, 1), &retries);
    ps_waiters_remove(&waiters, &retries);
    cr_assert_null(ps_waiters_next_due(&waiters, 1));
    cr_assert_eq(ps_waiters_deadline(&waiters), 400);
}

Test(waiters, who_was_removed_waits_for_nothing_and_may_wait_again)
{
    ps_waiters_add(&waiters, &barrier);
    ps_waiters_remove(&waiters, &barrier);
    cr_assert_eq(barrier.kind, 0);
    ps_waiters_remove(&waiters, &barrier); /* it is out already */
    cr_assert_null(ps_waiters_next(&waiters, NULL, PS_FOR_BARRIER, 7, PS_ANY_WORKER));
    barrier.kind = PS_FOR_RETRY;
    ps_waiters_add(&waiters, &barrier);
    cr_assert_null(ps_waiters_next(&waiters, NULL, PS_FOR_RETRY, 7, PS_ANY_WORKER));
    cr_assert_eq(ps_waiters_next_due(&waiters, 0), &barrier);
}
