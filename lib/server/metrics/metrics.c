/* SPDX-License-Identifier: Apache-2.0 */
/* The places in which threads count. */
#include "server/metrics/metrics.h"

#include <assert.h>

#include "base/alloc.h"
#include "server/metrics/metrics_inner.h"
#include "transport/threads/clock.h"

void ps_cluster_look_destroy(ps_cluster_look_t **look_p)
{
    ps_cluster_look_t *look = *look_p;

    if (look != NULL) {
        ps_free(look->tables);
        ps_free(look->jobs);
        ps_free(look->members);
        ps_free(look);
    }
    *look_p = NULL;
}

psd_status_t ps_metrics_new(const ps_metrics_args_t *args, ps_metrics_t **ret_metrics,
                            psd_error_t *err)
{
    PSD_AUTO(ps_metrics_destroy) ps_metrics_t *self = ps_alloc(1, sizeof *self);

    assert(args->n_kinds <= PS_DIM_KIND);
    if (self != NULL) {
        self->is = *args;
        self->shards = ps_alloc(args->n_shards, sizeof *self->shards);
        self->looks = ps_alloc(args->n_shards, sizeof *self->looks);
    }
    if (self == NULL || self->shards == NULL || self->looks == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to count");
    }
    for (size_t i = 0; i < args->n_kinds; i++) {
        self->kinds[i] = args->kinds[i];
    }
    self->is.kinds = self->kinds;
    ps_count_set(self->node.build, 1);
    ps_count_set(self->node.started_unix_ms, ps_unix_ms());
    ps_count_set(self->node.n_shards, args->n_shards);
    ps_count_set(self->node.memory_limit_bytes, args->memory_bytes);
    ps_count_set(self->node.plain_endpoints, args->plain_endpoints);
    *ret_metrics = self;
    self = NULL;
    return PSD_OK;
}

void ps_metrics_destroy(ps_metrics_t **self_p)
{
    ps_metrics_t *self = *self_p;
    ps_cluster_look_t *cluster = NULL;

    if (self == NULL) {
        return;
    }
    for (uint32_t i = 0; self->shards != NULL && self->looks != NULL && i < self->is.n_shards;
         i++) {
        ps_shard_look_t *look = ps_box_take(&self->shards[i].look);

        ps_shard_look_destroy(&look);
        ps_shard_look_destroy(&self->shards[i].spare);
        ps_shard_look_destroy(&self->looks[i]);
    }
    cluster = ps_box_take(&self->control.look);
    ps_cluster_look_destroy(&cluster);
    ps_cluster_look_destroy(&self->cluster);
    ps_free(self->shards);
    ps_free(self->looks);
    ps_free(self);
    *self_p = NULL;
}

ps_meter_t *ps_metrics_shard(ps_metrics_t *self, uint32_t i)
{
    return self == NULL || i >= self->is.n_shards ? NULL : &self->shards[i];
}

ps_control_meter_t *ps_metrics_control(ps_metrics_t *self)
{
    return self == NULL ? NULL : &self->control;
}

ps_node_counts_t *ps_metrics_node(ps_metrics_t *self)
{
    return &self->node;
}

void ps_metrics_set_turns(ps_metrics_t *self, ps_turns_t *turns)
{
    if (self != NULL) {
        atomic_store_explicit(&self->turns, turns, memory_order_release);
    }
}

ps_turns_t *ps_metrics_turns(const ps_metrics_t *self)
{
    return atomic_load_explicit(&self->turns, memory_order_acquire);
}

void ps_metrics_set_stage(ps_metrics_t *self, ps_node_stage_t stage)
{
    if (self != NULL) {
        atomic_store_explicit(&self->stage, (int)stage, memory_order_release);
    }
}

void ps_metrics_refresh(ps_metrics_t *self)
{
    ps_cluster_look_t *cluster = ps_box_take(&self->control.look);

    if (cluster != NULL) {
        ps_cluster_look_destroy(&self->cluster);
        self->cluster = cluster;
    }
    for (uint32_t i = 0; i < self->is.n_shards; i++) {
        ps_shard_look_t *look = ps_box_take(&self->shards[i].look);

        if (look != NULL) {
            ps_shard_look_destroy(&self->looks[i]);
            self->looks[i] = look;
        }
    }
}
