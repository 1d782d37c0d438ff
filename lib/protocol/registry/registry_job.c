/* SPDX-License-Identifier: Apache-2.0 */
/* Plans about a job and the workers that leave it. */
#include "protocol/registry/registry_job.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

psd_status_t ps_command_of_job(const ps_registry_t *self, const ps_job_entry_t *entry,
                               ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = {.kind = PS_COMMAND_JOB,
                            .epoch = self->epoch,
                            .n_expected = entry->n_expected,
                            .created_unix_ms = entry->created_unix_ms};
    psd_status_t rc = ps_job_copy(&entry->job, &command.job, err);

    if (rc != PSD_OK) {
        return rc;
    }
    command.job.version++;
    *ret_command = command; /* ownership moves to the caller */
    return PSD_OK;
}

psd_status_t ps_registry_worker(const ps_registry_t *self, uint32_t job, uint32_t worker,
                                const ps_job_entry_t **ret_entry, const ps_worker_t **ret_worker,
                                psd_error_t *err)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);
    const ps_worker_t *found = NULL;

    if (entry == NULL) {
        (void)psd_error_set(err, PSD_NO_JOB, "job number %u does not exist", job);
        return PSD_NO_JOB;
    }
    found = ps_job_worker(&entry->job, worker);
    if (found == NULL) {
        (void)psd_error_set(err, PSD_NO_WORKER, "job %s has no worker %u", entry->job.name, worker);
        return PSD_NO_WORKER;
    }
    *ret_entry = entry;
    *ret_worker = found;
    return PSD_OK;
}

psd_status_t ps_not_there(const ps_job_entry_t *entry, const ps_worker_t *worker, psd_error_t *err)
{
    return psd_error_set(err, PSD_NO_WORKER, "worker %u of job %s is %s", worker->worker,
                         entry->job.name, ps_worker_state_name(worker->state));
}

/* One that never came has spent the life that it was expected for: should it
 * come later, the others will not have waited for it at clock 0. */
static void lose(ps_worker_t *worker)
{
    if (worker->state == PS_WORKER_EXPECTED) {
        worker->joins++;
    }
    worker->state = PS_WORKER_LOST;
}

static bool has_live(const ps_job_t *job)
{
    for (size_t i = 0; i < job->n_workers; i++) {
        if (ps_worker_is_live(&job->workers[i])) {
            return true;
        }
    }
    return false;
}

static psd_status_t end_worker(const ps_registry_t *self, const ps_job_entry_t *entry,
                               uint32_t rank, ps_worker_state_t state, ps_command_t *command,
                               psd_error_t *err)
{
    ps_worker_t *worker = NULL;
    psd_status_t rc = ps_command_of_job(self, entry, command, err);

    if (rc != PSD_OK) {
        return rc;
    }
    worker = ps_job_worker(&command->job, rank);
    if (state == PS_WORKER_LOST) {
        lose(worker);
    } else {
        worker->state = state;
    }
    (void)snprintf(command->text, sizeof command->text, "worker %u of job %s %s%s", rank,
                   entry->job.name, state == PS_WORKER_LOST ? "was lost" : "finished",
                   has_live(&command->job) ? "" : "; the job has ended");
    return PSD_OK;
}

psd_status_t ps_registry_plan_end(const ps_registry_t *self, uint32_t job, uint32_t worker,
                                  ps_worker_state_t state, uint64_t unix_ms,
                                  ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = {0};
    const ps_job_entry_t *entry = NULL;
    const ps_worker_t *old = NULL;
    psd_status_t rc = ps_registry_worker(self, job, worker, &entry, &old, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (state != PS_WORKER_FINISHED && state != PS_WORKER_LOST) {
        return psd_error_set(err, PSD_INVALID, "a worker ends as finished or lost, not as %s",
                             ps_worker_state_name(state));
    }
    if (old->state == PS_WORKER_FINISHED || old->state == state) {
        *ret_command = command;
        return PSD_OK;
    }
    if (state == PS_WORKER_FINISHED && old->state == PS_WORKER_LOST) {
        return psd_error_set(err, PSD_WORKER_LOST, "worker %u of job %s was declared lost", worker,
                             entry->job.name);
    }
    if (state == PS_WORKER_FINISHED && old->state != PS_WORKER_RUNNING) {
        return ps_not_there(entry, old, err);
    }
    rc = end_worker(self, entry, worker, state, &command, err);
    if (rc == PSD_OK) {
        command.unix_ms = unix_ms;
        *ret_command = command; /* ownership moves to the caller */
    }
    return rc;
}

/* Those that never came are not expected any more. */
static void lose_expected(ps_job_t *job)
{
    for (size_t i = 0; i < job->n_workers; i++) {
        if (job->workers[i].state == PS_WORKER_EXPECTED) {
            lose(&job->workers[i]);
        }
    }
}

/* All that ever came were lost. */
static bool is_deserted(const ps_job_t *job)
{
    for (size_t i = 0; i < job->n_workers; i++) {
        if (job->workers[i].state != PS_WORKER_EXPECTED &&
            job->workers[i].state != PS_WORKER_LOST) {
            return false;
        }
    }
    return true;
}

psd_status_t ps_registry_plan_give_up(const ps_registry_t *self, uint32_t job, uint32_t worker,
                                      uint64_t unix_ms, ps_command_t *ret_command, psd_error_t *err)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);
    psd_status_t rc =
        ps_registry_plan_end(self, job, worker, PS_WORKER_LOST, unix_ms, ret_command, err);

    /* It may have been lost before it could say so. */
    if (rc == PSD_OK && ret_command->kind == 0 && entry->ended == 0 && is_deserted(&entry->job)) {
        rc = ps_command_of_job(self, entry, ret_command, err);
        ret_command->unix_ms = rc == PSD_OK ? unix_ms : 0;
    }
    if (rc == PSD_OK && ret_command->kind != 0 && is_deserted(&ret_command->job)) {
        lose_expected(&ret_command->job);
    }
    return rc;
}

