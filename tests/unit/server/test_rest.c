/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/threads/rest.h: where processors are wanted, most of a thread's time is rest.
 */
#include "server/threads/rest.h"

#include <criterion/criterion.h>
#include <sched.h>
#include <time.h>

#define NS_OF_MS UINT64_C(1000000)

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};

    cr_assert_eq(clock_gettime(clock, &now), 0);
    return (uint64_t)now.tv_sec * 1000 * NS_OF_MS + (uint64_t)now.tv_nsec;
}

/* Whether this thread may say that others go first; it stays as it is. */
static bool may_go_behind(void)
{
    const struct sched_param none = {.sched_priority = 0};

    return sched_getscheduler(0) == SCHED_OTHER && sched_setscheduler(0, SCHED_BATCH, &none) == 0 &&
           sched_setscheduler(0, SCHED_OTHER, &none) == 0;
}

/* A rest is never shorter than it is to be. */
Test(rest, rests_for_longer_than_it_works)
{
    uint64_t begun_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t worked_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    uint64_t work_ns = 0;
    bool may = may_go_behind();
    ps_rest_t rest;

    ps_rest_init(&rest);
    cr_expect(!may || sched_getscheduler(0) == SCHED_BATCH, "who wakes up goes first");
    cr_expect_geq(rest.n_cpus, 1);
    rest.n_cpus = 1; /* that is wanted by whoever else there is */
    while (work_ns < 40 * NS_OF_MS) {
        ps_rest_if_due(&rest);
        work_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - worked_ns;
    }
    /* the last burst has had no rest yet */
    cr_expect_gt(clock_ns(CLOCK_MONOTONIC) - begun_ns, 2 * (work_ns - 10 * NS_OF_MS));
    ps_rest_done(&rest);
    cr_expect_eq(rest.load_fd, -1);
}
