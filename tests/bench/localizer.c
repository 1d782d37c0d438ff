/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many entries of a batch a second psd_localizer takes, beside memcpy of
 * the keys and qsort of them (keys and places).
 *
 *     localizer [ENTRIES [THREADS]]
 *
 * Criteo-like: 39 words a sample, their ranks by Zipf's law, hashed to 64 bits;
 * hashed: the same to 18 bits; random: 64 random bits. Times are of the
 * process's CPU, the best of five, so that entries/s are those of a core.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "base/rng.h"
#include "psd_data.h"

#define ROUNDS 5
#define SAMPLE_KEYS 39

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void fill(uint64_t *keys, size_t n, int kind)
{
    ps_rng_t rng = {.state = 1};

    for (size_t i = 0; i < n; i++) {
        uint64_t rank = (uint64_t)exp(ps_rng_f64(&rng) * 12);
        uint64_t hash = ps_hash_u64(rank * SAMPLE_KEYS + i % SAMPLE_KEYS);

        keys[i] = kind == 0 ? hash : kind == 1 ? hash & ((1 << 18) - 1) : ps_rng_u64(&rng);
    }
}

typedef struct item {
    uint64_t key;
    uint32_t place;
} item_t;

static int by_key(const void *a, const void *b)
{
    uint64_t left = ((const item_t *)a)->key;
    uint64_t right = ((const item_t *)b)->key;

    return left < right ? -1 : left > right;
}

static double sort_s(const uint64_t *keys, size_t n, item_t *items)
{
    double start = 0;

    for (size_t i = 0; i < n; i++) {
        items[i] = (item_t){keys[i], (uint32_t)i};
    }
    start = cpu_s();
    qsort(items, n, sizeof *items, by_key);
    return cpu_s() - start;
}

static double copy_s(const uint64_t *keys, size_t n, uint64_t *copy)
{
    double start = 0;

    memcpy(copy, keys, n * sizeof *keys);
    start = cpu_s();
    memcpy(copy, keys, n * sizeof *keys);
    return cpu_s() - start;
}

int main(int argc, char **argv)
{
    static const char *const NAMES[] = {"criteo-like", "hashed", "random"};
    size_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : (size_t)1 << 20;
    uint32_t threads = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1;
    uint64_t *keys = malloc(2 * n * sizeof *keys);
    item_t *items = malloc(n * sizeof *items);
    psd_localizer_t *localizer = NULL;
    psd_error_t *err = psd_error_new();

    if (keys == NULL || items == NULL || psd_localizer_new(threads, &localizer, err) != PSD_OK) {
        fprintf(stderr, "localizer: %s\n", psd_error_text(err));
        return 1;
    }
    for (int kind = 0; kind < 3; kind++) {
        double best = INFINITY;

        fill(keys, n, kind);
        for (int round = 0; round < ROUNDS; round++) {
            double start = cpu_s();

            if (psd_localizer_run(localizer, keys, n, err) != PSD_OK) {
                fprintf(stderr, "localizer: %s\n", psd_error_text(err));
                return 1;
            }
            best = fmin(best, cpu_s() - start);
        }
        printf("%-11s %zu entries, %zu keys: %.1f M/s a core; memcpy %.0f, "
               "qsort %.1f\n",
               NAMES[kind], n, psd_localizer_count(localizer), (double)n / best / 1e6,
               (double)n / copy_s(keys, n, keys + n) / 1e6,
               (double)n / sort_s(keys, n, items) / 1e6);
    }
    psd_localizer_destroy(&localizer);
    psd_error_destroy(&err);
    free(items);
    free(keys);
    return 0;
}
