/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_bench_run - cases and limits in turns, and the results as JSON
 *
 * What     Cases are warmed up once; then every repeat measures the limits that
 *          the cases are compared with, and each case once. A figure is the
 *          median of its repeats; a ratio is the median of the repeats' ratios,
 *          each to the limit of its own repeat, so that a change of the
 *          machine's speed changes both.
 */
#ifndef PS_CLI_BENCH_RUN_H
#define PS_CLI_BENCH_RUN_H

#include "cli/machine/bench_machine.h"
#include "cli/bench/bench_team.h"

#define PS_BENCH_REPEATS_MAX 1000
#define PS_BENCH_LIMITS_MAX 2 /* of one case; the slower one counts */

typedef struct ps_bench_series {
    double *values; /* owned */
    size_t n, capacity;
} ps_bench_series_t;

typedef struct ps_bench_run {
    const ps_cli_t *cli;     /* borrowed; its endpoint is the one measured */
    ps_machine_t *machine;   /* borrowed */
    ps_bench_pools_t *pools; /* borrowed */
    json_t *figures;         /* borrowed; an array that grows */
    uint32_t repeats;
    uint64_t duration_ms;                     /* of one measurement */
    ps_bench_series_t limits[PS_LIMIT_COUNT]; /* owned; all of this run */
} ps_bench_run_t;

/* One line of the result. */
typedef struct ps_bench_case {
    const char *section;                    /* borrowed */
    ps_bench_shape_t shape;                 /* what a request is */
    ps_bench_team_t *team;                  /* borrowed; has the table open */
    uint32_t n_shards;                      /* of the psd; 0: not known */
    size_t n;                               /* requests of a repeat and member; 0: as many as
                                               the time takes */
    ps_limit_t limits[PS_BENCH_LIMITS_MAX]; /* the limits it is compared with */
    size_t n_limits;
    ps_bench_series_t requests_s; /* owned; of the repeats, as are the others */
    ps_bench_series_t p50_s, p99_s, p999_s;
    ps_bench_series_t limit, ratio;
    double max_s;
    double row_bytes; /* memory of a row over its values; 0: not known */
} ps_bench_case_t;

/* What a case's ratio compares. */
typedef enum ps_bench_measure {
    PS_BENCH_BY_BYTES, /* goodput to bytes a second */
    PS_BENCH_BY_KEYS,  /* keys to looked-up keys a second */
    PS_BENCH_BY_COUNT, /* requests to messages a second */
    PS_BENCH_BY_TIME   /* p50 of a request to a round trip */
} ps_bench_measure_t;

/* What bounds a request of that shape: the round trip, the number of
 * messages, the key look-ups, or the bytes. */
ps_bench_measure_t ps_bench_measure_of(const ps_bench_shape_t *shape);
/* Sets the case's limits from its shape and transport. */
void ps_bench_case_limit(ps_bench_case_t *self, const char *transport);
void ps_bench_case_done(ps_bench_case_t *self);

/* Adds one repeat's sample, compared with `limit` (0: nothing). Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_bench_case_add(ps_bench_case_t *self,
                                              const ps_bench_sample_t *sample, double limit,
                                              psd_error_t *err);
/* Measures them and appends a figure for each. Errors: as ps_bench_team_sample
 * and ps_machine_measure. */
PSD_MUST_CHECK psd_status_t ps_bench_run_cases(ps_bench_run_t *self, ps_bench_case_t *cases,
                                               size_t n_cases, psd_error_t *err);
/* {"machine":{limit: median},"limits":[…]} into doc: those that were measured.
 * Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_bench_run_finish(ps_bench_run_t *self, json_t *doc,
                                                psd_error_t *err);
void ps_bench_run_done(ps_bench_run_t *self);
#endif
