/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lda_alias - draws of a discrete distribution in constant time
 *
 * Shape    n entries, each as likely as the others; entry i is its own topic
 *          below its threshold and another's above it
 * Units    a draw takes one random number of 64 bits; weights are off by at
 *          most 2^-32 of an entry
 * Source   Walker, ACM TOMS 1977; Vose, IEEE TSE 1991
 */
#ifndef LDA_ALIAS_H
#define LDA_ALIAS_H

#include <stddef.h>
#include <stdint.h>

typedef struct lda_alias {
    uint32_t threshold;
    uint32_t topic;
    uint32_t other;
} lda_alias_t;

/*
 * Makes the entries of n topics and their weights.
 *
 * entries  in/out  n >= 1, whose topics are set
 * weights  in/out  n, each > 0; spoilt
 * scratch  in      n
 *
 * Gives the sum of the weights.
 */
double lda_alias_build(lda_alias_t *entries,
                       double *weights,
                       uint32_t *scratch,
                       uint32_t n);

static inline uint32_t
lda_alias_draw(const lda_alias_t *entries, uint32_t n, uint64_t random)
{
    const lda_alias_t *entry = &entries[((random >> 32) * n) >> 32];

    return (uint32_t)random < entry->threshold ? entry->topic : entry->other;
}
#endif
