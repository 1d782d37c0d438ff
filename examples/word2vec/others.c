/* SPDX-License-Identifier: Apache-2.0 */
/* From counts of words to meetings in a block. */
#include "others.h"

#include <math.h>
#include <stdlib.h>

/* Of a pair, as measured: with 1.6, cbow with 32 workers ended in NaN. */
#define STEP_MOST 0.4

/* A word that is met n times in a block, on average. */
static void expect_word(wv_others_t *self, const wv_task_t *task, uint32_t word, double n)
{
    for (uint32_t i = 0; i < wv_senses_of(&task->senses, word); i++) {
        self->expected[WV_IN][wv_senses_row(&task->senses, word, i)] = (float)n;
    }
    if (task->options->negative > 0) {
        self->expected[WV_OUT][word] += (float)n;
    }
    if (task->options->hs) {
        const wv_code_t *code = &task->tree.codes[word];

        for (uint32_t i = 0; i < code->n; i++) {
            self->expected[WV_TREE][code->nodes[i]] += (float)n;
        }
    }
}

static void fill(wv_others_t *self, const wv_task_t *task)
{
    const wv_options_t *options = task->options;
    uint32_t n_words = task->vocabulary.n;
    double block = task->block;
    double all = 0;
    double drawn = 0;

    for (uint32_t i = WV_END + 1; i < n_words; i++) {
        all += wv_draws_kept(&task->draws, &task->vocabulary, i);
        drawn += wv_draws_weight(&task->vocabulary, i);
    }
    for (uint32_t i = WV_END + 1; i < n_words; i++) {
        double kept = wv_draws_kept(&task->draws, &task->vocabulary, i);

        expect_word(self, task, i, block * kept / all);
        if (options->negative > 0) {
            self->expected[WV_OUT][i] +=
                (float)(options->negative * block * wv_draws_weight(&task->vocabulary, i) / drawn);
        }
    }
}

psd_status_t wv_others_init(wv_others_t *self, const wv_task_t *task, uint32_t n_workers,
                            psd_error_t *err)
{
    *self = (wv_others_t){.n_workers = n_workers,
                          .n_trainers = task->options->trainers,
                          .times_most = (float)fmax(1, STEP_MOST / task->options->alpha)};
    if (n_workers * task->options->trainers == 1) {
        return PSD_OK;
    }
    for (int i = 0; i < WV_VECTORS; i++) {
        if (!wv_tables_has(task->options, (wv_table_t)i)) {
            continue;
        }
        self->expected[i] = calloc(wv_tables_rows(task, (wv_table_t)i), sizeof *self->expected[i]);
        if (self->expected[i] == NULL) {
            wv_others_done(self);
            return psd_error_set(err, PSD_NOMEM, "no memory for how often words are met");
        }
    }
    fill(self, task);
    return PSD_OK;
}

void wv_others_done(wv_others_t *self)
{
    for (int i = 0; i < WV_VECTORS; i++) {
        free(self->expected[i]);
        self->expected[i] = NULL;
    }
}

float wv_others_times(const wv_others_t *self, wv_table_t table, uint64_t row, float met)
{
    float n_learners = (float)self->n_workers * (float)self->n_trainers;
    float own = fmaxf(1, met / (float)self->n_trainers);
    float others = fmaxf(0, met - own);

    if (self->expected[table] == NULL) {
        return 1;
    }
    others += (float)(self->n_workers - 1) * self->expected[table][row];
    return fminf(1 + others / own, n_learners);
}
