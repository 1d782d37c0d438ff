/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_waiters - the requests that wait for their answer at the control port
 *
 * What     One list of who waits, for what, since when, and when to look at it
 *          again. A repeated request takes the place of the one that waits.
 * Shape    In order of coming.
 * Owner    The list borrows each waiter until ps_waiters_remove. A waiter is the
 *          first member of a request, which the caller owns.
 * Threads  Confined to one.
 */
#ifndef PS_PROTOCOL_WAITERS_H
#define PS_PROTOCOL_WAITERS_H

#include <sys/queue.h>

#include "protocol/facts/job.h"

#define PS_ANY_WORKER UINT32_MAX
#define PS_NOT_DUE UINT64_MAX /* it waits for an event, without a deadline */

/* Each is a bit, so that a search may name several. */
typedef enum ps_waits_for {
    PS_FOR_ANSWERS = 1, /* of nodes; once due, it asks them again */
    PS_FOR_RETRY = 2,   /* the operation runs again once it is due */
    PS_FOR_BARRIER = 4, /* of a job; it ends once it is due, as the following do */
    PS_FOR_SLICE = 8,   /* of a work queue */
    PS_FOR_DONE = 16,   /* until the registry has stored that a slice is done */
    PS_FOR_WORK = PS_FOR_SLICE | PS_FOR_DONE
} ps_waits_for_t;

typedef struct ps_waiter {
    TAILQ_ENTRY(ps_waiter) link; /* the list's */
    uint64_t conn;
    uint64_t session;
    uint64_t id;         /* of the request */
    ps_waits_for_t kind; /* 0: it does not wait */
    uint32_t job;        /* BARRIER, SLICE and DONE, as the following */
    uint32_t worker;
    uint64_t number;   /* BARRIER: as the worker counts */
    const char *queue; /* SLICE and DONE: borrowed from the request */
    uint64_t since_ms;
    uint64_t due_ms; /* when to look at it again, at its deadline at the latest */
} ps_waiter_t;

typedef TAILQ_HEAD(ps_waiters, ps_waiter) ps_waiters_t;

void ps_waiters_init(ps_waiters_t *self);
/* Adds a waiter, with its kind set. */
void ps_waiters_add(ps_waiters_t *self, ps_waiter_t *waiter);
/* Takes a waiter out, if it is in, and sets its kind to 0. */
void ps_waiters_remove(ps_waiters_t *self, ps_waiter_t *waiter);
/* The waiter that this request repeats: of its session and id, or at a barrier
 * of its session, worker and number. It gets the newest conn and id. NULL: none. */
ps_waiter_t *ps_waiters_repeat(const ps_waiters_t *self, const ps_waiter_t *waiter);
/* The first waiter after `after` of these kinds, this job and this worker or
 * PS_ANY_WORKER. after: NULL for the first one. NULL: none. */
ps_waiter_t *ps_waiters_next(const ps_waiters_t *self, const ps_waiter_t *after,
                             ps_waits_for_t kinds, uint32_t job, uint32_t worker);
/* The number of such waiters. */
size_t ps_waiters_count(const ps_waiters_t *self, ps_waits_for_t kinds, uint32_t job,
                        uint32_t worker);
/* The least job above `after` with waiters of these kinds; 0: none. */
uint32_t ps_waiters_next_job(const ps_waiters_t *self, ps_waits_for_t kinds, uint32_t after);
/* The waiter that is due first, of several the first that came. NULL: none. */
ps_waiter_t *ps_waiters_first_due(const ps_waiters_t *self);

/* PSD_OK when a worker may wait at the job's barrier. Errors: PSD_JOB_STOPPED;
 * PSD_WORKER_LOST it is gone or not live. */
PSD_MUST_CHECK psd_status_t ps_barrier_check(const ps_job_t *job, uint32_t worker,
                                             psd_error_t *err);
/* Every live worker of the job is at its barrier, and at least one waiter. A
 * worker is at it when one of its clients waits there. */
bool ps_barrier_is_complete(const ps_waiters_t *self, const ps_job_t *job);
/* The worker is at the barrier. */
bool ps_barrier_has(const ps_waiters_t *self, uint32_t job, uint32_t worker);
#endif
