/* SPDX-License-Identifier: Apache-2.0 */
/*
 * churn - what the registry has to do while its nodes fail, and the book of it
 *
 * What     Threads with a client each. Makers make and drop tables, each of a
 *          name of its own. Workers of CHURN_JOBS jobs take slices of a queue
 *          without end and push 1 to a slice's row for each; one of each job
 *          joins and leaves again and again. The rows are acknowledged on disk, so
 *          that any number of nodes may be killed. Greeters take session numbers. Every
 *          call must succeed, however long a fault lasts.
 * Owner    The caller; churn_stop ends the threads.
 * Threads  All functions are for one thread, which is none of these.
 */
#ifndef PS_TESTS_CHURN_H
#define PS_TESTS_CHURN_H

#include <psd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CHURN_JOBS 2
#define CHURN_MAKERS 2
#define CHURN_GREETERS 1
#define CHURN_STEADY 2 /* workers of a job that stay */
#define CHURN_THREADS (CHURN_MAKERS + CHURN_GREETERS + CHURN_JOBS * (CHURN_STEADY + 1))
#define CHURN_SLICES 16 /* of a job's queue */
#define CHURN_SESSIONS_MAX 200000
#define CHURN_CALL_MS 120000 /* longer than any fault */

typedef struct churn churn_t;

typedef struct churn_thread {
    churn_t *churn;
    pthread_t thread;
    bool runs;
    unsigned number;             /* among its kind */
    unsigned job;                /* of a worker */
    uint64_t n_changes;          /* acknowledged */
    uint64_t n_made;             /* tables: 0 .. n_made - 1 were made, the odd ones dropped */
    uint64_t done[CHURN_SLICES]; /* slices that were counted for this worker */
} churn_thread_t;

struct churn {
    const char *endpoints; /* borrowed */
    atomic_bool stop;
    atomic_uint n_failed; /* calls; why is on stderr */
    atomic_uint n_twice;  /* changes that were found done already */
    churn_thread_t each[CHURN_THREADS];
    uint64_t *sessions; /* owned; those that were given, by the greeter */
    size_t n_sessions;
};

/* The settings of the nodes that this needs: a worker may be unheard for longer
 * than any fault lasts. */
#define CHURN_CONFIG "workers:\n  heartbeat_ms: 500\n  lost_after_ms: 120000\n"

/* A client with these endpoints that waits for CHURN_CALL_MS. */
psd_status_t churn_connect(const char *endpoints, psd_client_t **ret_client, psd_error_t *err);
/* Makes a table of i64 with that many rows and copies, acknowledged at that level. */
psd_status_t churn_make_table(psd_client_t *client, const char *name, uint64_t rows,
                              const char *replicas, const char *ack, psd_error_t *err);
/* Makes the jobs' tables and starts the threads. false: why is on stderr. */
bool churn_start(churn_t *self, const char *endpoints);
/* Ends them. false: a call failed. */
bool churn_stop(churn_t *self);
/* Holds what there is against the book; prints the sums. Behind churn_stop. */
bool churn_check(churn_t *self);
#endif
