/* SPDX-License-Identifier: Apache-2.0 */
/* Medians and quantiles. */
#include "cli/machine/bench_stats.h"

#include <stdlib.h>

static int compare_doubles(const void *a_p, const void *b_p)
{
    const double *a = a_p;
    const double *b = b_p;

    return *a < *b ? -1 : *a > *b ? 1 : 0;
}

void ps_bench_sort(double *numbers, size_t n)
{
    qsort(numbers, n, sizeof *numbers, compare_doubles);
}

double ps_bench_median(double *numbers, size_t n)
{
    ps_bench_sort(numbers, n);
    return n % 2 == 1 ? numbers[n / 2] : (numbers[n / 2 - 1] + numbers[n / 2]) / 2;
}

double ps_bench_quantile(const double *sorted, size_t n, double p)
{
    size_t at = (size_t)(p * (double)n);

    return sorted[at < n ? at : n - 1];
}

ps_bench_stat_t ps_bench_stat_of(double *numbers, size_t n)
{
    ps_bench_stat_t stat = {0};

    if (n > 0) {
        stat.median = ps_bench_median(numbers, n);
        stat.min = numbers[0];
        stat.max = numbers[n - 1];
    }
    return stat;
}
