/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs, their workers and their clocks, as pscli shows them. */
#include "server/state/control_inner.h"

#include "server/nodes/job_view.h"

static double seconds(uint64_t ms)
{
    return (double)ms / 1000.0;
}

static psd_status_t init_view(ps_control_t *self, const ps_control_request_t *request,
                              const ps_job_t *job, ps_job_view_t *view, psd_error_t *err)
{
    psd_status_t rc =
        ps_job_view_init(view, self->is.registry, &self->waiters, request->answers, job, err);

    view->watch = ps_watches_find(&self->watches, job->id);
    return rc;
}

/* The view of the job that the request names. */
static psd_status_t view_of(ps_control_t *self, const ps_control_request_t *request,
                            ps_job_view_t *view, psd_error_t *err)
{
    const ps_job_t *job = NULL;
    psd_status_t rc = ps_control_find_job(self, request->doc, &job, err);

    return rc == PSD_OK ? init_view(self, request, job, view, err) : rc;
}

/* "worker 3 at clock 10", as the JSON of `clock inspect` has it. */
static bool add_holders(const ps_job_view_t *view, const ps_worker_view_t *waiter, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "waiting_for");
    bool done = array != NULL;

    for (size_t i = 0; done && i < view->job->n_workers; i++) {
        char text[PS_HOLDER_SIZE];
        uint64_t clock = 0;

        if (waiter->wait != PS_WAIT_NONE && ps_job_view_holds(view, waiter, i, &clock)) {
            ps_job_view_print(view, waiter, i, clock, text);
            done = ps_doc_append_text(array, text);
        }
    }
    return done && (waiter->wait == PS_WAIT_NONE || waiter->reason[0] == '\0' ||
                    ps_doc_append_text(array, waiter->reason));
}

static bool add_worker(const ps_job_view_t *view, const ps_worker_view_t *worker, ps_doc_t *array)
{
    ps_doc_t *doc = ps_doc_append_object(array);

    if (doc == NULL || !ps_doc_set_u64(doc, "worker", worker->is->worker) ||
        !ps_doc_set_text(doc, "state", ps_worker_view_state(worker)) ||
        !ps_doc_set_u64(doc, "clock", worker->clock) ||
        !ps_doc_set_u64(doc, "start", worker->is->start) ||
        !ps_doc_set_u64(doc, "members", worker->is->n_members) ||
        !ps_doc_set_u64(doc, "joins", worker->is->joins)) {
        return false;
    }
    if (worker->seen &&
        !ps_doc_set_f64(doc, "last_seen_s", seconds(view->now_ms - worker->seen_ms))) {
        return false;
    }
    return add_holders(view, worker, doc) &&
           ps_doc_set_f64(doc, "waiting_s",
                          worker->wait == PS_WAIT_NONE ? 0.0
                                                       : seconds(view->now_ms - worker->since_ms));
}

static bool add_workers(const ps_job_view_t *view, ps_doc_t *doc)
{
    ps_doc_t *array = ps_doc_add_array(doc, "workers");
    bool done = array != NULL;

    for (size_t i = 0; done && i < view->job->n_workers; i++) {
        done = add_worker(view, &view->workers[i], array);
    }
    return done;
}

static uint32_t count_state(const ps_job_t *job, ps_worker_state_t state)
{
    uint32_t n = 0;

    for (size_t i = 0; i < job->n_workers; i++) {
        n += job->workers[i].state == state ? 1 : 0;
    }
    return n;
}

/* A job in one line. */
static bool add_job(const ps_control_t *self, const ps_job_view_t *view, ps_doc_t *doc)
{
    const ps_registry_t *registry = self->is.registry;
    const ps_job_t *job = view->job;
    uint32_t n_expected = 0;
    uint64_t created_unix_ms = 0;

    (void)ps_registry_job_facts(registry, job->id, &n_expected, &created_unix_ms);
    return ps_doc_set_text(doc, "name", job->name) && ps_doc_set_u64(doc, "id", job->id) &&
           ps_doc_set_text(doc, "state", ps_registry_job_state(registry, job->id)) &&
           ps_doc_set_i64(doc, "max_delay", job->max_delay) &&
           ps_doc_set_u64(doc, "version", job->version) &&
           ps_doc_set_u64(doc, "created_unix_ms", created_unix_ms) &&
           ps_doc_set_u64(doc, "expected", n_expected) &&
           ps_doc_set_u64(doc, "running", count_state(job, PS_WORKER_RUNNING)) &&
           ps_doc_set_u64(doc, "lost", count_state(job, PS_WORKER_LOST)) &&
           ps_doc_set_u64(doc, "waiting", view->n_waiting) &&
           ps_doc_set_u64(doc, "min", view->min) && ps_doc_set_u64(doc, "max", view->max);
}

