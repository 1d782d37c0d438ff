/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_bench_team - workers that send requests at the same time
 *
 * What     Each worker is a thread with a client of its own; they start
 *          together, and the time runs until the last one is done.
 * Owner    The caller (ps_bench_team_close). Threads: one at a time.
 */
#ifndef PS_CLI_BENCH_TEAM_H
#define PS_CLI_BENCH_TEAM_H

#include "cli/bench/bench_load.h"
#include "cli/run/cli.h"

#define PS_BENCH_WORKERS_MAX 64

/* Pools that all teams of a run share, one pair a worker; only one team works
 * at a time. A zeroed one is empty. */
typedef struct ps_bench_pools {
    ps_bench_pool_t from[PS_BENCH_WORKERS_MAX];
    ps_bench_pool_t to[PS_BENCH_WORKERS_MAX];
} ps_bench_pools_t;

void ps_bench_pools_done(ps_bench_pools_t *self);

typedef struct ps_bench_member {
    psd_client_t *client; /* owned */
    psd_table_t *table;   /* owned */
    ps_bench_load_t load;
    struct ps_bench_gate *gate; /* borrowed; where it waits for the others */
    size_t n;                   /* requests to do */
    psd_status_t status;        /* their results */
    psd_error_t *error;         /* owned */
} ps_bench_member_t;

typedef struct ps_bench_team {
    const char *transport;      /* borrowed */
    uint32_t n;                 /* members */
    ps_bench_member_t *members; /* owned */
    ps_bench_pools_t *pools;    /* borrowed */
    uint32_t timeout_ms;        /* of one request */
} ps_bench_team_t;

/* What one repeat gave. Times are those of single requests, when each is
 * waited for; else 0. */
typedef struct ps_bench_sample {
    double requests_s;
    double seconds;
    double p50_s, p99_s, p999_s, max_s;
} ps_bench_sample_t;

/* Connects n_workers clients over the transport to cli's endpoint. Errors:
 * as ps_cli_connect_by. */
PSD_MUST_CHECK psd_status_t ps_bench_team_open(const ps_cli_t *cli, const char *transport,
                                               uint32_t n_workers, ps_bench_pools_t *pools,
                                               ps_bench_team_t *ret_team, psd_error_t *err);
/* Every member opens this table in place of its previous one. */
PSD_MUST_CHECK psd_status_t ps_bench_team_use(ps_bench_team_t *self, const char *table,
                                              psd_error_t *err);
/* Each member does n requests (at most what ps_bench_load_most allows).
 * Errors: as ps_bench_load_run. */
PSD_MUST_CHECK psd_status_t ps_bench_team_sample(ps_bench_team_t *self,
                                                 const ps_bench_shape_t *shape, size_t n,
                                                 ps_bench_sample_t *ret_sample, psd_error_t *err);
/* Warms up for a good part of duration_ms, and returns how many requests of
 * each member fill that time. Errors: as ps_bench_load_run. */
PSD_MUST_CHECK psd_status_t ps_bench_team_warm(ps_bench_team_t *self, const ps_bench_shape_t *shape,
                                               uint64_t duration_ms, size_t *ret_n,
                                               psd_error_t *err);
/* Fits PSD_AUTO; a zeroed struct is empty. */
void ps_bench_team_close(ps_bench_team_t *self);
#endif
