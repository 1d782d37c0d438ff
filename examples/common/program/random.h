/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that are the same on every machine: splitmix64 (Steele,
 * Lea, Flood, OOPSLA 2014). Any state is a good seed. */
#ifndef EX_RANDOM_H
#define EX_RANDOM_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t ex_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* In [0, 1). Signed, because that conversion is one instruction and the unsigned one is several. */
static inline double ex_random_real(uint64_t *state)
{
    return (double)(int64_t)(ex_random(state) >> 11) / 9007199254740992.0;
}

static inline void ex_shuffle(uint32_t *list, size_t n, uint64_t *state)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(ex_random(state) % i);
        uint32_t other = list[j];

        list[j] = list[i - 1];
        list[i - 1] = other;
    }
}
#endif
