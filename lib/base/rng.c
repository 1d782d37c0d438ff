/* SPDX-License-Identifier: Apache-2.0 */
/* Randomness as a function of its inputs: see the header for the papers. */
#include "base/rng.h"

#include <assert.h>
#include <string.h>

#define PHILOX_ROUNDS 10
#define PHILOX_M0 UINT32_C(0xD2511F53)
#define PHILOX_M1 UINT32_C(0xCD9E8D57)
#define PHILOX_W0 UINT32_C(0x9E3779B9) /* golden ratio */
#define PHILOX_W1 UINT32_C(0xBB67AE85) /* sqrt(3) - 1 */

static void philox_round(uint32_t c[4], const uint32_t key[2])
{
    uint64_t p0 = (uint64_t)PHILOX_M0 * c[0];
    uint64_t p1 = (uint64_t)PHILOX_M1 * c[2];
    uint32_t next[4] = {
        (uint32_t)(p1 >> 32) ^ c[1] ^ key[0],
        (uint32_t)p1,
        (uint32_t)(p0 >> 32) ^ c[3] ^ key[1],
        (uint32_t)p0,
    };

    memcpy(c, next, sizeof next);
}

void ps_rng_at(uint64_t seed, uint64_t row, uint64_t column, uint32_t ret_words[4])
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t counter[4] = {
        (uint32_t)row,
        (uint32_t)(row >> 32),
        (uint32_t)column,
        (uint32_t)(column >> 32),
    };

    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        philox_round(counter, key);
        key[0] += PHILOX_W0;
        key[1] += PHILOX_W1;
    }
    memcpy(ret_words, counter, sizeof counter);
}

uint64_t ps_rng_u64(ps_rng_t *self)
{
    uint64_t z = self->state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t ps_rng_below(ps_rng_t *self, uint64_t bound)
{
    uint64_t value = 0;
    uint64_t unfair = 0;

    assert(bound > 0);
    /* 2^64 mod bound: that many low values would be drawn once too often. */
    unfair = (0 - bound) % bound;
    do {
        value = ps_rng_u64(self);
    } while (value < unfair);
    return value % bound;
}

double ps_rng_f64(ps_rng_t *self)
{
    return (double)(ps_rng_u64(self) >> 11) * 0x1p-53;
}
