/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_job - workers of a job that run while the cluster changes
 *
 * What     Threads, each with a client of its own. In every clock a worker
 *          pulls both tables, pushes integers (its rank + 1 to every row of
 *          "sums") and floats that depend on what it has pulled (to "floats"),
 *          and ends the clock. So the sums say whether every push was applied
 *          once, and under BSP the floats' bits are those of any run with as
 *          many clocks. A call that fails ends the worker, and is printed.
 * Owner    The caller; thread_job_drop.
 * Threads  Confined to the one that started it.
 */
#ifndef PS_TESTS_THREAD_JOB_H
#define PS_TESTS_THREAD_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define THREAD_JOB_MAX 8
#define THREAD_JOB_ROWS 480
#define THREAD_JOB_COLS 8
#define THREAD_JOB_TEXT 128

typedef struct thread_job_args {
    char endpoint[THREAD_JOB_TEXT];
    const char *name; /* of the job; borrowed */
    const char *replicas;
    const char *ack;
    uint32_t n_workers;
    int max_delay;
    uint64_t n_clocks; /* 0: until thread_job_finish */
} thread_job_args_t;

struct thread_job;
typedef struct thread_worker {
    struct thread_job *job;
    uint32_t rank;
    pthread_t thread;
    _Atomic uint64_t n_clocks; /* ended */
    atomic_bool failed;
} thread_worker_t;

typedef struct thread_job {
    thread_job_args_t args;
    _Atomic uint64_t last; /* clocks that each worker is to end */
    uint32_t n_running;
    thread_worker_t workers[THREAD_JOB_MAX];
    float floats[THREAD_JOB_ROWS * THREAD_JOB_COLS]; /* at the end */
} thread_job_t;

/* Makes the tables and starts the workers. */
bool thread_job_start(thread_job_t *self, const thread_job_args_t *args);
/* Every worker ends n clocks from now; false: one has failed. */
bool thread_job_wait_clocks(const thread_job_t *self, uint64_t n);
bool thread_job_goes_on(const thread_job_t *self);
/* Lets all end at the same clock, and reads both tables. false: one has failed,
 * or a sum is not that of all pushes. */
bool thread_job_finish(thread_job_t *self);
/* Drops the tables. */
bool thread_job_forget(thread_job_t *self);
/* Ends what still runs. */
void thread_job_drop(thread_job_t *self);
#endif
