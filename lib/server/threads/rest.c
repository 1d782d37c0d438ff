/* SPDX-License-Identifier: Apache-2.0 */
/* How much a thread works, and how many other threads want to run. */
#include "server/threads/rest.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS_OF_MS UINT64_C(1000000)
#define NS_OF_S UINT64_C(1000000000)
/* Between two rests: fewer requests meet a few long rests than many short ones. */
#define BURST_NS (3 * NS_OF_MS)
#define SHARE 2 /* half of its time is work */
#define REST_MAX_NS (50 * NS_OF_MS)
/* A thread that yields loses the rest of its slice: with a long slice it
 * runs again after others have had more of the processor … */
#define SLICE_NS (20 * NS_OF_MS)
#define LEAST 6 /* … unless it has got less than a 6th of the time */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};

    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * NS_OF_S + (uint64_t)now.tv_nsec;
}

static void begin(ps_rest_t *self)
{
    self->worked_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    self->rested_ns = clock_ns(CLOCK_MONOTONIC);
}

/* Version 0 of the kernel's sched_attr, for which not every libc has a name. */
typedef struct attributes {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns; /* SCHED_OTHER, SCHED_BATCH: the slice, since 6.12 */
    uint64_t deadline_ns;
    uint64_t period_ns;
} attributes_t;

/* Our wake-ups take no processor from other threads. A thread that wakes up
 * has a shorter slice and gets our processor at once. An old kernel ignores
 * this. */
static void let_others_go_first(void)
{
    attributes_t is = {.size = sizeof is};

    if (syscall(SYS_sched_getattr, 0, &is, sizeof is, 0) == 0 && is.policy == SCHED_OTHER) {
        is.policy = SCHED_BATCH;
        is.runtime_ns = SLICE_NS;
        (void)syscall(SYS_sched_setattr, 0, &is, 0);
    }
}

void ps_rest_init(ps_rest_t *self)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    *self = (ps_rest_t){
        .load_fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC),
        .n_cpus = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1,
    };
    let_others_go_first();
    begin(self);
}

void ps_rest_done(ps_rest_t *self)
{
    if (self->load_fd >= 0) {
        (void)close(self->load_fd);
        self->load_fd = -1;
    }
}

/* Other runnable threads: "0.20 0.18 0.12 RUNNING/ALL LAST". When they
 * cannot be counted, assume many. */
static unsigned n_others(const ps_rest_t *self)
{
    char text[128];
    unsigned running = 0;
    ssize_t n = self->load_fd < 0 ? -1 : pread(self->load_fd, text, sizeof text - 1, 0);

    if (n <= 0) {
        return UINT32_MAX;
    }
    text[n] = '\0';
    if (sscanf(text, "%*s %*s %*s %u/", &running) != 1) {
        return UINT32_MAX;
    }
    return running > 0 ? running - 1 : 0;
}

void ps_rest_if_due(ps_rest_t *self)
{
    uint64_t work_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - self->worked_ns;
    uint64_t spent_ns = clock_ns(CLOCK_MONOTONIC) - self->rested_ns;
    uint64_t due_ns = work_ns * SHARE;

    if (work_ns < BURST_NS) {
        if (spent_ns <= work_ns * LEAST) {
            (void)sched_yield();
        }
        return;
    }
    if (due_ns > spent_ns && n_others(self) >= self->n_cpus - 1) {
        uint64_t rest_ns = due_ns - spent_ns;
        struct timespec rest = {0};

        rest_ns = rest_ns < REST_MAX_NS ? rest_ns : REST_MAX_NS;
        rest.tv_nsec = (long)rest_ns;
        (void)nanosleep(&rest, NULL);
    }
    begin(self);
}
