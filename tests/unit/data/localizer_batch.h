/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of keys, and what a plain sort finds in them. */
#ifndef PS_TESTS_LOCALIZER_BATCH_H
#define PS_TESTS_LOCALIZER_BATCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "psd_data.h"

typedef enum batch_kind {
    BATCH_RANDOM,  /* all 64 bits */
    BATCH_FEW,     /* each key many times */
    BATCH_SAME,    /* one key */
    BATCH_GROUPED, /* a group in the top bits, few keys below */
    BATCH_SKEWED,  /* small numbers, and one very large */
    BATCH_BITS,    /* one bit each */
    BATCH_KINDS
} batch_kind_t;

static inline uint64_t batch_key(ps_rng_t *rng, batch_kind_t kind, size_t i)
{
    uint64_t key = ps_rng_u64(rng);

    switch (kind) {
    case BATCH_RANDOM:
        return key;
    case BATCH_FEW:
        return key % 97 * UINT64_C(0x9e3779b97f4a7c15);
    case BATCH_SAME:
        return 7;
    case BATCH_GROUPED:
        return (key % 39) << 54 | (key >> 32) % 1000;
    case BATCH_SKEWED:
        return i == 0 ? UINT64_MAX : key % 30000;
    case BATCH_BITS:
        return UINT64_C(1) << key % 64;
    case BATCH_KINDS:
        break;
    }
    return 0;
}

static inline void batch_fill(uint64_t *keys, size_t n, batch_kind_t kind, uint64_t seed)
{
    ps_rng_t rng = {.state = seed};

    for (size_t i = 0; i < n; i++) {
        keys[i] = batch_key(&rng, kind, i);
    }
}

static int batch_order(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;

    return left < right ? -1 : left > right;
}

/* What is wrong with what the localizer found; NULL: nothing. */
static inline const char *batch_check(const psd_localizer_t *found, const uint64_t *keys, size_t n)
{
    uint64_t *sorted = malloc((n + 1) * sizeof *sorted);
    const char *wrong = NULL;
    size_t id = 0;

    memcpy(sorted, keys, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, batch_order);
    for (size_t i = 0; i < n && wrong == NULL; id++) {
        size_t first = i;

        while (i < n && sorted[i] == sorted[first]) {
            i++;
        }
        if (id >= psd_localizer_count(found)) {
            wrong = "keys are missing";
        } else if (psd_localizer_keys(found)[id] != sorted[first]) {
            wrong = "a key is not the one of its rank";
        } else if (psd_localizer_counts(found)[id] != i - first) {
            wrong = "a count is wrong";
        }
    }
    if (wrong == NULL && id != psd_localizer_count(found)) {
        wrong = "there are too many keys";
    }
    for (size_t i = 0; i < n && wrong == NULL; i++) {
        uint32_t at = psd_localizer_ids(found)[i];

        if (at >= id || psd_localizer_keys(found)[at] != keys[i]) {
            wrong = "an id is not that of its key";
        }
    }
    free(sorted);
    return wrong;
}
#endif
