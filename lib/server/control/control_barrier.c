/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers: which workers wait, which are missing, and when it opens. */
#include "server/state/control_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/nodes/job_view.h"

#define WAITERS_MAX 16384 /* of one job */
#define NAMED_MAX 5       /* missing workers that a text names */

static uint32_t lowest_here(const ps_control_t *self, const ps_job_t *job)
{
    ps_ranks_t here;
    uint32_t rank = 0;

    ps_waiters_ranks(&self->waiters, PS_FOR_BARRIER, job->id, &here);
    while (rank < PS_WORKERS_MAX - 1 && !ps_ranks_has(&here, rank)) {
        rank++;
    }
    return rank;
}

/* Says who is the first of those that met, to each the same. */
static void open_for(ps_control_t *self, ps_control_request_t *request, uint32_t first)
{
    if (!ps_doc_set_u64(request->reply, "first", first)) {
        ps_doc_destroy(&request->reply); /* it is asked again */
    }
    ps_control_end(self, request, PSD_OK, "");
}

static void release_all(ps_control_t *self, const ps_job_t *job)
{
    ps_watch_t *watch = ps_watches_get(&self->watches, job->id);
    ps_control_request_t *next = ps_control_next(self, NULL, PS_FOR_BARRIER, job->id);
    uint32_t first = lowest_here(self, job);

    while (next != NULL) {
        ps_control_request_t *request = next;
        const ps_waiter_t *waiter = &request->waits;
        const ps_worker_t *worker = ps_job_worker(job, waiter->worker);
        ps_watched_t *watched = watch == NULL || worker == NULL
                                    ? NULL
                                    : ps_watch_worker(watch, waiter->worker, worker->joins);

        if (watched != NULL && watched->released < waiter->number) {
            watched->released = waiter->number;
            watched->first = first;
        }
        next = ps_control_next(self, request, PS_FOR_BARRIER, job->id); /* it stays: only … */
        open_for(self, request, first);                                 /* … this one ends */
    }
}

/* PSD_OK: the waiter's worker and job are as they were. */
static psd_status_t check_waiter(const ps_job_t *job, const ps_waiter_t *waiter, psd_error_t *err)
{
    return job->lost_table[0] != '\0' && !job->stopped
               ? psd_error_set(err, PSD_ROWS_LOST, PS_ROWS_LOST_TEXT, job->lost_table)
               : ps_barrier_check(job, waiter->worker, err);
}

static void end_dead(ps_control_t *self, const ps_job_t *job, ps_control_request_t *request)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = check_waiter(job, &request->waits, err);

    ps_control_end(self, request, rc, psd_error_text(err));
}

static void end_all_dead(ps_control_t *self, const ps_job_t *job)
{
    ps_control_request_t *next = ps_control_next(self, NULL, PS_FOR_BARRIER, job->id);

    while (next != NULL) {
        ps_control_request_t *request = next;

        next = ps_control_next(self, request, PS_FOR_BARRIER, job->id);
        if (check_waiter(job, &request->waits, NULL) != PSD_OK) {
            end_dead(self, job, request);
        }
    }
}

/* The job changed: ends waiters whose worker or job has, and the barrier may be
 * complete without the workers that are gone. */
static void settle_barrier(ps_control_t *self, const ps_job_t *job)
{
    end_all_dead(self, job);
    if (ps_barrier_is_complete(&self->waiters, job)) {
        release_all(self, job);
    }
}

void ps_control_begin_barrier(ps_control_t *self, ps_control_request_t *request)
{
    const ps_job_t *job = ps_registry_job_by_id(self->is.registry, request->waits.job);

    if (job == NULL) {
        return;
    }
    if (check_waiter(job, &request->waits, NULL) != PSD_OK) {
        end_dead(self, job, request);
    } else if (ps_barrier_is_complete(&self->waiters, job)) {
        release_all(self, job);
    }
}

/* "waiting for worker 2 at clock 5 (last seen 0.3 s ago), worker 3 (not joined
 * yet)" */
static void print_missing(const ps_control_t *self, const ps_job_t *job, char *ret_text,
                          size_t size)
{
    ps_ranks_t here;
    size_t n = 0;
    size_t used = 0;

    ps_waiters_ranks(&self->waiters, PS_FOR_BARRIER, job->id, &here);
    ret_text[0] = '\0';
    for (size_t i = 0; i < job->n_workers; i++) {
        const ps_worker_t *worker = &job->workers[i];
        char name[PS_HOLDER_SIZE];
        int length = 0;

        if (!ps_worker_is_live(worker) || ps_ranks_has(&here, worker->worker)) {
            continue;
        }
        if (n++ >= NAMED_MAX) {
            continue;
        }
        ps_holder_print(self->is.registry, job->id, worker, worker->start, name, sizeof name);
        length = snprintf(ret_text + used, size - used, "%s%s", n == 1 ? "" : ", ", name);
        used += length > 0 && (size_t)length < size - used ? (size_t)length : 0;
    }
    if (n > NAMED_MAX) {
        (void)snprintf(ret_text + used, size - used, " and %zu more", n - NAMED_MAX);
    }
}

