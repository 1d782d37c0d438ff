/* SPDX-License-Identifier: Apache-2.0 */
/* How many clocks workers finish while they wait for a slice. When all of
 * them wait, no worker needs more clocks, but a checkpoint needs them at its
 * boundary. */
#include "server/state/control_inner.h"

#define AHEAD 8 /* clocks that a worker may finish before it asks again */

/* Whether any worker does something other than wait for a slice. Another
 * thread of the asking worker counts too: they share the worker's clock. */
static bool somebody_works(const ps_control_t *self, const ps_job_t *job)
{
    uint32_t n_waiting[PS_WORKERS_MAX] = {0}; /* clients, by rank */
    const ps_waiter_t *waiter = NULL;
    bool found = false;

    while ((waiter = ps_waiters_next(&self->waiters, waiter, PS_FOR_SLICE, job->id,
                                     PS_ANY_WORKER)) != NULL) {
        n_waiting[waiter->worker]++; /* the request was checked */
    }
    for (size_t i = 0; !found && i < job->n_workers; i++) {
        const ps_worker_t *other = &job->workers[i];

        found = other->state == PS_WORKER_RUNNING && n_waiting[other->worker] < other->n_members;
    }
    return found;
}

psd_status_t ps_control_work_idle(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    const ps_checkpoint_work_t *checkpoint = &self->checkpoint;
    const ps_job_t *job = NULL;
    uint64_t worker = 0;
    uint64_t clock = 0;
    psd_status_t rc = ps_control_find_job(self, request->doc, &job, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(request->doc, "worker", 0, PS_WORKERS_MAX - 1, &worker, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(request->doc, "clock", 0, INT64_MAX, &clock, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (somebody_works(self, job)) {
        clock += AHEAD;
    } else if (checkpoint->number != 0 && checkpoint->holds_work && checkpoint->job == job->id &&
               checkpoint->clock > clock) {
        clock = checkpoint->clock;
    }
    return ps_doc_set_u64(request->reply, "clock", clock) ? PSD_OK : ps_control_no_memory(err);
}
