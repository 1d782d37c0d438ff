/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the room: all that is counted, and what the reader has taken. */
#ifndef PS_SERVER_METRICS_INNER_H
#define PS_SERVER_METRICS_INNER_H

#include <stdatomic.h>

#include "server/metrics/metrics.h"

struct ps_metrics {
    ps_metrics_args_t is;
    const char *kinds[PS_DIM_KIND];
    ps_meter_t *shards; /* owned; n_shards */
    ps_control_meter_t control;
    _Atomic(ps_turns_t *) turns; /* borrowed; NULL: none yet */
    atomic_int stage;            /* ps_node_stage_t */
    /* the reader's */
    ps_node_counts_t node;
    ps_shard_look_t **looks;    /* owned; n_shards; the newest of each, NULL: none yet */
    ps_cluster_look_t *cluster; /* owned; the newest; NULL: none yet */
};

/* Takes the newest looks. */
void ps_metrics_refresh(ps_metrics_t *self);
/* metrics_node.c: what the system says of the process. */
void ps_metrics_ask_system(ps_node_counts_t *node);
#endif
