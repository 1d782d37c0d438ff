/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the shards: start, stop, ask all and gather. */
#include "daemon/shards.h"

#include <string.h>

#include "base/alloc.h"
#include "base/handover.h"
#include "base/log.h"
#include "daemon/endpoint.h"

#define ANSWER_WITHIN_MS 20000 /* a shard that takes longer is stuck */

typedef struct shard {
    zactor_t *actor;
    ps_shard_actor_args_t args;
    ps_route_t route;
} shard_t;

struct ps_shards {
    shard_t *shards; /* owned */
    uint32_t n_shards;
    ps_shard_common_t common;
    uint64_t last_serial;
};

/* ---- start and stop ---- */

static void
fill_args(ps_shards_t *self, uint32_t i, const ps_shards_args_t *args)
{
    ps_shard_actor_args_t *mine = &self->shards[i].args;

    mine->core = args->core;
    mine->core.shard = i;
    mine->socket = args->socket;
    mine->common = &self->common;
    (void)snprintf(mine->tcp, sizeof mine->tcp, "tcp://%.200s:*", args->host);
    if (args->dir[0] != '\0') {
        (void)snprintf(mine->ipc, sizeof mine->ipc, "ipc://%.200s/shard-%u.ipc",
                       args->dir, i);
        mine->with_lane = args->socket.lane.most > 0;
    }
}

static psd_status_t
start_shard(shard_t *shard, const ps_shards_args_t *args, psd_error_t *err)
{
    ps_shard_actor_args_t *mine = &shard->args;

    ps_handover_give(mine);
    shard->actor = zactor_new(ps_shard_actor, mine);
    if (shard->actor == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for shard %u",
                             mine->core.shard);
    }
    ps_handover_take(mine);
    if (mine->ready != PSD_OK) {
        return psd_error_set(err, mine->ready, "shard %u: %s", mine->core.shard,
                             mine->text);
    }
    shard->route.shard = mine->core.shard;
    shard->route.incarnation = mine->core.incarnation;
    if (args->advertise[0] != '\0') {
        ps_endpoint_with_host(mine->tcp, args->advertise, shard->route.tcp);
    } else {
        memcpy(shard->route.tcp, mine->tcp, sizeof shard->route.tcp);
    }
    memcpy(shard->route.ipc, mine->ipc, sizeof shard->route.ipc);
    return PSD_OK;
}

