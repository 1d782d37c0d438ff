/* SPDX-License-Identifier: Apache-2.0 */
/* Threads without signals, and the clock of their waits. */
#include "transport/threads/thread.h"

#include <errno.h>
#include <signal.h>

#include "base/alloc.h"
#include "base/log.h"

#define NS_OF_MS 1000000L
#define NS_OF_S 1000000000L

/* What a thread brings upon itself: blocked, it would end the process without
 * a word to any handler. */
static const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
#define N_FAULTS (sizeof FAULTS / sizeof *FAULTS)

/* What a thread begins with whose starter has a log of its own. */
typedef struct beginning {
    void *(*run)(void *argument);
    void *argument;
    ps_log_sink_t *sink;
} beginning_t;

static void *begin(void *argument)
{
    beginning_t mine = *(beginning_t *)argument;

    ps_free(argument);
    ps_log_use(mine.sink);
    return mine.run(mine.argument);
}

static int start(pthread_t *ret_thread, void *(*run)(void *argument), void *argument)
{
    pthread_attr_t attributes;
    sigset_t blocked;
    int rc = pthread_attr_init(&attributes);

    if (rc != 0) {
        return rc;
    }
    (void)sigfillset(&blocked);
    for (size_t i = 0; i < N_FAULTS; i++) {
        (void)sigdelset(&blocked, FAULTS[i]);
    }
    rc = pthread_attr_setsigmask_np(&attributes, &blocked);
    if (rc == 0) {
        rc = pthread_create(ret_thread, &attributes, run, argument);
    }
    (void)pthread_attr_destroy(&attributes);
    return rc;
}

int ps_thread_start(pthread_t *ret_thread, void *(*run)(void *argument), void *argument)
{
    beginning_t *beginning = NULL;
    int rc = 0;

    if (ps_log_used() == NULL) {
        return start(ret_thread, run, argument);
    }
    beginning = ps_alloc(1, sizeof *beginning);
    if (beginning == NULL) {
        return ENOMEM;
    }
    *beginning = (beginning_t){.run = run, .argument = argument, .sink = ps_log_used()};
    rc = start(ret_thread, begin, beginning);
    if (rc != 0) {
        ps_free(beginning);
    }
    return rc;
}

int ps_cond_init(pthread_cond_t *ret_cond)
{
    pthread_condattr_t attributes;
    int rc = pthread_condattr_init(&attributes);

    if (rc != 0) {
        return rc;
    }
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    rc = pthread_cond_init(ret_cond, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return rc;
}

struct timespec ps_cond_end_in(uint32_t wait_ms)
{
    struct timespec end;

    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += wait_ms / 1000;
    end.tv_nsec += (long)(wait_ms % 1000) * NS_OF_MS;
    if (end.tv_nsec >= NS_OF_S) {
        end.tv_sec++;
        end.tv_nsec -= NS_OF_S;
    }
    return end;
}
