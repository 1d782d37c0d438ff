/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push_rows - what each rule costs for a row, where rows are narrow and come
 * one here, one there
 *
 *     push_rows [COLS [REPEATS [ROWS]]]
 *
 * What     A table of ROWS rows (100,000) of COLS (1) f32, of range keys and of
 *          hash keys; pushes of 2000 of them at random, in ascending order, the
 *          same for every rule. Medians of REPEATS (7) rounds, in which the
 *          rules take turns. Checks are not among it.
 * Output   tab-separated: rule, keys, ns for a row
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cursor.h"
#include "base/rng.h"
#include "model/store/store.h"

#define REPEATS_MAX 101
#define BATCH 2000   /* rows of a push */
#define N_PUSHES 100 /* different ones; a round does each of them */

static const char *const RULES[] = {
    "add",  "sgd",     "sgd:alpha=0.1,l1=0.001", "min", "momentum", "nesterov", "adagrad",
    "adam", "rmsprop", "ftrl:l1=0.001"};
#define N_RULES (sizeof RULES / sizeof *RULES)

typedef struct bench {
    uint64_t n_rows;
    uint32_t n_cols;
    ps_payload_t *payloads[N_PUSHES];
    ps_store_t *stores[N_RULES];
    double ns[N_RULES][REPEATS_MAX]; /* for one row */
} bench_t;

static void must(bool good)
{
    if (!good) {
        (void)fprintf(stderr, "push_rows: failed\n");
        abort();
    }
}

static int compare_keys(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double now_ns(void)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return 1e9 * (double)at.tv_sec + (double)at.tv_nsec;
}

/* One row of each of BATCH equal parts of the table. */
static ps_payload_t *make_payload(const bench_t *self, ps_rng_t *rng)
{
    uint64_t part = self->n_rows / BATCH;
    size_t n_values = (size_t)BATCH * self->n_cols;
    uint64_t keys[BATCH];
    uint8_t *to = NULL;
    ps_payload_t *payload = ps_payload_room(8 * (size_t)BATCH, 0, 4 * n_values, &to);

    must(payload != NULL);
    for (uint64_t i = 0; i < BATCH; i++) {
        keys[i] = i * part + ps_rng_below(rng, part);
    }
    qsort(keys, BATCH, sizeof *keys, compare_keys);
    for (size_t i = 0; i < BATCH; i++, to += 8) {
        ps_store_u64(to, keys[i]);
    }
    for (size_t i = 0; i < n_values; i++, to += 4) {
        ps_store_f32(to, (float)(2 * ps_rng_f64(rng) - 1));
    }
    return payload;
}

static ps_store_t *make_store(const bench_t *self, ps_keys_t keys, const char *rule)
{
    ps_table_spec_t spec;
    ps_store_t *store = NULL;

    ps_table_spec_init(&spec);
    (void)snprintf(spec.name, sizeof spec.name, "t");
    must(ps_updater_spec_parse(rule, &spec.updater, NULL) == PSD_OK);
    spec.keys = keys;
    spec.row_format = PS_ROW_DENSE;
    spec.type = PS_TYPE_F32;
    spec.n_rows = keys == PS_KEYS_RANGE ? self->n_rows : 0;
    spec.n_cols = self->n_cols;
    spec.n_col_slices = 1;
    spec.n_partitions = 1;
    must(ps_table_spec_check(&spec, NULL) == PSD_OK);
    must(ps_store_new(&spec, 0, &store, NULL) == PSD_OK);
    return store;
}

static double measure(const bench_t *self, ps_store_t *store)
{
    ps_slice_t slice = {.type = PS_TYPE_F32,
                        .n_rows = BATCH,
                        .n_cols = self->n_cols,
                        .n_values = (uint64_t)BATCH * self->n_cols};
    double began = now_ns();

    for (size_t i = 0; i < N_PUSHES; i++) {
        must(ps_store_push(store, &slice, self->payloads[i], NULL) == PSD_OK);
    }
    return (now_ns() - began) / N_PUSHES / BATCH;
}

static void run(bench_t *self, ps_keys_t keys, size_t repeats)
{
    for (size_t rule = 0; rule < N_RULES; rule++) {
        self->stores[rule] = make_store(self, keys, RULES[rule]);
        (void)measure(self, self->stores[rule]); /* its rows are made */
    }
    for (size_t i = 0; i < repeats; i++) {
        for (size_t rule = 0; rule < N_RULES; rule++) {
            self->ns[rule][i] = measure(self, self->stores[rule]);
        }
    }
    for (size_t rule = 0; rule < N_RULES; rule++) {
        qsort(self->ns[rule], repeats, sizeof *self->ns[rule], compare);
        (void)printf("%s\t%s\t%.2f\n", RULES[rule], keys == PS_KEYS_RANGE ? "range" : "hash",
                     self->ns[rule][repeats / 2]);
        ps_store_destroy(&self->stores[rule]);
    }
}

static size_t argument(int argc, char **argv, int at, size_t least, size_t most, size_t otherwise)
{
    size_t value = argc > at ? strtoul(argv[at], NULL, 10) : otherwise;

    if (value < least || value > most) {
        (void)fprintf(stderr,
                      "usage: push_rows [COLS 1..1000 [REPEATS 1..%d "
                      "[ROWS %d..10^8]]]\n",
                      REPEATS_MAX, BATCH);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    static bench_t bench;
    size_t repeats = argument(argc, argv, 2, 1, REPEATS_MAX, 7);
    ps_rng_t rng = {1};

    bench.n_cols = (uint32_t)argument(argc, argv, 1, 1, 1000, 1);
    bench.n_rows = argument(argc, argv, 3, BATCH, 100000000, 100000);
    for (size_t i = 0; i < N_PUSHES; i++) {
        bench.payloads[i] = make_payload(&bench, &rng);
    }
    (void)printf("rule\tkeys\tns/row\n");
    run(&bench, PS_KEYS_RANGE, repeats);
    run(&bench, PS_KEYS_HASH, repeats);
    for (size_t i = 0; i < N_PUSHES; i++) {
        ps_payload_destroy(&bench.payloads[i]);
    }
    return 0;
}
