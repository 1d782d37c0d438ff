/* SPDX-License-Identifier: Apache-2.0 */
/* Declares workers lost that are silent too long, and ends jobs that cannot go on. */
#include <inttypes.h>

#include "server/quorum/replica.h"
#include "server/state/control_inner.h"

#define RETRY_MS 1000 /* backoff after a loss that could not be stored */
#define FORGIVE_EVERY_MS 50
#define LATE_MS 500 /* a tick this late says that the process stood still */

/* Notes when a worker was lost, for `why`. */
static void note_lost(ps_control_t *self, const ps_job_t *job, uint32_t rank)
{
    const ps_worker_t *worker = ps_job_worker(job, rank);
    ps_watch_t *watch = ps_watches_get(&self->watches, job->id);
    ps_watched_t *watched = NULL;
    uint64_t seen_ms = 0;
    uint64_t clock = 0;
    uint64_t now_ms = ps_now_ms();

    if (watch == NULL || worker == NULL) {
        return;
    }
    watched = ps_watch_worker(watch, rank, worker->joins);
    if (watched != NULL) {
        watched->lost_ms = now_ms;
        watched->silent_ms =
            ps_registry_last_seen(self->is.registry, job->id, rank, &seen_ms, &clock)
                ? now_ms - seen_ms
                : 0;
    }
}

static bool is_lost_by(const ps_job_t *job, const ps_command_t *command, size_t i)
{
    const ps_worker_t *changed = ps_job_worker(&command->job, job->workers[i].worker);

    return ps_worker_is_live(&job->workers[i]) && changed != NULL &&
           changed->state == PS_WORKER_LOST;
}

/* The next job with silent workers. *ret_more: there was one. */
static psd_status_t lose_next(ps_control_t *self, bool *ret_more, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    PSD_AUTO(ps_free_at) uint32_t *lost = NULL;
    const ps_job_t *job = NULL;
    size_t n = 0;
    psd_status_t rc = ps_registry_plan_silent(
        self->is.registry, self->drained_ms, /* what came since may not be read yet */
        ps_unix_ms(), &command, err);

    *ret_more = rc == PSD_OK && command.kind != 0;
    if (!*ret_more) {
        return rc;
    }
    job = ps_registry_job_by_id(self->is.registry, command.job.id);
    lost = ps_alloc(job->n_workers, sizeof *lost);
    if (lost == NULL) {
        return ps_control_no_memory(err);
    }
    for (size_t i = 0; i < job->n_workers; i++) {
        if (is_lost_by(job, &command, i)) {
            lost[n++] = job->workers[i].worker;
            note_lost(self, job, job->workers[i].worker);
        }
    }
    rc = ps_control_commit(self, &command, PS_LOG_DEBUG, err);
    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        ps_replica_log(self->is.replica, PS_LOG_WARN, "worker_lost",
                       "job=%s id=%" PRIu32 " worker=%" PRIu32
                       " hint=\"the others no longer wait for it\"",
                       command.job.name, command.job.id, lost[i]);
    }
    ps_control_job_changed(self, command.job.id);
    return PSD_OK;
}

void ps_control_end_jobs(ps_control_t *self)
{
    bool more = true;

    while (more) {
        PSD_AUTO(ps_command_done) ps_command_t command = {0};
        psd_status_t rc =
            ps_registry_plan_loss(self->is.registry, ps_unix_ms(), &command, self->err);

        more = rc == PSD_OK && command.kind != 0;
        if (more) {
            rc = ps_control_commit(self, &command, PS_LOG_WARN, self->err);
        }
        if (more && rc == PSD_OK) {
            ps_control_job_changed(self, command.job.id);
        }
        if (rc != PSD_OK) { /* their silence ends them */
            char quoted[512];

            ps_log(PS_LOG_ERROR, "jobs_not_ended", "status=%s reason=%s", psd_status_name(rc),
                   ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
            psd_error_clear(self->err);
            return;
        }
    }
}

/* When this process itself stood still (a paused machine, a slow shard),
 * heartbeats wait unread, or were not sent because everything stood still.
 * The workers first get time to send one. */
static bool gives_grace(ps_control_t *self, uint64_t now_ms)
{
    uint64_t due_ms = ps_registry_deadline(self->is.registry);

    if (due_ms > now_ms) {
        self->grace_ms = 0;
        return false;
    }
    if (self->grace_ms == 0 && now_ms - due_ms > LATE_MS) {
        self->grace_ms = now_ms + 2 * ps_control_beat_ms(self);
        ps_log(PS_LOG_WARN, "clock_late",
               "ms=%" PRIu64 " hint=\"psd was stalled; workers get %" PRIu64 " ms to report\"",
               now_ms - due_ms, 2 * ps_control_beat_ms(self));
    }
    return now_ms < self->grace_ms;
}

/* While this thread waited for a processor it heard nobody, and neither got on who
 * waits for it. */
static void forgive(ps_control_t *self, uint64_t now_ms)
{
    uint64_t late_ms = 0;

    if (now_ms < self->forgiven_ms + FORGIVE_EVERY_MS) {
        return;
    }
    self->forgiven_ms = now_ms;
    late_ms = ps_delay_take_ms(&self->delay);
    if (late_ms > 0) {
        ps_registry_forgive(self->is.registry, late_ms, now_ms);
    }
}

void ps_control_lose_silent(ps_control_t *self)
{
    bool more = true;

    forgive(self, ps_now_ms());
    if (gives_grace(self, ps_now_ms())) {
        return;
    }
    while (more) {
        psd_status_t rc = lose_next(self, &more, self->err);

        if (rc != PSD_OK) {
            char quoted[512];

            self->grace_ms = ps_now_ms() + RETRY_MS;
            ps_log(PS_LOG_ERROR, "worker_lost_failed", "status=%s reason=%s", psd_status_name(rc),
                   ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
            psd_error_clear(self->err);
            return;
        }
    }
    self->grace_ms = 0;
}
