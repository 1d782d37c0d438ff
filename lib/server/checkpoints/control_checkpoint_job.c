/* SPDX-License-Identifier: Apache-2.0 */
/* A job in a checkpoint: its boundary, its queues, and the restore of both. */
#include <inttypes.h>
#include <string.h>

#include "server/quorum/replica.h"
#include "server/checkpoints/control_checkpoint.h"

#define JOBS_MAX 65536
#define DONE_MAX (2 * PS_WORK_SLICES_MAX)

/* ---- the boundary ---- */

psd_status_t ps_control_checkpoint_find_job(const ps_control_t *self,
                                            const ps_control_request_t *request,
                                            const ps_job_t **ret_job, psd_error_t *err)
{
    const ps_registry_t *registry = self->is.registry;
    const uint32_t *ids = NULL;
    psd_status_t rc = ps_control_find_job(self, request->doc, ret_job, err);

    if (rc == PSD_OK && ps_doc_has(request->doc, "tables")) {
        return psd_error_set(err, PSD_INVALID,
                             "tables and job are both given; allowed: one of them, as a job's "
                             "checkpoint has all tables that it uses");
    }
    if (rc == PSD_OK && strcmp(ps_registry_job_state(registry, (*ret_job)->id), "running") != 0) {
        return psd_error_set(
            err, PSD_INVALID,
            "job \"%s\" is %s: it reaches no further clock; name its tables instead",
            (*ret_job)->name, ps_registry_job_state(registry, (*ret_job)->id));
    }
    if (rc == PSD_OK && ps_registry_job_tables(registry, (*ret_job)->id, &ids) == 0) {
        return psd_error_set(err, PSD_NO_TABLE, "job \"%s\" has opened no table", (*ret_job)->name);
    }
    return rc;
}

void ps_control_checkpoint_let_go(ps_control_t *self)
{
    self->work_due = self->work_due || self->checkpoint.holds_work;
    self->checkpoint.holds_work = false;
}

/* Clients sent the questions answered so far at these clocks. Some may have
 * sent a mark that no shard has seen yet. */
psd_status_t ps_control_checkpoint_next_clock(ps_control_t *self, uint64_t most, uint64_t *ret,
                                              psd_error_t *err)
{
    ps_checkpoint_work_t *work = &self->checkpoint;
    const ps_job_t *job = ps_registry_job_by_id(self->is.registry, work->job);
    const ps_watch_t *watch = ps_watches_find(&self->watches, work->job);

    if (watch != NULL && watch->clock > most) {
        most = watch->clock;
    }
    for (size_t i = 0; job != NULL && i < job->n_workers; i++) {
        const ps_worker_t *worker = &job->workers[i];
        uint64_t seen_ms = 0;
        uint64_t clock = 0;

        if (worker->state != PS_WORKER_RUNNING) {
            continue;
        }
        if (!ps_registry_last_seen(self->is.registry, job->id, worker->worker, &seen_ms, &clock)) {
            return psd_error_set(
                err, PSD_BUSY,
                "worker %" PRIu32
                " of job \"%s\" has not been heard since the registry's node started; try again",
                worker->worker, job->name);
        }
        most = clock > most ? clock : most;
    }
    if (most >= INT64_MAX) {
        return psd_error_set(err, PSD_LIMIT, "the job is at clock %" PRIu64, most);
    }
    work->clock = most + 1;
    self->work_due = true; /* for workers that have not joined yet */
    *ret = work->clock;
    return PSD_OK;
}

/* ---- into the manifest ---- */

/* [first,n,first,n,…] of the slices that are done. */
static bool add_done(const ps_control_t *self, uint32_t job, size_t queue, uint32_t n_slices,
                     ps_doc_t *array)
{
    bool fits = array != NULL;
    uint32_t n = 0;

    for (uint32_t i = 0; fits && i <= n_slices; i++) {
        if (i < n_slices && ps_registry_slice_is_done(self->is.registry, job, queue, i)) {
            n++;
        } else if (n > 0) {
            fits = ps_doc_append_u64(array, i - n) && ps_doc_append_u64(array, n);
            n = 0;
        }
    }
    return fits;
}

