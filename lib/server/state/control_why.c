/* SPDX-License-Identifier: Apache-2.0 */
/* Why a job is not moving: one line for each worker that waits, and for each
 * that is lost, expected or simply at work. */
#include "server/state/control_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/nodes/circle.h"

typedef struct why {
    const ps_control_t *control;
    const ps_job_view_t *view;
    const ps_watch_t *watch; /* of the job; may be NULL */
    ps_doc_t *waiters;
    ps_doc_t *lost;
    ps_doc_t *expected;
    ps_doc_t *circles;
    ps_doc_t *text;
    bool any_silent; /* a node that a worker may wait for is silent */
    bool has_ended;  /* the job */
} why_t;

static double seconds(uint64_t ms)
{
    return (double)ms / 1000.0;
}

/* The holders of a wait, as a list for programs and as words. */
static bool add_holders(const why_t *self, const ps_worker_view_t *waiter, ps_doc_t *array,
                        ps_buffer_t *words)
{
    const ps_job_view_t *view = self->view;
    bool done = true;

    for (size_t i = 0; done && i < view->job->n_workers; i++) {
        char text[PS_HOLDER_SIZE];
        uint64_t clock = 0;

        if (ps_job_view_holds(view, waiter, i, &clock)) {
            ps_job_view_print(view, waiter, i, clock, text);
            done = ps_doc_append_text(array, text) &&
                   ps_buffer_print(words, "%s%s", words->size == 0 ? "" : ", ", text);
        }
    }
    if (done && waiter->reason[0] != '\0') {
        done = ps_doc_append_text(array, waiter->reason) &&
               ps_buffer_print(words, "%s%s", words->size == 0 ? "" : "; ", waiter->reason);
    }
    if (done && words->size == 0) {
        done = ps_buffer_print(words, "nobody now");
    }
    return done;
}

static const char *kind_name(ps_wait_kind_t kind)
{
    switch (kind) {
    case PS_WAIT_PULL:
        return "pull";
    case PS_WAIT_PUSH:
        return "push";
    case PS_WAIT_BARRIER:
        return "barrier";
    case PS_WAIT_SLICE:
        return "slice";
    case PS_WAIT_NONE:
    default:
        return "none";
    }
}

/* It waits for workers, perhaps no longer for any; else for its partition. */
static bool waits_for_workers(const why_t *self, const ps_worker_view_t *waiter)
{
    bool held = waiter->reason[0] == '\0';

    for (size_t i = 0; !held && i < self->view->job->n_workers; i++) {
        uint64_t clock = 0;

        held = ps_job_view_holds(self->view, waiter, i, &clock);
    }
    return held;
}

static bool add_waiter(const why_t *self, const ps_worker_view_t *waiter)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t words = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t line = {0};
    ps_doc_t *doc = ps_doc_append_object(self->waiters);
    ps_doc_t *holders = NULL;
    double waiting_s = seconds(self->view->now_ms - waiter->since_ms);
    char where[PS_WHERE_SIZE];

    ps_job_view_where(self->view, waiter, where);
    if (doc == NULL || !ps_doc_set_u64(doc, "worker", waiter->is->worker) ||
        !ps_doc_set_u64(doc, "clock", waiter->clock)) {
        return false;
    }
    holders = ps_doc_add_array(doc, "waiting_for");
    return holders != NULL && add_holders(self, waiter, holders, &words) &&
           ps_doc_set_f64(doc, "waiting_s", waiting_s) && ps_doc_set_text(doc, "where", where) &&
           ps_doc_set_text(doc, "kind", kind_name(waiter->wait)) &&
           ps_buffer_print(
               &line, "worker %" PRIu32 " at clock %" PRIu64 " has waited %.1f s (%s%s)%s %s",
               waiter->is->worker, waiter->clock, waiting_s,
               waiter->wait == PS_WAIT_PULL    ? "pull of "
               : waiter->wait == PS_WAIT_PUSH  ? "push to "
               : waiter->wait == PS_WAIT_SLICE ? "slice of "
                                               : "",
               where, waits_for_workers(self, waiter) ? " for" : ":", (const char *)words.data) &&
           ps_doc_set_text(doc, "text", (const char *)line.data) &&
           ps_doc_append_text(self->text, (const char *)line.data);
}

