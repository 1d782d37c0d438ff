/* SPDX-License-Identifier: Apache-2.0 */
/* daemon/nodes/watch.h: barriers, leaves and losses by job. */
#include "daemon/nodes/watch.h"

#include <criterion/criterion.h>

#include "support/fail_alloc.h"

static ps_watches_t watches;

static void close_watches(void)
{
    ps_watches_done(&watches);
}

TestSuite(watch, .fini = close_watches);

static ps_worker_t workers[] = {
    {.worker = 0, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1},
    {.worker = 2, .state = PS_WORKER_RUNNING, .n_members = 2, .joins = 1},
    {.worker = 5, .state = PS_WORKER_LOST, .n_members = 1, .joins = 1},
};
static const ps_job_t job = {.id = 7, .name = "j", .workers = workers, .n_workers = 3};

Test(watch, a_job_is_remembered_from_the_first_get)
{
    ps_watch_t *watch = NULL;

    cr_assert_eq(ps_watches_find(&watches, 7), NULL);
    watch = ps_watches_get(&watches, 7);
    cr_assert_neq(watch, NULL);
    cr_assert_eq(ps_watches_get(&watches, 7), watch);
    cr_assert_eq(ps_watches_find(&watches, 7), watch);
}

Test(watch, a_barrier_is_complete_with_every_live_worker)
{
    ps_watch_t *watch = ps_watches_get(&watches, 7);
    ps_waiter_t waiter = {.session = 1, .worker = 0, .number = 1};

    cr_assert(!ps_watch_is_complete(watch, &job));
    cr_assert(ps_watch_wait(watch, &waiter));
    cr_assert(!ps_watch_is_complete(watch, &job));
    waiter.session = 2;
    waiter.worker = 2;
    cr_assert(ps_watch_wait(watch, &waiter));
    cr_assert(ps_watch_is_complete(watch, &job));
    ps_watch_remove(watch, 0);
    cr_assert(!ps_watch_is_waiting(watch, 0));
    cr_assert(ps_watch_is_waiting(watch, 2));
    cr_assert(!ps_watch_is_complete(watch, &job));
}

Test(watch, a_repeated_request_is_one_waiter)
{
    ps_watch_t *watch = ps_watches_get(&watches, 7);
    ps_waiter_t waiter = {.session = 1, .worker = 0, .number = 1, .conn = 10, .deadline_ms = 500};

    cr_assert(ps_watch_wait(watch, &waiter));
    waiter.conn = 11;
    waiter.deadline_ms = 900;
    cr_assert(ps_watch_wait(watch, &waiter));
    cr_assert_eq(watch->n_waiters, 1);
    cr_assert_eq(watch->waiters[0].conn, 11);
    cr_assert_eq(watch->waiters[0].deadline_ms, 500);
    waiter.number = 2;
    cr_assert(ps_watch_wait(watch, &waiter));
    cr_assert_eq(watch->n_waiters, 2);
}

Test(watch, the_earliest_deadline_of_all_jobs_counts)
{
    ps_waiter_t waiter = {.session = 1, .number = 1, .deadline_ms = 500};

    cr_assert_eq(ps_watches_deadline(&watches), UINT64_MAX);
    cr_assert(ps_watch_wait(ps_watches_get(&watches, 7), &waiter));
    waiter.deadline_ms = 300;
    cr_assert(ps_watch_wait(ps_watches_get(&watches, 8), &waiter));
    cr_assert_eq(ps_watches_deadline(&watches), 300);
}

Test(watch, a_worker_has_left_with_its_last_member)
{
    ps_watch_t *watch = ps_watches_get(&watches, 7);
    ps_watched_t *watched = ps_watch_worker(watch, 2, 1);

    cr_assert(!ps_watched_leave(watched, 1, 2));
    cr_assert(!ps_watched_leave(watched, 1, 2));
    cr_assert(ps_watched_leave(watched, 0, 2));
    watched = ps_watch_worker(watch, 3, 1);
    cr_assert(!ps_watched_leave(watched, 200, 3));
}

Test(watch, a_new_life_begins_empty)
{
    ps_watch_t *watch = ps_watches_get(&watches, 7);
    ps_watched_t *watched = ps_watch_worker(watch, 2, 1);

    watched->released = 9;
    cr_assert_eq(ps_watch_worker(watch, 2, 1)->released, 9);
    cr_assert_eq(ps_watch_worker(watch, 2, 2)->released, 0);
    cr_assert_eq(ps_watch_find(watch, 2)->joins, 2);
    cr_assert_eq(ps_watch_find(watch, 3), NULL);
}

static bool is_even(const void *context, uint32_t id)
{
    (void)context;
    return id % 2 == 0;
}

Test(watch, a_sweep_forgets_what_is_not_kept)
{
    for (uint32_t id = 1; id <= 20; id++) {
        cr_assert_neq(ps_watches_get(&watches, id), NULL);
    }
    ps_watches_sweep(&watches, is_even, NULL);
    cr_assert_eq(watches.by_job.count, 10);
    cr_assert_eq(ps_watches_find(&watches, 3), NULL);
    cr_assert_neq(ps_watches_find(&watches, 4), NULL);
}

static psd_status_t remember_a_job(void *fixture)
{
    ps_watches_t mine = {0};
    ps_watch_t *watch = ps_watches_get(&mine, 1);
    ps_waiter_t waiter = {.session = 1};
    bool good =
        watch != NULL && ps_watch_worker(watch, 3, 1) != NULL && ps_watch_wait(watch, &waiter);

    (void)fixture;
    ps_watches_done(&mine);
    return good ? PSD_OK : PSD_NOMEM;
}

Test(watch, without_memory_nothing_is_left_behind)
{
    cr_assert_null(fail_alloc_sweep(remember_a_job, NULL));
}

static ps_slice_ask_t ask_with(uint64_t id, uint64_t deadline_ms)
{
    return (ps_slice_ask_t){
        .session = 3, .id = id, .reply = ps_doc_new(), .deadline_ms = deadline_ms};
}

Test(watch, questions_for_slices_are_found_by_session_and_id)
{
    ps_watch_t *watch = ps_watches_get(&watches, 7);
    ps_waiter_t waiter = {.session = 1, .number = 1, .deadline_ms = 700};
    ps_slice_ask_t first = ask_with(1, 900);
    ps_slice_ask_t second = ask_with(2, 500);

    cr_assert(ps_watch_wait(watch, &waiter));
    cr_assert(ps_watch_add_ask(watch, &first));
    cr_assert(ps_watch_add_ask(watch, &second));
    cr_assert_eq(ps_watches_deadline(&watches), 500);
    cr_assert_eq(ps_watch_ask(watch, 3, 2), &watch->asks[1]);
    cr_assert_null(ps_watch_ask(watch, 4, 2));
    ps_watch_remove_ask(watch, 1);
    cr_assert_null(ps_watch_ask(watch, 3, 2));
    cr_assert_eq(ps_watches_deadline(&watches), 700);
    cr_assert_eq(watch->n_asks, 1); /* its reply goes with the watch */
}

Test(watch, a_question_for_a_slice_needs_memory)
{
    ps_watch_t *watch = ps_watches_get(&watches, 7);
    ps_slice_ask_t ask = ask_with(1, 900);

    fail_alloc_at(0);
    cr_assert_not(ps_watch_add_ask(watch, &ask));
    fail_alloc_off();
    cr_assert_eq(watch->n_asks, 0);
    ps_doc_destroy(&ask.reply);
}
