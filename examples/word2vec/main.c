/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd-word2vec - vectors of words, learnt on a psd parameter server
 *
 * What     A user's program on <psd_train.h>: each process is one worker with
 *          a part of the text; the vectors are tables on the server. Errors are
 *          one line on stderr; the exit code is the status's.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/program/program.h"
#include "judge.h"
#include "train.h"

static void task_done(wv_task_t *self)
{
    wv_vocabulary_done(&self->vocabulary);
    wv_draws_done(&self->draws);
    wv_tree_done(&self->tree);
}

static psd_status_t save_words(const wv_vocabulary_t *words, const char *path, psd_error_t *err)
{
    FILE *file = fopen(path, "w");
    bool written = file != NULL;

    for (uint32_t i = 0; file != NULL && i < words->n; i++) {
        (void)fprintf(file, "%s %" PRIu64 "\n", words->words[i].text, words->words[i].count);
    }
    if (file != NULL) {
        written = !ferror(file);
        written = fclose(file) == 0 && written;
    }
    return written ? PSD_OK
                   : psd_error_set(err, PSD_IO, "%s: cannot be written: %s", path, strerror(errno));
}

static psd_status_t make_task(wv_task_t *self, uint32_t worker, uint32_t n_workers,
                              psd_error_t *err)
{
    const wv_options_t *options = self->options;
    psd_status_t rc =
        wv_vocabulary_count(&self->vocabulary, options->train, options->min_count, err);

    if (rc == PSD_OK && worker == 0) {
        (void)printf("%" PRIu32 " words, seen %" PRIu64 " times\n", self->vocabulary.n,
                     self->vocabulary.n_tokens);
        if (options->save_words != NULL) {
            rc = save_words(&self->vocabulary, options->save_words, err);
        }
    }
    if (rc == PSD_OK) {
        rc = wv_draws_make(&self->draws, &self->vocabulary, options->sample, err);
    }
    self->senses = (wv_senses_t){
        .n = options->senses,
        .last = options->senses == 1
                    ? 0
                    : (uint32_t)(options->sense_share * (double)(self->vocabulary.n - 1)),
        .n_words = self->vocabulary.n};
    if (rc == PSD_OK) {
        self->block = wv_block_words(self, n_workers);
        if (self->block < options->block && worker == 0) {
            (void)printf("blocks of %" PRIu32
                         " words: the text is too short for several workers with %" PRIu32 "\n",
                         self->block, options->block);
        }
    }
    return rc == PSD_OK && options->hs ? wv_tree_make(&self->tree, &self->vocabulary, err) : rc;
}

/* ---- what is known of vectors ---- */

static psd_status_t judge(const wv_options_t *options, wv_vectors_t *vectors, psd_error_t *err)
{
    wv_judgement_t found;
    psd_status_t rc = PSD_OK;

    wv_judge_prepare(vectors);
    if (options->pairs != NULL) {
        rc = wv_judge_pairs(vectors, options->pairs, &found, err);
        if (rc == PSD_OK) {
            (void)printf("similarity: rho %.3f over %" PRIu64 " of %" PRIu64 " pairs\n",
                         found.value, found.n, found.n_all);
        }
    }
    if (rc == PSD_OK && options->questions != NULL) {
        rc = wv_judge_questions(vectors, options->questions, &found, err);
        if (rc == PSD_OK) {
            (void)printf("analogies: %.3f of %" PRIu64 " of %" PRIu64 " questions\n", found.value,
                         found.n, found.n_all);
        }
    }
    return rc == PSD_OK && options->near != NULL ? wv_judge_near(vectors, options->near, err) : rc;
}

static psd_status_t use_file(const wv_options_t *options, psd_error_t *err)
{
    wv_vectors_t vectors;
    psd_status_t rc = wv_vectors_read(&vectors, options->vectors, err);

    if (rc == PSD_OK && options->save != NULL) {
        rc = wv_vectors_write(&vectors.words, vectors.values, vectors.size, options->binary,
                              options->save, err);
    }
    if (rc == PSD_OK) {
        rc = judge(options, &vectors, err);
    }
    wv_vectors_done(&vectors);
    return rc;
}

/* ---- training ---- */

static psd_status_t finish(wv_task_t *task, float *values, float *met, psd_error_t *err)
{
    const wv_options_t *options = task->options;
    wv_vectors_t vectors = {.size = options->size, .values = values};
    psd_status_t rc = PSD_OK;

    if (met != NULL) {
        rc = wv_senses_name(&task->senses, &task->vocabulary, values, options->size, met, err);
    }
    if (rc == PSD_OK && met != NULL && options->save_senses != NULL) {
        rc = wv_senses_write(&task->senses, &task->vocabulary, met, options->save_senses, err);
    }
    vectors.words = task->vocabulary; /* borrows */
    if (rc == PSD_OK && options->save != NULL) {
        rc = wv_vectors_write(&task->vocabulary, values, options->size, options->binary,
                              options->save, err);
    }
    return rc == PSD_OK ? judge(options, &vectors, err) : rc;
}

static psd_status_t train(const wv_options_t *options, psd_error_t *err)
{
    wv_task_t task = {.options = options};
    uint32_t worker = 0;
    uint32_t n_workers = 1;
    float *vectors = NULL;
    float *met = NULL;
    psd_status_t rc = ex_job_rank(&worker, &n_workers, err);

    if (rc == PSD_OK) {
        rc = make_task(&task, worker, n_workers, err);
    }
    if (rc == PSD_OK) {
        rc = wv_train(&task, worker, n_workers, &vectors, &met, err);
    }
    if (rc == PSD_OK && vectors != NULL) {
        rc = finish(&task, vectors, met, err);
    }
    free(vectors);
    free(met);
    task_done(&task);
    return rc;
}

static psd_status_t run(int argc, char **argv, psd_error_t *err)
{
    wv_options_t options;
    bool helped = false;
    psd_status_t rc = wv_options_read(&options, argc, argv, &helped, err);

    if (rc != PSD_OK || helped) {
        return rc;
    }
    return options.vectors != NULL ? use_file(&options, err) : train(&options, err);
}

int main(int argc, char **argv)
{
    return ex_program("psd-word2vec", run, argc, argv);
}