static bool add_table_names(const ps_control_t *self, uint32_t job, ps_doc_t *doc)
{
    const uint32_t *ids = NULL;
    size_t n = ps_registry_job_tables(self->is.registry, job, &ids);
    ps_doc_t *array = ps_doc_add_array(doc, "tables");
    bool done = array != NULL;

    for (size_t i = 0; done && i < n; i++) {
        const ps_table_t *table = ps_registry_table_by_id(self->is.registry, ids[i]);

        done = table == NULL || ps_doc_append_text(array, table->spec.name);
    }
    return done;
}

static bool add_listed_job(const ps_control_t *self, const ps_job_view_t *view, ps_doc_t *doc)
{
    return add_job(self, view, doc) && ps_doc_set_u64(doc, "workers", view->job->n_workers) &&
           add_table_names(self, view->job->id, doc);
}

/* The first job after that id; NULL when there is none. */
static const ps_job_t *job_behind(const ps_registry_t *registry, uint32_t id)
{
    for (size_t i = 0; i < ps_registry_n_jobs(registry); i++) {
        const ps_job_t *job = ps_registry_job_at(registry, i);

        if (job->id > id) {
            return job;
        }
    }
    return NULL;
}

/* One item for each job; asks the nodes about each. */
static psd_status_t list_step(ps_control_t *self, ps_control_request_t *request, const char *key,
                              bool (*add)(const ps_control_t *self, const ps_job_view_t *view,
                                          ps_doc_t *doc),
                              psd_error_t *err)
{
    const ps_job_t *job = NULL;

    if (request->step == 0) {
        request->array = ps_doc_add_array(request->reply, key);
        if (request->array == NULL) {
            return ps_control_no_memory(err);
        }
    } else {
        job = ps_registry_job_by_id(self->is.registry, request->job);
    }
    if (job != NULL) {
        PSD_AUTO(ps_job_view_done) ps_job_view_t view = {0};
        ps_doc_t *doc = ps_doc_append_object(request->array);
        psd_status_t rc = init_view(self, request, job, &view, err);

        if (rc != PSD_OK) {
            return rc;
        }
        if (doc == NULL || !add(self, &view, doc)) {
            return ps_control_no_memory(err);
        }
    }
    do {
        job = job_behind(self->is.registry, request->job);
        if (job == NULL) {
            return PSD_OK;
        }
        request->job = job->id;
    } while (!ps_control_sees(self, request, PS_OBJECT_JOB, job->name));
    return ps_control_ask(request, PS_CALL_WAITING, job->id);
}

psd_status_t ps_control_job_list(ps_control_t *self, ps_control_request_t *request,
                                 psd_error_t *err)
{
    return list_step(self, request, "jobs", add_listed_job, err);
}

psd_status_t ps_control_job_inspect(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    PSD_AUTO(ps_job_view_done) ps_job_view_t view = {0};
    ps_doc_t *doc = ps_doc_add_object(request->reply, "job");
    psd_status_t rc = view_of(self, request, &view, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (doc == NULL || !add_job(self, &view, doc) || !add_workers(&view, doc) ||
        !add_table_names(self, view.job->id, doc) ||
        !ps_control_add_queues(self, view.job->id, doc) ||
        !ps_control_add_overlay(self, view.job->id, doc)) {
        return ps_control_no_memory(err);
    }
    return PSD_OK;
}

psd_status_t ps_control_worker_list(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    PSD_AUTO(ps_job_view_done) ps_job_view_t view = {0};
    psd_status_t rc = view_of(self, request, &view, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_doc_set_text(request->reply, "job", view.job->name) ||
        !add_workers(&view, request->reply)) {
        return ps_control_no_memory(err);
    }
    return PSD_OK;
}

static bool add_spread(const ps_control_t *self, const ps_job_view_t *view, ps_doc_t *doc)
{
    return ps_doc_set_text(doc, "job", view->job->name) &&
           ps_doc_set_text(doc, "state", ps_registry_job_state(self->is.registry, view->job->id)) &&
           ps_doc_set_i64(doc, "max_delay", view->job->max_delay) &&
           ps_doc_set_u64(doc, "min", view->min) && ps_doc_set_u64(doc, "max", view->max) &&
           ps_doc_set_u64(doc, "spread", view->max - view->min) &&
           ps_doc_set_u64(doc, "waiting", view->n_waiting);
}

static bool add_listed_clock(const ps_control_t *self, const ps_job_view_t *view, ps_doc_t *doc)
{
    return add_spread(self, view, doc) && ps_doc_set_u64(doc, "workers", view->job->n_workers);
}

psd_status_t ps_control_clock_list(ps_control_t *self, ps_control_request_t *request,
                                   psd_error_t *err)
{
    return list_step(self, request, "clocks", add_listed_clock, err);
}

psd_status_t ps_control_clock_inspect(ps_control_t *self, ps_control_request_t *request,
                                      psd_error_t *err)
{
    PSD_AUTO(ps_job_view_done) ps_job_view_t view = {0};
    psd_status_t rc = view_of(self, request, &view, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!add_spread(self, &view, request->reply) || !add_workers(&view, request->reply)) {
        return ps_control_no_memory(err);
    }
    return PSD_OK;
}
