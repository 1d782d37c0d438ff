/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of requests that wait, and when a barrier is complete. */
#include "protocol/waiters/waiters.h"

#include <inttypes.h>

bool ps_ranks_has(const ps_ranks_t *self, uint32_t worker)
{
    return worker < PS_WORKERS_MAX && (self->bits[worker / 64] >> (worker % 64) & 1) != 0;
}

/* ---- who waits ---- */

static ps_waiter_list_t *list_of_session(ps_waiters_t *self, uint64_t session)
{
    return &self->of_session[session % PS_WAITER_SESSIONS];
}

void ps_waiters_init(ps_waiters_t *self)
{
    *self = (ps_waiters_t){.look_ms = PS_NOT_DUE, .least_ms = PS_NOT_DUE};
    TAILQ_INIT(&self->all);
    for (size_t i = 0; i < PS_WAITER_SESSIONS; i++) {
        TAILQ_INIT(&self->of_session[i]);
    }
    for (size_t i = 0; i < PS_WAITER_JOBS; i++) {
        TAILQ_INIT(&self->of_job[i]);
    }
}

/* The lower bounds, in a walk too. */
static void expect(ps_waiters_t *self, uint64_t due_ms)
{
    self->look_ms = due_ms < self->look_ms ? due_ms : self->look_ms;
    self->least_ms = due_ms < self->least_ms ? due_ms : self->least_ms;
}

void ps_waiters_add(ps_waiters_t *self, ps_waiter_t *waiter)
{
    size_t job = waiter->job % PS_WAITER_JOBS;

    TAILQ_INSERT_TAIL(&self->all, waiter, link);
    TAILQ_INSERT_TAIL(list_of_session(self, waiter->session), waiter, of_session);
    if ((waiter->kind & (PS_FOR_BARRIER | PS_FOR_WORK)) != 0) {
        TAILQ_INSERT_TAIL(&self->of_job[job], waiter, of_job);
        self->n_of_job[job]++;
    }
    if (self->walks && self->at == NULL) {
        self->at = waiter;
    }
    expect(self, waiter->due_ms);
}

void ps_waiters_remove(ps_waiters_t *self, ps_waiter_t *waiter)
{
    size_t job = waiter->job % PS_WAITER_JOBS;

    if (waiter->link.tqe_prev != NULL) {
        if (self->at == waiter) {
            self->at = TAILQ_NEXT(waiter, link);
        }
        TAILQ_REMOVE(&self->all, waiter, link);
        TAILQ_REMOVE(list_of_session(self, waiter->session), waiter, of_session);
        waiter->link.tqe_prev = NULL;
    }
    if (waiter->of_job.tqe_prev != NULL) {
        TAILQ_REMOVE(&self->of_job[job], waiter, of_job);
        waiter->of_job.tqe_prev = NULL;
        self->n_of_job[job]--;
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

    TAILQ_FOREACH(known, &self->of_session[waiter->session % PS_WAITER_SESSIONS], of_session)
    {
        if (known->session == waiter->session &&
            ((known->id == waiter->id && known->op == waiter->op) ||
             is_same_barrier(known, waiter))) {
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
    ps_waiter_t *waiter = after == NULL ? TAILQ_FIRST(&self->of_job[job % PS_WAITER_JOBS])
                                        : TAILQ_NEXT(after, of_job);

    while (waiter != NULL && ((waiter->kind & kinds) == 0 || waiter->job != job ||
                              (worker != PS_ANY_WORKER && waiter->worker != worker))) {
        waiter = TAILQ_NEXT(waiter, of_job);
    }
    return waiter;
}

bool ps_waiters_has_room(const ps_waiters_t *self, ps_waits_for_t kinds, uint32_t job, size_t max)
{
    const ps_waiter_t *waiter = NULL;
    size_t n = 0;

    if (self->n_of_job[job % PS_WAITER_JOBS] < max) {
        return true;
    }
    while (n < max && (waiter = ps_waiters_next(self, waiter, kinds, job, PS_ANY_WORKER)) != NULL) {
        n++;
    }
    return n < max;
}

void ps_waiters_ranks(const ps_waiters_t *self, ps_waits_for_t kinds, uint32_t job,
                      ps_ranks_t *ret_ranks)
{
    const ps_waiter_t *waiter = NULL;

    *ret_ranks = (ps_ranks_t){.bits = {0}};
    while ((waiter = ps_waiters_next(self, waiter, kinds, job, PS_ANY_WORKER)) != NULL) {
        if (waiter->worker < PS_WORKERS_MAX) {
            ret_ranks->bits[waiter->worker / 64] |= UINT64_C(1) << (waiter->worker % 64);
        }
    }
}

uint32_t ps_waiters_next_job(const ps_waiters_t *self, ps_waits_for_t kinds, uint32_t after)
{
    const ps_waiter_t *waiter = NULL;
    uint32_t least = UINT32_MAX;

    TAILQ_FOREACH(waiter, &self->all, link)
    {
        if ((waiter->kind & kinds) != 0 && waiter->job > after && waiter->job < least) {
            least = waiter->job;
        }
    }
    return least == UINT32_MAX ? 0 : least;
}

/* ---- who is due ---- */

uint64_t ps_waiters_deadline(const ps_waiters_t *self)
{
    return self->look_ms;
}

ps_waiter_t *ps_waiters_next_due(ps_waiters_t *self, uint64_t now_ms)
{
    if (!self->walks) {
        if (self->look_ms > now_ms) {
            return NULL;
        }
        self->walks = true;
        self->at = TAILQ_FIRST(&self->all);
        self->least_ms = PS_NOT_DUE;
    }
    while (self->at != NULL) {
        ps_waiter_t *waiter = self->at;

        self->at = TAILQ_NEXT(waiter, link);
        if (waiter->due_ms <= now_ms) {
            return waiter;
        }
        self->least_ms = waiter->due_ms < self->least_ms ? waiter->due_ms : self->least_ms;
    }
    self->walks = false;
    self->look_ms = self->least_ms;
    return NULL;
}

void ps_waiters_hasten(ps_waiters_t *self, ps_waits_for_t kind)
{
    ps_waiter_t *waiter = NULL;

    TAILQ_FOREACH(waiter, &self->all, link)
    {
        if (waiter->kind == kind) {
            waiter->due_ms = 0;
            expect(self, 0);
        }
    }
}

/* ---- barriers ---- */

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

bool ps_barrier_is_complete(const ps_waiters_t *self, const ps_job_t *job)
{
    ps_ranks_t here;
    size_t n_live = 0;

    for (size_t i = 0; i < job->n_workers; i++) {
        n_live += ps_worker_is_live(&job->workers[i]) ? 1 : 0;
    }
    if (self->n_of_job[job->id % PS_WAITER_JOBS] < n_live) {
        return false; /* most often */
    }
    ps_waiters_ranks(self, PS_FOR_BARRIER, job->id, &here);
    for (size_t i = 0; i < job->n_workers; i++) {
        if (ps_worker_is_live(&job->workers[i]) && !ps_ranks_has(&here, job->workers[i].worker)) {
            return false;
        }
    }
    return ps_waiters_next(self, NULL, PS_FOR_BARRIER, job->id, PS_ANY_WORKER) != NULL;
}
