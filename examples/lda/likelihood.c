/* SPDX-License-Identifier: Apache-2.0 */
/* How well topics explain documents. */
#include "likelihood.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double lda_likelihood_documents(const lda_block_t *block, const lda_prior_t *prior, int32_t *counts)
{
    double all = prior->alpha * (double)prior->n_topics;
    double sum = 0;

    for (size_t d = 0; d < block->n_documents; d++) {
        size_t end = block->starts[d + 1];

        for (size_t i = block->starts[d]; i < end; i++) {
            counts[block->topics[i]]++;
        }
        sum += lgamma(all) - lgamma((double)(end - block->starts[d]) + all);
        for (size_t i = block->starts[d]; i < end; i++) {
            int32_t *count = &counts[block->topics[i]];

            if (*count > 0) { /* else it was seen */
                sum += lgamma((double)*count + prior->alpha) - lgamma(prior->alpha);
                *count = 0;
            }
        }
    }
    return sum;
}

double lda_likelihood_word(const int32_t *counts, size_t n, double beta)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum += lgamma((double)counts[i] + beta) - lgamma(beta);
    }
    return sum;
}

double lda_likelihood_topics(const int64_t *totals, const lda_prior_t *prior)
{
    double all = prior->beta * (double)prior->n_words;
    double sum = 0;

    for (uint32_t k = 0; k < prior->n_topics; k++) {
        sum += lgamma(all) - lgamma((double)totals[k] + all);
    }
    return sum;
}

void lda_document_topics(lda_sampler_t *sampler, const lda_tokens_t *tokens, uint32_t n_sweeps,
                         double *ret_shares)
{
    const lda_prior_t *prior = sampler->prior;
    double all = (double)tokens->n + prior->alpha * (double)prior->n_topics;
    uint32_t first = n_sweeps / 2; /* that counts */
    double part = 1 / (all * (double)(n_sweeps - first));

    for (uint32_t k = 0; k < prior->n_topics; k++) {
        ret_shares[k] = prior->alpha / all;
    }
    for (size_t i = 0; i < tokens->n; i++) {
        tokens->topics[i] = lda_row_draw(
            sampler->slice, &sampler->slice->rows[tokens->words[i] - sampler->slice->first],
            &sampler->random);
    }
    for (uint32_t sweep = 0; sweep < n_sweeps; sweep++) {
        lda_sampler_run(sampler, tokens);
        for (size_t i = 0; sweep >= first && i < tokens->n; i++) {
            ret_shares[tokens->topics[i]] += part;
        }
    }
}

/* p(word), given the shares of the topics: what all words share of it, the
 * term of beta, comes in `smooth`. */
static double predict(const lda_slice_t *slice, uint32_t word, const double *shares, double smooth)
{
    const lda_row_t *row = &slice->rows[word - slice->first];
    double sum = smooth;

    for (uint32_t i = 0; i < row->n_cells; i++) {
        lda_cell_t cell = lda_row_at(slice, row, i);

        if (cell.count > 0) {
            sum += shares[cell.topic] * (double)cell.count / slice->stale[cell.topic];
        }
    }
    return sum;
}

typedef struct halves {
    uint32_t *words; /* at even positions */
    uint32_t *topics;
    double *shares; /* n_topics */
} halves_t;

static void complete_one(lda_sampler_t *sampler, const halves_t *halves, const uint32_t *words,
                         size_t n, uint32_t n_sweeps, lda_score_t *score)
{
    const lda_slice_t *slice = sampler->slice;
    lda_tokens_t tokens = {
        .words = halves->words, .topics = halves->topics, .n = (n + 1) / 2, .end = (n + 1) / 2};
    double smooth = 0;

    for (size_t i = 0; i < n; i += 2) {
        halves->words[i / 2] = words[i];
    }
    lda_document_topics(sampler, &tokens, n_sweeps, halves->shares);
    for (uint32_t k = 0; k < sampler->prior->n_topics; k++) {
        smooth += halves->shares[k] * sampler->prior->beta / slice->stale[k];
    }
    for (size_t i = 1; i < n; i += 2) {
        score->sum += log(predict(slice, words[i], halves->shares, smooth));
        score->n++;
    }
}

psd_status_t lda_complete(lda_sampler_t *sampler, const lda_block_t *documents, uint32_t n_sweeps,
                          lda_score_t *ret_score, psd_error_t *err)
{
    size_t room = documents->n_tokens + 1;
    halves_t halves = {.words = calloc(room, sizeof *halves.words),
                       .topics = calloc(room, sizeof *halves.topics),
                       .shares = calloc(sampler->prior->n_topics, sizeof *halves.shares)};
    lda_score_t score = {0};
    psd_status_t rc = PSD_OK;

    if (halves.words == NULL || halves.topics == NULL || halves.shares == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "%zu tokens", room);
    }
    for (size_t d = 0; rc == PSD_OK && d < documents->n_documents; d++) {
        size_t first = documents->starts[d];

        complete_one(sampler, &halves, documents->words + first, documents->starts[d + 1] - first,
                     n_sweeps, &score);
    }
    free(halves.words);
    free(halves.topics);
    free(halves.shares);
    *ret_score = score;
    return rc;
}
