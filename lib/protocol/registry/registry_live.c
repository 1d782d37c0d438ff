/* SPDX-License-Identifier: Apache-2.0 */
/* Which workers are alive: heartbeats, and workers silent for too long. Nothing
 * here is stored; plans store the consequences. */
#include "protocol/registry/registry_job.h"

psd_status_t ps_registry_heartbeat(ps_registry_t *self, uint32_t job, uint32_t worker,
                                   uint32_t joins, uint64_t clock, uint64_t now_ms,
                                   psd_error_t *err)
{
    const ps_job_entry_t *entry = NULL;
    const ps_worker_t *found = NULL;
    ps_seen_t *seen = NULL;
    psd_status_t rc = ps_registry_worker(self, job, worker, &entry, &found, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (found->state == PS_WORKER_LOST || (joins != 0 && joins != found->joins)) {
        return psd_error_set(err, PSD_WORKER_LOST, "worker %u of job %s was declared lost", worker,
                             entry->job.name);
    }
    if (found->state == PS_WORKER_EXPECTED) {
        return ps_not_there(entry, found, err);
    }
    if (found->state != PS_WORKER_FINISHED) {
        seen = &entry->seen[found - entry->job.workers];
        seen->since_ms = now_ms;
        seen->clock = clock;
        seen->heard = true;
    }
    return PSD_OK;
}

/* Its live workers are waited for. A job that was resumed waits for its first one. */
static bool is_watched(const ps_job_entry_t *entry)
{
    return entry->n_live > 0 && !ps_job_is_untouched(&entry->job);
}

/* When a live worker will have been silent for too long. */
static uint64_t due_of(const ps_registry_t *self, const ps_job_entry_t *entry, size_t i)
{
    uint64_t patience = entry->job.workers[i].state == PS_WORKER_EXPECTED
                            ? self->args.join_within_ms
                            : self->args.lost_after_ms;
    uint64_t since = entry->seen[i].since_ms;

    return since > UINT64_MAX - patience ? UINT64_MAX : since + patience;
}

bool ps_registry_overdue(const ps_registry_t *self, uint64_t now_ms, uint32_t *ret_job,
                         uint32_t *ret_worker)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        const ps_job_entry_t *entry = &self->jobs[i];
        size_t n = is_watched(entry) ? entry->job.n_workers : 0;

        for (size_t j = 0; j < n; j++) {
            const ps_worker_t *worker = &entry->job.workers[j];

            if (ps_worker_is_live(worker) && due_of(self, entry, j) <= now_ms) {
                *ret_job = entry->job.id;
                *ret_worker = worker->worker;
                return true;
            }
        }
    }
    return false;
}

uint64_t ps_registry_deadline(const ps_registry_t *self)
{
    uint64_t deadline = UINT64_MAX;

    for (size_t i = 0; i < self->n_jobs; i++) {
        const ps_job_entry_t *entry = &self->jobs[i];
        size_t n = is_watched(entry) ? entry->job.n_workers : 0;

        for (size_t j = 0; j < n; j++) {
            if (ps_worker_is_live(&entry->job.workers[j]) && due_of(self, entry, j) < deadline) {
                deadline = due_of(self, entry, j);
            }
        }
    }
    return deadline;
}

bool ps_registry_last_seen(const ps_registry_t *self, uint32_t job, uint32_t worker,
                           uint64_t *ret_seen_ms, uint64_t *ret_clock)
{
    const ps_job_entry_t *entry = NULL;
    const ps_worker_t *found = NULL;
    const ps_seen_t *seen = NULL;

    if (ps_registry_worker(self, job, worker, &entry, &found, NULL) != PSD_OK) {
        return false;
    }
    seen = &entry->seen[found - entry->job.workers];
    if (!seen->heard) {
        return false;
    }
    *ret_seen_ms = seen->since_ms;
    *ret_clock = seen->clock;
    return true;
}

void ps_registry_set_node_up(ps_registry_t *self, uint64_t incarnation, bool up, uint64_t seen_ms)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_node_t *node = &self->nodes[i];

        if (node->incarnation == incarnation) {
            node->up = up;
            node->last_seen_ms = seen_ms;
        }
    }
}
