/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps over blocks. */
#include "train.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../common/program/program.h"
#include "evaluate.h"
#include "model.h"
#include "sampler.h"

#define SWEEPS_MOST 4294967295.0 /* of a uint32_t */

typedef struct trainer {
    const lda_options_t *options;
    ex_job_t job;
    lda_corpus_t corpus;
    lda_prior_t prior;
    lda_counts_t counts;
    lda_sampler_t sampler;
    lda_store_t store;
    size_t *cursors; /* scratch: of a block's documents, the next token */
    size_t cursors_room;
    uint64_t sweep;    /* done by all */
    double start_s;    /* of the sweeps of this run */
    double sample_s;   /* of the processor, in sampling alone */
    uint64_t n_tokens; /* sampled by this worker */
} trainer_t;

/* ---- a block ------------------------------------------------------------- */

static psd_status_t set_cursors(trainer_t *self, const lda_block_t *block, psd_error_t *err)
{
    if (block->n_documents > self->cursors_room) {
        free(self->cursors);
        self->cursors = calloc(block->n_documents, sizeof *self->cursors);
        self->cursors_room = self->cursors == NULL ? 0 : block->n_documents;
        if (self->cursors == NULL) {
            return psd_error_set(err, PSD_NOMEM, "%zu documents", block->n_documents);
        }
    }
    if (block->n_documents > 0) {
        memcpy(self->cursors, block->starts, block->n_documents * sizeof *self->cursors);
    }
    return PSD_OK;
}

/* Moves a document's cursor past its tokens of this slice. */
static lda_tokens_t cut(trainer_t *self, const lda_block_t *block, size_t d)
{
    uint32_t end = self->counts.slice.first + self->counts.slice.n;
    size_t start = block->starts[d];
    size_t first = self->cursors[d];

    while (self->cursors[d] < block->starts[d + 1] && block->words[self->cursors[d]] < end) {
        self->cursors[d]++;
    }
    return (lda_tokens_t){.words = block->words + start,
                          .topics = block->topics + start,
                          .n = block->starts[d + 1] - start,
                          .first = first - start,
                          .end = self->cursors[d] - start};
}

/* Processor time of this thread: the time of others does not count. */
static double spent_s(void)
{
    struct timespec spent = {0};

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return (double)spent.tv_sec + (double)spent.tv_nsec / 1e9;
}

static void sample(trainer_t *self, const lda_block_t *block)
{
    double start_s = spent_s();

    lda_sampler_begin(&self->sampler);
    for (size_t d = 0; d < block->n_documents; d++) {
        lda_tokens_t tokens = cut(self, block, d);

        lda_sampler_run(&self->sampler, &tokens);
        self->n_tokens += tokens.end - tokens.first;
    }
    lda_sampler_end(&self->sampler);
    self->sample_s += spent_s() - start_s;
}

/* Counts the topics as they are. */
static void count(trainer_t *self, const lda_block_t *block)
{
    for (size_t d = 0; d < block->n_documents; d++) {
        lda_tokens_t tokens = cut(self, block, d);

        for (size_t i = tokens.first; i < tokens.end; i++) {
            lda_slice_add(&self->counts.slice, tokens.words[i], tokens.topics[i], 1);
            self->counts.totals[tokens.topics[i]]++;
        }
    }
}

static psd_status_t work_on(trainer_t *self, const lda_block_t *block, bool first, psd_error_t *err)
{
    lda_counts_t *counts = &self->counts;
    psd_status_t rc = lda_counts_pull_totals(counts, !first, err);

    if (rc == PSD_OK) {
        rc = set_cursors(self, block, err);
    }
    for (uint32_t slice = 0; rc == PSD_OK && slice < counts->n_slices; slice++) {
        rc = first ? lda_counts_empty_slice(counts, slice, err)
                   : lda_counts_pull_slice(counts, slice, err);
        if (rc != PSD_OK) {
            break;
        }
        if (first) {
            count(self, block);
        } else {
            sample(self, block);
        }
        rc = lda_counts_push_slice(counts, err);
    }
    return rc == PSD_OK ? lda_counts_push_totals(counts, err) : rc;
}

