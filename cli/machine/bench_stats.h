/* SPDX-License-Identifier: Apache-2.0 */
/* ps_bench_stat - summary of many measurements: median, least, most */
#ifndef PS_CLI_BENCH_STATS_H
#define PS_CLI_BENCH_STATS_H

#include <stddef.h>

typedef struct ps_bench_stat {
    double median;
    double min;
    double max;
} ps_bench_stat_t;

/* Sorts ascending. */
void ps_bench_sort(double *numbers, size_t n);
/* The median of n > 0 numbers, which it sorts. */
double ps_bench_median(double *numbers, size_t n);
/* The p-th quantile (0 .. 1) of n > 0 sorted numbers: the one after the
 * first p x n of them, or the last. */
double ps_bench_quantile(const double *sorted, size_t n, double p);
/* Of n numbers, which it sorts; all 0 when n is 0. */
ps_bench_stat_t ps_bench_stat_of(double *numbers, size_t n);
#endif
