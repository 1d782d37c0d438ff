/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of a job's input: which worker wants one, which has done one.
 * Questions are batched with those that arrived together, because each
 * command costs one flush. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "server/quorum/replica.h"
#include "server/state/control_inner.h"
#include "server/nodes/job_view.h"

#define ASKS_MAX 16384 /* of one job */
#define NAMED_MAX 5    /* holders of slices that a text names */

/* ---- questions ---- */

/* The queue's name, borrowed from doc. */
static psd_status_t read_queue(const ps_doc_t *doc, const char **ret_queue, psd_error_t *err)
{
    psd_status_t rc = ps_doc_get_text(doc, "queue", PS_NAME_MAX, ret_queue, err);

    return rc != PSD_OK || ps_text_is_name(*ret_queue)
               ? rc
               : psd_error_set(err, PSD_INVALID,
                               "queue name is \"%.80s\"; allowed: 1..%d of "
                               "letters, digits, \"_\", \".\", \"-\"",
                               *ret_queue, PS_NAME_MAX);
}

psd_status_t ps_control_work_open(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_job_t *job = NULL;
    const char *queue = "";
    uint64_t n_slices = 0;
    uint64_t n_epochs = 0;
    psd_status_t rc = ps_control_find_job(self, request->doc, &job, err);

    if (rc == PSD_OK) {
        rc = read_queue(request->doc, &queue, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(request->doc, "slices", 1, PS_WORK_SLICES_MAX, &n_slices, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(request->doc, "epochs", 0, PS_WORK_EPOCHS_MAX, &n_epochs, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_plan_queue(self->is.registry, job->id, queue, (uint32_t)n_slices, n_epochs,
                                    ps_unix_ms(), &command, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_control_sign(self, request, &command);
    return ps_control_commit(self, &command, PS_LOG_INFO, err);
}

/* The worker that asks, and its queue. */
static psd_status_t read_ask(ps_control_request_t *request, bool done, psd_error_t *err)
{
    const ps_doc_t *doc = request->doc;
    ps_work_ask_t *ask = &request->work;
    uint64_t worker = 0;
    uint64_t joins = 0;
    uint64_t slice = 0;
    psd_status_t rc = read_queue(doc, &ask->queue, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "worker", 0, PS_WORKERS_MAX - 1, &worker, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "joins", 1, UINT32_MAX, &joins, err);
    }
    if (rc == PSD_OK && done) {
        rc = ps_doc_get_u64(doc, "epoch", 1, UINT64_MAX, &ask->epoch, err);
    }
    if (rc == PSD_OK && done) {
        rc = ps_doc_get_u64(doc, "slice", 0, PS_WORK_SLICES_MAX - 1, &slice, err);
    }
    if (rc == PSD_OK && !done) {
        rc = ps_doc_get_u64(doc, "number", 1, UINT64_MAX, &ask->number, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "clock", 0, UINT64_MAX, 0, &request->clock, err);
    }
    ask->session = request->waits.session;
    ask->worker = (uint32_t)worker;
    ask->joins = (uint32_t)joins;
    ask->slice = (uint32_t)slice;
    request->waits.worker = ask->worker;
    request->waits.queue = ask->queue;
    return rc;
}

static psd_status_t take(ps_control_t *self, ps_control_request_t *request, ps_waits_for_t kind,
                         psd_error_t *err)
{
    const ps_job_t *job = NULL;
    psd_status_t rc = ps_control_find_job(self, request->doc, &job, err);

    if (rc == PSD_OK) {
        rc = read_ask(request, kind == PS_FOR_DONE, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_wait(request, kind, job, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_watches_get(&self->watches, job->id) == NULL) {
        return ps_control_no_memory(err);
    }
    if (!ps_waiters_has_room(&self->waiters, PS_FOR_WORK, job->id, ASKS_MAX)) {
        return psd_error_set(err, PSD_LIMIT,
                             "%d requests wait for slices of job number %" PRIu32
                             "; no more are allowed",
                             ASKS_MAX, job->id);
    }
    request->work.job = job->id;
    self->work_due = true;
    return PSD_OK;
}

psd_status_t ps_control_work_next(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    return take(self, request, PS_FOR_SLICE, err);
}

psd_status_t ps_control_work_done(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    return take(self, request, PS_FOR_DONE, err);
}

/* ---- answers ---- */

static void answer(ps_control_t *self, ps_control_request_t *request)
{
    bool filled = true;

    if (request->answer.found == PS_WORK_SLICE) {
        filled = ps_doc_set_u64(request->reply, "epoch", request->answer.epoch) &&
                 ps_doc_set_u64(request->reply, "slice", request->answer.slice);
    } else if (request->waits.kind == PS_FOR_SLICE) {
        filled = ps_doc_set_bool(request->reply, "over", true);
    }
    if (!filled) {
        ps_doc_destroy(&request->reply); /* it asks again */
    }
    ps_control_end(self, request, PSD_OK, "");
}

/* ---- plans ---- */

static psd_status_t plan(const ps_control_t *self, ps_control_request_t *request,
                         ps_command_t *command, psd_error_t *err)
{
    return request->waits.kind == PS_FOR_DONE
               ? ps_registry_plan_work_done(self->is.registry, &request->work, ps_unix_ms(),
                                            command, err)
               : ps_registry_plan_work_next(self->is.registry, &request->work, ps_unix_ms(),
                                            command, &request->answer, err);
}

/* All questions of a job that go into one command. true: others are left. */
static bool plan_all(ps_control_t *self, uint32_t job, ps_command_t *command)
{
    ps_watch_t *watch = ps_watches_find(&self->watches, job);
    ps_control_request_t *next = ps_control_next(self, NULL, PS_FOR_WORK, job);
    bool left = false;

    while (next != NULL) {
        ps_control_request_t *request = next;
        psd_status_t rc = PSD_OK;

        next = ps_control_next(self, request, PS_FOR_WORK, job);
        request->planned = false;
        if (ps_control_checkpoint_holds(self, request)) {
            continue;
        }
        rc = plan(self, request, command, self->err);
        request->planned = rc == PSD_OK && request->answer.found != PS_WORK_WAIT;
        left = left || rc == PSD_BUSY;
        if (rc == PSD_OK && watch != NULL && request->clock > watch->clock) {
            watch->clock = request->clock; /* the asker is a worker of the job */
        }
        if (rc != PSD_OK && rc != PSD_BUSY) {
            ps_control_end(self, request, rc, psd_error_text(self->err));
        }
        psd_error_clear(self->err);
    }
    return left;
}

/* The command was stored, or failed: answers the questions in it. */
static void answer_planned(ps_control_t *self, uint32_t job, psd_status_t rc)
{
    ps_control_request_t *next = ps_control_next(self, NULL, PS_FOR_WORK, job);

    while (next != NULL) {
        ps_control_request_t *request = next;

        next = ps_control_next(self, request, PS_FOR_WORK, job);
        if (request->planned && rc == PSD_OK) {
            answer(self, request);
        } else if (request->planned) {
            ps_control_end(self, request, rc, psd_error_text(self->err));
        }
    }
    psd_error_clear(self->err);
}

/* true: some may have an answer after this command. */
static bool settle(ps_control_t *self, uint32_t job)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    bool left = plan_all(self, job, &command);
    psd_status_t rc = ps_control_commit(self, &command, PS_LOG_DEBUG, self->err);

    answer_planned(self, job, rc);
    return (left || command.work.turns) && ps_control_next(self, NULL, PS_FOR_WORK, job) != NULL;
}

void ps_control_settle_work(ps_control_t *self)
{
    uint32_t job = 0;

    if (!self->work_due) {
        return;
    }
    self->work_due = false;
    while ((job = ps_waiters_next_job(&self->waiters, PS_FOR_WORK, job)) != 0) {
        while (settle(self, job)) {
            /* the next command */
        }
    }
}

/* ---- deadlines ---- */

/* "worker 2 at clock 5 (last seen 0.3 s ago) has 2 (slice 7), …" */
static void print_holders(const ps_control_t *self, const ps_job_t *job, const char *queue,
                          ps_buffer_t *text)
{
    size_t n = 0;
    bool done = true;

    for (size_t i = 0; i < job->n_workers; i++) {
        const ps_worker_t *worker = &job->workers[i];
        char name[PS_HOLDER_SIZE];
        uint32_t slice = 0;
        uint32_t n_given =
            ps_registry_queue_given(self->is.registry, job->id, queue, worker->worker, &slice);

        if (n_given == 0 || n++ >= NAMED_MAX) {
            continue;
        }
        ps_holder_print(self->is.registry, job->id, worker, worker->start, name, sizeof name);
        done = done && ps_buffer_print(text, "%s%s has %" PRIu32 " (slice %" PRIu32 ")",
                                       n == 1 ? "" : ", ", name, n_given, slice);
    }
    if (done && n > NAMED_MAX) {
        done = ps_buffer_print(text, " and %zu more", n - NAMED_MAX);
    }
    (void)done; /* without memory the text ends early */
}

void ps_control_expire_work(ps_control_t *self, ps_control_request_t *request, uint64_t now_ms)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    const ps_waiter_t *waiter = &request->waits;
    const ps_job_t *job = ps_registry_job_by_id(self->is.registry, waiter->job);
    bool done = ps_buffer_print(
        &text, "queue %s of job \"%s\" waited %.1f s for a slice: ", waiter->queue,
        job == NULL ? "?" : job->name, (double)(now_ms - waiter->since_ms) / 1000.0);

    if (done && ps_control_checkpoint_holds(self, request)) {
        done = ps_buffer_print(&text,
                               "checkpoint \"%s\" waits until all workers "
                               "have finished clock %" PRIu64 ", ",
                               self->checkpoint.name, self->checkpoint.clock);
    }
    if (done && job != NULL) {
        print_holders(self, job, waiter->queue, &text);
    }
    ps_control_end(self, request, PSD_DEADLINE,
                   done ? (const char *)text.data : "no slice is free");
}
