/* SPDX-License-Identifier: Apache-2.0 */
/* Plans about a worker that joins: it joins, then its start is decided. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "protocol/registry/registry_job.h"

psd_status_t ps_registry_check_join(const ps_join_t *join, psd_error_t *err)
{
    if (!ps_text_is_name(join->job)) {
        return psd_error_set(err, PSD_INVALID,
                             "job is \"%.80s\"; allowed: 1..%d of letters, "
                             "digits, \"_\", \".\", \"-\"",
                             join->job, PS_NAME_MAX);
    }
    if (join->worker >= PS_WORKERS_MAX) {
        return psd_error_set(err, PSD_INVALID, "worker is %u; allowed: 0..%d", join->worker,
                             PS_WORKERS_MAX - 1);
    }
    if (!join->attach && (join->n_workers < 1 || join->n_workers > PS_WORKERS_MAX)) {
        return psd_error_set(err, PSD_INVALID, "workers is %u; allowed: 1..%d", join->n_workers,
                             PS_WORKERS_MAX);
    }
    return PSD_OK;
}

static psd_status_t plan_attach(const ps_registry_t *self, const ps_job_entry_t *entry,
                                const ps_join_t *join, ps_command_t *command, psd_error_t *err)
{
    ps_worker_t *worker = NULL;
    psd_status_t rc = PSD_OK;

    if (entry == NULL) {
        return psd_error_set(err, PSD_NO_JOB, "job \"%s\" does not exist", join->job);
    }
    if (entry->job.stopped) {
        return psd_error_set(err, PSD_JOB_STOPPED, "job \"%s\" was stopped", join->job);
    }
    rc = ps_command_of_job(self, entry, command, err);
    if (rc != PSD_OK) {
        return rc;
    }
    worker = ps_job_worker(&command->job, join->worker);
    if (worker != NULL && worker->state == PS_WORKER_LOST) {
        return psd_error_set(err, PSD_WORKER_LOST, "worker %u of job %s was declared lost",
                             join->worker, join->job);
    }
    if (worker == NULL || worker->state != PS_WORKER_RUNNING) {
        return psd_error_set(err, PSD_NO_WORKER, "worker %u of job %s is %s, not running",
                             join->worker, join->job,
                             worker == NULL ? "unknown" : ps_worker_state_name(worker->state));
    }
    if (worker->n_members >= PS_MEMBERS_MAX) {
        return psd_error_set(err, PSD_LIMIT, "worker %u of job %s has %u clients; allowed: %d",
                             join->worker, join->job, worker->n_members, PS_MEMBERS_MAX);
    }
    worker->n_members++;
    (void)snprintf(command->text, sizeof command->text, "worker %u of job %s has %u clients",
                   join->worker, join->job, worker->n_members);
    return PSD_OK;
}

psd_status_t ps_registry_plan_new_job(const ps_registry_t *self, const ps_join_t *join,
                                      ps_command_t *command, psd_error_t *err)
{
    ps_job_t *job = &command->job;
    size_t n_running = 0;

    for (size_t i = 0; i < self->n_jobs; i++) {
        n_running += self->jobs[i].ended == 0 ? 1 : 0;
    }
    if (n_running >= self->args.jobs_max || self->cluster.last_job == UINT32_MAX) {
        return psd_error_set(err, PSD_LIMIT, "%zu jobs are running; allowed: %u", n_running,
                             self->args.jobs_max);
    }
    job->workers = ps_alloc(join->n_workers, sizeof *job->workers);
    if (job->workers == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %u workers of job %s", join->n_workers,
                             join->job);
    }
    job->n_workers = join->n_workers;
    for (uint32_t i = 0; i < join->n_workers; i++) {
        job->workers[i].worker = i;
        job->workers[i].state = PS_WORKER_EXPECTED;
    }
    job->id = self->cluster.last_job + 1;
    job->version = 1;
    job->max_delay = join->max_delay;
    memcpy(job->name, join->job, strlen(join->job) + 1);
    command->kind = PS_COMMAND_JOB;
    command->epoch = self->epoch;
    command->n_expected = join->n_workers;
    return PSD_OK;
}

/* All workers of a job must agree on what it is. */
static psd_status_t check_match(const ps_job_entry_t *entry, const ps_join_t *join,
                                psd_error_t *err)
{
    if (entry->job.stopped) {
        return psd_error_set(err, PSD_JOB_STOPPED,
                             "job \"%s\" was stopped and has workers that "
                             "still run",
                             join->job);
    }
    if (entry->job.max_delay != join->max_delay || entry->n_expected != join->n_workers) {
        return psd_error_set(err, PSD_JOB_MISMATCH,
                             "job \"%s\" runs with max_delay %d and workers "
                             "%u, not %d and %u",
                             join->job, entry->job.max_delay, entry->n_expected, join->max_delay,
                             join->n_workers);
    }
    return PSD_OK;
}

/* Adds an unexpected rank. */
static psd_status_t add_worker(ps_job_t *job, uint32_t rank, ps_worker_t **ret_worker,
                               psd_error_t *err)
{
    size_t at = job->n_workers;
    ps_worker_t *workers = ps_alloc_resize(job->workers, job->n_workers + 1, sizeof *workers);

    if (workers == NULL) {
        (void)psd_error_set(err, PSD_NOMEM, "no memory for a worker of job %s", job->name);
        return PSD_NOMEM;
    }
    job->workers = workers;
    while (at > 0 && workers[at - 1].worker > rank) {
        workers[at] = workers[at - 1];
        at--;
    }
    workers[at] = (ps_worker_t){.worker = rank, .state = PS_WORKER_EXPECTED};
    job->n_workers++;
    *ret_worker = &workers[at];
    return PSD_OK;
}

