/* SPDX-License-Identifier: Apache-2.0 */
/* A job's workers as a plain value. */
#include "protocol/facts/job.h"

#include <inttypes.h>

#include <string.h>

#include "base/alloc.h"

void ps_job_done(ps_job_t *self)
{
    ps_free(self->workers);
    *self = (ps_job_t){0};
}

psd_status_t ps_job_copy(const ps_job_t *self, ps_job_t *ret_job, psd_error_t *err)
{
    ps_worker_t *workers = NULL;

    if (self->n_workers > 0) {
        workers = ps_alloc_raw(self->n_workers, sizeof *workers);
        if (workers == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for %zu workers of job %s",
                                 self->n_workers, self->name);
        }
        memcpy(workers, self->workers, self->n_workers * sizeof *workers);
    }
    *ret_job = *self;
    ret_job->workers = workers;
    return PSD_OK;
}

psd_status_t ps_job_merge(const ps_job_t *known, const ps_job_t *changed, ps_job_t *ret_job,
                          psd_error_t *err)
{
    ps_worker_t *workers = ps_alloc(known->n_workers + changed->n_workers, sizeof *workers);
    size_t n = 0;
    size_t k = 0;

    if (workers == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the workers of job %s", known->name);
    }
    for (size_t i = 0; i < changed->n_workers; i++) {
        const ps_worker_t *worker = &changed->workers[i];

        while (k < known->n_workers && known->workers[k].worker < worker->worker) {
            workers[n++] = known->workers[k++];
        }
        if (k < known->n_workers && known->workers[k].worker == worker->worker) {
            k++;
        }
        workers[n++] = *worker;
    }
    while (k < known->n_workers) {
        workers[n++] = known->workers[k++];
    }
    *ret_job = *changed;
    ret_job->workers = workers;
    ret_job->n_workers = n;
    return PSD_OK;
}

psd_status_t ps_job_check(const ps_job_t *self, psd_error_t *err)
{
    if (self->id == 0) {
        return psd_error_set(err, PSD_PROTO, "a job is 0; allowed: 1 and up");
    }
    for (size_t i = 0; i < self->n_workers; i++) {
        const ps_worker_t *worker = &self->workers[i];

        if (worker->worker >= PS_WORKERS_MAX ||
            (i > 0 && worker->worker <= self->workers[i - 1].worker)) {
            return psd_error_set(err, PSD_PROTO,
                                 "a job's worker is %" PRIu32 "; allowed: ascending, below %d",
                                 worker->worker, PS_WORKERS_MAX);
        }
        if (worker->state < PS_WORKER_EXPECTED || worker->state > PS_WORKER_LOST ||
            worker->n_members > PS_MEMBERS_MAX) {
            return psd_error_set(err, PSD_PROTO,
                                 "worker %" PRIu32 " has state %d and %" PRIu32
                                 " members; allowed: 1..5 and at most %d",
                                 worker->worker, (int)worker->state, worker->n_members,
                                 PS_MEMBERS_MAX);
        }
    }
    return PSD_OK;
}

ps_worker_t *ps_job_worker(const ps_job_t *self, uint32_t worker)
{
    size_t low = 0;
    size_t high = self->n_workers;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->workers[middle].worker < worker) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < self->n_workers && self->workers[low].worker == worker) {
        return &self->workers[low];
    }
    return NULL;
}

const char *ps_worker_state_name(ps_worker_state_t state)
{
    switch (state) {
    case PS_WORKER_EXPECTED:
        return "expected";
    case PS_WORKER_JOINING:
        return "joining";
    case PS_WORKER_RUNNING:
        return "running";
    case PS_WORKER_FINISHED:
        return "finished";
    case PS_WORKER_LOST:
        return "lost";
    default:
        return "?";
    }
}

bool ps_job_has_ended(const ps_job_t *self)
{
    for (size_t i = 0; i < self->n_workers; i++) {
        if (ps_worker_is_live(&self->workers[i])) {
            return false;
        }
    }
    return true;
}

bool ps_job_is_untouched(const ps_job_t *self)
{
    for (size_t i = 0; i < self->n_workers; i++) {
        if (self->workers[i].state != PS_WORKER_EXPECTED) {
            return false;
        }
    }
    return true;
}

bool ps_worker_is_live(const ps_worker_t *self)
{
    return self->state == PS_WORKER_EXPECTED || self->state == PS_WORKER_JOINING ||
           self->state == PS_WORKER_RUNNING;
}
