/* SPDX-License-Identifier: Apache-2.0 */
/* transport/threads/thread.h: signals of a thread, and a wait that ends. */
#include <criterion/criterion.h>

#include <errno.h>
#include <signal.h>

#include "transport/threads/thread.h"

static void *read_mask(void *ret_mask)
{
    cr_assert_eq(pthread_sigmask(SIG_SETMASK, NULL, ret_mask), 0);
    return ret_mask;
}

Test(thread, gets_no_signals_but_those_of_its_faults)
{
    static const int others[] = {SIGTERM, SIGINT,  SIGHUP,  SIGUSR1,
                                 SIGCHLD, SIGALRM, SIGPIPE, SIGPROF};
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    pthread_t thread;
    sigset_t mask;
    sigset_t before;
    sigset_t after;
    void *result = NULL;

    (void)read_mask(&before);
    cr_assert_eq(ps_thread_start(&thread, read_mask, &mask), 0);
    cr_assert_eq(pthread_join(thread, &result), 0);
    cr_assert_eq(result, &mask);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        cr_expect_eq(sigismember(&mask, others[i]), 1, "signal %d", others[i]);
    }
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        cr_expect_eq(sigismember(&mask, faults[i]), 0, "signal %d", faults[i]);
    }
    (void)read_mask(&after);
    for (int number = 1; number < NSIG; number++) {
        cr_assert_eq(sigismember(&after, number), sigismember(&before, number));
    }
}

static int64_t ns_of(struct timespec at)
{
    return (int64_t)at.tv_sec * 1000000000 + at.tv_nsec;
}

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return ns_of(now);
}

Test(thread, a_wait_ends_when_it_should)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    int64_t before_ns = now_ns();
    struct timespec end = ps_cond_end_in(1999);
    int64_t after_ns = now_ns();
    int rc = 0;

    cr_assert(end.tv_nsec >= 0 && end.tv_nsec < 1000000000);
    cr_assert_geq(ns_of(end), before_ns + 1999000000);
    cr_assert_leq(ns_of(end), after_ns + 1999000000);
    cr_assert_eq(ps_cond_init(&cond), 0);
    end = ps_cond_end_in(1);
    (void)pthread_mutex_lock(&mutex);
    while (rc == 0) {
        rc = pthread_cond_timedwait(&cond, &mutex, &end);
    }
    (void)pthread_mutex_unlock(&mutex);
    cr_assert_eq(rc, ETIMEDOUT);
    cr_assert_geq(now_ns(), ns_of(end));
    cr_assert_eq(pthread_cond_destroy(&cond), 0);
}
