/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a suite. */
#include "cli/bench/bench_plan.h"

#include <string.h>

#define FULL PS_BENCH_LINE_FULL
#define HASH PS_BENCH_LINE_HASH
#define WIDE PS_BENCH_LINE_WIDE
#define GROW PS_BENCH_LINE_GROW
#define MILLION 1000000
#define FOUR_MB ((uint64_t)1 << 20) /* floats of it */

/* Sections with the same number of shards are adjacent: each change of it
 * starts another psd. */
static const ps_bench_line_t LINES[] = {
    {"dense", WIDE, 8, FOUR_MB, 1, 1, 1, {1, 8}},
    {"sparse", HASH, MILLION, 1, 100000, 1, 1, {1, 4}},
    {"sparse", HASH, MILLION, 64, 100000, 1, 1, {1, 4}},
    {"small", HASH, 10000, 16, 1, 1, 1, {1, 64}},
    {"width", FULL | HASH, 100000, 1, 10000, 1, 1, {4, 0}},
    {"width", FULL | HASH, 100000, 16, 10000, 1, 1, {4, 0}},
    {"width", FULL | HASH, 100000, 64, 10000, 1, 1, {4, 0}},
    {"width", FULL | HASH, 100000, 256, 10000, 1, 1, {4, 0}},
    {"rows", FULL | HASH, 1000, 1, 1000, 1, 1, {4, 0}},
    {"rows", FULL | HASH, 10000, 1, 1000, 1, 1, {4, 0}},
    {"rows", FULL | HASH, 100000, 1, 1000, 1, 1, {4, 0}},
    {"rows", FULL | HASH, MILLION, 1, 1000, 1, 1, {4, 0}},
    {"rows", FULL | HASH, 10 * MILLION, 1, 1000, 1, 1, {4, 0}},
    {"rows", FULL | HASH, 100 * MILLION, 1, 1000, 1, 1, {4, 0}},
    {"grow", FULL | HASH | GROW, 10 * MILLION, 1, 1000, 1, 1, {1, 0}},
    {"grow", FULL | HASH | GROW, 100 * MILLION, 1, 1000, 1, 1, {1, 0}},
    {"workers", FULL | HASH, 100000, 16, 10000, 1, 1, {4, 0}},
    {"workers", FULL | HASH, 100000, 16, 10000, 2, 1, {4, 0}},
    {"workers", FULL | HASH, 100000, 16, 10000, 4, 1, {4, 0}},
    {"workers", FULL | HASH, 100000, 16, 10000, 8, 1, {4, 0}},
    {"shards", FULL | HASH, MILLION, 16, 10000, 1, 1, {4, 0}},
    {"shards", FULL | HASH, MILLION, 16, 10000, 1, 2, {4, 0}},
    {"shards", FULL | HASH, MILLION, 16, 10000, 1, 4, {4, 0}},
};
#define N_LINES (sizeof LINES / sizeof LINES[0])

const ps_bench_line_t *ps_bench_plan_at(size_t i)
{
    return i < N_LINES ? &LINES[i] : NULL;
}

static uint64_t at_least_one(uint64_t n)
{
    return n == 0 ? 1 : n;
}

ps_bench_shape_t ps_bench_plan_shape(const ps_bench_line_t *line, size_t w, ps_bench_kind_t kind,
                                     uint64_t divide)
{
    ps_bench_shape_t shape = {.kind = kind,
                              .hash = (line->flags & HASH) != 0,
                              .n_rows = line->n_rows,
                              .n_cols = line->n_cols,
                              .n_keys = line->n_keys,
                              .in_flight = line->in_flight[w]};

    if ((line->flags & WIDE) != 0) {
        shape.n_cols = at_least_one(shape.n_cols / divide);
        return shape;
    }
    shape.n_rows = at_least_one(shape.n_rows / divide);
    shape.n_keys = (size_t)at_least_one(shape.n_keys / divide);
    if (shape.n_rows < shape.n_keys) {
        shape.n_rows = shape.n_keys;
    }
    return shape;
}

bool ps_bench_plan_names(const char *list, const char *section)
{
    size_t length = strlen(section);

    if (list == NULL) {
        return true;
    }
    for (;;) {
        size_t part = strcspn(list, ",");

        if (part == length && strncmp(list, section, length) == 0) {
            return true;
        }
        if (list[part] == '\0') {
            return false;
        }
        list += part + 1;
    }
}

psd_status_t ps_bench_plan_check(const char *list, psd_error_t *err)
{
    while (list != NULL) {
        size_t part = strcspn(list, ",");
        size_t i = 0;

        while (i < N_LINES &&
               (strlen(LINES[i].section) != part || strncmp(list, LINES[i].section, part) != 0)) {
            i++;
        }
        if (i == N_LINES) {
            return psd_error_set(err, PSD_USAGE,
                                 "--only has \"%.*s\"; allowed: dense, sparse, "
                                 "small, width, rows, grow, workers, shards",
                                 (int)(part < 40 ? part : 40), list);
        }
        list = list[part] == '\0' ? NULL : list + part + 1;
    }
    return PSD_OK;
}
