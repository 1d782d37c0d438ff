/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_draws - random choices: which words are left out, which are drawn as
 * negatives
 *
 * What     A word that is a share f of the corpus is kept with probability
 *          sqrt(t / f) + t / f, t = --sample. Negatives are drawn by
 *          count^0.75, from an alias table: O(1) a draw.
 * Owner    the caller; wv_draws_done. Threads: any number, each with an rng of
 *          its own
 * Source   Mikolov et al., NIPS 2013 (sections 2.2, 2.3); Vose 1991.
 */
#ifndef WV_DRAWS_H
#define WV_DRAWS_H

#include "vocabulary.h"

/* splitmix64 (Steele et al., OOPSLA 2014). */
static inline uint64_t wv_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);

    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Below n, n > 0. */
static inline uint32_t wv_random_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)((wv_random(state) >> 32) * n >> 32);
}

typedef struct wv_draws {
    uint32_t n;
    uint32_t *keep;  /* by word: kept when 32 random bits are not above it */
    uint32_t *share; /* of each column: its own word, else the other */
    uint32_t *other;
} wv_draws_t;

/* sample  in  0: all words are kept. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_draws_make(wv_draws_t *self, const wv_vocabulary_t *vocabulary,
                                          double sample, psd_error_t *err);
/* How often a word is drawn as a negative, beside the others. */
double wv_draws_weight(const wv_vocabulary_t *vocabulary, uint32_t word);
/* How often the text has a word, without the times that it is left out. */
double wv_draws_kept(const wv_draws_t *self, const wv_vocabulary_t *vocabulary, uint32_t word);
void wv_draws_done(wv_draws_t *self);

static inline bool wv_draws_keeps(const wv_draws_t *self, uint32_t word, uint64_t *state)
{
    return (uint32_t)(wv_random(state) >> 32) <= self->keep[word];
}

/* Never the end of a line. */
static inline uint32_t wv_draws_negative(const wv_draws_t *self, uint64_t *state)
{
    uint64_t bits = wv_random(state);
    uint32_t column = (uint32_t)((bits >> 32) * self->n >> 32);

    return (uint32_t)bits < self->share[column] ? column : self->other[column];
}
#endif