/* ---- sweeps -------------------------------------------------------------- */

/* Counts all blocks into the new tables; no worker samples before all have finished. */
static psd_status_t count_all(trainer_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (uint32_t at = 0; rc == PSD_OK && at < self->store.n; at++) {
        lda_block_t *block = NULL;

        rc = lda_store_take(&self->store, at, &block, err);
        if (rc == PSD_OK) {
            rc = work_on(self, block, true, err);
        }
    }
    return rc == PSD_OK ? lda_counts_meet(&self->counts, err) : rc;
}

/* The sweeps of the block that is furthest behind, over all workers. */
static psd_status_t agree(trainer_t *self, psd_error_t *err)
{
    double missing = 0; /* up to SWEEPS_MOST */
    char name[EX_NAME_SIZE];
    psd_status_t rc = PSD_OK;

    for (uint32_t at = 0; at < self->store.n; at++) {
        double own = SWEEPS_MOST - (double)self->store.sweeps[at];

        missing = own > missing ? own : missing;
    }
    ex_job_name_scratch(&self->job, self->options->table, "sweeps", name);
    rc = ex_job_reduce(&self->job, name, "max", &missing, 1, err);
    self->sweep = (uint64_t)(SWEEPS_MOST - missing);
    if (rc == PSD_OK && self->job.worker == 0 && self->sweep > 0) {
        printf("continues after sweep %" PRIu64 "%s\n", self->sweep,
               self->sweep >= self->options->sweeps ? "; --sweeps needs no more" : "");
    }
    return rc;
}

static psd_status_t run_sweep(trainer_t *self, psd_error_t *err)
{
    lda_store_t *store = &self->store;
    uint32_t n_clocks = (store->key.n_blocks + store->n_workers - 1) / store->n_workers;
    psd_status_t rc = PSD_OK;

    for (uint32_t at = 0; rc == PSD_OK && at < n_clocks; at++) {
        bool has = at < store->n && store->sweeps[at] <= self->sweep;
        lda_block_t *block = NULL;

        if (has) {
            rc = lda_store_take(store, at, &block, err);
            if (rc == PSD_OK) {
                rc = work_on(self, block, false, err);
            }
        }
        if (rc == PSD_OK) {
            rc = lda_counts_clock(&self->counts, err);
        }
        if (rc == PSD_OK && has) {
            rc = lda_store_put(store, at, err);
        }
    }
    self->sweep++;
    return rc;
}

static psd_status_t measure(trainer_t *self, psd_error_t *err)
{
    lda_quality_t quality = {0};
    double all_s = ex_now_s() - self->start_s;
    psd_status_t rc =
        lda_evaluate(&self->counts, &self->store, self->options->table, &quality, err);

    if (rc == PSD_OK && self->job.worker == 0) {
        double n = (double)self->n_tokens;

        printf("%7.1f s  sweep %" PRIu64 "/%" PRIu32
               "  joint %.4f  words %.4f  %.0f tokens/s, %.0f ns each in "
               "sampling  counts exact\n",
               all_s, self->sweep, self->options->sweeps, quality.documents + quality.words,
               quality.words, all_s > 0 ? n / all_s : 0, n > 0 ? self->sample_s / n * 1e9 : 0);
        (void)fflush(stdout);
    }
    return rc;
}

static psd_status_t run(trainer_t *self, psd_error_t *err)
{
    const lda_options_t *options = self->options;
    uint32_t every = options->eval_every;
    psd_status_t rc = agree(self, err);

    if (rc == PSD_OK) {
        rc = count_all(self, err);
    }
    self->start_s = ex_now_s();
    if (rc == PSD_OK) {
        rc = measure(self, err);
    }
    while (rc == PSD_OK && self->sweep < options->sweeps) {
        rc = run_sweep(self, err);
        if (rc == PSD_OK &&
            (self->sweep == options->sweeps || (every > 0 && self->sweep % every == 0))) {
            rc = measure(self, err);
        }
    }
    if (rc == PSD_OK && self->job.worker == 0 && options->save != NULL) {
        rc = lda_save(&self->counts, options->save, err);
    }
    return rc == PSD_OK ? lda_evaluate_held(&self->counts, options, err) : rc;
}

