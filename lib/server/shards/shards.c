/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the shards: start and stop. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/handover.h"
#include "base/log.h"
#include "server/config/endpoint.h"
#include "server/shards/shards_inner.h"
#include "transport/sockets/curve.h"
#include "transport/threads/thread.h"

#define GIVING_BYTES ((uint64_t)4 << 20) /* of a shard that gives rows */

/* ---- start and stop ---- */

/* Where the shard keeps its journal. */
static psd_status_t set_journal(ps_shards_t *self, uint32_t i, const ps_shards_args_t *args,
                                psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_shard_thread_t *shard = &self->threads[i];

    if (args->log_dir == NULL) {
        return PSD_OK;
    }
    if (!ps_buffer_print(&path, "%s/log-%" PRIu32, args->log_dir, i)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for shard %u", i);
    }
    shard->log_dir = (char *)path.data;
    path = (ps_buffer_t){0}; /* the shard's now */
    shard->args.core.disk = true;
    shard->args.journal = (ps_journal_args_t){
        .disk = ps_disk_real(),
        .dir = shard->log_dir,
        .cluster = args->core.cluster,
        .node = args->node,
        .shard = i,
        .n_shards = args->n_shards,
        .segment_bytes = args->segment_bytes,
        .counts = shard->args.meter == NULL ? NULL : &shard->args.meter->journal};
    return PSD_OK;
}

static void fill_args(ps_shards_t *self, uint32_t i, const ps_shards_args_t *args)
{
    ps_shard_actor_args_t *mine = &self->threads[i].args;

    mine->core = args->core;
    mine->core.shard = i;
    mine->socket = args->socket;
    mine->common = &self->common;
    mine->meter = ps_metrics_shard(args->metrics, i);
    mine->rights = args->rights;
    mine->audit = args->audit;
    mine->core.counts = mine->meter == NULL ? NULL : &mine->meter->counts;
    if (args->host[0] != '\0' && args->first_port > 0) {
        (void)snprintf(mine->tcp, sizeof mine->tcp, "tcp://%.200s:%" PRIu32, args->host,
                       args->first_port + i);
    } else if (args->host[0] != '\0') {
        (void)snprintf(mine->tcp, sizeof mine->tcp, "tcp://%.200s:*", args->host);
    }
    if (args->dir[0] != '\0') {
        (void)snprintf(mine->ipc, sizeof mine->ipc, "ipc://%.200s/shard-%u.ipc", args->dir, i);
        mine->with_lane = args->socket.lane.most > 0;
    }
}

/* Starts the thread, and waits until it has opened its port, or could not. */
static psd_status_t start_thread(ps_shard_thread_t *shard, psd_error_t *err)
{
    ps_shard_actor_args_t *mine = &shard->args;
    ps_letter_t ready;
    char name[32];
    int code = 0;
    psd_status_t rc = PSD_OK;

    (void)snprintf(name, sizeof name, "%" PRIx64 "-%u", mine->core.incarnation, mine->core.shard);
    rc = ps_shard_pipe_open(mine->socket.context, name, &shard->pipe, &mine->pipe, err);
    if (rc != PSD_OK) {
        return rc;
    }
    ps_handover_give(mine);
    code = ps_thread_start(&shard->thread, ps_shard_actor, mine);
    if (code != 0) {
        return psd_error_set(err, PSD_IO, "start a thread: error %d", code);
    }
    shard->runs = true;
    if (!ps_shard_pipe_wait(shard->pipe, &ready)) {
        return psd_error_set(err, PSD_IO, "it was stopped before it was ready");
    }
    ps_handover_take(mine);
    return PSD_OK;
}

/* Ends a thread that runs. */
static void stop_shard(ps_shard_thread_t *shard)
{
    if (shard->runs) {
        ps_shard_pipe_send(shard->pipe, PS_LETTER_STOP, NULL);
        (void)pthread_join(shard->thread, NULL);
        ps_handover_take(&shard->args);
        shard->runs = false;
    }
    ps_shard_pipe_close(&shard->pipe);
    ps_shard_pipe_close(&shard->args.pipe);
}

