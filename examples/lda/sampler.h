/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lda_sampler - new topics for the tokens of a document
 *
 * What     Collapsed Gibbs sampling by Metropolis and Hastings: a token's topic
 *          is drawn from
 *              p(k) ~ (n_dk + alpha) (n_wk + beta) / (n_k + V beta)
 *          (counts without the token) by proposals in turn from the word, an
 *          alias table, and from the document, the topic of a random token of
 *          it. Each takes constant time, whatever the number of topics.
 *          Accepted with the proposals' own probabilities, so that p is kept
 *          although the word's proposal is of older counts. Proposals also
 *          leave out the token itself, except for its 1 in an old total.
 * Source   Yuan et al., "LightLDA", WWW 2015, section 4
 */
#ifndef LDA_SAMPLER_H
#define LDA_SAMPLER_H

#include "slice.h"

/* Two proposals, before it is known whether they are taken. */
typedef struct lda_plan {
    uint64_t random;
    const lda_alias_t *entry; /* from which the word's comes */
    const uint32_t *document; /* the document's: that of a token, or any */
    uint32_t word;            /* topic that the word proposes */
    uint32_t any;             /* any topic */
} lda_plan_t;

/* Everything about a topic that does not depend on the word, in one place. */
typedef struct lda_topic {
    double stale;        /* total + V beta, as the slice came */
    int32_t moved;       /* by how much the total has changed since */
    int32_t in_document; /* tokens of the document; 0 between documents */
} lda_topic_t;

typedef struct lda_sampler {
    const lda_prior_t *prior; /* borrowed */
    lda_slice_t *slice;       /* borrowed; holds the words that are sampled */
    int64_t *totals;          /* borrowed: tokens of each topic */
    lda_topic_t *topics;      /* owned */
    lda_plan_t *plans;        /* owned; scratch */
    uint32_t n_steps;         /* pairs of proposals for each token */
    bool fixed;               /* the document does not count in the slice */
    uint64_t random;
} lda_sampler_t;

/* A document, and which of its tokens are sampled: those in the slice. */
typedef struct lda_tokens {
    const uint32_t *words;
    uint32_t *topics;
    size_t n;
    size_t first, end;
} lda_tokens_t;

/* The caller sets slice, totals, fixed, random. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_sampler_init(lda_sampler_t *self, const lda_prior_t *prior,
                                             uint32_t n_steps, psd_error_t *err);
void lda_sampler_done(lda_sampler_t *self);
/* The slice has its counts, and totals are as they were when it began. Call
 * it before the first run with the slice. */
void lda_sampler_begin(lda_sampler_t *self);
/* Gives each of the tokens a new topic, and moves its counts. */
void lda_sampler_run(lda_sampler_t *self, const lda_tokens_t *tokens);
/* Adds the moves since lda_sampler_begin to the totals. */
void lda_sampler_end(lda_sampler_t *self);
/* The topic of one token, from its p(k), begun at `topic`; nothing changes. The
 * document's counts must be set. */
uint32_t lda_sampler_draw(lda_sampler_t *self, const lda_tokens_t *tokens, size_t i);
#endif
