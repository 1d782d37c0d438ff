/* SPDX-License-Identifier: Apache-2.0 */
/* ps_bench_figure - measurements as JSON and as tables */
#ifndef PS_CLI_BENCH_FIGURE_H
#define PS_CLI_BENCH_FIGURE_H

#include "cli/bench/bench_run.h"

/* The columns of throughput, of latency, and of a whole suite. */
extern const ps_column_t ps_bench_columns_rate[];
extern const ps_column_t ps_bench_columns_time[];
extern const ps_column_t ps_bench_columns_suite[];

/* Four digits are more than a measurement gives: below 100 two decimals, else
 * an integer. */
json_t *ps_bench_rounded(double value);
/* Appends the result of the case; sorts its series. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_bench_figure_add(json_t *figures, ps_bench_case_t *one,
                                                psd_error_t *err);
/* Puts machine and limits into doc; sorts the series, one for each limit.
 * Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_bench_figure_limits(ps_bench_series_t *limits, json_t *doc,
                                                   psd_error_t *err);
/* doc in the format asked for; tables show the limits (one series each, which
 * it sorts) below. */
void ps_bench_figure_show(const ps_cli_t *cli, const json_t *doc, const ps_column_t *columns,
                          const ps_bench_series_t *limits);
#endif
