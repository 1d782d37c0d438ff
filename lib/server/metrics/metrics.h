/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_metrics - all that a node counts, in one place
 *
 * What     Made before anything else, so that it can be read from the first moment:
 *          while the logs are read, and while any thread hangs. Threads write their
 *          own parts; ps_metrics_print and the words on health read all of them and
 *          ask nobody.
 * Owner    The caller, who ends the writers and the reader first.
 * Threads  One reader at a time; writers as meter.h and cluster_look.h say.
 *          ps_metrics_set_… may be called by any.
 */
#ifndef PS_SERVER_METRICS_H
#define PS_SERVER_METRICS_H

#include "base/bytes.h"
#include "server/metrics/cluster_look.h"
#include "server/metrics/meter.h"
#include "transport/threads/turns.h"

/* How far the node is. */
typedef enum ps_node_stage {
    PS_STAGE_STARTING = 0,   /* it opens its directories, or looks for the registry */
    PS_STAGE_RECOVERING = 1, /* its shards read their logs */
    PS_STAGE_JOINING = 2,    /* the registry does not know of this start yet */
    PS_STAGE_SERVING = 3,
    PS_STAGE_STOPPING = 4
} ps_node_stage_t;

typedef struct ps_metrics ps_metrics_t;

typedef struct ps_metrics_args {
    uint32_t n_shards;
    const char *const *kinds; /* operations of the control port: copied; each borrowed for good */
    size_t n_kinds;           /* PS_DIM_KIND at most */
    bool names;               /* shows names of tables, jobs and nodes */
    uint32_t series_max;      /* tables, and workers, with series of their own */
    uint64_t memory_bytes;    /* the node's limit; 0: none */
    uint32_t plain_endpoints; /* beyond loopback, without encryption */
} ps_metrics_args_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_metrics_new(const ps_metrics_args_t *args,
                                           ps_metrics_t **ret_metrics, psd_error_t *err);
/* Takes NULL, nulls *self_p. */
void ps_metrics_destroy(ps_metrics_t **self_p);

/* Where the i-th shard counts, and the control thread; borrowed. self NULL: NULL. */
ps_meter_t *ps_metrics_shard(ps_metrics_t *self, uint32_t i);
ps_control_meter_t *ps_metrics_control(ps_metrics_t *self);
/* The page of the threads, borrowed until the reader has ended. Takes self NULL, as
 * the next one. */
void ps_metrics_set_turns(ps_metrics_t *self, ps_turns_t *turns);
void ps_metrics_set_stage(ps_metrics_t *self, ps_node_stage_t stage);

/* ---- the reader's ---- */

/* NULL: there is no page yet. */
ps_turns_t *ps_metrics_turns(const ps_metrics_t *self);
/* Where it counts its own answers. */
ps_node_counts_t *ps_metrics_node(ps_metrics_t *self);
/* The whole text of /metrics, appended. false: no memory. */
PSD_MUST_CHECK bool ps_metrics_print(ps_metrics_t *self, ps_buffer_t *text);
/* Appends "healthy", or a line for each thread that hangs. ret_done: there was
 * memory. true: healthy. */
bool ps_metrics_say_health(ps_metrics_t *self, ps_buffer_t *text, bool *ret_done);
/* Appends "ready", or a line for each reason why requests would wait here. */
bool ps_metrics_say_ready(ps_metrics_t *self, ps_buffer_t *text, bool *ret_done);
#endif