static psd_status_t start_shard(ps_shard_thread_t *shard, const ps_shards_args_t *args,
                                psd_error_t *err)
{
    ps_shard_actor_args_t *mine = &shard->args;

    psd_status_t rc = start_thread(shard, err);

    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "shard %u", mine->core.shard);
    }
    if (mine->ready != PSD_OK) {
        return psd_error_set(err, mine->ready, "shard %u: %s", mine->core.shard, mine->text);
    }
    shard->route.shard = mine->core.shard;
    shard->route.incarnation = mine->core.incarnation;
    if (args->advertise[0] != '\0' && mine->tcp[0] != '\0') {
        ps_endpoint_with_host(mine->tcp, args->advertise, shard->route.tcp);
    } else {
        memcpy(shard->route.tcp, mine->tcp, sizeof shard->route.tcp);
    }
    if (args->public_key != NULL && shard->route.tcp[0] != '\0') {
        char named[PS_ENDPOINT_MAX + 1];

        if (!ps_curve_join(shard->route.tcp, args->public_key, named)) {
            return psd_error_set(err, PSD_INVALID, "shard %u: %s is too long for its key",
                                 mine->core.shard, shard->route.tcp);
        }
        memcpy(shard->route.tcp, named, sizeof named);
    }
    memcpy(shard->route.ipc, mine->ipc, sizeof shard->route.ipc);
    return PSD_OK;
}

/* The next start discards new logs too, unless the registry knows of this
 * start. */
static psd_status_t settle_logs(ps_shards_t *self, const ps_shards_args_t *args, psd_error_t *err)
{
    if (args->log_dir == NULL) {
        return PSD_OK;
    }
    self->log_dir = ps_strdup(args->log_dir);
    if (self->log_dir == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %u shards", args->n_shards);
    }
    return ps_fresh_note_settle(ps_disk_real(), self->log_dir, args->n_shards, &self->fresh, err);
}

