/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_job_view - one job at this moment: clocks, and which worker waits for
 * which
 *
 * What     Merges the registry's job, the clocks and held requests that the
 *          shards report, and the state of its barrier, by worker.
 * Owner    The caller; ps_job_view_done frees it. Borrows from the registry
 *          until its next change, and the answers.
 */
#ifndef PS_SERVER_JOB_VIEW_H
#define PS_SERVER_JOB_VIEW_H

#include "server/nodes/watch.h"
#include "server/shards/shards.h"
#include "protocol/registry/registry_work.h"
#include "protocol/waiters/waiters.h"

#define PS_HOLDER_SIZE 160
#define PS_WHERE_SIZE 192

/* What a worker has waited for longest. */
typedef enum ps_wait_kind {
    PS_WAIT_NONE = 0,
    PS_WAIT_PULL = 1,
    PS_WAIT_PUSH = 2, /* or a mark */
    PS_WAIT_BARRIER = 3,
    PS_WAIT_SLICE = 4 /* of a work queue */
} ps_wait_kind_t;

typedef struct ps_worker_view {
    const ps_worker_t *is;
    uint64_t clock;   /* finished, as far as known */
    bool seen;        /* it has sent a heartbeat */
    uint64_t seen_ms; /* boot clock of the last one */
    ps_wait_kind_t wait;
    uint64_t since_ms;  /* boot clock */
    uint32_t shard;     /* PULL, PUSH: where, in the order of the answers */
    uint64_t for_clock; /* the clock that every worker must have finished */
    uint32_t table;
    uint32_t partition;
    bool adds_up;                     /* PULL, PUSH: relays may bring deltas of that table */
    const char *queue;                /* SLICE; borrowed from the waiter */
    char reason[PS_WAIT_REASON_SIZE]; /* PULL, PUSH: what of the partition it
                                         waits for, nodes by name; "": clocks
                                         only */
} ps_worker_view_t;

typedef struct ps_job_view {
    const ps_registry_t *registry;
    const ps_job_t *job;
    const ps_waiters_t *waiters;
    ps_worker_view_t *workers; /* owned; as job->workers */
    uint64_t min;              /* clocks of the live workers, or of all */
    uint64_t max;
    uint32_t n_waiting;
    ps_ranks_t at_barrier;
    uint64_t now_ms;
    const ps_answers_t *answers; /* borrowed; of all shards, WAITING */
    const ps_watch_t *watch;     /* borrowed; for the caller to set. NULL: it says nothing of
                                    relays */
} ps_job_view_t;

/* Neither stopped nor ended. */
bool ps_job_runs(const ps_registry_t *registry, const ps_job_t *job);

/* answers are those of WAITING about the job. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_job_view_init(ps_job_view_t *self, const ps_registry_t *registry,
                                             const ps_waiters_t *waiters,
                                             const ps_answers_t *answers, const ps_job_t *job,
                                             psd_error_t *err);
void ps_job_view_done(ps_job_view_t *self);

/* Whether the i-th worker holds up the wait of another, and at which clock. */
bool ps_job_view_holds(const ps_job_view_t *self, const ps_worker_view_t *waiter, size_t i,
                       uint64_t *ret_clock);
/* How the i-th worker, at that clock, holds up the wait of another: as ps_holder_print; or, where
 * it has finished the clock and its push is on its way through relays, "the push of worker 1 (with
 * the relay of worker 0 for 1.2 s, which waits for worker 3)". */
void ps_job_view_print(const ps_job_view_t *self, const ps_worker_view_t *waiter, size_t i,
                       uint64_t clock, char ret_text[PS_HOLDER_SIZE]);
/* "table w partition 3", "barrier", or "queue input". */
void ps_job_view_where(const ps_job_view_t *self, const ps_worker_view_t *waiter,
                       char ret_text[PS_WHERE_SIZE]);
/* "worker 3 at clock 10 (last seen 2.1 s ago)", "worker 4 (not joined yet)" */
void ps_holder_print(const ps_registry_t *registry, uint32_t job, const ps_worker_t *worker,
                     uint64_t clock, char *ret_text, size_t size);
/* "running", "waiting", "expected", "joining", "finished", "lost" */
const char *ps_worker_view_state(const ps_worker_view_t *self);
#endif