/* "worker 2 was lost 3.0 s ago at clock 50, after 3.0 s of silence; …" */
static void print_lost(const ps_worker_view_t *worker, const ps_watched_t *watched, double ago_s,
                       char *ret_text, size_t size)
{
    uint32_t rank = worker->is->worker;

    if (watched == NULL) {
        (void)snprintf(ret_text, size,
                       "worker %" PRIu32 " was lost at clock %" PRIu64
                       ", when the node was restarted or before",
                       rank, worker->clock);
    } else if (watched->reason[0] != '\0') {
        (void)snprintf(ret_text, size,
                       "worker %" PRIu32 " failed %.1f s ago at clock %" PRIu64
                       ": %s; the others no longer wait for it",
                       rank, ago_s, worker->clock, watched->reason);
    } else if (worker->is->joins == 0) {
        (void)snprintf(
            ret_text, size,
            "worker %" PRIu32
            " did not join in time and was given up %.1f s ago; the others no longer wait for it",
            rank, ago_s);
    } else if (watched->silent_ms == 0) {
        (void)snprintf(ret_text, size,
                       "worker %" PRIu32 " was lost %.1f s ago at clock %" PRIu64
                       ", never heard from; the others no longer wait for it",
                       rank, ago_s, worker->clock);
    } else {
        (void)snprintf(ret_text, size,
                       "worker %" PRIu32 " was lost %.1f s ago at clock %" PRIu64
                       ", after %.1f s of silence; the others no longer wait for it",
                       rank, ago_s, worker->clock, seconds(watched->silent_ms));
    }
}

static bool add_lost(const why_t *self, const ps_worker_view_t *worker)
{
    const ps_watched_t *watched =
        self->watch == NULL ? NULL : ps_watch_find(self->watch, worker->is->worker);
    ps_doc_t *doc = ps_doc_append_object(self->lost);
    double ago_s = 0;
    char line[PS_NAME_MAX + PS_REASON_MAX + 200];

    if (watched != NULL && (watched->joins != worker->is->joins || watched->lost_ms == 0)) {
        watched = NULL; /* an older life */
    }
    if (doc == NULL || !ps_doc_set_u64(doc, "worker", worker->is->worker) ||
        !ps_doc_set_u64(doc, "clock", worker->clock)) {
        return false;
    }
    if (watched != NULL) {
        ago_s = seconds(self->view->now_ms - watched->lost_ms);
        if (!ps_doc_set_f64(doc, "ago_s", ago_s)) {
            return false;
        }
    }
    if (self->view->job->lost_table[0] != '\0') {
        (void)snprintf(line, sizeof line,
                       "worker %" PRIu32 " was lost at clock %" PRIu64
                       ", with the rows of table \"%s\", which are gone",
                       worker->is->worker, worker->clock, self->view->job->lost_table);
    } else {
        print_lost(worker, watched, ago_s, line, sizeof line);
    }
    return ps_doc_set_text(doc, "text", line) && ps_doc_append_text(self->text, line);
}

static bool add_expected(const why_t *self, const ps_worker_view_t *worker)
{
    ps_doc_t *doc = ps_doc_append_object(self->expected);
    char line[120];

    (void)snprintf(line, sizeof line, "worker %" PRIu32 " is expected and has not joined yet",
                   worker->is->worker);
    return doc != NULL && ps_doc_set_u64(doc, "worker", worker->is->worker) &&
           ps_doc_set_text(doc, "text", line) && ps_doc_append_text(self->text, line);
}

static bool add_worker(const why_t *self, const ps_worker_view_t *worker)
{
    if (worker->is->state == PS_WORKER_LOST) {
        return add_lost(self, worker);
    }
    if (worker->is->state == PS_WORKER_EXPECTED) {
        return add_expected(self, worker);
    }
    if (worker->wait != PS_WAIT_NONE && ps_worker_is_live(worker->is)) {
        return add_waiter(self, worker);
    }
    return true;
}

/* It has been silent for longer than one heartbeat interval. */
static bool is_silent(const why_t *self, const ps_worker_view_t *worker)
{
    return worker->seen &&
           self->view->now_ms - worker->seen_ms >
               2 * ps_registry_setting(self->control->is.registry, PS_SETTING_HEARTBEAT);
}

static bool computes(const ps_worker_view_t *worker)
{
    return worker->is->state == PS_WORKER_RUNNING && worker->wait == PS_WAIT_NONE;
}

/* "worker 0 is computing (last seen 2.0 s ago)": each of the silent ones. */
static bool add_silent_ones(const why_t *self, const char *begin)
{
    const ps_job_view_t *view = self->view;
    bool done = true;

    for (size_t i = 0; done && i < view->job->n_workers; i++) {
        const ps_worker_view_t *worker = &view->workers[i];
        char text[160];

        if (computes(worker) && is_silent(self, worker)) {
            (void)snprintf(text, sizeof text,
                           "%sworker %" PRIu32 " is computing%s (last seen %.1f s ago)", begin,
                           worker->is->worker, self->any_silent ? ", or waits for that" : "",
                           seconds(view->now_ms - worker->seen_ms));
            done = ps_doc_append_text(self->text, text);
            begin = "";
        }
    }
    return done;
}

