/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_bench - measurements of pushes and pulls
 *
 * What     A measurement is warmed up, repeated, and shown as the median of
 *          its repeats. The machine's own limits are measured the same way.
 */
#ifndef PS_CLI_BENCH_H
#define PS_CLI_BENCH_H

#include "cli/cli.h"

typedef enum ps_bench_kind {
    PS_BENCH_PUSH,
    PS_BENCH_PULL,
    PS_BENCH_PUSHPULL
} ps_bench_kind_t;

#define PS_BENCH_REPEATS_MAX 1000

/* What one request of a measurement is. */
typedef struct ps_bench_shape {
    ps_bench_kind_t kind;
    uint64_t n_rows;      /* of the table */
    uint64_t n_cols;      /* floats of a row */
    const uint64_t *keys; /* of every request, n_keys; NULL: one row, another
                             one for each request */
    size_t n_keys;        /* 1 when keys is NULL */
    uint32_t in_flight;
    uint32_t repeats;
    uint64_t duration_ms; /* least length of a repeat */
} ps_bench_shape_t;

typedef struct ps_bench_result {
    double requests_s; /* medians */
    double seconds;
    double requests;
    double min_requests_s, max_requests_s;
} ps_bench_result_t;

/* The median of n > 0 numbers, which it sorts. */
double ps_bench_median(double *numbers, size_t n);
/* The p-th quantile (0 .. 1) of n > 0 sorted numbers. */
double ps_bench_quantile(const double *sorted, size_t n, double p);

/* Errors: as psd_push_start and psd_wait; PSD_INTERRUPTED. */
PSD_MUST_CHECK psd_status_t ps_bench_throughput(const ps_cli_t *cli,
                                                psd_client_t *client,
                                                psd_table_t *table,
                                                const ps_bench_shape_t *shape,
                                                ps_bench_result_t *ret_result,
                                                psd_error_t *err);

/* Bytes a second of memcpy over 64 MiB, and of one tcp stream over loopback;
 * medians of `repeats`. Errors: PSD_NOMEM, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_bench_memcpy(uint32_t repeats,
                                            double *ret_bytes_s,
                                            psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_bench_loopback(uint32_t repeats,
                                              double *ret_bytes_s,
                                              psd_error_t *err);

/* A table of the bench's own, with a free name. The caller drops it. */
PSD_MUST_CHECK psd_status_t ps_bench_table(psd_client_t *client,
                                           uint64_t n_rows,
                                           uint64_t n_cols,
                                           psd_table_t **ret_table,
                                           psd_error_t *err);
/* Drops and closes it. Best effort: the measurement counts more. */
void ps_bench_drop(psd_client_t *client, psd_table_t **table_p);
#endif
