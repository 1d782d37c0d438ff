/* SPDX-License-Identifier: Apache-2.0 */
/* Making and freeing what travels to a shard and back. */
#include "server/shards/shard_call.h"

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

const char *ps_call_name(ps_call_kind_t kind)
{
    static const char *const NAMES[] = {
#define CALL_NAME(NAME) #NAME,
        PS_CALL_MAP(CALL_NAME)
#undef CALL_NAME
    };

    return kind < PS_CALL_COUNT ? NAMES[kind] : "?";
}

/* NULL: no memory. */
static ps_shard_call_t *make(ps_call_kind_t kind, uint32_t job_id)
{
    ps_shard_call_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->kind = kind;
        self->job_id = job_id;
    }
    return self;
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a call to a shard");
}

psd_status_t ps_shard_call_new(ps_call_kind_t kind, uint32_t job_id, ps_shard_call_t **ret_call,
                               psd_error_t *err)
{
    ps_shard_call_t *self = make(kind, job_id);

    if (self == NULL) {
        return no_memory(err);
    }
    *ret_call = self;
    return PSD_OK;
}

psd_status_t ps_shard_call_table(const ps_table_t *table, const ps_copies_t *copies,
                                 ps_shard_call_t **ret_call, psd_error_t *err)
{
    PSD_AUTO(ps_shard_call_destroy) ps_shard_call_t *self = NULL;
    psd_status_t rc = PSD_OK;

    self = make(PS_CALL_TABLE, 0);
    if (self == NULL) {
        return no_memory(err);
    }
    rc = ps_table_spec_copy(&table->spec, &self->spec, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->table = table->id;
    self->copies = copies;
    self->rows_lost = table->rows_lost;
    self->lost_sessions = table->lost_sessions;
    self->restoring = table->restoring;
    self->routes = ps_alloc_raw(table->spec.n_partitions, sizeof *self->routes);
    if (self->routes == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the routes of %s", table->spec.name);
    }
    memcpy(self->routes, table->routes, table->spec.n_partitions * sizeof *self->routes);
    *ret_call = self;
    self = NULL;
    return PSD_OK;
}

psd_status_t ps_shard_call_job(const ps_job_t *job, ps_shard_call_t **ret_call, psd_error_t *err)
{
    PSD_AUTO(ps_shard_call_destroy) ps_shard_call_t *self = NULL;
    psd_status_t rc = PSD_OK;

    self = make(PS_CALL_JOB, job->id);
    if (self == NULL) {
        return no_memory(err);
    }
    rc = ps_job_copy(job, &self->job, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_call = self;
    self = NULL;
    return PSD_OK;
}

/* limits.memory_bytes, else what the host has. */
static uint64_t memory_bytes(const ps_shard_info_t *info)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    uint64_t host = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;

    return info->memory_bytes > 0 && (host == 0 || info->memory_bytes < host) ? info->memory_bytes
                                                                              : host;
}

psd_status_t ps_shard_call_inspect(ps_shard_call_t *self, const ps_shard_t *shard, psd_error_t *err)
{
    ps_shard_answer_t *answer = &self->answer;
    psd_status_t rc = PSD_OK;

    if (self->kind == PS_CALL_SIZES) {
        return ps_shard_sizes(shard, &answer->sizes, &answer->n_sizes, err);
    }
    ps_shard_info(shard, &answer->info);
    answer->memory_bytes = memory_bytes(&answer->info);
    rc = ps_shard_partitions(shard, &answer->partitions, &answer->n_partitions, err);
    return rc == PSD_OK ? ps_shard_lags(shard, &answer->lags, &answer->n_lags, err) : rc;
}

void ps_shard_call_destroy(ps_shard_call_t **self_p)
{
    ps_shard_call_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_table_spec_done(&self->spec);
    ps_job_done(&self->job);
    ps_buffer_done(&self->words);
    ps_free(self->routes);
    ps_shard_answer_done(&self->answer);
    ps_free(self);
    *self_p = NULL;
}