/* ---- the beginning ------------------------------------------------------- */

static psd_status_t open_store(trainer_t *self, const lda_warm_t *warm, psd_error_t *err)
{
    lda_store_args_t args = {.options = self->options, .corpus = &self->corpus, .warm = warm};
    psd_status_t rc = ex_job_rank(&args.worker, &args.n_workers, err);

    return rc == PSD_OK ? lda_store_init(&self->store, &args, err) : rc;
}

static psd_status_t open_warm(trainer_t *self, psd_error_t *err)
{
    lda_model_t model = {0};
    lda_slice_t slice = {0};
    lda_warm_t warm = {.slice = &slice};
    psd_status_t rc = lda_model_load(&model, self->options->warm, err);

    if (rc == PSD_OK && model.prior.n_topics != self->options->n_topics) {
        rc = psd_error_set(err, PSD_INVALID, "%s: has %" PRIu32 " topics, --topics is %" PRIu32,
                           self->options->warm, model.prior.n_topics, self->options->n_topics);
    }
    if (rc == PSD_OK) {
        rc = lda_model_slice(&model, &slice, err);
    }
    if (rc == PSD_OK) {
        warm.first_id = model.first_id;
        rc = open_store(self, &warm, err);
    }
    lda_slice_done(&slice);
    lda_model_done(&model);
    return rc;
}

/* Checks the files before others wait for this worker. */
static psd_status_t load(trainer_t *self, psd_error_t *err)
{
    const lda_options_t *options = self->options;
    psd_status_t rc = lda_corpus_scan(&self->corpus, options, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self->prior =
        (lda_prior_t){options->n_topics, self->corpus.n_words, options->alpha, options->beta};
    rc = lda_sampler_init(&self->sampler, &self->prior, options->n_steps, err);
    if (rc == PSD_OK) {
        rc = options->warm != NULL ? open_warm(self, err) : open_store(self, NULL, err);
    }
    return rc;
}

static psd_status_t train(trainer_t *self, psd_error_t *err)
{
    psd_status_t rc =
        lda_counts_init(&self->counts, &self->job, &self->corpus, &self->prior, self->options, err);

    if (rc == PSD_OK) {
        self->sampler.slice = &self->counts.slice;
        self->sampler.totals = self->counts.totals;
        self->sampler.random = self->options->seed + ((uint64_t)self->job.worker << 32);
        if (self->job.worker == 0) {
            printf("%" PRIu64 " documents, %" PRIu64 " tokens, %" PRIu32 " words, %" PRIu32
                   " topics; %" PRIu32 " workers, %" PRIu32 " blocks, %" PRIu32 " slices\n",
                   self->corpus.n_documents, self->corpus.n_tokens, self->corpus.n_words,
                   self->prior.n_topics, self->job.n_workers, self->store.key.n_blocks,
                   self->counts.n_slices);
        }
        rc = run(self, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_leave(&self->job, err);
    }
    lda_counts_done(&self->counts);
    return rc;
}

psd_status_t lda_train(const lda_options_t *options, psd_error_t *err)
{
    trainer_t self = {.options = options, .store = {.lock = -1}};
    psd_status_t rc = load(&self, err);

    if (rc == PSD_OK) {
        rc = ex_job_open(&self.job, &options->job, err);
    }
    if (rc == PSD_OK) {
        rc = train(&self, err);
        ex_job_close(&self.job);
    }
    lda_store_done(&self.store);
    lda_sampler_done(&self.sampler);
    lda_corpus_done(&self.corpus);
    free(self.cursors);
    return rc;
}
