/* SPDX-License-Identifier: Apache-2.0 */
/* Which workers are alive: heartbeats, and workers silent for too long. Nothing
 * here is stored; plans store the consequences. */
#include "protocol/registry/registry_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAMED_MAX 8 /* lost workers that a text names */

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

static bool is_overdue(const ps_registry_t *self, const ps_job_entry_t *entry, size_t i,
                       uint64_t now_ms)
{
    return ps_worker_is_live(&entry->job.workers[i]) && due_of(self, entry, i) <= now_ms;
}

static size_t count_overdue(const ps_registry_t *self, const ps_job_entry_t *entry, uint64_t now_ms)
{
    size_t n = 0;

    for (size_t i = 0; is_watched(entry) && i < entry->job.n_workers; i++) {
        n += is_overdue(self, entry, i, now_ms) ? 1 : 0;
    }
    return n;
}

/* "worker 2 of job lr was lost", "workers 2, 3, 5 of job lr were lost", "... and 90
 * more"; "; the job has ended". */
static void print_lost(const ps_registry_t *self, const ps_job_entry_t *entry, uint64_t now_ms,
                       size_t n, ps_command_t *command)
{
    char names[NAMED_MAX * 12];
    size_t n_named = 0;
    size_t used = 0;

    for (size_t i = 0; i < entry->job.n_workers && n_named < NAMED_MAX; i++) {
        if (is_overdue(self, entry, i, now_ms)) {
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%" PRIu32,
                                     n_named == 0 ? "" : ", ", entry->job.workers[i].worker);
            n_named++;
        }
    }
    if (n > n_named) {
        (void)snprintf(command->text, sizeof command->text,
                       "workers %s and %zu more of job %s were lost", names, n - n_named,
                       entry->job.name);
    } else {
        (void)snprintf(command->text, sizeof command->text, "worker%s %s of job %s %s lost",
                       n == 1 ? "" : "s", names, entry->job.name, n == 1 ? "was" : "were");
    }
    if (n == entry->n_live) {
        used = strlen(command->text);
        (void)snprintf(command->text + used, sizeof command->text - used, "; the job has ended");
    }
}

psd_status_t ps_registry_plan_silent(const ps_registry_t *self, uint64_t now_ms, uint64_t unix_ms,
                                     ps_command_t *ret_command, psd_error_t *err)
{
    ps_command_t command = {0};
    const ps_job_entry_t *entry = NULL;
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; n == 0 && i < self->n_jobs; i++) {
        entry = &self->jobs[i];
        n = count_overdue(self, entry, now_ms);
    }
    if (n > 0) {
        rc = ps_command_of_job(self, entry, &command, err);
    }
    if (rc != PSD_OK || n == 0) {
        *ret_command = command;
        return rc;
    }
    for (size_t i = 0; i < entry->job.n_workers; i++) {
        if (is_overdue(self, entry, i, now_ms)) {
            ps_worker_lose(&command.job.workers[i]);
        }
    }
    ps_command_shorten_job(self, &command);
    print_lost(self, entry, now_ms, n, &command);
    command.unix_ms = unix_ms;
    *ret_command = command; /* ownership moves to the caller */
    return PSD_OK;
}

size_t ps_registry_n_live(const ps_registry_t *self)
{
    size_t n = 0;

    for (size_t i = 0; i < self->n_jobs; i++) {
        n += self->jobs[i].n_live;
    }
    return n;
}

void ps_registry_forgive(ps_registry_t *self, uint64_t late_ms, uint64_t now_ms)
{
    for (size_t i = 0; i < self->n_jobs; i++) {
        ps_job_entry_t *entry = &self->jobs[i];

        for (size_t j = 0; entry->n_live > 0 && j < entry->job.n_workers; j++) {
            uint64_t since = entry->seen[j].since_ms + late_ms;

            entry->seen[j].since_ms = since < now_ms ? since : now_ms;
        }
    }
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
