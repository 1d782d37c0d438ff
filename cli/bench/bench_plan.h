/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_bench_plan - what a suite measures
 *
 * What     Lines by section; each line is one table, asked in several ways.
 *          Quick suites have the sections of one worker and one shard; full
 *          ones also widths, numbers of workers, shards and rows.
 */
#ifndef PS_CLI_BENCH_PLAN_H
#define PS_CLI_BENCH_PLAN_H

#include "cli/bench/bench_load.h"

#define PS_BENCH_WINDOWS_MAX 2

#define PS_BENCH_LINE_FULL 1U /* only in full suites */
#define PS_BENCH_LINE_HASH 2U /* else a range table */
#define PS_BENCH_LINE_WIDE 4U /* columns, not rows, make it large */
#define PS_BENCH_LINE_GROW 8U /* measures how the table gets its rows */

typedef struct ps_bench_line {
    const char *section;
    unsigned flags; /* PS_BENCH_LINE_… */
    uint64_t n_rows;
    uint64_t n_cols;
    size_t n_keys;
    uint32_t n_workers;
    uint32_t n_shards;
    uint32_t in_flight[PS_BENCH_WINDOWS_MAX]; /* 0: none */
} ps_bench_line_t;

/* The i-th line, NULL after the last; static. */
const ps_bench_line_t *ps_bench_plan_at(size_t i);
/* The shape of the line's w-th request, with all large sizes divided by
 * `divide`. */
ps_bench_shape_t ps_bench_plan_shape(const ps_bench_line_t *line, size_t w, ps_bench_kind_t kind,
                                     uint64_t divide);
/* Is the section among the words of a list with commas? NULL names all. */
bool ps_bench_plan_names(const char *list, const char *section);
/* Errors: PSD_USAGE a word that is no section. */
PSD_MUST_CHECK psd_status_t ps_bench_plan_check(const char *list, psd_error_t *err);
#endif