psd_status_t
ps_shards_start(const ps_shards_args_t *args,
                ps_shards_t **ret_shards,
                psd_error_t *err)
{
    PSD_AUTO(ps_shards_stop) ps_shards_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self != NULL) {
        self->shards = ps_alloc(args->n_shards, sizeof *self->shards);
    }
    if (self == NULL || self->shards == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %u shards",
                             args->n_shards);
    }
    self->n_shards = args->n_shards;
    atomic_init(&self->common.log_level, args->log_level);
    atomic_init(&self->common.bytes, 0);
    atomic_init(&self->common.last_session, args->core.lost_sessions);
    rc = ps_filler_new(&self->common.filler, err);
    if (rc != PSD_OK) {
        return rc;
    }
    for (uint32_t i = 0; i < args->n_shards; i++) {
        fill_args(self, i, args);
        rc = start_shard(&self->shards[i], args, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    *ret_shards = self;
    self = NULL;
    return PSD_OK;
}

void
ps_shards_stop(ps_shards_t **self_p)
{
    ps_shards_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    for (uint32_t i = 0; self->shards != NULL && i < self->n_shards; i++) {
        zactor_destroy(&self->shards[i].actor);
    }
    ps_filler_destroy(&self->common.filler);
    ps_free(self->shards);
    ps_free(self);
    *self_p = NULL;
}

uint32_t
ps_shards_n(const ps_shards_t *self)
{
    return self->n_shards;
}

const ps_route_t *
ps_shards_route(const ps_shards_t *self, uint32_t i)
{
    return &self->shards[i].route;
}

void
ps_shards_set_log_level(ps_shards_t *self, int level)
{
    atomic_store(&self->common.log_level, level);
}

void
ps_shards_set_last_session(ps_shards_t *self, uint64_t session)
{
    atomic_store(&self->common.last_session, session);
}

/* ---- asking ---- */

void
ps_answers_done(ps_answers_t *self)
{
    for (uint32_t i = 0; i < self->n_calls; i++) {
        ps_shard_call_destroy(&self->calls[i]);
    }
    ps_free(self->calls);
    *self = (ps_answers_t){0};
}

/* Room for one call a shard. */
static psd_status_t
make_room(const ps_shards_t *self, ps_answers_t *calls, psd_error_t *err)
{
    calls->calls = ps_alloc(self->n_shards, sizeof *calls->calls);
    if (calls->calls == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to ask the shards");
    }
    calls->n_calls = self->n_shards;
    return PSD_OK;
}

static void
send_all(ps_shards_t *self, ps_answers_t *calls)
{
    self->last_serial++;
    for (uint32_t i = 0; i < self->n_shards; i++) {
        ps_shard_call_t *call = calls->calls[i];

        calls->calls[i] = NULL; /* it is the shard's now */
        call->serial = self->last_serial;
        ps_handover_give(call);
        (void)zsock_send(self->shards[i].actor, "sp", ps_call_name(call->kind),
                         call);
    }
}

/* The shard's answer to the present question; NULL when there is none in time.
 * Answers to older questions, which nobody waits for any more, are dropped. */
static ps_shard_call_t *
gather(const ps_shards_t *self, uint32_t i, uint64_t deadline_ms)
{
    zsock_t *pipe = zactor_sock(self->shards[i].actor);

    for (;;) {
        PSD_AUTO(zstr_free) char *name = NULL;
        ps_shard_call_t *call = NULL;
        uint64_t now_ms = ps_now_ms();

        zsock_set_rcvtimeo(
            pipe, now_ms < deadline_ms ? (int)(deadline_ms - now_ms) : 0);
        if (zsock_recv(pipe, "sp", &name, &call) != 0 || call == NULL) {
            return NULL;
        }
        ps_handover_take(call);
        if (call->serial == self->last_serial) {
            return call;
        }
        ps_shard_call_destroy(&call);
    }
}

/* Sends the calls and fills in the answers. */
static psd_status_t
exchange(ps_shards_t *self, ps_answers_t *calls, psd_error_t *err)
{
    uint64_t deadline_ms = ps_now_ms() + ANSWER_WITHIN_MS;
    psd_status_t rc = PSD_OK;

    send_all(self, calls);
    for (uint32_t i = 0; i < self->n_shards; i++) {
        ps_shard_call_t *call = gather(self, i, deadline_ms);

        calls->calls[i] = call;
        if (call != NULL) {
            call->incarnation = self->shards[i].route.incarnation;
            call->shard = i;
        }
        if (call == NULL) {
            ps_log(PS_LOG_ERROR, "shard_silent", "shard=%u ms=%d", i,
                   ANSWER_WITHIN_MS);
            rc = psd_error_set(err, PSD_BUSY,
                               "shard %u has not answered for "
                               "%d ms",
                               i, ANSWER_WITHIN_MS);
        } else if (call->status != PSD_OK && rc == PSD_OK) {
            rc =
                psd_error_set(err, call->status, "shard %u: %s", i, call->text);
        }
    }
    return rc;
}

psd_status_t
ps_shards_ask(ps_shards_t *self,
              ps_call_kind_t kind,
              uint32_t job_id,
              ps_answers_t *ret_answers,
              psd_error_t *err)
{
    PSD_AUTO(ps_answers_done) ps_answers_t calls = {0};
    psd_status_t rc = make_room(self, &calls, err);

    for (uint32_t i = 0; rc == PSD_OK && i < self->n_shards; i++) {
        rc = ps_shard_call_new(kind, job_id, &calls.calls[i], err);
    }
    if (rc == PSD_OK) {
        rc = exchange(self, &calls, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_answers = calls;
    calls = (ps_answers_t){0};
    return PSD_OK;
}

psd_status_t
ps_shards_tell_table(ps_shards_t *self,
                     const ps_table_t *table,
                     psd_error_t *err)
{
    PSD_AUTO(ps_answers_done) ps_answers_t calls = {0};
    psd_status_t rc = make_room(self, &calls, err);

    for (uint32_t i = 0; rc == PSD_OK && i < self->n_shards; i++) {
        rc = ps_shard_call_table(table, &calls.calls[i], err);
    }
    return rc == PSD_OK ? exchange(self, &calls, err) : rc;
}

psd_status_t
ps_shards_tell_drop(ps_shards_t *self, uint32_t table, psd_error_t *err)
{
    PSD_AUTO(ps_answers_done) ps_answers_t calls = {0};
    psd_status_t rc = make_room(self, &calls, err);

    for (uint32_t i = 0; rc == PSD_OK && i < self->n_shards; i++) {
        rc = ps_shard_call_new(PS_CALL_DROP, 0, &calls.calls[i], err);
        if (rc == PSD_OK) {
            calls.calls[i]->table = table;
        }
    }
    return rc == PSD_OK ? exchange(self, &calls, err) : rc;
}

psd_status_t
ps_shards_tell_job(ps_shards_t *self, const ps_job_t *job, psd_error_t *err)
{
    PSD_AUTO(ps_answers_done) ps_answers_t calls = {0};
    psd_status_t rc = make_room(self, &calls, err);

    for (uint32_t i = 0; rc == PSD_OK && i < self->n_shards; i++) {
        rc = ps_shard_call_job(job, &calls.calls[i], err);
    }
    return rc == PSD_OK ? exchange(self, &calls, err) : rc;
}