psd_status_t ps_shards_start(const ps_shards_args_t *args, ps_shards_t **ret_shards,
                             psd_error_t *err)
{
    PSD_AUTO(ps_shards_stop) ps_shards_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self != NULL) {
        self->threads = ps_alloc(args->n_shards, sizeof *self->threads);
    }
    if (self == NULL || self->threads == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %u shards", args->n_shards);
    }
    self->n_shards = args->n_shards;
    atomic_init(&self->common.log_level, args->log_level);
    atomic_init(&self->common.bytes, 0);
    atomic_init(&self->common.pieces, 0);
    atomic_init(&self->common.tail_bytes, 0);
    atomic_init(&self->common.last_session, 0);
    atomic_init(&self->common.told_job, 0);
    atomic_init(&self->common.told_table, 0);
    atomic_init(&self->common.slow_after_ms, 0);
    atomic_init(&self->common.copy_bytes_per_s, 0);
    atomic_init(&self->common.busy_copy_bytes_per_s, 0);
    atomic_init(&self->common.is_deaf, false);
    self->common.turns = args->turns;
    rc = settle_logs(self, args, err);
    if (rc == PSD_OK) {
        rc = ps_filler_new(args->turns, &self->common.filler, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    for (uint32_t i = 0; i < args->n_shards; i++) {
        fill_args(self, i, args);
        rc = set_journal(self, i, args, err);
        if (rc != PSD_OK) {
            return rc;
        }
        rc = start_shard(&self->threads[i], args, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    *ret_shards = self;
    self = NULL;
    return PSD_OK;
}

void ps_shards_stop(ps_shards_t **self_p)
{
    ps_shards_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    for (uint32_t i = 0; self->threads != NULL && i < self->n_shards; i++) {
        stop_shard(&self->threads[i]);
        ps_free(self->threads[i].log_dir);
        ps_shard_found_done(&self->threads[i].args.found);
    }
    if (ps_fresh_note_take_back(&self->fresh, ps_disk_real(), self->log_dir, NULL) != PSD_OK) {
        ps_log(PS_LOG_WARN, "logs_new_stays",
               "hint=\"the next start counts as a start without rows\"");
    }
    ps_fresh_note_done(&self->fresh);
    ps_shards_forget_asked(self);
    ps_filler_destroy(&self->common.filler);
    ps_free(self->threads);
    ps_free(self->log_dir);
    ps_free(self);
    *self_p = NULL;
}

bool ps_shards_are_deaf(const ps_shards_t *self)
{
    return atomic_load_explicit(&self->common.is_deaf, memory_order_relaxed);
}

uint32_t ps_shards_n(const ps_shards_t *self)
{
    return self->n_shards;
}

bool ps_shards_kept(const ps_shards_t *self)
{
    bool kept = self->n_shards > 0 && !self->fresh.is_fresh;

    for (uint32_t i = 0; i < self->n_shards; i++) {
        kept = kept && self->threads[i].args.found.kept;
    }
    return kept;
}

void ps_shards_joined(ps_shards_t *self)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    char quoted[512];

    if (self->fresh.is_fresh &&
        ps_fresh_note_remove(&self->fresh, ps_disk_real(), self->log_dir, err) != PSD_OK) {
        ps_log(PS_LOG_ERROR, "logs_stay_new",
               "reason=%s hint=\"the next start counts as a start without rows; remove the file "
               "logs-new of the data directory by hand\"",
               ps_log_quote(psd_error_text(err), quoted, sizeof quoted));
    }
}

const uint32_t *ps_shards_recovered(const ps_shards_t *self, uint32_t i, size_t *ret_n)
{
    *ret_n = self->threads[i].args.found.n_tables;
    return self->threads[i].args.found.tables;
}

const ps_damage_t *ps_shards_damage(const ps_shards_t *self, uint32_t i)
{
    return &self->threads[i].args.found.damage;
}

const ps_route_t *ps_shards_route(const ps_shards_t *self, uint32_t i)
{
    return &self->threads[i].route;
}

uint64_t ps_shards_bytes(const ps_shards_t *self)
{
    uint64_t n_giving = atomic_load_explicit(&self->common.n_giving, memory_order_relaxed);

    return atomic_load_explicit(&self->common.bytes, memory_order_relaxed) +
           atomic_load_explicit(&self->common.pieces, memory_order_relaxed) +
           atomic_load_explicit(&self->common.tail_bytes, memory_order_relaxed) +
           n_giving * GIVING_BYTES;
}

void ps_shards_set_log_level(ps_shards_t *self, int level)
{
    atomic_store(&self->common.log_level, level);
}

void ps_shards_set_told(ps_shards_t *self, uint32_t job, uint32_t table)
{
    atomic_store(&self->common.told_job, job);
    atomic_store(&self->common.told_table, table);
}

void ps_shards_set_settings(ps_shards_t *self, const ps_setting_t *settings, size_t n)
{
    const ps_shard_args_t *own = &self->threads[0].args.core;
    ps_shard_limits_t limits = {.slow_after_ms = own->slow_after_ms,
                                .copy_bytes_per_s = own->copy_bytes_per_s,
                                .busy_copy_bytes_per_s = own->busy_copy_bytes_per_s};

    for (size_t i = 0; i < n; i++) {
        switch ((int)settings[i].id) {
        case PS_SETTING_SLOW_AFTER:
            /* No copy is late before the lease that it waits for is over. */
            limits.slow_after_ms =
                settings[i].value > own->lease_ms ? settings[i].value : own->lease_ms;
            break;
        case PS_SETTING_COPY_RATE:
            limits.copy_bytes_per_s = settings[i].value;
            break;
        case PS_SETTING_BUSY_COPY_RATE:
            limits.busy_copy_bytes_per_s = settings[i].value;
            break;
        default: /* the registry goes by it */
            break;
        }
    }
    atomic_store(&self->common.copy_bytes_per_s, limits.copy_bytes_per_s);
    atomic_store(&self->common.busy_copy_bytes_per_s, limits.busy_copy_bytes_per_s);
    atomic_store(&self->common.slow_after_ms, limits.slow_after_ms);
}

void ps_shards_set_last_session(ps_shards_t *self, uint64_t session)
{
    atomic_store(&self->common.last_session, session);
}
