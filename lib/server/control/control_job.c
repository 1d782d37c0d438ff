/* SPDX-License-Identifier: Apache-2.0 */
/* Join, heartbeat and leave of workers. */
#include "server/state/control_inner.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/quorum/replica.h"
#include "server/nodes/job_view.h"
#include "server/state/history_text.h"

/* ---- join ---- */

/* Every worker's clock at its most advanced partition, over all shards. */
typedef struct clocks {
    uint32_t *ranks;  /* owned */
    uint64_t *clocks; /* owned */
    size_t n;
} clocks_t;

static void clocks_done(clocks_t *self)
{
    ps_free(self->ranks);
    ps_free(self->clocks);
    *self = (clocks_t){0};
}

static void add_clock(clocks_t *self, const ps_clock_info_t *info)
{
    for (size_t i = 0; i < self->n; i++) {
        if (self->ranks[i] == info->worker) {
            if (self->clocks[i] < info->max) {
                self->clocks[i] = info->max;
            }
            return;
        }
    }
    self->ranks[self->n] = info->worker;
    self->clocks[self->n++] = info->max;
}

static psd_status_t gather_clocks(const ps_answers_t *answers, clocks_t *ret_clocks,
                                  psd_error_t *err)
{
    size_t n = 0;

    for (uint32_t i = 0; i < answers->n; i++) {
        n += answers->at[i].n_clocks;
    }
    ret_clocks->ranks = ps_alloc(n, sizeof *ret_clocks->ranks);
    ret_clocks->clocks = ps_alloc(n, sizeof *ret_clocks->clocks);
    if (ret_clocks->ranks == NULL || ret_clocks->clocks == NULL) {
        return ps_control_no_memory(err);
    }
    for (uint32_t i = 0; i < answers->n; i++) {
        for (size_t k = 0; k < answers->at[i].n_clocks; k++) {
            add_clock(ret_clocks, &answers->at[i].clocks[k]);
        }
    }
    return PSD_OK;
}

/* The clock at which the joining worker starts, now that no clock can close any more. */
static psd_status_t start_worker(ps_control_t *self, const ps_control_request_t *request,
                                 uint32_t worker, psd_error_t *err)
{
    PSD_AUTO(clocks_done) clocks_t clocks = {0};
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    uint32_t job = request->job;
    psd_status_t rc = gather_clocks(request->answers, &clocks, err);

    if (rc == PSD_OK) {
        rc = ps_registry_plan_start(self->is.registry, job, worker, clocks.ranks, clocks.clocks,
                                    clocks.n, ps_unix_ms(), &command, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_commit_for(self, request, &command, request->detail, PS_LOG_INFO, err);
    }
    if (rc == PSD_OK) {
        ps_control_job_changed(self, job);
    }
    return rc;
}

/* Which member of a worker has joined, and in which life of the worker: the
 * detail of its outcome. */
static uint64_t detail_of(const ps_worker_t *worker)
{
    return (uint64_t)worker->joins << 32 | (worker->n_members - 1);
}

static uint32_t member_of(const ps_control_request_t *request)
{
    return (uint32_t)request->detail;
}

static uint32_t life_of(const ps_control_request_t *request)
{
    return (uint32_t)(request->detail >> 32);
}

/* Clocks that a client of this worker counts as finished when it joins: the
 * worker's start or, for a further client, the clock of the others. */
static psd_status_t clock_of(const ps_control_request_t *request, const ps_worker_t *worker,
                             uint64_t *ret_clock, psd_error_t *err)
{
    PSD_AUTO(clocks_done) clocks_t clocks = {0};
    psd_status_t rc = PSD_OK;

    *ret_clock = worker->start;
    if (member_of(request) == 0) {
        return PSD_OK;
    }
    rc = gather_clocks(request->answers, &clocks, err);
    for (size_t i = 0; rc == PSD_OK && i < clocks.n; i++) {
        if (clocks.ranks[i] == worker->worker && clocks.clocks[i] > *ret_clock) {
            *ret_clock = clocks.clocks[i];
        }
    }
    return rc;
}

static psd_status_t read_join(const ps_doc_t *doc, ps_join_t *join, psd_error_t *err)
{
    uint64_t worker = 0;
    uint64_t n_workers = 1;
    uint64_t member = 0;
    int64_t max_delay = 0;
    psd_status_t rc = ps_doc_get_text(doc, "job", PS_NAME_MAX, &join->job, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "worker", 0, PS_WORKERS_MAX - 1, &worker, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "member", 0, PS_MEMBERS_MAX - 1, 0, &member, err);
    }
    if (rc == PSD_OK && ps_doc_has(doc, "attach")) {
        rc = ps_doc_get_bool(doc, "attach", &join->attach, err);
    }
    join->attach = join->attach || member > 0;
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "workers", 1, PS_WORKERS_MAX, 1, &n_workers, err);
    }
    if (rc == PSD_OK && ps_doc_has(doc, "max_delay")) {
        rc = ps_doc_get_i64(doc, "max_delay", -1, INT32_MAX, &max_delay, err);
    }
    join->worker = (uint32_t)worker;
    join->n_workers = (uint32_t)n_workers;
    join->max_delay = (int32_t)max_delay;
    return rc;
}

