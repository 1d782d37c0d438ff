/* SPDX-License-Identifier: Apache-2.0 */
/* Joining a job, clocks, barriers, leaving. */
#include "psd/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "client/connection/rank_server.h"
#include "client/job/gather.h"
#include "client/job/job.h"
#include "client/requests/marks.h"
#include "client/requests/pump.h"
#include "client/requests/table.h"
#include "client/requests/wait.h"
#include "transport/environment/environment.h"
#include "wire/messages/utf8.h"

#define DEFAULT_JOB "default"
/* At the caller's deadline the node names the workers that are missing; its
 * answer takes one way. */
#define BARRIER_GRACE_MS 1000
#define REASON_SIZE 161 /* the node takes 160 bytes */

/* A number from the environment; fallback when it is not set. */
static psd_status_t from_env(const char *name, int64_t min, int64_t max, int64_t fallback,
                             int64_t *ret, psd_error_t *err)
{
    ps_environment_t said;
    int64_t value = fallback;
    psd_status_t rc = ps_environment_read(name, &said, err);

    if (rc == PSD_OK && said.text != NULL &&
        (!ps_text_i64(said.text, &value) || value < min || value > max)) {
        rc = psd_error_set(err, PSD_INVALID, "%s is \"%.40s\"; allowed: %" PRId64 "..%" PRId64,
                           said.origin, said.text, min, max);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret = value;
    return PSD_OK;
}

static psd_status_t resolve_job(const char *job, const char **ret, psd_error_t *err)
{
    if (job == NULL) {
        job = getenv("PSD_JOB");
    }
    if (job == NULL || job[0] == '\0') {
        job = DEFAULT_JOB;
    }
    if (!ps_text_is_name(job)) {
        return psd_error_set(err, PSD_INVALID,
                             "job is \"%.80s\"; allowed: letters, digits and "
                             "_ . -, at most %d",
                             job, PS_NAME_MAX);
    }
    *ret = job;
    return PSD_OK;
}

/* psd_start makes servers and schedulers of processes; they never join. */
static psd_status_t check_role(const ps_environment_t *said, psd_error_t *err)
{
    return strcmp(said->text, "server") != 0 && strcmp(said->text, "scheduler") != 0
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID,
                               "%s makes PSD_ROLE \"%s\", and this program joins as a worker: "
                               "psd_start makes other roles; or unset it",
                               said->origin, said->text);
}

/* Where a role is named (DMLC_ROLE), workers have no rank of their own. */
static psd_status_t resolve_rank(int64_t *ret_worker, bool *ret_any, psd_error_t *err)
{
    ps_environment_t said;
    int64_t n_ranks = 0;
    psd_status_t rc = ps_environment_read("PSD_WORKER", &said, err);

    *ret_worker = 0;
    *ret_any = false;
    if (rc == PSD_OK && said.text == NULL && ps_rank_server_place(ret_worker, &n_ranks)) {
        return PSD_OK;
    }
    if (rc == PSD_OK && said.text == NULL) {
        rc = ps_environment_read("PSD_ROLE", &said, err);
        *ret_any = said.text != NULL;
        return rc == PSD_OK && said.text != NULL ? check_role(&said, err) : rc;
    }
    if (rc == PSD_OK && strcmp(said.text, "auto") == 0) {
        *ret_any = true;
        return PSD_OK;
    }
    return rc == PSD_OK ? from_env("PSD_WORKER", 0, PS_WORKERS_MAX - 1, 0, ret_worker, err) : rc;
}

