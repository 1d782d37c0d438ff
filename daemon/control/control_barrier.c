/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers: which workers wait, which are missing, and when it opens. */
#include "daemon/state/control_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/nodes/job_view.h"

#define WAITERS_MAX 16384                 /* of one job */
#define TIMEOUT_MAX_MS UINT64_C(86400000) /* a day */
#define NAMED_MAX 5                       /* missing workers that a text names */

/* Answers the i-th waiter and forgets it. */
static void end_waiter(ps_control_t *self, ps_watch_t *watch, size_t i, psd_status_t status,
                       const char *text)
{
    const ps_waiter_t waiter = watch->waiters[i];

    ps_watch_remove(watch, i);
    ps_control_answer(self, &waiter, status, text);
}

static void release_all(ps_control_t *self, ps_watch_t *watch, const ps_job_t *job)
{
    while (watch->n_waiters > 0) {
        const ps_waiter_t *waiter = &watch->waiters[0];
        const ps_worker_t *worker = ps_job_worker(job, waiter->worker);
        ps_watched_t *watched =
            worker == NULL ? NULL : ps_watch_worker(watch, waiter->worker, worker->joins);

        if (watched != NULL && watched->released < waiter->number) {
            watched->released = waiter->number;
        }
        end_waiter(self, watch, 0, PSD_OK, "");
    }
}

/* Ends waiters whose worker or job has changed. */
static void end_dead(ps_control_t *self, ps_watch_t *watch, const ps_job_t *job)
{
    for (size_t i = watch->n_waiters; i > 0; i--) {
        uint32_t rank = watch->waiters[i - 1].worker;
        const ps_worker_t *worker = ps_job_worker(job, rank);
        char text[PS_NAME_MAX + 160];

        if (job->stopped) {
            (void)snprintf(text, sizeof text, "job \"%s\" was stopped", job->name);
            end_waiter(self, watch, i - 1, PSD_JOB_STOPPED, text);
        } else if (job->lost_table[0] != '\0') {
            (void)snprintf(text, sizeof text, PS_ROWS_LOST_TEXT, job->lost_table);
            end_waiter(self, watch, i - 1, PSD_ROWS_LOST, text);
        } else if (worker == NULL || !ps_worker_is_live(worker)) {
            (void)snprintf(text, sizeof text, "worker %" PRIu32 " of job \"%s\" is %s", rank,
                           job->name,
                           worker == NULL ? "gone" : ps_worker_state_name(worker->state));
            end_waiter(self, watch, i - 1, PSD_WORKER_LOST, text);
        }
    }
}

void ps_control_settle_barrier(ps_control_t *self, uint32_t job)
{
    ps_watch_t *watch = ps_watches_find(&self->watches, job);
    const ps_job_t *known = ps_registry_job_by_id(self->is.registry, job);

    if (watch == NULL || known == NULL) {
        return;
    }
    end_dead(self, watch, known);
    if (ps_watch_is_complete(watch, known)) {
        release_all(self, watch, known);
    }
}

/* "waiting for worker 2 at clock 5 (last seen 0.3 s ago), worker 3 (not joined
 * yet)" */
