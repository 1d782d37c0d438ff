/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_rng - randomness that is data: no global state, same input, same output
 *
 * What     ps_rng_at: a counter-based generator, keyed, random access.
 *          ps_rng_t: a small sequential one, for jitter, samples and tests.
 * Source   Philox4x32-10: Salmon et al., SC 2011, section 3.3.
 *          SplitMix64: Steele et al., OOPSLA 2014, figure 17.
 */
#ifndef PS_BASE_RNG_H
#define PS_BASE_RNG_H

#include <stdint.h>

/* Philox4x32-10 with key = seed and counter = (row, column); 128 bits. */
void ps_rng_at(uint64_t seed, uint64_t row, uint64_t column, uint32_t ret_words[4]);

typedef struct ps_rng {
    uint64_t state; /* any value is a good seed */
} ps_rng_t;

uint64_t ps_rng_u64(ps_rng_t *self);
/* In [0, bound); bound > 0; without bias. */
uint64_t ps_rng_below(ps_rng_t *self, uint64_t bound);
/* In [0, 1), 53 bits. */
double ps_rng_f64(ps_rng_t *self);
#endif
