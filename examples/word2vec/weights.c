/* SPDX-License-Identifier: Apache-2.0 */
/* From counts of words to weights of nodes. */
#include "weights.h"

#include <math.h>
#include <stdlib.h>

#define ALL_BITS 0x1p32 /* a word with so many is always kept */
#define WAY_LEAST 1e-6  /* shorter is none */
/* How far a step of 1 goes, as measured: four workers learn well with less than
 * half of it and with four times as much; without weights they do not. */
#define WAY_OF_STEP 0.05

double
wv_weight_of(double way, double n)
{
    return way < WAY_LEAST ? 1 : expm1(-n * way) / (n * expm1(-way));
}

/* Changes that know nothing of each other: a learner has its own ones of the
 * block before, but not the others', with the pipeline those of two blocks. */
static double
count_apart(const wv_options_t *options, uint32_t n_workers)
{
    double others = (double)n_workers * options->trainers - 1;

    return 1 + others * (options->no_pipeline ? 1 : 2);
}

/* How often the text has a word, those aside that are left out. */
static double
count_kept(const wv_task_t *task, uint32_t word)
{
    return (double)task->vocabulary.words[word].count *
           (double)task->draws.keep[word] / ALL_BITS;
}

/* How far a learner's part of a block goes with a node that all its words
 * meet. */
static double
way_of_root(const wv_options_t *options)
{
    double n_words = (double)options->block / options->trainers;
    double n_hidden = options->model == WV_CBOW ? 1 : options->window + 1;

    return WAY_OF_STEP * options->alpha * n_words * n_hidden;
}

static void
fill(float *weights, double *n_met, const wv_task_t *task, double n_apart)
{
    double all = 0;

    for (uint32_t i = 1; i < task->vocabulary.n; i++) {
        const wv_code_t *code = &task->tree.codes[i];
        double n = count_kept(task, i);

        all += n;
        for (uint32_t k = 0; k < code->n; k++) {
            n_met[code->nodes[k]] += n;
        }
    }
    for (uint32_t i = 0; i < task->vocabulary.n; i++) {
        double way = way_of_root(task->options) * n_met[i] / all;

        weights[i] = (float)wv_weight_of(way, n_apart);
    }
}

psd_status_t
wv_weights_make(wv_weights_t *self,
                const wv_task_t *task,
                uint32_t n_workers,
                psd_error_t *err)
{
    double n_apart = count_apart(task->options, n_workers);
    double *n_met = NULL;

    *self = (wv_weights_t){.nodes = NULL};
    if (!task->options->hs || n_apart <= 1) {
        return PSD_OK;
    }
    n_met = calloc(task->vocabulary.n, sizeof *n_met);
    self->nodes = calloc(task->vocabulary.n, sizeof *self->nodes);
    if (n_met == NULL || self->nodes == NULL) {
        free(n_met);
        wv_weights_done(self);
        return psd_error_set(err, PSD_NOMEM, "no memory for weights of nodes");
    }
    fill(self->nodes, n_met, task, n_apart);
    free(n_met);
    return PSD_OK;
}

void
wv_weights_done(wv_weights_t *self)
{
    free(self->nodes);
    self->nodes = NULL;
}
