/* SPDX-License-Identifier: Apache-2.0 */
/* Alias tables. */
#include "alias.h"

/* The part of an entry that is its own. */
static uint32_t
threshold_of(double part)
{
    return part >= 1 ? UINT32_MAX : (uint32_t)(part * 4294967296.0);
}

double
lda_alias_build(lda_alias_t *entries,
                double *weights,
                uint32_t *scratch,
                uint32_t n)
{
    double sum = 0;
    uint32_t n_small = 0; /* scratch: small ones from below, */
    uint32_t large = n;   /* large ones from above */

    for (uint32_t i = 0; i < n; i++) {
        sum += weights[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        weights[i] *= (double)n / sum;
        entries[i].threshold = UINT32_MAX;
        entries[i].other = entries[i].topic;
        if (weights[i] < 1) {
            scratch[n_small++] = i;
        } else {
            scratch[--large] = i;
        }
    }
    while (n_small > 0 && large < n) {
        uint32_t few = scratch[--n_small];
        uint32_t many = scratch[large];

        entries[few].threshold = threshold_of(weights[few]);
        entries[few].other = entries[many].topic;
        weights[many] -= 1 - weights[few];
        if (weights[many] < 1) {
            large++;
            scratch[n_small++] = many;
        }
    }
    return sum; /* what is left is 1 but for rounding */
}
