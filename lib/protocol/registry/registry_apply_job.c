/* SPDX-License-Identifier: Apache-2.0 */
/* Checked commands about jobs: who works, what is open, what is forgotten. */
#include "protocol/registry/registry_job.h"
#include "protocol/registry/registry_queue.h"

#include <string.h>

#include "base/alloc.h"

/* Signs of life belong to one life of a worker; a new state begins a new wait
 * for the next one. That it runs a worker says itself. */
static ps_seen_t seen_of(const ps_job_entry_t *known, const ps_worker_t *worker, uint64_t now_ms)
{
    const ps_worker_t *old = known == NULL ? NULL : ps_job_worker(&known->job, worker->worker);
    ps_seen_t seen = {.since_ms = now_ms};

    if (old == NULL || old->joins != worker->joins) {
        return seen;
    }
    seen = known->seen[old - known->job.workers];
    if (old->state != worker->state && ps_worker_is_live(worker)) {
        seen.since_ms = now_ms;
        seen.heard = seen.heard || worker->state == PS_WORKER_RUNNING;
    }
    return seen;
}

/* Builds the entry's new job beside its old one. */
static psd_status_t renew_entry(const ps_job_entry_t *known, const ps_command_t *command,
                                uint64_t now_ms, ps_job_entry_t *ret_entry, psd_error_t *err)
{
    ps_job_entry_t entry = {.n_expected = command->n_expected,
                            .created_unix_ms = command->created_unix_ms};
    psd_status_t rc = ps_job_copy(&command->job, &entry.job, err);

    if (rc != PSD_OK) {
        return rc;
    }
    entry.seen = ps_alloc(entry.job.n_workers, sizeof *entry.seen);
    if (entry.seen == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for %zu workers of job %s",
                           entry.job.n_workers, entry.job.name);
        ps_job_entry_done(&entry);
        return rc;
    }
    if (known != NULL && ps_job_is_untouched(&known->job)) {
        known = NULL; /* from now on the others are waited for */
    }
    for (size_t i = 0; i < entry.job.n_workers; i++) {
        entry.seen[i] = seen_of(known, &entry.job.workers[i], now_ms);
        entry.n_live += ps_worker_is_live(&entry.job.workers[i]) ? 1 : 0;
    }
    *ret_entry = entry;
    return PSD_OK;
}

static void remove_entry(ps_registry_t *self, size_t at)
{
    ps_job_entry_done(&self->jobs[at]);
    memmove(&self->jobs[at], &self->jobs[at + 1], (self->n_jobs - at - 1) * sizeof *self->jobs);
    self->n_jobs--;
}

/* Forgets the job that ended first when more are remembered than shall be. The
 * registry's database does the same in SQL. */
static void forget_ended(ps_registry_t *self)
{
    size_t n_ended = 0;
    size_t oldest = 0;

    for (size_t i = 0; i < self->n_jobs; i++) {
        uint64_t ended = self->jobs[i].ended;

        if (ended == 0) {
            continue;
        }
        if (n_ended == 0 || ended < self->jobs[oldest].ended) {
            oldest = i;
        }
        n_ended++;
    }
    if (n_ended > PS_JOBS_ENDED_MAX) {
        remove_entry(self, oldest);
    }
}

/* Room and a place for a job that is new. */
static void insert_entry(ps_registry_t *self, const ps_job_entry_t *entry)
{
    size_t at = self->n_jobs;

    while (at > 0 && self->jobs[at - 1].job.id > entry->job.id) {
        self->jobs[at] = self->jobs[at - 1];
        at--;
    }
    self->jobs[at] = *entry;
    self->n_jobs++;
    if (self->last_job < entry->job.id) {
        self->last_job = entry->job.id;
    }
}

psd_status_t ps_registry_apply_job(ps_registry_t *self, const ps_command_t *command,
                                   uint64_t now_ms, psd_error_t *err)
{
    ps_job_entry_t *known = NULL;
    ps_job_entry_t entry = {0};
    psd_status_t rc = PSD_OK;

    if (!ps_grow(&self->jobs, &self->max_jobs, self->n_jobs + 1, sizeof *self->jobs)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for job %s", command->job.name);
    }
    known = ps_registry_find_job(self, command->job.id);
    rc = renew_entry(known, command, now_ms, &entry, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_registry_make_resumed(command, &entry, err);
    if (rc != PSD_OK) {
        ps_job_entry_done(&entry);
        return rc;
    }
    if (known != NULL) {
        entry.ended = known->ended;
        entry.tables = known->tables;
        entry.n_tables = known->n_tables;
        entry.max_tables = known->max_tables;
        entry.queues = known->queues;
        entry.n_queues = known->n_queues;
        entry.max_queues = known->max_queues;
        known->tables = NULL; /* they moved to the new entry */
        known->queues = NULL;
        known->n_queues = 0;
        ps_job_entry_done(known);
    }
    ps_job_return_work(&entry);
    if (entry.n_live == 0 && entry.ended == 0) {
        entry.ended = ++self->n_ended;
    }
    if (known != NULL) {
        *known = entry;
    } else {
        insert_entry(self, &entry);
    }
    forget_ended(self);
    return PSD_OK;
}

psd_status_t ps_registry_apply_job_table(ps_registry_t *self, const ps_command_t *command,
                                         psd_error_t *err)
{
    ps_job_entry_t *entry = ps_registry_find_job(self, command->job.id);

    if (!ps_grow(&entry->tables, &entry->max_tables, entry->n_tables + 1, sizeof *entry->tables)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the tables of job %s", entry->job.name);
    }
    entry->tables[entry->n_tables++] = (uint32_t)command->number;
    if (command->told) {
        ps_registry_find_table(self, (uint32_t)command->number)->lost_jobs = 0;
    }
    entry->job.version = command->job.version;
    return PSD_OK;
}

void ps_registry_close_table(ps_registry_t *self, uint32_t table)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        ps_job_entry_t *entry = &self->jobs[i];
        size_t kept = 0;

        for (size_t j = 0; j < entry->n_tables; j++) {
            if (entry->tables[j] != table) {
                entry->tables[kept++] = entry->tables[j];
            }
        }
        if (kept < entry->n_tables) {
            entry->n_tables = kept;
            entry->job.version++;
        }
    }
}