static bool add_queues(const ps_control_t *self, uint32_t job, ps_doc_t *array)
{
    bool fits = array != NULL;
    ps_queue_info_t info = {0};

    for (size_t i = 0; fits && ps_registry_queue_at(self->is.registry, job, i, &info); i++) {
        ps_doc_t *queue = ps_doc_append_object(array);

        fits = queue != NULL && ps_doc_set_text(queue, "queue", info.name) &&
               ps_doc_set_u64(queue, "slices", info.n_slices) &&
               ps_doc_set_u64(queue, "epochs", info.n_epochs) &&
               ps_doc_set_u64(queue, "epoch", info.epoch) &&
               add_done(self, job, i, info.n_slices, ps_doc_add_array(queue, "done"));
    }
    return fits;
}

psd_status_t ps_control_checkpoint_take_job(ps_control_t *self, psd_error_t *err)
{
    ps_checkpoint_work_t *work = &self->checkpoint;
    const ps_job_t *job = ps_registry_job_by_id(self->is.registry, work->job);
    ps_doc_t *jobs = ps_doc_add_array(work->manifest, "jobs");
    ps_doc_t *item = jobs == NULL ? NULL : ps_doc_append_object(jobs);
    uint32_t n_expected = 0;
    uint64_t created = 0;

    if (job == NULL || !ps_registry_job_facts(self->is.registry, job->id, &n_expected, &created)) {
        return psd_error_set(err, PSD_NO_JOB, "the job is gone");
    }
    if (item == NULL || !ps_doc_set_text(item, "job", job->name) ||
        !ps_doc_set_i64(item, "max_delay", job->max_delay) ||
        !ps_doc_set_u64(item, "workers", n_expected) ||
        !ps_doc_set_u64(item, "clock", work->clock) ||
        !add_queues(self, job->id, ps_doc_add_array(item, "queues"))) {
        return ps_control_no_memory(err);
    }
    ps_control_checkpoint_let_go(self);
    return PSD_OK;
}

/* ---- restore ---- */

static psd_status_t find_job(const ps_doc_t *manifest, const char *name, const ps_doc_t **ret,
                             psd_error_t *err)
{
    const ps_doc_t *jobs = NULL;
    psd_status_t rc = ps_doc_has(manifest, "jobs")
                          ? ps_doc_get_array(manifest, "jobs", JOBS_MAX, &jobs, err)
                          : PSD_OK;

    for (size_t i = 0; rc == PSD_OK && jobs != NULL && i < ps_doc_count(jobs); i++) {
        const char *found = NULL;

        rc = ps_doc_at_object(jobs, i, ret, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_text(*ret, "job", PS_NAME_MAX, &found, err);
        }
        if (rc == PSD_OK && strcmp(found, name) == 0) {
            return PSD_OK;
        }
    }
    return rc == PSD_OK ? psd_error_set(err, PSD_NO_JOB, "the checkpoint has no job \"%s\"", name)
                        : rc;
}

static psd_status_t read_done(const ps_doc_t *array, ps_work_resumed_t *queue, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    queue->done = ps_alloc((size_t)queue->n_slices + 1, sizeof *queue->done);
    if (queue->done == NULL) {
        return ps_control_no_memory(err);
    }
    for (size_t i = 0; rc == PSD_OK && i + 1 < ps_doc_count(array); i += 2) {
        uint64_t first = 0;
        uint64_t n = 0;

        rc = ps_doc_at_u64(array, i, &first, err);
        if (rc == PSD_OK) {
            rc = ps_doc_at_u64(array, i + 1, &n, err);
        }
        if (rc == PSD_OK && (first >= queue->n_slices || n > queue->n_slices - queue->n_done)) {
            rc = psd_error_set(err, PSD_INVALID,
                               "done has %" PRIu64 " slices from %" PRIu64
                               " on; the queue has %" PRIu32,
                               n, first, queue->n_slices);
        }
        for (uint64_t k = 0; rc == PSD_OK && k < n; k++) {
            queue->done[queue->n_done++] = (uint32_t)(first + k);
        }
    }
    return rc;
}

static psd_status_t read_queue(const ps_doc_t *doc, ps_work_resumed_t *ret, psd_error_t *err)
{
    const ps_doc_t *done = NULL;
    const char *name = NULL;
    uint64_t n_slices = 0;
    psd_status_t rc = ps_doc_get_text(doc, "queue", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK) {
        memcpy(ret->name, name, strlen(name) + 1);
        rc = ps_doc_get_u64(doc, "slices", 1, PS_WORK_SLICES_MAX, &n_slices, err);
    }
    if (rc == PSD_OK) {
        ret->n_slices = (uint32_t)n_slices;
        rc = ps_doc_get_u64(doc, "epochs", 0, PS_WORK_EPOCHS_MAX, &ret->n_epochs, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "epoch", 1, INT64_MAX, &ret->epoch, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(doc, "done", DONE_MAX, &done, err);
    }
    return rc == PSD_OK ? read_done(done, ret, err) : rc;
}

typedef struct queues {
    ps_work_resumed_t list[PS_QUEUES_MAX];
    size_t n;
} queues_t;

static void queues_done(queues_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_free(self->list[i].done);
    }
}

