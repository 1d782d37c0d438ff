/* SPDX-License-Identifier: Apache-2.0 */
/* The command of a job, checked and applied, and the plans for workers that
 * leave it. registry_join.c has the plans for those that come. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/registry_job.h"
#include "protocol/registry/registry_journal.h"

#define CHANGES_SINCE \
    4 /* the machine version in which a JOB names what changed of one that is known */

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
void ps_worker_lose(ps_worker_t *worker)
{
    if (worker->state == PS_WORKER_EXPECTED) {
        worker->joins++;
    }
    worker->state = PS_WORKER_LOST;
}

static bool differs(const ps_worker_t *a, const ps_worker_t *b)
{
    return a->worker != b->worker || a->state != b->state || a->n_members != b->n_members ||
           a->joins != b->joins || a->start != b->start;
}

void ps_command_shorten_job(const ps_registry_t *self, ps_command_t *command)
{
    const ps_job_entry_t *entry = ps_registry_find_job(self, command->job.id);
    ps_job_t *job = &command->job;
    size_t n = 0;

    if (entry == NULL || self->cluster.sm_version < CHANGES_SINCE) {
        return;
    }
    for (size_t i = 0; i < job->n_workers; i++) {
        const ps_worker_t *known = ps_job_worker(&entry->job, job->workers[i].worker);

        if (known == NULL || differs(known, &job->workers[i])) {
            job->workers[n++] = job->workers[i];
        }
    }
    job->n_workers = n;
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
        ps_worker_lose(worker);
    } else {
        worker->state = state;
    }
    (void)snprintf(command->text, sizeof command->text, "worker %u of job %s %s%s", rank,
                   entry->job.name, state == PS_WORKER_LOST ? "was lost" : "finished",
                   ps_job_has_ended(&command->job) ? "; the job has ended" : "");
    return PSD_OK;
}

/* With all workers of the job. */
static psd_status_t plan_end(const ps_registry_t *self, uint32_t job, uint32_t worker,
                             ps_worker_state_t state, uint64_t unix_ms, ps_command_t *ret_command,
                             psd_error_t *err)
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

psd_status_t ps_registry_plan_end(const ps_registry_t *self, uint32_t job, uint32_t worker,
                                  ps_worker_state_t state, uint64_t unix_ms,
                                  ps_command_t *ret_command, psd_error_t *err)
{
    psd_status_t rc = plan_end(self, job, worker, state, unix_ms, ret_command, err);

    if (rc == PSD_OK && ret_command->kind != 0) {
        ps_command_shorten_job(self, ret_command);
    }
    return rc;
}

