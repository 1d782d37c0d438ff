/* SPDX-License-Identifier: Apache-2.0 */
/* Applies checked commands about jobs: workers, open tables, forgotten jobs. */
#include "protocol/registry/registry_job.h"
#include "protocol/registry/registry_journal.h"

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

static psd_status_t no_memory(const char *job, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for job %s", job);
}

/* Forgets the job that ended first when more than PS_JOBS_ENDED_MAX are
 * kept. */
static psd_status_t forget_ended(ps_registry_t *self, psd_error_t *err)
{
    size_t n_ended = 0;
    size_t oldest = 0;
    ps_job_entry_t *entry = NULL;
    size_t n_behind = 0;

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
    if (n_ended <= PS_JOBS_ENDED_MAX) {
        return PSD_OK;
    }
    entry = &self->jobs[oldest];
    n_behind = self->n_jobs - oldest - 1;
    if (!ps_journal_save(self, entry, (n_behind + 1) * sizeof *entry)) {
        return no_memory(entry->job.name, err);
    }
    ps_touch(self, PS_ROW_JOB, entry->job.id);
    self->journal->job_forgotten = *entry;
    memmove(entry, entry + 1, n_behind * sizeof *entry);
    self->n_jobs--;
    return PSD_OK;
}

/* A place for a job that is new; NULL: no memory. */
static ps_job_entry_t *insert_entry(ps_registry_t *self, const ps_job_entry_t *entry)
{
    size_t at = self->n_jobs;
    ps_job_entry_t *place = NULL;

    while (at > 0 && self->jobs[at - 1].job.id > entry->job.id) {
        at--;
    }
    place = &self->jobs[at];
    if (!ps_journal_save(self, place, (self->n_jobs - at) * sizeof *place)) {
        return NULL;
    }
    memmove(place + 1, place, (self->n_jobs - at) * sizeof *place);
    *place = *entry;
    self->n_jobs++;
    if (self->last_job < entry->job.id) {
        self->last_job = entry->job.id;
    }
    return place;
}

/* What is new of a job comes in the place of what was; its tables and queues
 * stay. NULL: no memory. */
static ps_job_entry_t *replace_entry(ps_registry_t *self, ps_job_entry_t *known,
                                     const ps_job_entry_t *entry)
{
    ps_job_entry_t *out = &self->journal->job_out;

    if (!ps_journal_save(self, known, sizeof *known)) {
        return NULL;
    }
    *out = *known;
    *known = *entry;
    known->ended = out->ended;
    known->tables = out->tables;
    known->n_tables = out->n_tables;
    known->max_tables = out->max_tables;
    known->queues = out->queues;
    known->n_queues = out->n_queues;
    known->max_queues = out->max_queues;
    out->tables = NULL;
    out->queues = NULL;
    out->n_queues = 0;
    return known;
}

static bool differs(const ps_worker_t *a, const ps_worker_t *b)
{
    return a->worker != b->worker || a->state != b->state || a->n_members != b->n_members ||
           a->joins != b->joins || a->start != b->start;
}

/* The rows of a job that changed; `old` are its workers before. */
static void touch_job(ps_registry_t *self, const ps_job_entry_t *entry, const ps_job_t *old)
{
    ps_touch(self, PS_ROW_JOB, entry->job.id);
    for (size_t i = 0; i < entry->job.n_workers; i++) {
        const ps_worker_t *worker = &entry->job.workers[i];
        const ps_worker_t *was = i < old->n_workers && old->workers[i].worker == worker->worker
                                     ? &old->workers[i]
                                     : ps_job_worker(old, worker->worker);

        if (was == NULL || differs(was, worker)) {
            ps_touch(self, PS_ROW_WORKER, entry->job.id, worker->worker);
        }
    }
}

/* Queues that a job goes on with. */
static void touch_resumed(ps_registry_t *self, const ps_command_t *command)
{
    uint32_t job = command->job.id;

    for (size_t i = 0; i < command->n_resumed; i++) {
        ps_touch(self, PS_ROW_QUEUE, job, i + 1);
        for (uint32_t k = 0; k < command->resumed[i].n_done; k++) {
            ps_touch(self, PS_ROW_DONE, job, i + 1, command->resumed[i].done[k]);
        }
    }
}

psd_status_t ps_command_apply_job(ps_registry_t *self, const ps_command_t *command,
                                  psd_error_t *err)
{
    ps_job_entry_t *known = ps_registry_find_job(self, command->job.id);
    ps_job_entry_t *entry = &self->journal->job_in;
    psd_status_t rc = renew_entry(known, command, self->journal->now_ms, entry, err);

    if (rc == PSD_OK) {
        rc = ps_registry_make_resumed(command, entry, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    entry = known == NULL ? insert_entry(self, entry) : replace_entry(self, known, entry);
    if (entry == NULL) {
        return no_memory(command->job.name, err);
    }
    touch_job(self, entry, &self->journal->job_out.job);
    touch_resumed(self, command);
    rc = ps_job_return_work(self, entry, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (entry->ended == 0) {
        entry->ended = command->ended;
    }
    if (entry->n_live == 0 && entry->ended == 0) {
        entry->ended = self->n_ended + 1;
    }
    self->n_ended = entry->ended > self->n_ended ? entry->ended : self->n_ended;
    return forget_ended(self, err);
}

psd_status_t ps_command_apply_job_table(ps_registry_t *self, const ps_command_t *command,
                                        psd_error_t *err)
{
    ps_job_entry_t *entry = ps_registry_find_job(self, command->job.id);
    ps_table_t *table = ps_registry_find_table(self, (uint32_t)command->number);

    assert(entry != NULL && table != NULL); /* it was checked */
    if (!ps_grow(&entry->tables, &entry->max_tables, entry->n_tables + 1, sizeof *entry->tables) ||
        !ps_journal_save(self, entry, sizeof *entry) ||
        !ps_journal_save(self, table, sizeof *table)) {
        return no_memory(entry->job.name, err);
    }
    entry->tables[entry->n_tables++] = table->id;
    entry->job.version = command->job.version;
    ps_touch(self, PS_ROW_JOB, entry->job.id);
    ps_touch(self, PS_ROW_JOB_TABLE, entry->job.id);
    if (command->told) {
        table->lost_jobs = 0;
        ps_touch(self, PS_ROW_TABLE, table->id);
    }
    return PSD_OK;
}

static bool has_open(const ps_job_entry_t *entry, uint32_t table)
{
    for (size_t i = 0; i < entry->n_tables; i++) {
        if (entry->tables[i] == table) {
            return true;
        }
    }
    return false;
}

psd_status_t ps_registry_close_table(ps_registry_t *self, uint32_t table, psd_error_t *err)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        ps_job_entry_t *entry = &self->jobs[i];
        size_t kept = 0;

        if (!has_open(entry, table)) {
            continue;
        }
        if (!ps_journal_save(self, entry, sizeof *entry) ||
            !ps_journal_save(self, entry->tables, entry->n_tables * sizeof *entry->tables)) {
            return no_memory(entry->job.name, err);
        }
        for (size_t j = 0; j < entry->n_tables; j++) {
            if (entry->tables[j] != table) {
                entry->tables[kept++] = entry->tables[j];
            }
        }
        entry->n_tables = kept;
        entry->job.version++;
        ps_touch(self, PS_ROW_JOB, entry->job.id);
        ps_touch(self, PS_ROW_JOB_TABLE, entry->job.id);
    }
    return PSD_OK;
}
