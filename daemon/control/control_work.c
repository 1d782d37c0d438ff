/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of a job's input: which worker wants one, which has done one.
 * Questions are batched with those that arrived together, because each
 * command costs one flush. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "daemon/nodes/commit.h"
#include "daemon/state/control_inner.h"
#include "daemon/nodes/job_view.h"

#define ASKS_MAX 16384                    /* of one job */
#define TIMEOUT_MAX_MS UINT64_C(86400000) /* a day */
#define NAMED_MAX 5                       /* holders of slices that a text names */

/* ---- questions ---- */

static psd_status_t read_queue(const ps_doc_t *doc, char ret_queue[PS_NAME_MAX + 1],
                               psd_error_t *err)
{
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(doc, "queue", PS_NAME_MAX, &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_text_is_name(name)) {
        return psd_error_set(err, PSD_INVALID,
                             "queue name is \"%.80s\"; allowed: 1..%d of "
                             "letters, digits, \"_\", \".\", \"-\"",
                             name, PS_NAME_MAX);
    }
    memcpy(ret_queue, name, strlen(name) + 1);
    return PSD_OK;
}

psd_status_t ps_control_work_open(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_job_t *job = NULL;
    char queue[PS_NAME_MAX + 1] = "";
    uint64_t n_slices = 0;
    uint64_t n_epochs = 0;
    psd_status_t rc = ps_control_find_job(self, request->doc, &job, err);

    if (rc == PSD_OK) {
        rc = read_queue(request->doc, queue, err);
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
    return rc == PSD_OK ? ps_control_commit(self, &command, PS_LOG_INFO, err) : rc;
}

/* The worker that asks, and its queue. */
static psd_status_t read_ask(const ps_doc_t *doc, ps_slice_ask_t *ask, psd_error_t *err)
{
    uint64_t worker = 0;
    uint64_t joins = 0;
    uint64_t slice = 0;
    psd_status_t rc = read_queue(doc, ask->queue, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "worker", 0, PS_WORKERS_MAX - 1, &worker, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "joins", 1, UINT32_MAX, &joins, err);
    }
    if (rc == PSD_OK && ask->done) {
        rc = ps_doc_get_u64(doc, "epoch", 1, UINT64_MAX, &ask->is.epoch, err);
    }
    if (rc == PSD_OK && ask->done) {
        rc = ps_doc_get_u64(doc, "slice", 0, PS_WORK_SLICES_MAX - 1, &slice, err);
    }
    if (rc == PSD_OK && !ask->done) {
        rc = ps_doc_get_u64(doc, "number", 1, UINT64_MAX, &ask->is.number, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "clock", 0, UINT64_MAX, 0, &ask->clock, err);
    }
    ask->is.worker = (uint32_t)worker;
    ask->is.joins = (uint32_t)joins;
    ask->is.slice = (uint32_t)slice;
    return rc;
}

/* Adds the question to the waiting ones; the watch then owns its reply. */
static psd_status_t enter(ps_control_t *self, ps_control_request_t *request, ps_slice_ask_t *ask,
                          psd_error_t *err)
{
    ps_watch_t *watch = ps_watches_get(&self->watches, ask->is.job);
    ps_slice_ask_t *known = NULL;

    if (watch == NULL) {
        return ps_control_no_memory(err);
    }
    known = ps_watch_ask(watch, ask->session, ask->id);
    if (known != NULL) { /* repeated; the answer goes to the newest connection */
        known->conn = ask->conn;
        request->parked = true;
        return PSD_OK;
    }
    if (watch->n_asks >= ASKS_MAX) {
        return psd_error_set(err, PSD_LIMIT,
                             "%d requests wait for slices of job number %" PRIu32
                             "; no more are allowed",
                             ASKS_MAX, ask->is.job);
    }
    ask->reply = request->reply;
    if (!ps_watch_add_ask(watch, ask)) {
        return ps_control_no_memory(err);
    }
    request->reply = NULL;
    request->parked = true;
    self->work_due = true;
    return PSD_OK;
}

