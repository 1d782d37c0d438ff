/* SPDX-License-Identifier: Apache-2.0 */
/*
 * updaters - what each rule costs for a value, beside memcpy in the same run
 *
 *     updaters [REPEATS [MEGABYTES]]
 *
 * What     Every rule over f32 and f64: deltas of a size that stays in the
 *          cache (16 KiB; also handed over one by one and sixteen by sixteen,
 *          as rows are), and of one that does not (30 MB, or as said), in turn
 *          with memcpy of as many bytes. Medians of REPEATS (7) rounds.
 *          The check for NaN and infinities is among them.
 * Units    ns for a value; GB/s of deltas, 10^9 bytes
 * Output   tab-separated: what, type, where, ns, GB/s, share of memcpy's GB/s
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "model/updaters/finite.h"
#include "model/updaters/loops.h"
#include "model/updaters/updater.h"

#define REPEATS_MAX 101
#define CACHE_BYTES 16384
#define ROUND_BYTES (64U << 20) /* that one measurement takes at least */

static const char *const RULES[] = {"add",           "assign",
                                    "min",           "max",
                                    "sgd",           "sgd:alpha=0.1,l1=0.001,l2=0.01",
                                    "momentum",      "nesterov",
                                    "adagrad",       "adam",
                                    "adamw",         "rmsprop",
                                    "ftrl:l1=0.001", "dcasgd:workers=2"};
#define N_RULES (sizeof RULES / sizeof *RULES)
#define N_THINGS (N_RULES + 2) /* and memcpy, and the check */

typedef struct bench {
    ps_type_t type;
    size_t n; /* values */
    size_t n_bytes;
    size_t piece; /* values that are handed over at once */
    uint8_t *values;
    uint8_t *state;  /* three arrays */
    uint8_t *deltas; /* finite, around 0 */
    ps_updater_t *updaters[N_RULES];
    double ns[N_THINGS][REPEATS_MAX]; /* for one value */
} bench_t;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts them. */
static double median(double *numbers, size_t n)
{
    qsort(numbers, n, sizeof *numbers, compare);
    return numbers[n / 2];
}

static double now_ns(void)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return 1e9 * (double)at.tv_sec + (double)at.tv_nsec;
}

/* Thing 0 copies, 1 checks, the others are the rules. */
static bool do_once(const bench_t *self, size_t thing)
{
    size_t size = ps_type_size(self->type);
    bool ok = true;

    for (size_t i = 0; i < self->n; i += self->piece) {
        uint8_t *values = self->values + i * size;
        const uint8_t *deltas = self->deltas + i * size;

        if (thing == 0) {
            memcpy(values, deltas, self->piece * size);
        } else if (thing == 1) {
            ok = ok && ps_finite_all(self->type, deltas, self->piece);
        } else {
            ps_updater_apply(self->updaters[thing - 2], 1, values, self->state + i * size, self->n,
                             deltas, self->piece);
        }
    }
    return ok;
}

static double measure(const bench_t *self, size_t thing)
{
    size_t rounds = ROUND_BYTES / self->n_bytes + 1;
    double began = 0;

    if (!do_once(self, thing)) { /* warm; and the values are finite */
        return 0;
    }
    began = now_ns();
    for (size_t i = 0; i < rounds; i++) {
        (void)do_once(self, thing);
    }
    return (now_ns() - began) / (double)rounds / (double)self->n;
}

static void print(const bench_t *self, size_t thing, const char *where, size_t repeats)
{
    double copy[REPEATS_MAX];
    double mine[REPEATS_MAX];
    double ns = 0;
    double size = (double)ps_type_size(self->type);
    const char *name = thing == 0 ? "memcpy" : thing == 1 ? "finite" : RULES[thing - 2];

    memcpy(copy, self->ns[0], sizeof copy);
    memcpy(mine, self->ns[thing], sizeof mine);
    ns = median(mine, repeats);
    (void)printf("%s\t%s\t%s\t%.3f\t%.2f\t%.2f\n", name, ps_type_name(self->type), where, ns,
                 size / ns, median(copy, repeats) / ns);
}

static void fill(bench_t *self)
{
    ps_rng_t rng = {1};

    for (size_t i = 0; i < self->n; i++) {
        double g = 2 * ps_rng_f64(&rng) - 1;
        float narrow = (float)g;

        if (self->type == PS_TYPE_F32) {
            memcpy(self->deltas + i * sizeof narrow, &narrow, sizeof narrow);
        } else {
            memcpy(self->deltas + i * sizeof g, &g, sizeof g);
        }
    }
}

static bool make(bench_t *self)
{
    bool ok = true;

    self->values = ps_alloc_raw(1, self->n_bytes);
    self->state = ps_alloc_raw(3, self->n_bytes);
    self->deltas = ps_alloc_raw(1, self->n_bytes);
    ok = self->values != NULL && self->state != NULL && self->deltas != NULL;
    for (size_t i = 0; ok && i < N_RULES; i++) {
        ps_updater_spec_t spec = {0};

        ok = ps_updater_spec_parse(RULES[i], &spec, NULL) == PSD_OK &&
             ps_updater_new(&spec, self->type, &self->updaters[i], NULL) == PSD_OK;
    }
    return ok;
}

static bool run(ps_type_t type, size_t n_bytes, size_t piece, /* 0: all at once */
                const char *where, size_t repeats)
{
    static bench_t bench;
    bool ok = true;

    bench = (bench_t){.type = type, .n = n_bytes / ps_type_size(type), .n_bytes = n_bytes};
    bench.piece = piece == 0 ? bench.n : piece;
    ok = make(&bench);
    if (ok) {
        fill(&bench);
    }
    for (size_t r = 0; ok && r < repeats; r++) {
        for (size_t thing = 0; thing < N_THINGS; thing++) {
            memset(bench.values, 0, n_bytes);
            memset(bench.state, 0, 3 * n_bytes);
            bench.ns[thing][r] = measure(&bench, thing);
        }
    }
    for (size_t thing = 0; ok && thing < N_THINGS; thing++) {
        print(&bench, thing, where, repeats);
    }
    for (size_t i = 0; i < N_RULES; i++) {
        ps_updater_destroy(&bench.updaters[i]);
    }
    ps_free(bench.values);
    ps_free(bench.state);
    ps_free(bench.deltas);
    return ok;
}

int main(int argc, char **argv)
{
    size_t repeats = argc > 1 ? strtoul(argv[1], NULL, 10) : 7;
    size_t megabytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 30;
    bool ok = repeats >= 1 && repeats <= REPEATS_MAX && megabytes >= 1 && megabytes <= 4096;

    if (!ok) {
        (void)fprintf(stderr,
                      "usage: updaters [REPEATS 1..%d [MEGABYTES "
                      "1..4096]]\n",
                      REPEATS_MAX);
        return 2;
    }
    (void)printf("what\ttype\twhere\tns/value\tGB/s\tof memcpy\n");
    for (ps_type_t type = PS_TYPE_F32; ok && type <= PS_TYPE_F64; type++) {
        ok = run(type, CACHE_BYTES, 0, "cache", repeats) &&
             run(type, CACHE_BYTES, 1, "one", repeats) &&
             run(type, CACHE_BYTES, 16, "sixteen", repeats) &&
             run(type, megabytes * 1000000, 0, "memory", repeats);
    }
    (void)fprintf(stderr, "instructions: %s\n", ps_loops_best()->name);
    return ok ? 0 : 1;
}
