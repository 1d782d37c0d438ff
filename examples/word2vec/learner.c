/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs of a word and its neighbour, one after the other. */
#include "learner.h"

#include <stdlib.h>
#include <string.h>

#include "pair.h"

#define ALPHA_LEAST 1e-4 /* of the first one */
#define ALPHA_WORDS 1000 /* words between two updates of alpha */

psd_status_t wv_learner_init(wv_learner_t *self, const wv_task_t *task, const wv_tables_t *tables,
                             const wv_others_t *others, psd_error_t *err)
{
    const wv_options_t *options = task->options;
    size_t stride = wv_stride(options->size);
    size_t n_targets =
        (size_t)2 * options->window * (1 + options->negative + (options->hs ? WV_CODE_MAX : 0));
    psd_status_t rc = PSD_OK;

    *self = (wv_learner_t){.task = task,
                           .stride = stride,
                           .hidden = calloc(stride, sizeof(float)),
                           .change = calloc(stride, sizeof(float)),
                           .targets = calloc(n_targets, sizeof(wv_target_t)),
                           .senses = tables->senses,
                           .weights = calloc(task->senses.n, sizeof(float))};
    if (self->hidden == NULL || self->change == NULL || self->targets == NULL ||
        self->weights == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a trainer");
    }
    for (int i = 0; rc == PSD_OK && i < WV_VECTORS; i++) {
        if (!wv_tables_has(options, (wv_table_t)i)) {
            continue;
        }
        rc = wv_copies_init(&self->copies[i], task, others, (wv_table_t)i, tables->vectors[i], err);
        if (rc == PSD_OK && options->adagrad) {
            rc = wv_copies_init(&self->sums[i], task, others, (wv_table_t)i, tables->sums[i], err);
        }
    }
    if (rc != PSD_OK) {
        wv_learner_done(self);
    }
    return rc;
}

void wv_learner_done(wv_learner_t *self)
{
    for (int i = 0; i < WV_VECTORS; i++) {
        wv_copies_done(&self->copies[i]);
        wv_copies_done(&self->sums[i]);
    }
    free(self->hidden);
    free(self->change);
    free(self->targets);
    free(self->weights);
    self->hidden = NULL;
    self->change = NULL;
    self->targets = NULL;
    self->weights = NULL;
}

static psd_status_t begin_block(wv_learner_t *self, bool lacks, psd_error_t *err)
{
    const wv_options_t *options = self->task->options;
    const wv_rows_t *rows[WV_VECTORS] = {&self->block->in, &self->block->out, &self->block->nodes};
    psd_status_t rc = PSD_OK;

    for (int i = 0; rc == PSD_OK && i < WV_VECTORS; i++) {
        if (!wv_tables_has(options, (wv_table_t)i)) {
            continue;
        }
        rc = wv_copies_begin(&self->copies[i], rows[i], lacks, err);
        if (rc == PSD_OK && options->adagrad) {
            rc = wv_copies_begin(&self->sums[i], rows[i], lacks, err);
        }
    }
    return rc;
}

static void end_block(wv_learner_t *self)
{
    const wv_options_t *options = self->task->options;

    for (int i = 0; i < WV_VECTORS; i++) {
        if (wv_tables_has(options, (wv_table_t)i)) {
            wv_copies_end(&self->copies[i], self->trainer);
            if (options->adagrad) {
                wv_copies_end(&self->sums[i], self->trainer);
            }
        }
    }
}

/* ---- learning ---- */

static void add_target(wv_learner_t *self, wv_table_t table, uint32_t slot, float label)
{
    self->targets[self->n_targets++] = (wv_target_t){.table = table, .slot = slot, .label = label};
}

void wv_learner_draw(wv_learner_t *self, size_t at)
{
    const wv_block_t *block = self->block;
    const wv_options_t *options = self->task->options;

    if (options->hs) {
        const wv_code_t *code = &self->task->tree.codes[block->in.rows[block->words[at]]];

        for (uint32_t i = 0; i < code->n; i++) {
            add_target(self, WV_TREE, block->nodes.slot_of[code->nodes[i]],
                       1 - (float)code->bits[i]);
        }
    }
    if (options->negative > 0) {
        add_target(self, WV_OUT, block->targets[at], 1);
    }
    for (uint32_t i = 0; i < options->negative; i++) {
        uint32_t slot = block->pool[wv_random_below(&self->random, block->n_pool)];

        if (slot != block->targets[at]) {
            add_target(self, WV_OUT, slot, 0);
        }
    }
    self->targets[self->n_targets - 1].is_last = true;
}

