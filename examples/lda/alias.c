/* SPDX-License-Identifier: Apache-2.0 */
/* Alias tables. */
#include "alias.h"

#define OWN_BITS ((UINT64_C(1) << LDA_TOPIC_BITS) - 1)

/* An entry that is its own for a part, below 1, and else that of `many`. */
static lda_alias_t share(lda_alias_t few, double part, lda_alias_t many)
{
    return (uint64_t)(part * 16777216.0) << 2 * LDA_TOPIC_BITS |
           (many & OWN_BITS) << LDA_TOPIC_BITS | (few & OWN_BITS);
}

double lda_alias_build(lda_alias_t *entries, double *weights, uint32_t *scratch, uint32_t n)
{
    double sum = 0;
    uint32_t n_small = 0; /* scratch: small ones from below, */
    uint32_t large = n;   /* large ones from above */

    for (uint32_t i = 0; i < n; i++) {
        sum += weights[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        weights[i] *= (double)n / sum;
        if (weights[i] < 1) {
            scratch[n_small++] = i;
        } else {
            scratch[--large] = i;
        }
    }
    while (n_small > 0 && large < n) {
        uint32_t few = scratch[--n_small];
        uint32_t many = scratch[large];

        entries[few] = share(entries[few], weights[few], entries[many]);
        weights[many] -= 1 - weights[few];
        if (weights[many] < 1) {
            large++;
            scratch[n_small++] = many;
        }
    }
    return sum; /* what is left is 1 but for rounding */
}
