/* SPDX-License-Identifier: Apache-2.0 */
/*
 * likelihood - log p(w, z), all gamma terms included, and held-out documents
 *
 * What     log p(z) is a sum over documents, log p(w | z) one over words and
 *          one over topics; workers add up what they have.
 * Units    natural logarithms
 * Source   Griffiths and Steyvers, PNAS 2004, equations 2 and 3
 */
#ifndef LDA_LIKELIHOOD_H
#define LDA_LIKELIHOOD_H

#include "block.h"
#include "sampler.h"

/* log p(z) of the documents; `counts` has n_topics zeros, before and after
 * the call. */
double lda_likelihood_documents(const lda_block_t *block, const lda_prior_t *prior,
                                int32_t *counts);
/* The term of one word with these tokens of each of n topics. */
double lda_likelihood_word(const int32_t *counts, size_t n, double beta);
/* That of the topics' totals. */
double lda_likelihood_topics(const int64_t *totals, const lda_prior_t *prior);

typedef struct lda_score {
    double sum; /* of log p(token) */
    uint64_t n; /* tokens */
} lda_score_t;

/*
 * Document completion: the tokens at even positions of each document give its
 * topics, those at odd ones are predicted by them.
 *
 * sampler   in/out  fixed, of a slice of all words
 * n_sweeps  in      over the even tokens; the second half counts
 *
 * Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t lda_complete(lda_sampler_t *sampler, const lda_block_t *documents,
                                         uint32_t n_sweeps, lda_score_t *ret_score,
                                         psd_error_t *err);
/* The shares of the topics in one document, from all its tokens, whose topics
 * change; n_topics of them. */
void lda_document_topics(lda_sampler_t *sampler, const lda_tokens_t *tokens, uint32_t n_sweeps,
                         double *ret_shares);
#endif
