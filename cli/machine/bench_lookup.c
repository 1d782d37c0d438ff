/* SPDX-License-Identifier: Apache-2.0 */
/* A flat table of keys in local memory: the least cost of sparse requests. */
#include "cli/machine/bench_limit.h"

#include <errno.h>

#include "base/alloc.h"
#include "cli/machine/bench_keys.h"

#define N_ROWS ((uint64_t)1000000)
#define N_SLOTS ((size_t)1 << 21) /* about half full */
#define N_KEYS ((size_t)100000)
#define N_LISTS 8 /* prepared at once, outside the measured time */

typedef struct slot {
    uint64_t key; /* 0: free; no key of the table is 0 */
    float value;
} slot_t;

static slot_t *find(slot_t *slots, uint64_t key)
{
    size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 43);

    while (slots[at].key != key && slots[at].key != 0) {
        at = (at + 1) & (N_SLOTS - 1);
    }
    return &slots[at];
}

static slot_t *new_table(void)
{
    slot_t *slots = ps_alloc(N_SLOTS, sizeof *slots);

    for (uint64_t i = 0; slots != NULL && i < N_ROWS; i++) {
        uint64_t key = ps_bench_key(i);

        find(slots, key)->key = key;
    }
    return slots;
}

bool ps_limit_lookup(uint32_t duration_ms, double *ret)
{
    PSD_AUTO(ps_free_at) slot_t *slots = new_table();
    PSD_AUTO(ps_free_at)
    uint64_t *keys = ps_alloc(N_LISTS * N_KEYS, sizeof *keys);
    PSD_AUTO(ps_free_at) uint64_t *spare = ps_alloc(N_KEYS, sizeof *spare);
    ps_rng_t rng = {.state = 3};
    uint64_t spent = 0;
    uint64_t n = 0;

    if (slots == NULL || keys == NULL || spare == NULL) {
        errno = ENOMEM;
        return false;
    }
    while (spent < (uint64_t)duration_ms * 1000000U) {
        uint64_t start = 0;

        for (size_t i = 0; i < N_LISTS; i++) {
            ps_bench_sample_keys(&rng, true, N_ROWS, keys + i * N_KEYS, spare, N_KEYS);
        }
        start = ps_bench_now_ns();
        for (size_t i = 0; i < N_LISTS * N_KEYS; i++) {
            find(slots, keys[i])->value += 1.0F;
        }
        spent += ps_bench_now_ns() - start;
        n += N_LISTS * N_KEYS;
    }
    *ret = (double)n / (double)spent * 1e9;
    return true;
}