/* "nobody waits", and the workers that compute: "workers 0, 1 are computing". */
static bool add_rest(const why_t *self)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t line = {0};
    const ps_job_view_t *view = self->view;
    const char *begin = view->n_waiting == 0 && !self->any_silent ? "nobody waits; " : "";
    size_t n = 0;
    size_t n_silent = 0;
    bool done = true;

    for (size_t i = 0; done && i < view->job->n_workers; i++) {
        const ps_worker_view_t *worker = &view->workers[i];

        if (computes(worker) && is_silent(self, worker)) {
            n_silent++;
        } else if (computes(worker)) {
            done = ps_buffer_print(&line, "%s%" PRIu32, n == 0 ? "" : ", ", worker->is->worker);
            n++;
        }
    }
    if (done && n > 0) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t whole = {0};

        done =
            ps_buffer_print(&whole, "%s%s %s%s computing%s", begin, n == 1 ? "worker" : "workers",
                            (const char *)line.data, n == 1 ? " is" : " are",
                            self->any_silent ? ", or wait for that" : "") &&
            ps_doc_append_text(self->text, (const char *)whole.data);
        begin = "";
    }
    if (done && n + n_silent == 0 && view->n_waiting == 0) {
        return self->has_ended || ps_doc_append_text(self->text, "nobody waits");
    }
    return done && add_silent_ones(self, begin);
}

/* 'job "lr" was stopped 3.0 s ago': the first line for a job that does not run. */
static bool add_end(why_t *self, const char *state)
{
    const ps_job_view_t *view = self->view;
    const bool was_lost = strcmp(state, "lost") == 0;
    const char *how = strcmp(state, "stopped") == 0 ? "was stopped"
                      : was_lost                    ? "ended"
                                                    : "finished";
    char ago[32] = "";
    char text[PS_NAME_MAX + 100];

    self->has_ended = strcmp(state, "running") != 0;
    if (!self->has_ended) {
        return true;
    }
    if (self->watch != NULL && self->watch->ended_ms != 0) {
        (void)snprintf(ago, sizeof ago, " %.1f s ago",
                       seconds(view->now_ms - self->watch->ended_ms));
    }
    (void)snprintf(text, sizeof text, "job \"%s\" %s%s%s", view->job->name, how, ago,
                   was_lost ? ", with lost workers" : "");
    return ps_doc_append_text(self->text, text);
}

/* What is wrong with the tables that it uses: partitions without a primary,
 * or on the move, hold up workers without any clock. */
static bool add_tables(why_t *self)
{
    const uint32_t *tables = NULL;
    const ps_registry_t *registry = self->view->registry;
    size_t n = ps_registry_job_tables(registry, self->view->job->id, &tables);
    bool done = true;

    for (size_t i = 0; done && i < n; i++) {
        const ps_table_t *table = ps_registry_table_by_id(registry, tables[i]);

        done = table == NULL || /* it was dropped */
               (ps_control_add_table_problems(self->control, table, self->text) &&
                ps_control_add_silent(self->control, table, self->text, &self->any_silent));
    }
    return done;
}

static bool fill(why_t *self, const char *state, ps_doc_t *reply)
{
    const ps_job_view_t *view = self->view;
    bool done = false;

    self->waiters = ps_doc_add_array(reply, "waiters");
    self->lost = ps_doc_add_array(reply, "lost");
    self->expected = ps_doc_add_array(reply, "expected");
    self->circles = ps_doc_add_array(reply, "circles");
    self->text = ps_doc_add_array(reply, "text");
    done = self->waiters != NULL && self->lost != NULL && self->expected != NULL &&
           self->circles != NULL && self->text != NULL && add_end(self, state) &&
           ps_circles_add(view, self->circles, self->text);
    for (size_t i = 0; done && i < view->job->n_workers; i++) {
        done = add_worker(self, &view->workers[i]);
    }
    return done && add_tables(self) && add_rest(self);
}

psd_status_t ps_control_why(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    PSD_AUTO(ps_job_view_done) ps_job_view_t view = {0};
    why_t why = {.control = self, .view = &view};
    const ps_job_t *job = NULL;
    const char *state = "";
    psd_status_t rc = ps_control_find_job(self, request->doc, &job, err);

    if (rc == PSD_OK) {
        rc = ps_job_view_init(&view, self->is.registry, &self->waiters, request->answers, job, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    why.watch = ps_watches_find(&self->watches, job->id);
    view.watch = why.watch;
    state = ps_registry_job_state(self->is.registry, job->id);
    if (!ps_doc_set_text(request->reply, "job", job->name) ||
        !ps_doc_set_text(request->reply, "state", state) || !fill(&why, state, request->reply)) {
        return ps_control_no_memory(err);
    }
    return PSD_OK;
}