/* Its queues go on to the end of that epoch instead of their own; 0:
 * unchanged. */
static psd_status_t set_epochs(ps_work_resumed_t *queue, uint64_t n_epochs, psd_error_t *err)
{
    bool was_over = queue->n_epochs != 0 && queue->epoch > queue->n_epochs;
    uint64_t reached = was_over ? queue->n_epochs : queue->epoch;

    if (n_epochs == 0) {
        return PSD_OK;
    }
    if (n_epochs < reached) {
        return psd_error_set(err, PSD_INVALID,
                             "epochs is %" PRIu64 "; queue %s is in epoch "
                             "%" PRIu64 " already",
                             n_epochs, queue->name, reached);
    }
    queue->n_epochs = n_epochs;
    return PSD_OK;
}

static psd_status_t read_queues(const ps_doc_t *request, const ps_doc_t *job, queues_t *ret,
                                psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    uint64_t n_epochs = 0;
    psd_status_t rc = ps_doc_get_array(job, "queues", PS_QUEUES_MAX, &array, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request, "epochs", 1, PS_WORK_EPOCHS_MAX, 0, &n_epochs, err);
    }

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(array); i++) {
        const ps_doc_t *queue = NULL;

        rc = ps_doc_at_object(array, i, &queue, err);
        if (rc == PSD_OK) {
            rc = read_queue(queue, &ret->list[ret->n++], err);
        }
        if (rc == PSD_OK) {
            rc = set_epochs(&ret->list[i], n_epochs, err);
        }
    }
    return rc;
}

/* The job as the checkpoint has it, except "workers", which comes from the request. */
static psd_status_t read_job(const ps_doc_t *request, const ps_doc_t *job, ps_resume_t *ret,
                             psd_error_t *err)
{
    uint64_t workers = 0;
    int64_t max_delay = 0;
    psd_status_t rc = ps_doc_get_u64(job, "workers", 1, PS_WORKERS_MAX, &workers, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request, "workers", 1, PS_WORKERS_MAX, workers, &workers, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_i64(job, "max_delay", -1, INT32_MAX, &max_delay, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(job, "clock", 0, INT64_MAX, &ret->clock, err);
    }
    ret->n_workers = (uint32_t)workers;
    ret->max_delay = (int32_t)max_delay;
    return rc;
}

psd_status_t ps_control_checkpoint_resume(ps_control_t *self, ps_control_request_t *request,
                                          const ps_doc_t *manifest, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    PSD_AUTO(queues_done) queues_t queues = {.n = 0};
    ps_resume_t resume = {.queues = queues.list};
    bool done = request->outcome.kind == PS_COMMAND_JOB; /* the job may run by now */
    const ps_doc_t *job = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "job", PS_NAME_MAX, &resume.job, err);

    if (rc == PSD_OK) {
        rc = find_job(manifest, resume.job, &job, err);
    }
    if (rc == PSD_OK) {
        rc = read_job(request->doc, job, &resume, err);
    }
    if (rc == PSD_OK) {
        rc = read_queues(request->doc, job, &queues, err);
    }
    if (rc == PSD_OK && !done) {
        resume.n_queues = queues.n;
        rc = ps_registry_plan_resume(self->is.registry, &resume, ps_unix_ms(), &command, err);
    }
    if (rc == PSD_OK && !done) {
        rc = ps_control_commit_for(self, request, &command, 0, PS_LOG_INFO, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_control_job_changed(self, done ? (uint32_t)request->outcome.number : command.job.id);
    return ps_doc_set_text(request->reply, "job", resume.job) &&
                   ps_doc_set_u64(request->reply, "clock", resume.clock) &&
                   ps_doc_set_u64(request->reply, "workers", resume.n_workers) &&
                   ps_doc_set_u64(request->reply, "queues", queues.n)
               ? PSD_OK
               : ps_control_no_memory(err);
}
