/* SPDX-License-Identifier: Apache-2.0 */
/* Chances for a block: generators side by side. */
#include "wire/filters/quant_inner.h"

#include <string.h>

#include "base/rng.h"

#define LANES PS_QUANT_LANES
#define HALF_BIT 0x1p-53 /* lifts 0 and keeps the mean at 1/2 */

void ps_quant_noise_init(ps_quant_noise_t *self, uint64_t seed)
{
    ps_rng_t rng = {.state = seed};

    for (size_t word = 0; word < 4; word++) {
        for (size_t k = 0; k < LANES; k++) {
            ps_u64x2_t pair = {ps_rng_u64(&rng), ps_rng_u64(&rng)};

            self->state[word][k] = pair;
        }
    }
}

/* The numbers of one step of a pair of generators. 52 random bits after the
 * exponent bits of 1.0 give a number in [1, 2). */
static inline ps_f64x2_t step(ps_u64x2_t s[4][LANES], size_t k)
{
    ps_u64x2_t sum = s[0][k] + s[3][k];
    ps_u64x2_t shifted = s[1][k] << 17;

    s[2][k] ^= s[0][k];
    s[3][k] ^= s[1][k];
    s[1][k] ^= s[2][k];
    s[0][k] ^= s[3][k];
    s[2][k] ^= shifted;
    s[3][k] = s[3][k] << 45 | s[3][k] >> 19;
    return ((ps_f64x2_t)(PS_QUANT_ONE_BITS | sum >> 12) - 1) + HALF_BIT;
}

void ps_quant_noise_fill(ps_quant_noise_t *self, double ret[PS_QUANT_BLOCK])
{
    for (size_t i = 0; i < PS_QUANT_BLOCK; i += 2 * LANES) {
        for (size_t k = 0; k < LANES; k++) {
            ps_f64x2_t pair = step(self->state, k);

            memcpy(ret + i + 2 * k, &pair, sizeof pair);
        }
    }
}