/* Those that never came are not expected any more. */
static void lose_expected(ps_job_t *job)
{
    for (size_t i = 0; i < job->n_workers; i++) {
        if (job->workers[i].state == PS_WORKER_EXPECTED) {
            ps_worker_lose(&job->workers[i]);
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
    psd_status_t rc = plan_end(self, job, worker, PS_WORKER_LOST, unix_ms, ret_command, err);

    /* It may have been lost before it could say so. */
    if (rc == PSD_OK && ret_command->kind == 0 && entry->ended == 0 && is_deserted(&entry->job)) {
        rc = ps_command_of_job(self, entry, ret_command, err);
        ret_command->unix_ms = rc == PSD_OK ? unix_ms : 0;
    }
    if (rc == PSD_OK && ret_command->kind != 0 && is_deserted(&ret_command->job)) {
        lose_expected(&ret_command->job);
    }
    if (rc == PSD_OK && ret_command->kind != 0) {
        ps_command_shorten_job(self, ret_command);
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
    ps_command_shorten_job(self, &command);
    command.unix_ms = unix_ms;
    (void)snprintf(command.text, sizeof command.text, "job %s was stopped by an operator",
                   entry->job.name);
    *ret_command = command; /* ownership moves to the caller */
    return PSD_OK;
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
            ps_worker_lose(&command.job.workers[i]);
        }
    }
    ps_command_shorten_job(self, &command);
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

static psd_status_t check_worker(const ps_job_t *job, size_t i, psd_error_t *err)
{
    const ps_worker_t *worker = &job->workers[i];
    bool in_order = i == 0 || job->workers[i - 1].worker < worker->worker;
    bool came = worker->state == PS_WORKER_JOINING || worker->state == PS_WORKER_RUNNING ||
                worker->state == PS_WORKER_FINISHED;

    if (!in_order || worker->worker >= PS_WORKERS_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "worker %u of job %s is out of order or range",
                             worker->worker, job->name);
    }
    if (worker->state < PS_WORKER_EXPECTED || worker->state > PS_WORKER_LOST ||
        worker->n_members > PS_MEMBERS_MAX ||
        (came && (worker->n_members < 1 || worker->joins < 1)) || worker->start > PS_STORED_MAX) {
        return psd_error_set(err, PSD_DAMAGED,
                             "worker %u of job %s has state %d, %u members, "
                             "joins %u, start %llu",
                             worker->worker, job->name, (int)worker->state, worker->n_members,
                             worker->joins, (unsigned long long)worker->start);
    }
    return PSD_OK;
}

psd_status_t ps_command_check_job(const ps_registry_t *self, const ps_command_t *command,
                                  psd_error_t *err)
{
    const ps_job_t *job = &command->job;
    const ps_job_entry_t *known = ps_registry_find_job(self, job->id);
    psd_status_t rc = ps_registry_check_name(job->name, "job", err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (job->id == 0 || job->version == 0 || job->version > PS_STORED_MAX ||
        (known == NULL && job->n_workers < 1) || job->n_workers > PS_WORKERS_MAX ||
        (job->n_workers > 0 && job->workers == NULL) || command->n_expected < 1 ||
        command->n_expected > PS_WORKERS_MAX) {
        return psd_error_set(err, PSD_DAMAGED,
                             "job %s has id %u, version %llu, %zu workers, %u "
                             "expected",
                             job->name, job->id, (unsigned long long)job->version, job->n_workers,
                             command->n_expected);
    }
    if (known != NULL &&
        (strcmp(known->job.name, job->name) != 0 || known->job.version >= job->version)) {
        return psd_error_set(err, PSD_DAMAGED, "job %u is %s at version %llu, not %s before %llu",
                             job->id, known->job.name, (unsigned long long)known->job.version,
                             job->name, (unsigned long long)job->version);
    }
    if (known != NULL && command->ended != 0) {
        return psd_error_set(err, PSD_DAMAGED, "job %s ends by command as %llu", job->name,
                             (unsigned long long)command->ended);
    }
    for (size_t i = 0; i < job->n_workers && rc == PSD_OK; i++) {
        rc = check_worker(job, i, err);
        if (rc == PSD_OK && command->ended != 0 &&
            (command->ended > PS_STORED_MAX || ps_worker_is_live(&job->workers[i]))) {
            rc = psd_error_set(err, PSD_DAMAGED, "job %s has ended as %llu, worker %u is %s",
                               job->name, (unsigned long long)command->ended,
                               job->workers[i].worker, ps_worker_state_name(job->workers[i].state));
        }
    }
    return rc == PSD_OK ? ps_registry_check_resumed(self, command, err) : rc;
}

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

/* The version of the job with which the worker changed last. */
static uint64_t version_of(const ps_job_entry_t *known, const ps_worker_t *worker, uint64_t version)
{
    const ps_worker_t *old = known == NULL ? NULL : ps_job_worker(&known->job, worker->worker);

    return old == NULL || differs(old, worker) ? version
                                               : known->seen[old - known->job.workers].version;
}

/* The job as the command has it; workers that it does not name are those that are known. */
static psd_status_t merge_job(const ps_job_entry_t *known, const ps_command_t *command,
                              ps_job_t *ret_job, psd_error_t *err)
{
    return known == NULL ? ps_job_copy(&command->job, ret_job, err)
                         : ps_job_merge(&known->job, &command->job, ret_job, err);
}

/* Builds the entry's new job beside its old one. */
static psd_status_t renew_entry(const ps_job_entry_t *known, const ps_command_t *command,
                                uint64_t now_ms, ps_job_entry_t *ret_entry, psd_error_t *err)
{
    ps_job_entry_t entry = {.n_expected = command->n_expected,
                            .created_unix_ms = command->created_unix_ms,
                            .tables_version = command->job.version};
    const ps_job_entry_t *before = known;
    psd_status_t rc = merge_job(known, command, &entry.job, err);

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
        entry.seen[i].version = version_of(before, &entry.job.workers[i], entry.job.version);
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
    if (self->cluster.last_job < entry->job.id) {
        self->cluster.last_job = entry->job.id;
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
    known->tables_version = out->tables_version;
    known->queues = out->queues;
    known->n_queues = out->n_queues;
    known->max_queues = out->max_queues;
    out->tables = NULL;
    out->queues = NULL;
    out->n_queues = 0;
    return known;
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
