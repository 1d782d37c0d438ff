/* SPDX-License-Identifier: Apache-2.0 */
/* Key lists for requests. */
#include "cli/machine/bench_keys.h"

#include <string.h>

#define BYTE_VALUES 256
#define FEW 32 /* fewer keys than this are not worth eight passes */

/* Every step can be undone, so no two rows share a key (SplitMix64's
 * finaliser). */
uint64_t ps_bench_key(uint64_t i)
{
    uint64_t key = i + UINT64_C(0x9e3779b97f4a7c15);

    key = (key ^ (key >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    key = (key ^ (key >> 27)) * UINT64_C(0x94d049bb133111eb);
    return key ^ (key >> 31);
}

static void sort_few(uint64_t *keys, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint64_t key = keys[i];
        size_t at = i;

        for (; at > 0 && keys[at - 1] > key; at--) {
            keys[at] = keys[at - 1];
        }
        keys[at] = key;
    }
}

/* Byte by byte, from the lowest: after eight passes the keys are back in the
 * first array. */
void ps_bench_sort_keys(uint64_t *keys, uint64_t *spare, size_t n)
{
    if (n <= FEW) {
        sort_few(keys, n);
        return;
    }
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t starts[BYTE_VALUES + 1] = {0};
        uint64_t *swap = keys;

        for (size_t i = 0; i < n; i++) {
            starts[((keys[i] >> shift) & 0xff) + 1]++;
        }
        for (size_t i = 1; i < BYTE_VALUES; i++) {
            starts[i] += starts[i - 1];
        }
        for (size_t i = 0; i < n; i++) {
            spare[starts[(keys[i] >> shift) & 0xff]++] = keys[i];
        }
        keys = spare;
        spare = swap;
    }
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* Rows start, start + step, … modulo n_rows, where step and n_rows have no
 * common divisor, are n different rows. */
static void sample_hash(ps_rng_t *rng, uint64_t n_rows, uint64_t *keys, uint64_t *spare, size_t n)
{
    uint64_t at = ps_rng_below(rng, n_rows);
    uint64_t step = 1 + ps_rng_below(rng, n_rows);

    while (common_divisor(step, n_rows) != 1) {
        step++;
    }
    step %= n_rows;
    for (size_t i = 0; i < n; i++) {
        keys[i] = ps_bench_key(at);
        at += step;
        at = at >= n_rows ? at - n_rows : at;
    }
    ps_bench_sort_keys(keys, spare, n);
}

void ps_bench_sample_keys(ps_rng_t *rng, bool hash, uint64_t n_rows, uint64_t *keys,
                          uint64_t *spare, size_t n)
{
    uint64_t step = n_rows / n;

    if (hash) {
        sample_hash(rng, n_rows, keys, spare, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        keys[i] = i * step + ps_rng_below(rng, step);
    }
}