/* The worker that has joined, as the registry now has it. */
static psd_status_t find_joined(const ps_control_t *self, uint32_t job, uint32_t rank,
                                const ps_job_t **ret_job, const ps_worker_t **ret_worker,
                                psd_error_t *err)
{
    *ret_job = ps_registry_job_by_id(self->is.registry, job);
    *ret_worker = *ret_job == NULL ? NULL : ps_job_worker(*ret_job, rank);
    if (*ret_worker == NULL) {
        return psd_error_set(err, PSD_FAILED,
                             "worker %" PRIu32 " of job %" PRIu32 " is missing after its join",
                             rank, job);
    }
    return PSD_OK;
}

/* Its first client: the one that may say where the worker's relay is. */
static void note_session(ps_control_t *self, const ps_control_request_t *request,
                         const ps_worker_t *worker)
{
    ps_watch_t *watch =
        member_of(request) == 0 ? ps_watches_get(&self->watches, request->job) : NULL;
    ps_watched_t *watched =
        watch == NULL ? NULL : ps_watch_worker(watch, worker->worker, worker->joins);

    if (watched != NULL) { /* without memory the first heartbeat decides */
        watched->session = request->waits.session;
    }
}

static psd_status_t fill_join(ps_control_t *self, const ps_control_request_t *request,
                              uint32_t rank, psd_error_t *err)
{
    const ps_job_t *known = NULL;
    const ps_worker_t *worker = NULL;
    ps_doc_t *reply = request->reply;
    psd_status_t rc = find_joined(self, request->job, rank, &known, &worker, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_doc_set_u64(reply, "job_id", known->id) ||
        !ps_doc_set_text(reply, "job", known->name) || !ps_doc_set_u64(reply, "worker", rank) ||
        !ps_doc_set_u64(reply, "member", member_of(request)) ||
        !ps_doc_set_u64(reply, "joins", life_of(request)) ||
        !ps_doc_set_u64(reply, "clock", request->clock) ||
        !ps_doc_set_i64(reply, "max_delay", known->max_delay)) {
        return ps_control_no_memory(err);
    }
    note_session(self, request, worker);
    return ps_control_add_job_tables(self, known, request, err);
}

/* Why the rank is taken: a killed worker counts as running until its silence
 * ends it. */
static psd_status_t explain_running(const ps_control_t *self, const ps_join_t *join,
                                    psd_error_t *err)
{
    const ps_job_t *job = ps_registry_job(self->is.registry, join->job);
    uint64_t seen_ms = 0;
    uint64_t clock = 0;

    if (job == NULL ||
        !ps_registry_last_seen(self->is.registry, job->id, join->worker, &seen_ms, &clock)) {
        return PSD_WORKER_EXISTS;
    }
    psd_error_clear(err);
    return psd_error_set(err, PSD_WORKER_EXISTS,
                         "worker %" PRIu32
                         " of job %s is running already (last seen %.1f s ago); a worker counts as "
                         "running until it is silent for %.1f s (workers.lost_after_ms)",
                         join->worker, join->job, (double)(ps_now_ms() - seen_ms) / 1000.0,
                         (double)ps_registry_setting(self->is.registry, PS_SETTING_LOST_AFTER) /
                             1000.0);
}

/* An earlier try made it joining, or more: goes on from there, unless that life
 * of the worker is over. */