static psd_status_t take(ps_control_t *self, ps_control_request_t *request, bool done,
                         psd_error_t *err)
{
    ps_slice_ask_t ask = {.conn = request->conn,
                          .session = request->session,
                          .id = request->id,
                          .done = done,
                          .since_ms = ps_now_ms()};
    const ps_job_t *job = NULL;
    uint64_t timeout_ms = 0;
    psd_status_t rc = ps_control_find_job(self, request->doc, &job, err);

    if (rc == PSD_OK) {
        rc = read_ask(request->doc, &ask, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(request->doc, "timeout_ms", 0, UINT64_MAX, &timeout_ms, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ask.is.job = job->id;
    ask.is.session = request->session;
    ask.deadline_ms = ask.since_ms + (timeout_ms > TIMEOUT_MAX_MS ? TIMEOUT_MAX_MS : timeout_ms);
    return enter(self, request, &ask, err);
}

psd_status_t ps_control_work_next(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    return take(self, request, false, err);
}

psd_status_t ps_control_work_done(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    return take(self, request, true, err);
}

/* ---- answers ---- */

static ps_control_request_t request_of(const ps_slice_ask_t *ask)
{
    /* Not kept for a repetition: the state of the queue answers that. */
    return (ps_control_request_t){.conn = ask->conn, .id = ask->id, .session = ask->session};
}

static void refuse(ps_control_t *self, ps_watch_t *watch, size_t i, psd_status_t status,
                   const char *text)
{
    const ps_control_request_t request = request_of(&watch->asks[i]);

    ps_control_refuse(self, &request, status, text);
    ps_watch_remove_ask(watch, i);
}

static void answer(ps_control_t *self, ps_watch_t *watch, size_t i)
{
    const ps_slice_ask_t *ask = &watch->asks[i];
    const ps_control_request_t request = request_of(ask);
    bool filled = true;

    if (ask->answer.found == PS_WORK_SLICE) {
        filled = ps_doc_set_u64(ask->reply, "epoch", ask->answer.epoch) &&
                 ps_doc_set_u64(ask->reply, "slice", ask->answer.slice);
    } else if (!ask->done) {
        filled = ps_doc_set_bool(ask->reply, "over", true);
    }
    ps_control_send_reply(self, &request, filled ? ask->reply : NULL);
    ps_watch_remove_ask(watch, i);
}

/* ---- plans ---- */

static psd_status_t plan(const ps_control_t *self, const ps_slice_ask_t *ask, ps_command_t *command,
                         ps_work_answer_t *ret_answer, psd_error_t *err)
{
    ps_work_ask_t is = ask->is;

    is.queue = ask->queue;
    return ask->done
               ? ps_registry_plan_work_done(self->is.registry, &is, ps_unix_ms(), command, err)
               : ps_registry_plan_work_next(self->is.registry, &is, ps_unix_ms(), command,
                                            ret_answer, err);
}

/* All questions of a job that go into one command. true: others are left. */
static bool plan_all(ps_control_t *self, ps_watch_t *watch, ps_command_t *command)
{
    bool left = false;
    size_t i = 0;

    while (i < watch->n_asks) {
        ps_slice_ask_t *ask = &watch->asks[i];
        psd_status_t rc = PSD_OK;

        if (ps_control_checkpoint_holds(self, ask)) {
            ask->planned = false;
            i++;
            continue;
        }
        rc = plan(self, ask, command, &ask->answer, self->err);
        ask->planned = rc == PSD_OK && ask->answer.found != PS_WORK_WAIT;
        left = left || rc == PSD_BUSY;
        if (rc == PSD_OK && ask->clock > watch->clock) {
            watch->clock = ask->clock; /* the asker is a worker of the job */
        }
        if (rc != PSD_OK && rc != PSD_BUSY) {
            refuse(self, watch, i, rc, psd_error_text(self->err));
        } else {
            i++;
        }
        psd_error_clear(self->err);
    }
    return left;
}

/* The command was stored, or failed: answers the questions in it. */
static void answer_planned(ps_control_t *self, ps_watch_t *watch, psd_status_t rc)
{
    size_t i = 0;

    while (i < watch->n_asks) {
        if (!watch->asks[i].planned) {
            i++;
        } else if (rc == PSD_OK) {
            answer(self, watch, i);
        } else {
            refuse(self, watch, i, rc, psd_error_text(self->err));
        }
    }
    psd_error_clear(self->err);
}

/* true: some may have an answer after this command. */
static bool settle(ps_control_t *self, ps_watch_t *watch)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    bool left = plan_all(self, watch, &command);
    psd_status_t rc = ps_control_commit(self, &command, PS_LOG_DEBUG, self->err);

    answer_planned(self, watch, rc);
    return (left || command.work.turns) && watch->n_asks > 0;
}

void ps_control_settle_work(ps_control_t *self)
{
    size_t place = 0;
    uint64_t job = 0;
    void *watch = NULL;

    if (!self->work_due) {
        return;
    }
    self->work_due = false;
    while (ps_map_next(&self->watches.by_job, &place, &job, &watch)) {
        while (settle(self, watch)) {
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

static void expire(ps_control_t *self, ps_watch_t *watch, size_t i, uint64_t now_ms)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    const ps_slice_ask_t *ask = &watch->asks[i];
    const ps_job_t *job = ps_registry_job_by_id(self->is.registry, watch->job);
    bool done =
        ps_buffer_print(&text, "queue %s of job \"%s\" waited %.1f s for a slice: ", ask->queue,
                        job == NULL ? "?" : job->name, (double)(now_ms - ask->since_ms) / 1000.0);

    if (done && ps_control_checkpoint_holds(self, ask)) {
        done = ps_buffer_print(&text,
                               "checkpoint \"%s\" waits until all workers "
                               "have finished clock %" PRIu64 ", ",
                               self->checkpoint.name, self->checkpoint.clock);
    }
    if (done && job != NULL) {
        print_holders(self, job, ask->queue, &text);
    }
    refuse(self, watch, i, PSD_DEADLINE, done ? (const char *)text.data : "no slice is free");
}

void ps_control_expire_work(ps_control_t *self)
{
    uint64_t now_ms = ps_now_ms();
    size_t place = 0;
    uint64_t job = 0;
    void *value = NULL;

    while (ps_map_next(&self->watches.by_job, &place, &job, &value)) {
        ps_watch_t *watch = value;

        for (size_t i = watch->n_asks; i > 0; i--) {
            if (watch->asks[i - 1].deadline_ms <= now_ms) {
                expire(self, watch, i - 1, now_ms);
            }
        }
    }
}

void ps_control_end_work(ps_control_t *self)
{
    size_t place = 0;
    uint64_t job = 0;
    void *value = NULL;

    while (ps_map_next(&self->watches.by_job, &place, &job, &value)) {
        ps_watch_t *watch = value;

        while (watch->n_asks > 0) {
            refuse(self, watch, watch->n_asks - 1, PSD_STOPPING, "the node is stopping");
        }
    }
}