psd_status_t ps_registry_plan_stop(const ps_registry_t *self, const char *job, uint64_t unix_ms,
                                   ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = {0};
    const ps_job_entry_t *entry = ps_registry_find_job_named(self, job);
    psd_status_t rc = PSD_OK;

    if (entry == NULL) {
        return psd_error_set(err, PSD_NO_JOB, "job \"%.80s\" does not exist", job);
    }
    if (entry->job.stopped || entry->ended != 0) {
        *ret_command = command;
        return PSD_OK;
    }
    rc = ps_command_of_job(self, entry, &command, err);
    if (rc != PSD_OK) {
        return rc;
    }
    command.job.stopped = true;
    lose_expected(&command.job);
    command.unix_ms = unix_ms;
    (void)snprintf(command.text, sizeof command.text, "job %s was stopped by an operator",
                   entry->job.name);
    *ret_command = command; /* ownership moves to the caller */
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

/* The table by which it has lost its rows while its workers lived. */
static const ps_table_t *lost_table(const ps_registry_t *self, const ps_job_entry_t *entry)
{
    for (size_t i = 0; entry->n_live > 0 && i < entry->n_tables; i++) {
        const ps_table_t *table = ps_registry_find_table(self, entry->tables[i]);

        if (table->rows_lost && entry->job.id <= table->lost_jobs) {
            return table;
        }
    }
    return NULL;
}

psd_status_t ps_registry_plan_loss(const ps_registry_t *self, uint64_t unix_ms,
                                   ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = {0};
    const ps_job_entry_t *entry = NULL;
    const ps_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < self->n_jobs && table == NULL; i++) {
        entry = &self->jobs[i];
        table = lost_table(self, entry);
    }
    if (table == NULL) {
        *ret_command = command;
        return PSD_OK;
    }
    rc = ps_command_of_job(self, entry, &command, err);
    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; i < command.job.n_workers; i++) {
        if (ps_worker_is_live(&command.job.workers[i])) {
            lose(&command.job.workers[i]);
        }
    }
    memcpy(command.job.lost_table, table->spec.name, sizeof command.job.lost_table);
    command.job.lost_sessions = table->lost_sessions;
    command.unix_ms = unix_ms;
    (void)snprintf(command.text, sizeof command.text,
                   "job %s lost its %zu live workers: the rows of its table %s "
                   "are gone",
                   entry->job.name, entry->n_live, table->spec.name);
    *ret_command = command; /* ownership moves to the caller */
    return PSD_OK;
}

/* No job that had opened the table before it lost rows has live workers. */
static bool all_are_told(const ps_registry_t *self, const ps_table_t *table)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        const ps_job_entry_t *entry = &self->jobs[i];

        if (entry->n_live > 0 && entry->job.id <= table->lost_jobs && has_open(entry, table->id)) {
            return false;
        }
    }
    return true;
}

psd_status_t ps_registry_plan_job_table(const ps_registry_t *self, uint32_t job, uint32_t table,
                                        uint64_t unix_ms, ps_command_t *ret_command,
                                        psd_error_t *err)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, job);
    const ps_table_t *opened = ps_registry_find_table(self, table);
    ps_command_t command = {
        .kind = PS_COMMAND_JOB_TABLE, .unix_ms = unix_ms, .epoch = self->epoch, .number = table};

    if (entry == NULL) {
        return psd_error_set(err, PSD_NO_JOB, "job number %u does not exist", job);
    }
    if (entry->job.stopped) {
        return psd_error_set(err, PSD_JOB_STOPPED, "job \"%s\" was stopped", entry->job.name);
    }
    if (opened == NULL) {
        return psd_error_set(err, PSD_NO_TABLE, "table number %u does not exist", table);
    }
    if (has_open(entry, table)) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    command.told = opened->lost_jobs > 0 && all_are_told(self, opened);
    command.job.id = job;
    command.job.version = entry->job.version + 1;
    memcpy(command.job.name, entry->job.name, sizeof command.job.name);
    (void)snprintf(command.text, sizeof command.text, "job %s opened table %s", entry->job.name,
                   opened->spec.name);
    *ret_command = command;
    return PSD_OK;
}
