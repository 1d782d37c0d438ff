/* SPDX-License-Identifier: Apache-2.0 */
/* A job changes: updates its gates, and held requests may go on. */
#include "base/alloc.h"
#include "protocol/shard/shard_state.h"

#define ENDED_JOBS_MAX 256 /* jobs kept so that their late workers get an answer */

void ps_shard_job_destroy(ps_job_t **self_p)
{
    if (*self_p != NULL) {
        ps_job_done(*self_p);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

static psd_status_t visit_job(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                              psd_error_t *err)
{
    return ps_partition_job(&self->step, partition, arg, err);
}

static psd_status_t visit_advance(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                                  psd_error_t *err)
{
    (void)arg;
    (void)err;
    ps_partition_advance(&self->step, partition);
    return PSD_OK;
}

static psd_status_t visit_forget(ps_shard_t *self, ps_partition_t *partition, const void *arg,
                                 psd_error_t *err)
{
    const ps_job_t *job = arg;

    (void)err;
    ps_partition_forget_job(&self->step, partition, job->id);
    return PSD_OK;
}

/* Forgets the oldest ended jobs above ENDED_JOBS_MAX. */
static void forget_ended_jobs(ps_shard_t *self)
{
    while (self->step.jobs.count > ENDED_JOBS_MAX) {
        ps_job_t *oldest = NULL;
        psd_status_t rc = PSD_OK;
        size_t at = 0;
        uint64_t id = 0;
        void *value = NULL;

        while (ps_map_next(&self->step.jobs, &at, &id, &value)) {
            ps_job_t *job = value;

            if (ps_job_has_ended(job) && (oldest == NULL || job->id < oldest->id)) {
                oldest = job;
            }
        }
        if (oldest == NULL) {
            return;
        }
        (void)ps_map_remove(&self->step.jobs, oldest->id);
        rc = ps_shard_visit(self, visit_forget, oldest, NULL);
        (void)rc; /* forgetting does not fail */
        ps_shard_job_destroy(&oldest);
    }
}

psd_status_t ps_shard_step_job(ps_shard_t *self, const ps_job_t *job, psd_error_t *err)
{
    ps_job_t *known = ps_map_get(&self->step.jobs, job->id);
    ps_job_t *fresh = NULL;
    psd_status_t rc;

    if (known != NULL && known->version >= job->version) {
        return PSD_OK;
    }
    fresh = ps_alloc(1, sizeof *fresh);
    if (fresh == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a job");
    }
    rc = ps_job_copy(job, fresh, err);
    if (rc == PSD_OK) {
        rc = ps_shard_visit(self, visit_job, job, err);
    }
    if (rc == PSD_OK && !ps_map_put(&self->step.jobs, job->id, fresh)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a job");
    }
    if (rc != PSD_OK) {
        ps_shard_job_destroy(&fresh);
        return psd_error_wrap(err, rc, "job %s", job->name);
    }
    ps_shard_job_destroy(&known);
    forget_ended_jobs(self);
    return ps_shard_visit(self, visit_advance, NULL, err);
}
