/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_pair - what a vector and one of its targets learn from each other
 *
 * What     The target learns at once; self->change sums up the change of the
 *          vector. Shared by learner.c and mixture.c.
 */
#ifndef WV_PAIR_H
#define WV_PAIR_H

#include <math.h>

#include "kernel.h"
#include "learner.h"

#define WV_MARGIN_MAX 6.0F /* beyond, a pair is learnt */
#define WV_SUM_LEAST 1e-10F

static inline float *wv_vector(wv_learner_t *self, wv_table_t table, uint32_t slot)
{
    return wv_copies_row(&self->copies[table], self->trainer, slot);
}

static inline float *wv_sums(wv_learner_t *self, wv_table_t table, uint32_t slot)
{
    return self->task->options->adagrad ? wv_copies_row(&self->sums[table], self->trainer, slot)
                                        : NULL;
}

/* y += times step x, each number by a step of its own when there are sums:
 * as if it were learnt that many times. */
static inline __attribute__((always_inline)) void wv_learn(float *restrict y, float *restrict sums,
                                                           float step, float times,
                                                           const float *restrict x, size_t n,
                                                           float alpha)
{
    if (sums == NULL) {
        wv_add(times * step, x, y, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        float gradient = step / alpha * x[i];

        sums[i] += times * gradient * gradient;
        y[i] += sums[i] > WV_SUM_LEAST ? times * alpha * gradient / sqrtf(sums[i]) : 0;
    }
}

/* How far the step of a pair goes: alpha (label - sigmoid(margin)). */
static inline float wv_step_of(float alpha, float label, float margin)
{
    if (margin > WV_MARGIN_MAX) {
        return alpha * (label - 1);
    }
    if (margin < -WV_MARGIN_MAX) {
        return alpha * label;
    }
    return alpha * (label - 1 / (1 + expf(-margin)));
}

/* How sure the pair is of label 1, before the sigmoid. */
static inline __attribute__((always_inline)) float wv_margin(wv_learner_t *self,
                                                             const wv_target_t *pair,
                                                             const float *hidden)
{
    return wv_dot(hidden, wv_vector(self, pair->table, pair->slot), self->stride);
}

/* pair's margin is known. weight  in  weight of the pair: 1 except with senses */
static inline __attribute__((always_inline)) void wv_meet(wv_learner_t *self,
                                                          const wv_target_t *pair,
                                                          const float *hidden, float weight)
{
    size_t n = self->stride;
    float *target = wv_vector(self, pair->table, pair->slot);
    float step = weight * wv_step_of(self->alpha, pair->label, pair->margin);

    wv_add(step, target, self->change, n);
    wv_learn(target, wv_sums(self, pair->table, pair->slot), step,
             wv_copies_times(&self->copies[pair->table], pair->slot), hidden, n, self->alpha);
}

/* The vector of a word takes the change. */
static inline __attribute__((always_inline)) void wv_take_change(wv_learner_t *self, uint32_t slot)
{
    wv_learn(wv_vector(self, WV_IN, slot), wv_sums(self, WV_IN, slot), 1,
             wv_copies_times(&self->copies[WV_IN], slot), self->change, self->stride, self->alpha);
}
#endif
