/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lda_alias - draws of a discrete distribution in constant time
 *
 * Shape    n entries, each as likely as the others; entry i is its own topic
 *          below its threshold and another's above it
 * Units    a draw takes one random number of 64 bits; weights are off by at
 *          most 2^-24 of an entry
 * Bits     threshold 24, other topic 20, own topic 20: one look at memory
 * Source   Walker, ACM TOMS 1977; Vose, IEEE TSE 1991
 */
#ifndef LDA_ALIAS_H
#define LDA_ALIAS_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t lda_alias_t;

#define LDA_TOPIC_BITS 20
#define LDA_TOPICS_MOST (UINT32_C(1) << LDA_TOPIC_BITS)

/* An entry that is all its own. */
static inline lda_alias_t lda_alias_entry(uint32_t topic)
{
    return (UINT64_MAX << 2 * LDA_TOPIC_BITS) | (uint64_t)topic << LDA_TOPIC_BITS | topic;
}

/*
 * Makes the entries of n topics and their weights.
 *
 * entries  in/out  n >= 1, by lda_alias_entry
 * weights  in/out  n, each > 0; spoilt
 * scratch  in      n
 *
 * Gives the sum of the weights.
 */
double lda_alias_build(lda_alias_t *entries, double *weights, uint32_t *scratch, uint32_t n);

/* Which of n entries a random number draws. */
static inline size_t lda_alias_place(uint32_t n, uint64_t random)
{
    return ((random >> 32) * n) >> 32;
}

/* The topic that it draws from that entry. */
static inline uint32_t lda_alias_topic(lda_alias_t entry, uint64_t random)
{
    uint32_t other = (random & UINT32_MAX) >> 8 >= entry >> 2 * LDA_TOPIC_BITS;

    return (uint32_t)(entry >> other * LDA_TOPIC_BITS) & (LDA_TOPICS_MOST - 1);
}

static inline uint32_t lda_alias_draw(const lda_alias_t *entries, uint32_t n, uint64_t random)
{
    return lda_alias_topic(entries[lda_alias_place(n, random)], random);
}
#endif