static psd_status_t go_on_joining(ps_control_t *self, const ps_join_t *join,
                                  ps_control_request_t *request, psd_error_t *err)
{
    const ps_job_t *job =
        ps_registry_job_by_id(self->is.registry, (uint32_t)request->outcome.number);
    const ps_worker_t *worker = job == NULL ? NULL : ps_job_worker(job, join->worker);

    request->detail = request->outcome.detail;
    if (worker == NULL || worker->joins != life_of(request) || worker->state == PS_WORKER_LOST) {
        return psd_error_set(err, PSD_WORKER_LOST,
                             "worker %" PRIu32 " of job %s had joined, and was lost since",
                             join->worker, join->job);
    }
    request->job = job->id;
    return ps_control_ask(request, PS_CALL_CLOCKS, request->job);
}

/* First step: the worker is joining; tells every shard. */
static psd_status_t begin_join(ps_control_t *self, const ps_join_t *join,
                               ps_control_request_t *request, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    uint64_t timeout_ms = 0;
    psd_status_t rc =
        ps_doc_get_u64_or(request->doc, "timeout_ms", 0, UINT32_MAX, 0, &timeout_ms, err);

    request->until_ms = ps_now_ms() + timeout_ms;
    if (rc == PSD_OK && request->outcome.kind == PS_COMMAND_JOB) {
        return go_on_joining(self, join, request, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_plan_join(self->is.registry, join, ps_unix_ms(), &command, err);
    }
    if (rc == PSD_OK) {
        request->detail = detail_of(ps_job_worker(&command.job, join->worker));
        rc = ps_control_commit_for(self, request, &command, request->detail, PS_LOG_INFO, err);
    }
    if (rc == PSD_WORKER_EXISTS) {
        return explain_running(self, join, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    request->job = command.job.id;
    ps_control_job_changed(self, request->job);
    return ps_control_ask(request, PS_CALL_CLOCKS, request->job);
}

/* Second step: all shards know the worker, and no clock can close there any
 * more. The worker's start follows from their clocks. The step waits for a
 * node that has just fallen silent: it comes back, or other copies take
 * over. */
static psd_status_t agree_join(ps_control_t *self, const ps_join_t *join,
                               ps_control_request_t *request, psd_error_t *err)
{
    const ps_job_t *known = NULL;
    const ps_worker_t *worker = NULL;
    psd_status_t rc = PSD_OK;

    if (request->missing[0] != '\0' && ps_now_ms() < request->until_ms) {
        return ps_control_ask_again(request);
    }
    rc = ps_control_check_answered(request, err);

    if (rc == PSD_OK && !join->attach) {
        rc = start_worker(self, request, join->worker, err);
    }
    if (rc == PSD_OK) {
        rc = find_joined(self, request->job, join->worker, &known, &worker, err);
    }
    if (rc == PSD_OK && worker != NULL) {
        rc = clock_of(request, worker, &request->clock, err);
    }
    return rc == PSD_OK ? ps_control_ask(request, PS_CALL_REACHED, 0) : rc;
}

psd_status_t ps_control_job_join(ps_control_t *self, ps_control_request_t *request,
                                 psd_error_t *err)
{
    ps_join_t join = {0};
    psd_status_t rc = read_join(request->doc, &join, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (request->step == 0) {
        return begin_join(self, &join, request, err);
    }
    if (request->step == 1) {
        return agree_join(self, &join, request, err);
    }
    return fill_join(self, request, join.worker, err);
}

/* What a worker wants to know before it joins, without the workers of the job, of
 * which there may be many. */
psd_status_t ps_control_job_state(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    const ps_job_t *job = NULL;
    ps_doc_t *doc = ps_doc_add_object(request->reply, "job");
    psd_status_t rc = ps_control_find_job(self, request->doc, &job, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (doc == NULL || !ps_doc_set_text(doc, "name", job->name) ||
        !ps_doc_set_u64(doc, "id", job->id) ||
        !ps_doc_set_text(doc, "state", ps_registry_job_state(self->is.registry, job->id)) ||
        !ps_doc_set_i64(doc, "max_delay", job->max_delay)) {
        return ps_control_no_memory(err);
    }
    return PSD_OK;
}

/* ---- live and leave ---- */

static psd_status_t read_worker(const ps_control_t *self, const ps_doc_t *doc,
                                const ps_job_t **ret_job, uint32_t *ret_worker, psd_error_t *err)
{
    uint64_t worker = 0;
    psd_status_t rc = ps_control_find_job(self, doc, ret_job, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "worker", 0, PS_WORKERS_MAX - 1, &worker, err);
    }
    *ret_worker = (uint32_t)worker;
    return rc;
}

psd_status_t ps_control_heartbeat(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    const ps_job_t *job = NULL;
    uint32_t worker = 0;
    uint64_t joins = 0;
    uint64_t clock = 0;
    psd_status_t rc = read_worker(self, request->doc, &job, &worker, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request->doc, "joins", 0, UINT32_MAX, 0, &joins, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request->doc, "clock", 0, UINT64_MAX, 0, &clock, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_heartbeat(self->is.registry, job->id, worker, (uint32_t)joins, clock,
                                   ps_now_ms(), err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_doc_set_u64(request->reply, "version",
                        ps_registry_job_tables_version(self->is.registry, job->id)) ||
        !ps_doc_set_u64(request->reply, "next_ms", ps_control_beat_ms(self)) ||
        !ps_doc_set_text(request->reply, "state",
                         ps_registry_job_state(self->is.registry, job->id))) {
        return ps_control_no_memory(err);
    }
    return ps_doc_has(request->doc, "relay")
               ? ps_control_overlay_beat(self, request, job, worker, clock, err)
               : PSD_OK;
}

/* A worker has left when the last of its clients has. */
static psd_status_t leave_member(ps_control_t *self, uint32_t job, const ps_worker_t *worker,
                                 uint32_t member, bool *ret_last, psd_error_t *err)
{
    ps_watch_t *watch = NULL;
    ps_watched_t *watched = NULL;

    *ret_last = worker->n_members <= 1 || worker->state != PS_WORKER_RUNNING;
    if (*ret_last) {
        return PSD_OK;
    }
    watch = ps_watches_get(&self->watches, job);
    watched = watch == NULL ? NULL : ps_watch_worker(watch, worker->worker, worker->joins);
    if (watched == NULL) {
        return ps_control_no_memory(err);
    }
    *ret_last = ps_watched_leave(watched, member, worker->n_members);
    return PSD_OK;
}

/* For a worker that leaves: the lost workers whose work is undone. */
static uint64_t count_lost(const ps_job_t *job)
{
    uint64_t n_lost = 0;

    for (size_t i = 0; i < job->n_workers; i++) {
        n_lost += job->workers[i].state == PS_WORKER_LOST ? 1 : 0;
    }
    return n_lost;
}

/* A worker that failed is lost at once, and the others learn the reason.
 * gives_up: when no other worker is there, the job ends too. */
static psd_status_t fail_worker(ps_control_t *self, const ps_control_request_t *request,
                                const ps_job_t *job, uint32_t rank, const char *reason,
                                bool gives_up, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_worker_t *worker = ps_job_worker(job, rank);
    uint32_t id = job->id;
    ps_watch_t *watch = ps_watches_get(&self->watches, id);
    ps_watched_t *watched =
        watch == NULL || worker == NULL ? NULL : ps_watch_worker(watch, rank, worker->joins);
    int size = 0;
    psd_status_t rc = gives_up ? ps_registry_plan_give_up(self->is.registry, id, rank, ps_unix_ms(),
                                                          &command, err)
                               : ps_registry_plan_end(self->is.registry, id, rank, PS_WORKER_LOST,
                                                      ps_unix_ms(), &command, err);

    if (rc != PSD_OK || command.kind == 0) {
        return rc;
    }
    size = snprintf(command.text, sizeof command.text,
                    "worker %" PRIu32 " of job %s failed: ", rank, job->name);
    (void)ps_history_quote(reason, command.text + size, sizeof command.text - (size_t)size);
    if (watched != NULL) {
        watched->lost_ms = ps_now_ms();
        (void)snprintf(watched->reason, sizeof watched->reason, "%s", reason);
    }
    rc = ps_control_commit_for(self, request, &command, count_lost(job), PS_LOG_WARN, err);
    if (rc == PSD_OK) {
        ps_control_job_changed(self, id);
    }
    return rc;
}

/* How a worker leaves. */
typedef struct leaving {
    const char *reason; /* "": it has finished */
    uint64_t member;
    uint64_t joins; /* 0: not said */
    bool gives_up;
} leaving_t;

static psd_status_t read_leaving(const ps_doc_t *doc, leaving_t *leaving, psd_error_t *err)
{
    psd_status_t rc = ps_doc_get_text_or(doc, "reason", PS_REASON_MAX, "", &leaving->reason, err);

    if (rc == PSD_OK && ps_doc_has(doc, "gives_up")) {
        rc = ps_doc_get_bool(doc, "gives_up", &leaving->gives_up, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "member", 0, PS_MEMBERS_MAX - 1, 0, &leaving->member, err);
    }
    return rc == PSD_OK ? ps_doc_get_u64_or(doc, "joins", 0, UINT32_MAX, 0, &leaving->joins, err)
                        : rc;
}

static psd_status_t finish_worker(ps_control_t *self, const ps_control_request_t *request,
                                  const ps_job_t *job, uint32_t rank, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    uint32_t id = job->id;
    psd_status_t rc = ps_registry_plan_end(self->is.registry, id, rank, PS_WORKER_FINISHED,
                                           ps_unix_ms(), &command, err);

    if (rc == PSD_OK) {
        rc = ps_control_commit_for(self, request, &command, count_lost(job), PS_LOG_INFO, err);
    }
    if (rc == PSD_OK) {
        ps_control_job_changed(self, id);
    }
    return rc;
}

psd_status_t ps_control_job_leave(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    const ps_job_t *job = NULL;
    const ps_worker_t *worker = NULL;
    leaving_t leaving = {.reason = ""};
    uint32_t rank = 0;
    bool last = true;
    psd_status_t rc = PSD_OK;

    if (request->outcome.kind == PS_COMMAND_JOB) { /* it has left */
        return ps_doc_set_u64(request->reply, "lost", request->outcome.detail)
                   ? PSD_OK
                   : ps_control_no_memory(err);
    }
    rc = read_worker(self, request->doc, &job, &rank, err);
    if (rc == PSD_OK) {
        rc = read_leaving(request->doc, &leaving, err);
    }
    if (rc == PSD_OK && !ps_doc_set_u64(request->reply, "lost", count_lost(job))) {
        rc = ps_control_no_memory(err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    worker = ps_job_worker(job, rank);
    if (worker != NULL && leaving.joins != 0 && leaving.joins != worker->joins) {
        return psd_error_set(err, PSD_WORKER_LOST,
                             "worker %" PRIu32 " of job \"%s\" has joined "
                             "again since",
                             rank, job->name);
    }
    if (leaving.reason[0] != '\0') {
        return fail_worker(self, request, job, rank, leaving.reason, leaving.gives_up, err);
    }
    if (worker != NULL) {
        rc = leave_member(self, job->id, worker, (uint32_t)leaving.member, &last, err);
    }
    return rc == PSD_OK && last ? finish_worker(self, request, job, rank, err) : rc;
}

psd_status_t ps_control_job_stop(ps_control_t *self, ps_control_request_t *request,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    bool done = request->outcome.kind == PS_COMMAND_JOB; /* not the next one of its name */
    const ps_job_t *job = NULL;
    uint32_t id = (uint32_t)request->outcome.number;
    psd_status_t rc = done ? PSD_OK : ps_control_find_job(self, request->doc, &job, err);

    if (rc == PSD_OK && !done) {
        id = job->id;
        rc = ps_registry_plan_stop(self->is.registry, job->name, ps_unix_ms(), &command, err);
    }
    if (rc == PSD_OK && !done) {
        rc = ps_control_commit_for(self, request, &command, 0, PS_LOG_WARN, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_control_job_changed(self, id);
    job = ps_registry_job_by_id(self->is.registry, id);
    if (!ps_doc_set_text(request->reply, "job", job == NULL ? "" : job->name) ||
        !ps_doc_set_text(request->reply, "state", ps_registry_job_state(self->is.registry, id))) {
        return ps_control_no_memory(err);
    }
    return PSD_OK;
}

psd_status_t ps_control_job_tables(ps_control_t *self, ps_control_request_t *request,
                                   psd_error_t *err)
{
    const ps_job_t *job = NULL;
    psd_status_t rc = ps_control_find_job(self, request->doc, &job, err);

    return rc == PSD_OK ? ps_control_add_job_tables(self, job, request, err) : rc;
}