psd_status_t ps_wish_resolve(const char *job, int64_t worker, uint32_t n_workers, int32_t max_delay,
                             ps_wish_t *ret_wish, psd_error_t *err)
{
    int64_t workers = n_workers;
    int64_t delay = max_delay;
    int64_t rank = 0;
    int64_t n_ranks = 1;
    psd_status_t rc = resolve_job(job, &ret_wish->job, err);

    if (rc == PSD_OK && worker == -1) {
        rc = resolve_rank(&worker, &ret_wish->any_rank, err);
    }
    if (rc == PSD_OK && n_workers == 0) {
        (void)ps_rank_server_place(&rank, &n_ranks);
        rc = from_env("PSD_WORKERS", 1, PS_WORKERS_MAX, n_ranks, &workers, err);
    }
    if (rc == PSD_OK && max_delay == PSD_DELAY_ENV) {
        rc = from_env("PSD_MAX_DELAY", -INT32_MAX, INT32_MAX, 0, &delay, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (worker < 0 || worker >= PS_WORKERS_MAX) {
        return psd_error_set(err, PSD_INVALID, "worker is %" PRId64 "; allowed: 0..%d", worker,
                             PS_WORKERS_MAX - 1);
    }
    if (workers > PS_WORKERS_MAX) {
        return psd_error_set(err, PSD_INVALID, "n_workers is %" PRId64 "; allowed: 1..%d", workers,
                             PS_WORKERS_MAX);
    }
    ret_wish->worker = (uint32_t)worker;
    ret_wish->n_workers = (uint32_t)workers;
    ret_wish->max_delay = delay < 0 ? -1 : (int32_t)delay;
    return PSD_OK;
}

static ps_doc_t *make_question(const ps_wish_t *wish)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_question_new("job_join");
    ps_doc_t *question = NULL;

    if (doc != NULL && ps_doc_set_text(doc, "job", wish->job) &&
        ps_doc_set_u64(doc, "worker", wish->worker) &&
        ps_doc_set_u64(doc, "workers", wish->n_workers) &&
        ps_doc_set_i64(doc, "max_delay", wish->max_delay) &&
        ps_doc_set_bool(doc, "attach", wish->attach)) {
        question = doc;
        doc = NULL;
    }
    return question;
}

static psd_status_t read_number(const ps_doc_t *reply, const char *key, uint64_t max, uint32_t *ret,
                                psd_error_t *err)
{
    uint64_t value = 0;
    psd_status_t rc = ps_doc_get_u64(reply, key, 0, max, &value, err);

    if (rc == PSD_OK) {
        *ret = (uint32_t)value;
    }
    return rc;
}

static psd_status_t read_worker(ps_client_worker_t *self, const ps_doc_t *reply, psd_error_t *err)
{
    ps_op_worker_t *stamp = &self->stamp;
    psd_status_t rc = read_number(reply, "job_id", UINT32_MAX, &stamp->job, err);

    if (rc == PSD_OK) {
        rc = read_number(reply, "member", PS_MEMBERS_MAX - 1, &stamp->member, err);
    }
    if (rc == PSD_OK) {
        rc = read_number(reply, "joins", UINT32_MAX, &stamp->joins, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(reply, "clock", 0, UINT64_MAX, &self->start, err);
    }
    stamp->clock = self->start;
    return rc;
}

static psd_status_t start_beat(const psd_client_t *client, const ps_relay_thread_t *relay,
                               ps_client_worker_t *self, psd_error_t *err)
{
    const ps_beat_args_t args = {.finder = &client->finder,
                                 .keys = client->has_keys ? &client->keys : NULL,
                                 .over_tcp = client->options.transport == PS_TRANSPORT_TCP,
                                 .key_watch = &client->key_watch,
                                 .session = client->number,
                                 .job = self->job,
                                 .job_id = self->stamp.job,
                                 .worker = self->stamp.worker,
                                 .joins = self->stamp.joins,
                                 .heartbeat_ms = client->heartbeat_ms,
                                 .desk = relay == NULL ? NULL : ps_relay_thread_desk(relay)};

    return ps_beat_start(&args, &self->beat, err);
}

/* Tables that this client opened before it became a worker belong to the job
 * too. */
static psd_status_t bring_tables(psd_client_t *client, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < client->n_tables; i++) {
        char name[PS_NAME_MAX + 1] = "";
        ps_known_table_t *table = NULL;

        if (!client->tables[i]->in_job) {
            (void)snprintf(name, sizeof name, "%s", client->tables[i]->name);
            rc = ps_table_ask_open(client, name, NULL, &table, err);
        }
        if (rc == PSD_NO_TABLE) {
            psd_error_clear(err);
            rc = PSD_OK; /* it was dropped since */
        }
    }
    return rc;
}

static psd_status_t start_relay(ps_relay_thread_t *relay, const ps_op_worker_t *worker,
                                psd_error_t *err)
{
    const ps_relay_speaker_t speaker = {.job = worker->job,
                                        .worker = worker->worker,
                                        .member = worker->member,
                                        .joins = worker->joins};

    return relay == NULL ? PSD_OK : ps_relay_thread_start(relay, &speaker, err);
}

/* Becomes a worker, or another member of the worker whose beat is given. Takes the relay, which
 * may be NULL, when it succeeds. */
static psd_status_t become(psd_client_t *client, const ps_wish_t *wish, ps_beat_t *beat,
                           ps_relay_thread_t **relay_p, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = make_question(wish);
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    PSD_AUTO(ps_free_at) ps_membership_t *self = ps_alloc(1, sizeof *self);
    ps_client_worker_t worker = {.stamp.worker = wish->worker,
                                 .has_overlay = wish->has_overlay,
                                 .is_timed = wish->max_delay != 0};
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a worker");
    }
    (void)snprintf(worker.job, sizeof worker.job, "%s", wish->job);
    self->n_workers = wish->n_workers;
    self->max_delay = wish->max_delay;
    if (*relay_p != NULL) {
        rc = ps_relay_thread_trace(*relay_p, wish->worker, err);
    }
    if (rc == PSD_OK) {
        rc = ps_question_ask(client, question, client->options.timeout_ms, 0, &reply, err);
    }
    if (rc == PSD_OK) {
        rc = read_worker(&worker, reply, err);
    }
    if (rc == PSD_OK) {
        rc = start_relay(*relay_p, &worker.stamp, err);
    }
    if (rc == PSD_OK && beat != NULL) {
        worker.beat = ps_beat_keep(beat);
    } else if (rc == PSD_OK) {
        rc = start_beat(client, *relay_p, &worker, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_beat_set_clock(worker.beat, worker.stamp.member, worker.start);
    worker.wake_fd = ps_beat_watch(worker.beat, worker.stamp.member);
    client->job_due_ms = 0;
    client->worker = worker;
    client->membership = self;
    client->first_worker = 0;
    client->job_hooks = &ps_membership_hooks;
    if (*relay_p != NULL) {
        self->relay = *relay_p;
        *relay_p = NULL;
        client->desk = ps_relay_thread_desk(self->relay);
        client->job_hooks = &ps_membership_relay_hooks;
    }
    self = NULL;
    rc = ps_membership_learn(client, reply, err);
    if (rc == PSD_OK) {
        rc = bring_tables(client, err);
    }
    if (rc != PSD_OK) {
        ps_membership_end(client);
    }
    return rc;
}

/* Under the lowest free rank. Another worker may take it first. */
static psd_status_t become_any(psd_client_t *client, ps_wish_t *wish, ps_relay_thread_t **relay_p,
                               psd_error_t *err)
{
    psd_status_t rc = PSD_WORKER_EXISTS;

    for (uint32_t i = 0; rc == PSD_WORKER_EXISTS && i < PS_WORKERS_MAX; i++) {
        psd_error_clear(err);
        rc = ps_gather_rank(client, wish->job, wish->n_workers, &wish->worker, err);
        if (rc == PSD_OK) {
            rc = become(client, wish, NULL, relay_p, err);
        }
    }
    return rc;
}

/* The one that gives a session says the level, too. */
static psd_status_t want_session(psd_client_t *client, psd_error_t *err)
{
    return ps_client_is_guest(client)
               ? ps_client_want_session(client, client->options.timeout_ms, err)
               : PSD_OK;
}

static psd_status_t join(psd_client_t *client, ps_wish_t *wish, ps_relay_thread_t **relay_p,
                         psd_error_t *err)
{
    psd_status_t rc = client->has_gathered ? PSD_OK : ps_gather_servers(client, err);

    if (rc != PSD_OK) {
        return rc;
    }
    return wish->any_rank ? become_any(client, wish, relay_p, err)
                          : become(client, wish, NULL, relay_p, err);
}

psd_status_t ps_join_bare(psd_client_t *client, ps_wish_t *wish, psd_error_t *err)
{
    ps_relay_thread_t *relay = NULL;
    psd_status_t rc = want_session(client, err);

    return rc == PSD_OK ? join(client, wish, &relay, err) : rc;
}

static psd_status_t check_free(const psd_client_t *client, psd_error_t *err)
{
    if (client->worker.beat == NULL) {
        return ps_client_check(client, err);
    }
    return psd_error_set(err, PSD_INVALID, "client is worker %" PRIu32 " of job \"%s\" already",
                         client->worker.stamp.worker, client->worker.job);
}

psd_status_t psd_join(psd_client_t *client, const char *job, int64_t worker, uint32_t n_workers,
                      int32_t max_delay, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    ps_wish_t wish = {.job = NULL};
    ps_relay_thread_t *relay = NULL;
    psd_status_t rc = check_free(client, err);

    if (rc == PSD_OK) {
        rc = ps_wish_resolve(job, worker, n_workers, max_delay, &wish, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rc = want_session(client, err);
    if (rc == PSD_OK) {
        rc = ps_overlay_open(client, &wish, &relay, err);
    }
    if (rc == PSD_OK) {
        rc = join(client, &wish, &relay, err);
    }
    ps_relay_thread_stop(&relay, 0); /* it was not taken, or there is none */
    return rc == PSD_OK ? rc
                        : psd_error_wrap(err, rc,
                                         "join job \"%s\" as worker "
                                         "%" PRIu32,
                                         wish.job, wish.worker);
}

psd_status_t psd_attach(psd_client_t *client, const psd_client_t *joined, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK || ps_client_enter(joined, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    const ps_membership_t *other = joined->membership;
    ps_wish_t wish = {.attach = true};
    ps_relay_thread_t *relay = NULL;
    psd_status_t rc = check_free(client, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (other == NULL) {
        return psd_error_set(err, PSD_NOT_JOINED, "the client to attach to is not a worker");
    }
    wish.job = joined->worker.job;
    wish.worker = joined->worker.stamp.worker;
    wish.n_workers = other->n_workers;
    wish.max_delay = other->max_delay;
    wish.has_overlay = joined->worker.has_overlay;
    rc = become(client, &wish, joined->worker.beat, &relay, err);
    return rc == PSD_OK ? rc
                        : psd_error_wrap(err, rc, "attach to worker %" PRIu32 " of job \"%s\"",
                                         wish.worker, wish.job);
}

psd_status_t psd_clock(psd_client_t *client, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_status_t rc = PSD_OK;

    if (client->worker.beat != NULL) {
        ps_pump(client, 0);
    }
    rc = ps_worker_check(client, err);
    if (rc == PSD_OK) {
        rc = ps_mark_clock(client, err);
    }
    if (rc == PSD_OK) {
        ps_perform(client);
        ps_wait_for_welcome(client);
    }
    return rc;
}

uint64_t psd_clock_count(const psd_client_t *client)
{
    return client->worker.stamp.clock;
}

uint32_t psd_worker(const psd_client_t *client)
{
    return client->worker.stamp.worker;
}

uint32_t psd_lost_workers(const psd_client_t *client)
{
    return client->n_lost_workers;
}

psd_status_t psd_barrier(psd_client_t *client, uint32_t timeout_ms, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = NULL;
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    uint64_t first = 0;
    psd_status_t rc = ps_worker_check(client, err);

    if (rc != PSD_OK) {
        return rc;
    }
    question = ps_question_new("barrier");
    if (question == NULL || !ps_control_name_job(client, question) ||
        !ps_doc_set_u64(question, "worker", client->worker.stamp.worker) ||
        !ps_doc_set_u64(question, "member", client->worker.stamp.member) ||
        !ps_doc_set_u64(question, "number", client->membership->n_barriers + 1)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a question");
    }
    rc = ps_question_ask(client, question, timeout_ms, BARRIER_GRACE_MS, &reply, err);
    if (rc == PSD_OK) {
        client->membership->n_barriers++;
        rc = ps_doc_get_u64_or(reply, "first", 0, PS_WORKERS_MAX - 1, client->first_worker, &first,
                               err);
    }
    if (rc == PSD_OK) {
        client->first_worker = (uint32_t)first;
    }
    return rc;
}

uint32_t psd_first_worker(const psd_client_t *client)
{
    return client->first_worker;
}

/* reason NULL: the worker has finished. Afterwards the client is no worker any
 * more, unless the node may not have received it. */
static psd_status_t ask_to_leave(psd_client_t *client, const char *reason, bool gives_up,
                                 uint32_t timeout_ms, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_question_new("job_leave");
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    const ps_op_worker_t *self = &client->worker.stamp;
    uint64_t n_lost = 0;
    psd_status_t rc = PSD_OK;

    if (question == NULL || !ps_control_name_job(client, question) ||
        !ps_doc_set_u64(question, "worker", self->worker) ||
        !ps_doc_set_u64(question, "member", self->member) ||
        !ps_doc_set_u64(question, "joins", self->joins) ||
        (reason != NULL && !ps_doc_set_text(question, "reason", reason)) ||
        (gives_up && !ps_doc_set_bool(question, "gives_up", true))) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a question");
    }
    rc = ps_question_ask(client, question, timeout_ms, 0, &reply, err);
    if (rc == PSD_OK &&
        ps_doc_get_u64_or(reply, "lost", 0, UINT32_MAX, 0, &n_lost, NULL) == PSD_OK) {
        client->n_lost_workers = (uint32_t)n_lost;
    }
    if (rc != PSD_DEADLINE && rc != PSD_NOMEM) {
        ps_membership_end(client);
    }
    return rc;
}

/* One line that fits: no half characters at its end, no control characters. */
static void print_reason(const char *reason, char ret_text[REASON_SIZE])
{
    size_t size = 0;

    if (reason == NULL || reason[0] == '\0') {
        reason = "unknown";
    }
    size = strnlen(reason, REASON_SIZE);
    if (size == REASON_SIZE) {
        size--;
        while (size > 0 && ((unsigned char)reason[size] & 0xC0) == 0x80) {
            size--;
        }
    }
    memcpy(ret_text, reason, size);
    ret_text[size] = '\0';
    for (size_t i = 0; i < size; i++) {
        if ((unsigned char)ret_text[i] < ' ') {
            ret_text[i] = ' ';
        }
    }
    if (!ps_utf8_is_text((const uint8_t *)ret_text, size)) {
        (void)snprintf(ret_text, REASON_SIZE, "unknown");
    }
}

static psd_status_t fail(psd_client_t *client, const char *reason, bool gives_up,
                         uint32_t timeout_ms, psd_error_t *err)
{
    char text[REASON_SIZE];

    if (client->worker.beat == NULL) {
        return psd_error_set(err, PSD_NOT_JOINED, "client is not a worker");
    }
    print_reason(reason, text);
    return ask_to_leave(client, text, gives_up, timeout_ms, err);
}

psd_status_t psd_fail(psd_client_t *client, const char *reason, uint32_t timeout_ms,
                      psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }
    ps_perform(client); /* the sender's thread has nothing any more */
    client->now_ms = ps_now_ms();
    ps_tickets_cut_off(client, PSD_FAILED, "the worker has failed");
    ps_perform(client);
    return fail(client, reason, false, timeout_ms, err);
}

psd_status_t ps_membership_give_up(psd_client_t *client, const char *reason, uint32_t timeout_ms,
                                   psd_error_t *err)
{
    return fail(client, reason, true, timeout_ms, err);
}

psd_status_t psd_leave(psd_client_t *client, uint32_t timeout_ms, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    uint64_t until_ms = ps_now_ms() + timeout_ms;
    uint64_t now_ms = 0;
    psd_status_t rc = PSD_OK;

    if (client->worker.beat == NULL) {
        return psd_error_set(err, PSD_NOT_JOINED, "client is not a worker");
    }
    rc = psd_flush(client, timeout_ms, err);
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "leave");
    }
    ps_overlay_end(client); /* while it is a worker that may bring bundles */
    now_ms = ps_now_ms();
    return ask_to_leave(client, NULL, false, until_ms > now_ms ? (uint32_t)(until_ms - now_ms) : 0,
                        err);
}