static void print_missing(const ps_control_t *self, const ps_watch_t *watch, const ps_job_t *job,
                          char *ret_text, size_t size)
{
    size_t n = 0;
    size_t used = 0;

    ret_text[0] = '\0';
    for (size_t i = 0; i < job->n_workers; i++) {
        const ps_worker_t *worker = &job->workers[i];
        char name[PS_HOLDER_SIZE];
        int length = 0;

        if (!ps_worker_is_live(worker) || ps_watch_is_waiting(watch, worker->worker)) {
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

static void expire_in(ps_control_t *self, ps_watch_t *watch, uint64_t now_ms)
{
    const ps_job_t *job = ps_registry_job_by_id(self->is.registry, watch->job);

    for (size_t i = watch->n_waiters; i > 0; i--) {
        const ps_waiter_t *waiter = &watch->waiters[i - 1];
        char missing[800] = "";
        char text[1000];

        if (waiter->deadline_ms > now_ms) {
            continue;
        }
        if (job != NULL) {
            print_missing(self, watch, job, missing, sizeof missing);
        }
        (void)snprintf(text, sizeof text, "barrier %" PRIu64 " of job \"%s\" waited %.1f s for %s",
                       waiter->number, job == NULL ? "?" : job->name,
                       (double)(now_ms - waiter->since_ms) / 1000.0, missing);
        end_waiter(self, watch, i - 1, PSD_DEADLINE, text);
    }
}

void ps_control_expire_barriers(ps_control_t *self)
{
    uint64_t now_ms = ps_now_ms();
    size_t place = 0;
    uint64_t job = 0;
    void *watch = NULL;

    while (ps_map_next(&self->watches.by_job, &place, &job, &watch)) {
        expire_in(self, watch, now_ms);
    }
}

void ps_control_end_barriers(ps_control_t *self)
{
    size_t place = 0;
    uint64_t job = 0;
    void *value = NULL;

    while (ps_map_next(&self->watches.by_job, &place, &job, &value)) {
        const ps_watch_t *watch = value;

        for (size_t i = 0; i < watch->n_waiters; i++) {
            ps_control_answer(self, &watch->waiters[i], PSD_STOPPING, "the node is stopping");
        }
    }
}

/* The worker's present life, which must be live. */
static psd_status_t find_worker(const ps_job_t *job, uint32_t rank, const ps_worker_t **ret_worker,
                                psd_error_t *err)
{
    const ps_worker_t *worker = ps_job_worker(job, rank);

    if (job->stopped) {
        return psd_error_set(err, PSD_JOB_STOPPED, "job \"%s\" was stopped", job->name);
    }
    if (worker == NULL || worker->state == PS_WORKER_EXPECTED) {
        return psd_error_set(err, PSD_NO_WORKER, "worker %" PRIu32 " of job \"%s\" has not joined",
                             rank, job->name);
    }
    if (!ps_worker_is_live(worker)) {
        return psd_error_set(err, PSD_WORKER_LOST, "worker %" PRIu32 " of job \"%s\" is %s", rank,
                             job->name, ps_worker_state_name(worker->state));
    }
    *ret_worker = worker;
    return PSD_OK;
}

static psd_status_t read_waiter(const ps_doc_t *doc, ps_waiter_t *waiter, uint64_t *ret_timeout_ms,
                                psd_error_t *err)
{
    uint64_t worker = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "worker", 0, PS_WORKERS_MAX - 1, &worker, err);

    waiter->worker = (uint32_t)worker;
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "number", 1, UINT64_MAX, &waiter->number, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "timeout_ms", 0, UINT64_MAX, ret_timeout_ms, err);
    }
    if (*ret_timeout_ms > TIMEOUT_MAX_MS) {
        *ret_timeout_ms = TIMEOUT_MAX_MS;
    }
    return rc;
}

/* Adds the request to the waiters. */
static psd_status_t enter(ps_control_t *self, const ps_job_t *job, const ps_waiter_t *waiter,
                          psd_error_t *err)
{
    ps_watch_t *watch = ps_watches_get(&self->watches, job->id);

    if (watch == NULL) {
        return ps_control_no_memory(err);
    }
    if (watch->n_waiters >= WAITERS_MAX) {
        return psd_error_set(err, PSD_LIMIT,
                             "%d requests wait at the barrier of job \"%s\"; no more are allowed",
                             WAITERS_MAX, job->name);
    }
    if (!ps_watch_wait(watch, waiter)) {
        return ps_control_no_memory(err);
    }
    return PSD_OK;
}

psd_status_t ps_control_barrier(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    ps_waiter_t waiter = {.conn = request->conn,
                          .session = request->session,
                          .id = request->id,
                          .since_ms = ps_now_ms()};
    const ps_job_t *job = NULL;
    const ps_worker_t *worker = NULL;
    const ps_watch_t *watch = NULL;
    const ps_watched_t *watched = NULL;
    uint64_t timeout_ms = 0;
    psd_status_t rc = ps_control_find_job(self, request->doc, &job, err);

    if (rc == PSD_OK) {
        rc = read_waiter(request->doc, &waiter, &timeout_ms, err);
    }
    if (rc == PSD_OK) {
        rc = find_worker(job, waiter.worker, &worker, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    watch = ps_watches_find(&self->watches, job->id);
    watched = watch == NULL ? NULL : ps_watch_find(watch, waiter.worker);
    if (watched != NULL && watched->joins == worker->joins && waiter.number <= watched->released) {
        return PSD_OK; /* the barrier opened, and the answer was lost */
    }
    waiter.deadline_ms = waiter.since_ms + timeout_ms;
    rc = enter(self, job, &waiter, err);
    if (rc != PSD_OK) {
        return rc;
    }
    request->parked = true;
    ps_control_settle_barrier(self, job->id);
    return PSD_OK;
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
        ps_control_settle_barrier(self, job);
    }
    self->work_due = true; /* slices may be free again */
}