void ps_control_expire_barrier(ps_control_t *self, ps_control_request_t *request, uint64_t now_ms)
{
    const ps_waiter_t *waiter = &request->waits;
    const ps_job_t *job = ps_registry_job_by_id(self->is.registry, waiter->job);
    char missing[800] = "";
    char text[1000];

    if (job != NULL) {
        print_missing(self, job, missing, sizeof missing);
    }
    (void)snprintf(text, sizeof text, "barrier %" PRIu64 " of job \"%s\" waited %.1f s for %s",
                   waiter->number, job == NULL ? "?" : job->name,
                   (double)(now_ms - waiter->since_ms) / 1000.0, missing);
    ps_control_end(self, request, PSD_DEADLINE, text);
}

/* Which worker waits at which barrier. */
static psd_status_t read_waiter(const ps_doc_t *doc, ps_waiter_t *waiter, psd_error_t *err)
{
    uint64_t worker = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "worker", 0, PS_WORKERS_MAX - 1, &worker, err);

    waiter->worker = (uint32_t)worker;
    return rc == PSD_OK ? ps_doc_get_u64(doc, "number", 1, UINT64_MAX, &waiter->number, err) : rc;
}

/* Waits, or takes the place of the request that waits at that barrier. */
static psd_status_t enter(ps_control_t *self, const ps_job_t *job, ps_control_request_t *request,
                          psd_error_t *err)
{
    psd_status_t rc = ps_control_wait(request, PS_FOR_BARRIER, job, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_waiters_repeat(&self->waiters, &request->waits) != NULL) {
        request->waits.kind = 0;
        request->silent = true; /* the answer of the one that waits names the new id */
        return PSD_OK;
    }
    if (!ps_waiters_has_room(&self->waiters, PS_FOR_BARRIER, job->id, WAITERS_MAX)) {
        return psd_error_set(err, PSD_LIMIT,
                             "%d requests wait at the barrier of job \"%s\"; no more are allowed",
                             WAITERS_MAX, job->name);
    }
    ps_doc_destroy(&request->doc); /* all of it is in `waits` */
    return PSD_OK;
}

psd_status_t ps_control_barrier(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    ps_waiter_t *waiter = &request->waits;
    const ps_job_t *job = NULL;
    const ps_worker_t *worker = NULL;
    const ps_watch_t *watch = NULL;
    const ps_watched_t *watched = NULL;
    psd_status_t rc = ps_control_find_job(self, request->doc, &job, err);

    if (rc == PSD_OK) {
        rc = read_waiter(request->doc, waiter, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    worker = ps_job_worker(job, waiter->worker);
    if (!job->stopped && (worker == NULL || worker->state == PS_WORKER_EXPECTED)) {
        return psd_error_set(err, PSD_NO_WORKER, "worker %" PRIu32 " of job \"%s\" has not joined",
                             waiter->worker, job->name);
    }
    rc = ps_barrier_check(job, waiter->worker, err);
    if (rc != PSD_OK) {
        return rc;
    }
    watch = ps_watches_find(&self->watches, job->id);
    watched = watch == NULL ? NULL : ps_watch_find(watch, waiter->worker);
    if (watched != NULL && watched->joins == worker->joins && waiter->number <= watched->released) {
        return ps_doc_set_u64(request->reply, "first", watched->first)
                   ? PSD_OK /* the barrier opened, and the answer was lost */
                   : ps_control_no_memory(err);
    }
    return enter(self, job, request, err);
}

/* ---- a job has changed ---- */

/* Notes when it ended, for `why`. Without memory the time stays unknown. */
static void note_end(ps_control_t *self, const ps_job_t *job)
{
    bool runs = ps_job_runs(self->is.registry, job);
    ps_watch_t *watch =
        runs ? ps_watches_find(&self->watches, job->id) : ps_watches_get(&self->watches, job->id);

    if (watch != NULL && runs) {
        watch->ended_ms = 0;
    } else if (watch != NULL && watch->ended_ms == 0) {
        watch->ended_ms = ps_now_ms();
    }
}

void ps_control_job_changed(ps_control_t *self, uint32_t job)
{
    const ps_job_t *changed = ps_registry_job_by_id(self->is.registry, job);

    if (changed != NULL) {
        ps_overseer_tell_job(self->overseer, job);
        note_end(self, changed);
        settle_barrier(self, changed);
    }
    self->work_due = true; /* slices may be free again */
}
