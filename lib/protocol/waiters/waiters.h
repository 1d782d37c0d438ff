/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/waiters: requests that wait at the control port
 *
 * It is       Who waits, for what, and when to look again; when a barrier opens.
 * It uses     facts, lib/base.
 * It ignores  What a request does when its turn comes, answers, and sockets.
 * Start at    this header.
 */
/*
 * ps_waiters - the requests that wait for their answer at the control port
 *
 * What     Who waits, for what, since when, and when to look at it again. A
 *          repeated request takes the place of the one that waits.
 * Shape    Lists in order of coming: of all, of those of a job, of those of a
 *          session. Jobs and sessions share lists by their lowest bits, so that
 *          to add a waiter takes no memory.
 * Owner    The lists borrow each waiter until ps_waiters_remove. A waiter is the
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

#define PS_WAITER_SESSIONS 1024 /* lists of sessions; a power of two */
#define PS_WAITER_JOBS 64       /* lists of jobs; a power of two */

typedef struct ps_waiter {
    TAILQ_ENTRY(ps_waiter) link;       /* the lists' … */
    TAILQ_ENTRY(ps_waiter) of_session; /* … */
    TAILQ_ENTRY(ps_waiter) of_job;     /* … only of BARRIER, SLICE and DONE */
    uint64_t conn;
    uint64_t session;
    uint64_t id;         /* of the request */
    const void *op;      /* what the request wants; only compared */
    ps_waits_for_t kind; /* 0: it does not wait */
    uint32_t job;        /* BARRIER, SLICE and DONE, as the following */
    uint32_t worker;
    uint64_t number;   /* BARRIER: as the worker counts */
    const char *queue; /* SLICE and DONE: borrowed from the request */
    uint64_t since_ms;
    uint64_t due_ms; /* when to look at it again, at its deadline at the latest */
} ps_waiter_t;

typedef TAILQ_HEAD(ps_waiter_list, ps_waiter) ps_waiter_list_t;

/* A set of ranks of workers. */
typedef struct ps_ranks {
    uint64_t bits[PS_WORKERS_MAX / 64];
} ps_ranks_t;

bool ps_ranks_has(const ps_ranks_t *self, uint32_t worker);

typedef struct ps_waiters {
    ps_waiter_list_t all; /* readable; the rest is private */
    ps_waiter_list_t of_session[PS_WAITER_SESSIONS];
    ps_waiter_list_t of_job[PS_WAITER_JOBS];
    size_t n_of_job[PS_WAITER_JOBS];
    uint64_t look_ms;  /* no waiter is due before */
    bool walks;        /* over those that are due: … */
    ps_waiter_t *at;   /* … the next to look at; NULL: the end … */
    uint64_t least_ms; /* … and the least due_ms of those that stay */
} ps_waiters_t;

void ps_waiters_init(ps_waiters_t *self);
/* Adds a waiter, with its kind and due_ms set; these stay until it is removed. */
void ps_waiters_add(ps_waiters_t *self, ps_waiter_t *waiter);
/* Takes a waiter out, if it is in, and sets its kind to 0. */
void ps_waiters_remove(ps_waiters_t *self, ps_waiter_t *waiter);
/* The waiter that this request repeats: of its session, op and id, or at a barrier
 * of its session, worker and number. It gets the newest conn and id. NULL: none. */
ps_waiter_t *ps_waiters_repeat(const ps_waiters_t *self, const ps_waiter_t *waiter);
/* The first waiter after `after` of these kinds (of BARRIER, SLICE and DONE), this
 * job and this worker or PS_ANY_WORKER. after: NULL for the first one. NULL: none. */
ps_waiter_t *ps_waiters_next(const ps_waiters_t *self, const ps_waiter_t *after,
                             ps_waits_for_t kinds, uint32_t job, uint32_t worker);
/* Whether there are fewer than max such waiters of the job. */
bool ps_waiters_has_room(const ps_waiters_t *self, ps_waits_for_t kinds, uint32_t job, size_t max);
/* The workers of such waiters. */
void ps_waiters_ranks(const ps_waiters_t *self, ps_waits_for_t kinds, uint32_t job,
                      ps_ranks_t *ret_ranks);
/* The least job above `after` with waiters of these kinds; 0: none. */
uint32_t ps_waiters_next_job(const ps_waiters_t *self, ps_waits_for_t kinds, uint32_t after);
/* No waiter is due before that; perhaps none is then either. PS_NOT_DUE: none is. */
uint64_t ps_waiters_deadline(const ps_waiters_t *self);
/* A walk over those that are due, in order of coming: the next one, NULL at the
 * end. The caller removes each; between two calls any may be removed or added. */
ps_waiter_t *ps_waiters_next_due(ps_waiters_t *self, uint64_t now_ms);
/* All waiters of that kind are due now. */
void ps_waiters_hasten(ps_waiters_t *self, ps_waits_for_t kind);

/* PSD_OK when a worker may wait at the job's barrier. Errors: PSD_JOB_STOPPED;
 * PSD_WORKER_LOST it is gone or not live. */
PSD_MUST_CHECK psd_status_t ps_barrier_check(const ps_job_t *job, uint32_t worker,
                                             psd_error_t *err);
/* Every live worker of the job is at its barrier, and at least one waiter. A
 * worker is at it when one of its clients waits there. */
bool ps_barrier_is_complete(const ps_waiters_t *self, const ps_job_t *job);
#endif