/* All targets of the word at `at` with one vector, which the caller then
 * changes by self->change. Margins come first, so that none waits for a change. */
WV_WIDE static void meet_all(wv_learner_t *self, size_t at, const float *hidden)
{
    memset(self->change, 0, self->stride * sizeof *self->change);
    self->n_targets = 0;
    wv_learner_draw(self, at);
    for (uint32_t i = 0; i < self->n_targets; i++) {
        self->targets[i].margin = wv_margin(self, &self->targets[i], hidden);
    }
    for (uint32_t i = 0; i < self->n_targets; i++) {
        wv_meet(self, &self->targets[i], hidden, 1);
    }
}

/* The mean of the vectors of the n words around the one at `at`. */
WV_WIDE static void take_mean(wv_learner_t *self, size_t at, size_t from, size_t end, size_t n)
{
    memset(self->hidden, 0, self->stride * sizeof *self->hidden);
    for (size_t i = from; i < end; i++) {
        if (i != at) {
            wv_add(1 / (float)n, wv_vector(self, WV_IN, self->block->words[i]), self->hidden,
                   self->stride);
        }
    }
}

WV_WIDE static void take_change(wv_learner_t *self, uint32_t slot)
{
    wv_take_change(self, slot);
}

static void learn_skip_gram(wv_learner_t *self, size_t at, size_t from, size_t end)
{
    for (size_t i = from; i < end; i++) {
        if (i != at) {
            uint32_t slot = self->block->words[i];

            meet_all(self, at, wv_vector(self, WV_IN, slot));
            take_change(self, slot);
        }
    }
}

static void learn_cbow(wv_learner_t *self, size_t at, size_t from, size_t end)
{
    size_t n = end - from - 1;

    if (n == 0) {
        return;
    }
    take_mean(self, at, from, end, n);
    meet_all(self, at, self->hidden);
    for (size_t i = from; i < end; i++) {
        if (i != at) {
            take_change(self, self->block->words[i]);
        }
    }
}

/* The window of the word at `at`, which is in [first, last). */
static void learn_word(wv_learner_t *self, size_t at, size_t first, size_t last)
{
    const uint32_t *words = self->block->words;
    size_t width = 1 + wv_random_below(&self->random, self->task->options->window);
    size_t from = at;
    size_t end = at + 1;

    while (from > first && at - from < width && words[from - 1] != WV_UNKNOWN) {
        from--;
    }
    while (end < last && end - at <= width && words[end] != WV_UNKNOWN) {
        end++;
    }
    if (self->task->senses.n > 1) {
        wv_learner_senses(self, at, from, end);
    } else if (self->task->options->model == WV_CBOW) {
        learn_cbow(self, at, from, end);
    } else {
        learn_skip_gram(self, at, from, end);
    }
}

double wv_learner_alpha(const wv_task_t *task, uint64_t n_words)
{
    double first = task->options->alpha;
    double all = (double)task->options->epochs * (double)task->vocabulary.n_tokens + 1;
    double left = 1 - (double)n_words / all;

    return first * (left > ALPHA_LEAST ? left : ALPHA_LEAST);
}

psd_status_t wv_learner_step(wv_learner_t *self, psd_trainer_t *trainer, const wv_block_t *block,
                             uint64_t n_before, bool lacks, psd_error_t *err)
{
    size_t first = 0;
    size_t last = 0;
    psd_status_t rc = PSD_OK;

    self->trainer = trainer;
    self->block = block;
    self->random = block->seed + 1 + psd_trainer_id(trainer);
    psd_trainer_share(trainer, block->n, &first, &last);
    rc = begin_block(self, lacks, err);
    for (size_t i = first; rc == PSD_OK && i < last; i++) {
        if ((i - first) % ALPHA_WORDS == 0) {
            self->alpha = self->task->options->adagrad
                              ? (float)self->task->options->alpha
                              : (float)wv_learner_alpha(
                                    self->task, n_before + (uint64_t)((double)block->n_read *
                                                                      (double)(i - first) /
                                                                      (double)(last - first)));
        }
        if (block->words[i] != WV_UNKNOWN) {
            learn_word(self, i, first, last);
        }
    }
    if (rc == PSD_OK) {
        end_block(self);
    }
    return rc;
}
