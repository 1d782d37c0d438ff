/* SPDX-License-Identifier: Apache-2.0 */
/* The list of requests that wait, and when a barrier is complete. */
#include "protocol/waiters/waiters.h"

#include <inttypes.h>

void ps_waiters_init(ps_waiters_t *self)
{
    TAILQ_INIT(self);
}

void ps_waiters_add(ps_waiters_t *self, ps_waiter_t *waiter)
{
    TAILQ_INSERT_TAIL(self, waiter, link);
}

void ps_waiters_remove(ps_waiters_t *self, ps_waiter_t *waiter)
{
    if (waiter->link.tqe_prev != NULL) {
        TAILQ_REMOVE(self, waiter, link);
        waiter->link.tqe_prev = NULL;
    }
    waiter->kind = 0;
}

static bool is_same_barrier(const ps_waiter_t *a, const ps_waiter_t *b)
{
    return a->kind == PS_FOR_BARRIER && b->kind == PS_FOR_BARRIER && a->job == b->job &&
           a->worker == b->worker && a->number == b->number;
}

ps_waiter_t *ps_waiters_repeat(const ps_waiters_t *self, const ps_waiter_t *waiter)
{
    ps_waiter_t *known = NULL;

    TAILQ_FOREACH(known, self, link)
    {
        if (known->session == waiter->session &&
            (known->id == waiter->id || is_same_barrier(known, waiter))) {
            known->conn = waiter->conn;
            known->id = waiter->id;
            return known;
        }
    }
    return NULL;
}

ps_waiter_t *ps_waiters_next(const ps_waiters_t *self, const ps_waiter_t *after,
                             ps_waits_for_t kinds, uint32_t job, uint32_t worker)
{
    ps_waiter_t *waiter = after == NULL ? TAILQ_FIRST(self) : TAILQ_NEXT(after, link);

    while (waiter != NULL && ((waiter->kind & kinds) == 0 || waiter->job != job ||
                              (worker != PS_ANY_WORKER && waiter->worker != worker))) {
        waiter = TAILQ_NEXT(waiter, link);
    }
    return waiter;
}

size_t ps_waiters_count(const ps_waiters_t *self, ps_waits_for_t kinds, uint32_t job,
                        uint32_t worker)
{
    const ps_waiter_t *waiter = NULL;
    size_t n = 0;

    while ((waiter = ps_waiters_next(self, waiter, kinds, job, worker)) != NULL) {
        n++;
    }
    return n;
}

uint32_t ps_waiters_next_job(const ps_waiters_t *self, ps_waits_for_t kinds, uint32_t after)
{
    const ps_waiter_t *waiter = NULL;
    uint32_t least = 0;

    for (waiter = TAILQ_FIRST(self); waiter != NULL; waiter = TAILQ_NEXT(waiter, link)) {
        if ((waiter->kind & kinds) != 0 && waiter->job > after &&
            (least == 0 || waiter->job < least)) {
            least = waiter->job;
        }
    }
    return least;
}

ps_waiter_t *ps_waiters_first_due(const ps_waiters_t *self)
{
    ps_waiter_t *waiter = NULL;
    ps_waiter_t *first = NULL;

    for (waiter = TAILQ_FIRST(self); waiter != NULL; waiter = TAILQ_NEXT(waiter, link)) {
        if (first == NULL || waiter->due_ms < first->due_ms) {
            first = waiter;
        }
    }
    return first;
}

psd_status_t ps_barrier_check(const ps_job_t *job, uint32_t rank, psd_error_t *err)
{
    const ps_worker_t *worker = ps_job_worker(job, rank);

    if (job->stopped) {
        return psd_error_set(err, PSD_JOB_STOPPED, "job \"%s\" was stopped", job->name);
    }
    if (worker == NULL || !ps_worker_is_live(worker)) {
        return psd_error_set(err, PSD_WORKER_LOST, "worker %" PRIu32 " of job \"%s\" is %s", rank,
                             job->name,
                             worker == NULL ? "gone" : ps_worker_state_name(worker->state));
    }
    return PSD_OK;
}

bool ps_barrier_has(const ps_waiters_t *self, uint32_t job, uint32_t worker)
{
    return ps_waiters_next(self, NULL, PS_FOR_BARRIER, job, worker) != NULL;
}

bool ps_barrier_is_complete(const ps_waiters_t *self, const ps_job_t *job)
{
    for (size_t i = 0; i < job->n_workers; i++) {
        if (ps_worker_is_live(&job->workers[i]) &&
            !ps_barrier_has(self, job->id, job->workers[i].worker)) {
            return false;
        }
    }
    return ps_barrier_has(self, job->id, PS_ANY_WORKER);
}
