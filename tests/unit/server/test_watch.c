/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/nodes/watch.h: opened barriers, leaves and losses by job. */
#include "server/nodes/watch.h"

#include <criterion/criterion.h>

#include "support/fail_alloc.h"

static ps_watches_t watches;

static void close_watches(void)
{
    ps_watches_done(&watches);
}

TestSuite(watch, .fini = close_watches);

Test(watch, a_job_is_remembered_from_the_first_get)
{
    ps_watch_t *watch = NULL;

    cr_assert_eq(ps_watches_find(&watches, 7), NULL);
    watch = ps_watches_get(&watches, 7);
    cr_assert_neq(watch, NULL);
    cr_assert_eq(ps_watches_get(&watches, 7), watch);
    cr_assert_eq(ps_watches_find(&watches, 7), watch);
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
    bool good = watch != NULL && ps_watch_worker(watch, 3, 1) != NULL;

    (void)fixture;
    ps_watches_done(&mine);
    return good ? PSD_OK : PSD_NOMEM;
}

Test(watch, without_memory_nothing_is_left_behind)
{
    cr_assert_null(fail_alloc_sweep(remember_a_job, NULL));
}
