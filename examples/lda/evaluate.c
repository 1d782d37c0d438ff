/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring a job. */
#include "evaluate.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "infer.h"
#include "likelihood.h"
#include "model.h"

/* Sums over the workers: two terms, and the tokens of each topic in the rows
 * and in the documents. */
typedef struct sums {
    lda_counts_t *counts;
    double *values;
    double *rows;      /* in values, as documents */
    double *documents; /* by topic */
} sums_t;

enum { DOCUMENTS, WORDS, N_TERMS };

static psd_status_t add_word(void *user, uint32_t word, const uint32_t *topics,
                             const int32_t *counts, size_t n, psd_error_t *err)
{
    sums_t *self = user;
    int64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        self->rows[topics[i]] += (double)counts[i];
        sum += counts[i];
    }
    self->values[WORDS] += lda_likelihood_word(counts, n, self->counts->prior->beta);
    return sum == (int64_t)self->counts->corpus->frequencies[word]
               ? PSD_OK
               : psd_error_set(err, PSD_DAMAGED,
                               "word %" PRIu32 ": its counts are of %" PRId64
                               " tokens, there are %" PRIu32,
                               word, sum, self->counts->corpus->frequencies[word]);
}

static psd_status_t add_documents(sums_t *self, lda_store_t *store, psd_error_t *err)
{
    const lda_prior_t *prior = self->counts->prior;
    int32_t *scratch = calloc(prior->n_topics, sizeof *scratch);
    psd_status_t rc = PSD_OK;

    if (scratch == NULL) {
        return psd_error_set(err, PSD_NOMEM, "counts of a document");
    }
    for (uint32_t at = 0; rc == PSD_OK && at < store->n; at++) {
        lda_block_t *block = NULL;

        rc = lda_store_take(store, at, &block, err);
        if (rc == PSD_OK) {
            self->values[DOCUMENTS] += lda_likelihood_documents(block, prior, scratch);
            for (size_t i = 0; i < block->n_tokens; i++) {
                self->documents[block->topics[i]]++;
            }
        }
    }
    free(scratch);
    return rc;
}

static psd_status_t compare(const sums_t *self, psd_error_t *err)
{
    const int64_t *totals = self->counts->totals;

    for (uint32_t k = 0; k < self->counts->prior->n_topics; k++) {
        double total = (double)totals[k]; /* all are whole and below 2^53 */

        if (fabs(self->rows[k] - total) + fabs(self->documents[k] - total) > 0) {
            return psd_error_set(err, PSD_DAMAGED,
                                 "topic %" PRIu32 ": the documents have %.0f tokens of it, the "
                                 "words %.0f, the topics %.0f",
                                 k, self->documents[k], self->rows[k], total);
        }
    }
    return PSD_OK;
}

static psd_status_t evaluate(sums_t *self, lda_store_t *store, const char *table, psd_error_t *err)
{
    lda_counts_t *counts = self->counts;
    size_t n = N_TERMS + 2 * (size_t)counts->prior->n_topics;
    char name[EX_NAME_SIZE];
    psd_status_t rc = lda_counts_meet(counts, err);

    for (uint32_t slice = counts->job->worker; rc == PSD_OK && slice < counts->n_slices;
         slice += counts->job->n_workers) {
        rc = lda_counts_visit(counts, slice, add_word, self, err);
    }
    if (rc == PSD_OK) {
        rc = lda_counts_pull_totals(counts, true, err);
    }
    if (rc == PSD_OK) {
        rc = add_documents(self, store, err);
    }
    if (rc == PSD_OK) {
        ex_job_name_scratch(counts->job, table, "sums", name);
        rc = ex_job_reduce(counts->job, name, "add", self->values, n, err);
    }
    return rc == PSD_OK ? compare(self, err) : rc;
}

psd_status_t lda_evaluate(lda_counts_t *counts, lda_store_t *store, const char *table,
                          lda_quality_t *ret_quality, psd_error_t *err)
{
    size_t n_topics = counts->prior->n_topics;
    double n_tokens = (double)counts->corpus->n_tokens;
    sums_t sums = {.counts = counts, .values = calloc(N_TERMS + 2 * n_topics, sizeof *sums.values)};
    psd_status_t rc = PSD_OK;

    if (sums.values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu topics", n_topics);
    }
    sums.rows = sums.values + N_TERMS;
    sums.documents = sums.rows + n_topics;
    rc = evaluate(&sums, store, table, err);
    if (rc == PSD_OK) {
        ret_quality->documents = sums.values[DOCUMENTS] / n_tokens;
        ret_quality->words =
            (sums.values[WORDS] + lda_likelihood_topics(counts->totals, counts->prior)) / n_tokens;
    }
    free(sums.values);
    return rc;
}