static psd_status_t let_join(const ps_join_t *join, ps_command_t *command, psd_error_t *err)
{
    ps_worker_t *worker = ps_job_worker(&command->job, join->worker);
    psd_status_t rc = PSD_OK;

    if (worker == NULL) {
        rc = add_worker(&command->job, join->worker, &worker, err);
    } else if (worker->state == PS_WORKER_JOINING || worker->state == PS_WORKER_RUNNING) {
        rc = psd_error_set(err, PSD_WORKER_EXISTS, "worker %u of job %s is %s already",
                           join->worker, join->job, ps_worker_state_name(worker->state));
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (worker->state != PS_WORKER_EXPECTED) {
        worker->start = 0;
    }
    worker->state = PS_WORKER_JOINING;
    worker->n_members = 1;
    worker->joins++;
    (void)snprintf(command->text, sizeof command->text, "worker %u joins job %s", join->worker,
                   join->job);
    return PSD_OK;
}

psd_status_t ps_registry_plan_join(const ps_registry_t *self, const ps_join_t *join,
                                   uint64_t unix_ms, ps_command_t *ret_command, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_job_entry_t *entry = NULL;
    psd_status_t rc = ps_registry_check_join(join, err);

    if (rc != PSD_OK) {
        return rc;
    }
    entry = ps_registry_find_job_named(self, join->job);
    if (join->attach) {
        rc = plan_attach(self, entry, join, &command, err);
    } else if (entry == NULL || entry->ended != 0) {
        rc = ps_registry_plan_new_job(self, join, &command, err);
        command.created_unix_ms = unix_ms;
    } else {
        rc = check_match(entry, join, err);
        if (rc == PSD_OK) {
            rc = ps_command_of_job(self, entry, &command, err);
        }
    }
    if (rc == PSD_OK && !join->attach) {
        rc = let_join(join, &command, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_command_shorten_job(self, &command);
    command.unix_ms = unix_ms;
    *ret_command = command; /* ownership moves to the caller */
    command = (ps_command_t){0};
    return PSD_OK;
}

/* True when the others were held at its start (clock 0, or where the job was
 * resumed) for this worker until it came. */
static bool was_expected(const ps_job_entry_t *entry, const ps_worker_t *worker)
{
    return worker->state == PS_WORKER_EXPECTED ||
           (worker->worker < entry->n_expected && worker->joins == 1);
}

/* Where a worker is, as far as the shards or its own start tell. */
static uint64_t clock_of(const ps_worker_t *worker, const uint32_t *ranks, const uint64_t *clocks,
                         size_t n)
{
    uint64_t clock = worker->start;

    for (size_t i = 0; i < n; i++) {
        if (ranks[i] == worker->worker && clocks[i] > clock) {
            clock = clocks[i];
        }
    }
    return clock;
}

static uint64_t start_of(const ps_job_entry_t *entry, const ps_worker_t *worker,
                         const uint32_t *ranks, const uint64_t *clocks, size_t n)
{
    uint64_t highest = 0;
    uint64_t slowest = UINT64_MAX;

    if (was_expected(entry, worker)) {
        return worker->start;
    }
    for (size_t i = 0; i < entry->job.n_workers; i++) {
        const ps_worker_t *other = &entry->job.workers[i];
        uint64_t clock = clock_of(other, ranks, clocks, n);
        bool counts = other->state == PS_WORKER_RUNNING ||
                      (ps_worker_is_live(other) && was_expected(entry, other));

        if (clock > highest) {
            highest = clock;
        }
        if (other != worker && counts && clock < slowest) {
            slowest = clock;
        }
    }
    if (entry->job.max_delay == 0) {
        return highest;
    }
    return slowest == UINT64_MAX ? 0 : slowest;
}

psd_status_t ps_registry_plan_start(const ps_registry_t *self, uint32_t job, uint32_t worker,
                                    const uint32_t *ranks, const uint64_t *clocks, size_t n,
                                    uint64_t unix_ms, ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = {0};
    const ps_job_entry_t *entry = NULL;
    const ps_worker_t *old = NULL;
    ps_worker_t *changed = NULL;
    psd_status_t rc = ps_registry_worker(self, job, worker, &entry, &old, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (old->state == PS_WORKER_LOST) {
        return psd_error_set(err, PSD_WORKER_LOST,
                             "worker %u of job %s was declared lost while it "
                             "joined",
                             worker, entry->job.name);
    }
    if (old->state == PS_WORKER_RUNNING) {
        *ret_command = command;
        return PSD_OK;
    }
    if (old->state != PS_WORKER_JOINING) {
        return ps_not_there(entry, old, err);
    }
    rc = ps_command_of_job(self, entry, &command, err);
    if (rc != PSD_OK) {
        return rc;
    }
    changed = ps_job_worker(&command.job, worker);
    changed->state = PS_WORKER_RUNNING;
    changed->start = start_of(entry, old, ranks, clocks, n);
    command.unix_ms = unix_ms;
    (void)snprintf(command.text, sizeof command.text, "worker %u of job %s runs from clock %llu",
                   worker, entry->job.name, (unsigned long long)changed->start);
    ps_command_shorten_job(self, &command);
    *ret_command = command; /* ownership moves to the caller */
    return PSD_OK;
}
