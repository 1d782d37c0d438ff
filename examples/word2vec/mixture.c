/* SPDX-License-Identifier: Apache-2.0 */
/* Words with several senses: which of them occurs, and what each learns. */
#include <string.h>

#include "pair.h"

#define WEIGHT_LEAST 1e-3F /* of a sense that learns anything */
#define PRIOR 1.0F         /* meetings that each sense begins with */

/* log sigmoid(x), finite for every x. */
static float log_sigmoid(float x)
{
    return x < 0 ? x - log1pf(expf(x)) : -log1pf(expf(-x));
}

/* How well a sense predicts its context: the log likelihood. */
WV_WIDE static float fit_of(wv_learner_t *self, uint32_t slot)
{
    const float *sense = wv_vector(self, WV_IN, slot);
    float sum = 0;

    for (uint32_t i = 0; i < self->n_targets; i++) {
        const wv_target_t *pair = &self->targets[i];
        float margin = wv_margin(self, pair, sense);

        sum += log_sigmoid(pair->label > 0 ? margin : -margin);
    }
    return sum;
}

/* The step of expectation: weights become how likely each sense is here, and
 * are counted. */
static void weigh(wv_learner_t *self, uint32_t slot, uint32_t n)
{
    uint64_t word = self->block->in.rows[slot];
    float *weights = self->weights;
    float most = -INFINITY;
    float sum = 0;

    if (n == 1) {
        weights[0] = 1;
        return;
    }
    if (!psd_trainer_get_row(self->trainer, self->senses, word, weights, n)) {
        self->copies[WV_IN].failed = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        weights[i] = logf(weights[i] + PRIOR) + fit_of(self, slot + i);
        most = fmaxf(most, weights[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        weights[i] = expf(weights[i] - most);
        sum += weights[i];
    }
    for (uint32_t i = 0; i < n; i++) {
        weights[i] /= sum;
    }
    psd_trainer_add_row(self->trainer, self->senses, word, weights, n);
}

/* The step of maximisation. */
WV_WIDE static void learn_sense(wv_learner_t *self, uint32_t slot, float weight)
{
    const float *sense = wv_vector(self, WV_IN, slot);
    size_t bytes = self->stride * sizeof *self->change;

    memset(self->change, 0, bytes);
    for (uint32_t i = 0; i < self->n_targets; i++) {
        wv_target_t *pair = &self->targets[i];

        pair->margin = wv_margin(self, pair, sense);
        wv_meet(self, pair, sense, weight);
        if (pair->is_last) {
            wv_take_change(self, slot);
            memset(self->change, 0, bytes);
        }
    }
}

void wv_learner_senses(wv_learner_t *self, size_t at, size_t from, size_t end)
{
    uint32_t slot = self->block->words[at];
    uint32_t n = wv_senses_of(&self->task->senses, (uint32_t)self->block->in.rows[slot]);

    self->n_targets = 0;
    for (size_t i = from; i < end; i++) {
        if (i != at) {
            wv_learner_draw(self, i);
        }
    }
    weigh(self, slot, n);
    for (uint32_t i = 0; i < n; i++) {
        if (self->weights[i] > WEIGHT_LEAST) {
            learn_sense(self, slot + i, self->weights[i]);
        }
    }
}