/* ---- held-out documents -------------------------------------------------- */

static psd_status_t complete(lda_counts_t *counts, const lda_options_t *options,
                             lda_score_t *ret_score, psd_error_t *err)
{
    lda_held_t held = {.path = options->train,
                       .test_every = options->test_every,
                       .part = counts->job->worker,
                       .n_parts = counts->job->n_workers,
                       .first_id = counts->corpus->first_id,
                       .n_words = counts->corpus->n_words};
    lda_block_t documents = {0};
    lda_sampler_t sampler;
    psd_status_t rc = lda_sampler_init(&sampler, counts->prior, options->n_steps, err);

    sampler.slice = &counts->slice;
    sampler.totals = counts->totals;
    sampler.fixed = true;
    sampler.random = options->seed ^ (uint64_t)counts->job->worker << 32;
    if (rc == PSD_OK) {
        rc = lda_corpus_held(options, &held, &documents, err);
    }
    if (rc == PSD_OK) {
        lda_sampler_begin(&sampler);
        rc = lda_complete(&sampler, &documents, options->burn, ret_score, err);
    }
    lda_block_done(&documents);
    lda_sampler_done(&sampler);
    return rc;
}

psd_status_t lda_evaluate_held(lda_counts_t *counts, const lda_options_t *options, psd_error_t *err)
{
    lda_score_t score = {0};
    double values[2] = {0};
    char name[EX_NAME_SIZE];
    psd_status_t rc = PSD_OK;

    if (options->test_every == 0) {
        return PSD_OK;
    }
    if (counts->n_slices > 1) {
        if (counts->job->worker == 0) {
            puts("held-out completion  needs all words in memory; see --infer");
        }
        return PSD_OK;
    }
    rc = lda_counts_pull_totals(counts, true, err);
    if (rc == PSD_OK) {
        rc = lda_counts_pull_slice(counts, 0, err);
    }
    if (rc == PSD_OK) {
        rc = complete(counts, options, &score, err);
    }
    if (rc == PSD_OK) {
        values[0] = score.sum;
        values[1] = (double)score.n;
        ex_job_name_scratch(counts->job, options->table, "held", name);
        rc = ex_job_reduce(counts->job, name, "add", values, 2, err);
    }
    if (rc == PSD_OK && counts->job->worker == 0) {
        lda_print_score(values[0], (uint64_t)values[1]);
    }
    return rc;
}

/* ---- the model's file ---------------------------------------------------- */

typedef struct saving {
    FILE *file;
    uint64_t first_id;
    bool good;
} saving_t;

static psd_status_t write_word(void *user, uint32_t word, const uint32_t *topics,
                               const int32_t *counts, size_t n, psd_error_t *err)
{
    saving_t *self = user;

    (void)err; /* the end tells */
    self->good =
        self->good && lda_model_write_word(self->file, self->first_id + word, topics, counts, n);
    return PSD_OK;
}

static psd_status_t io_failed(const char *path, psd_error_t *err)
{
    char reason[128];

    return psd_error_set(err, PSD_IO, "%s: %s", path, strerror_r(errno, reason, sizeof reason));
}

psd_status_t lda_save(lda_counts_t *counts, const char *path, psd_error_t *err)
{
    saving_t saving = {.first_id = counts->corpus->first_id};
    char beside[PATH_MAX];
    psd_status_t rc = PSD_OK;

    if (snprintf(beside, sizeof beside, "%s.tmp", path) >= (int)sizeof beside) {
        return psd_error_set(err, PSD_IO, "%s: name too long", path);
    }
    saving.file = fopen(beside, "we");
    if (saving.file == NULL) {
        return io_failed(beside, err);
    }
    saving.good = lda_model_write_head(saving.file, counts->prior, saving.first_id);
    for (uint32_t slice = 0; rc == PSD_OK && slice < counts->n_slices; slice++) {
        rc = lda_counts_visit(counts, slice, write_word, &saving, err);
    }
    saving.good = fflush(saving.file) == 0 && saving.good && fsync(fileno(saving.file)) == 0;
    saving.good = fclose(saving.file) == 0 && saving.good;
    if (rc == PSD_OK && (!saving.good || rename(beside, path) != 0)) {
        rc = io_failed(path, err);
    }
    if (rc != PSD_OK) {
        (void)unlink(beside);
    }
    return rc;
}
