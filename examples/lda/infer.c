/* SPDX-License-Identifier: Apache-2.0 */
/* Inference. */
#include "infer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "corpus.h"
#include "likelihood.h"

void lda_print_score(double sum, uint64_t n)
{
    printf("held-out completion  %" PRIu64 " tokens  %.4f each  perplexity "
           "%.1f\n",
           n, n > 0 ? sum / (double)n : 0, n > 0 ? exp(-sum / (double)n) : NAN);
}

/* The shares that are more than the prior alone gives, greatest not first:
 * by topic. */
static bool write_shares(FILE *file, const double *shares, const lda_prior_t *prior, size_t n)
{
    double least = 1.5 * prior->alpha / ((double)n + prior->alpha * (double)prior->n_topics);
    bool good = true;
    const char *between = "";

    for (uint32_t k = 0; good && k < prior->n_topics; k++) {
        if (shares[k] > least) {
            good = fprintf(file, "%s%" PRIu32 ":%.5g", between, k, shares[k]) > 0;
            between = " ";
        }
    }
    return good && fputc('\n', file) != EOF;
}

static psd_status_t write_topics(lda_sampler_t *sampler, const lda_block_t *documents,
                                 const lda_options_t *options, psd_error_t *err)
{
    const char *path = options->document_topics;
    FILE *file = fopen(path, "we");
    double *shares = calloc(sampler->prior->n_topics, sizeof *shares);
    bool good = file != NULL;
    char reason[128];

    for (size_t d = 0; good && shares != NULL && d < documents->n_documents; d++) {
        size_t first = documents->starts[d];
        size_t n = documents->starts[d + 1] - first;
        lda_tokens_t tokens = {.words = documents->words + first,
                               .topics = documents->topics + first,
                               .n = n,
                               .end = n};

        lda_document_topics(sampler, &tokens, options->burn, shares);
        good = write_shares(file, shares, sampler->prior, n);
    }
    if (file != NULL) {
        good = fclose(file) == 0 && good;
    }
    if (shares == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%s", path);
    }
    free(shares);
    return good ? PSD_OK
                : psd_error_set(err, PSD_IO, "%s: %s", path,
                                strerror_r(errno, reason, sizeof reason));
}

static psd_status_t measure(const lda_model_t *model, lda_slice_t *slice,
                            const lda_block_t *documents, const lda_options_t *options,
                            psd_error_t *err)
{
    lda_sampler_t sampler;
    lda_score_t score = {0};
    psd_status_t rc = lda_sampler_init(&sampler, &model->prior, options->n_steps, err);

    sampler.slice = slice;
    sampler.totals = model->totals;
    sampler.fixed = true;
    sampler.random = options->seed;
    if (rc == PSD_OK) {
        lda_sampler_begin(&sampler);
        rc = lda_complete(&sampler, documents, options->burn, &score, err);
    }
    if (rc == PSD_OK) {
        lda_print_score(score.sum, score.n);
    }
    if (rc == PSD_OK && options->document_topics != NULL) {
        rc = write_topics(&sampler, documents, options, err);
    }
    lda_sampler_done(&sampler);
    return rc;
}

static psd_status_t test(const lda_model_t *model, const lda_options_t *options, psd_error_t *err)
{
    lda_held_t held = {.path = options->test,
                       .test_every = options->test_every,
                       .n_parts = 1,
                       .first_id = model->first_id,
                       .n_words = model->prior.n_words};
    lda_slice_t slice = {0};
    lda_block_t documents = {0};
    psd_status_t rc = lda_model_slice(model, &slice, err);

    if (rc == PSD_OK) {
        rc = lda_corpus_held(options, &held, &documents, err);
    }
    if (rc == PSD_OK) {
        rc = measure(model, &slice, &documents, options, err);
    }
    lda_block_done(&documents);
    lda_slice_done(&slice);
    return rc;
}

psd_status_t lda_infer(const lda_options_t *options, psd_error_t *err)
{
    lda_model_t model = {0};
    psd_status_t rc = lda_model_load(&model, options->infer, err);

    if (rc == PSD_OK && options->top > 0) {
        rc = lda_model_top(&model, options->top, options->names, err);
    }
    if (rc == PSD_OK && options->test != NULL) {
        rc = test(&model, options, err);
    }
    lda_model_done(&model);
    return rc;
}
