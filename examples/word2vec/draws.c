/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that chance is read from. */
#include "draws.h"

#include <math.h>
#include <stdlib.h>

#define POWER 0.75
#define ALL_BITS 0x1p32 /* of a word that is always kept */

double wv_draws_weight(const wv_vocabulary_t *vocabulary, uint32_t word)
{
    return word == WV_END ? 0 : pow((double)vocabulary->words[word].count, POWER);
}

static uint32_t bits_of(double probability)
{
    double scaled = floor(probability * ALL_BITS);

    return scaled >= ALL_BITS - 1 ? UINT32_MAX : (uint32_t)scaled;
}

static void fill_keep(wv_draws_t *self, const wv_vocabulary_t *vocabulary, double sample)
{
    for (uint32_t i = 0; i < self->n; i++) {
        double share = (double)vocabulary->words[i].count / (double)vocabulary->n_tokens;

        self->keep[i] =
            sample <= 0 || share <= 0 ? UINT32_MAX : bits_of(sqrt(sample / share) + sample / share);
    }
}

/* Columns with less than their share get the rest from one that has more. */
static void fill_alias(wv_draws_t *self, const wv_vocabulary_t *vocabulary, double *weights,
                       uint32_t *stack)
{
    uint32_t n_small = 0;
    uint32_t n_large = 0; /* from the other end of the stack */
    double sum = 0;

    for (uint32_t i = 0; i < self->n; i++) {
        weights[i] = wv_draws_weight(vocabulary, i);
        sum += weights[i];
    }
    for (uint32_t i = 0; i < self->n; i++) {
        weights[i] *= self->n / sum;
        self->share[i] = UINT32_MAX;
        self->other[i] = i;
        if (weights[i] < 1) {
            stack[n_small++] = i;
        } else {
            stack[self->n - ++n_large] = i;
        }
    }
    while (n_small > 0 && n_large > 0) {
        uint32_t small = stack[--n_small];
        uint32_t large = stack[self->n - n_large];

        self->share[small] = bits_of(weights[small]);
        self->other[small] = large;
        weights[large] -= 1 - weights[small];
        if (weights[large] < 1) {
            n_large--;
            stack[n_small++] = large;
        }
    }
    if (self->other[WV_END] == WV_END) { /* of rounding: none is left */
        self->other[WV_END] = 1;
    }
    self->share[WV_END] = 0;
}

psd_status_t wv_draws_make(wv_draws_t *self, const wv_vocabulary_t *vocabulary, double sample,
                           psd_error_t *err)
{
    uint32_t n = vocabulary->n;
    double *weights = calloc(n, sizeof *weights);
    uint32_t *stack = calloc(n, sizeof *stack);

    *self = (wv_draws_t){.n = n,
                         .keep = calloc(n, sizeof *self->keep),
                         .share = calloc(n, sizeof *self->share),
                         .other = calloc(n, sizeof *self->other)};
    if (weights == NULL || stack == NULL || self->keep == NULL || self->share == NULL ||
        self->other == NULL) {
        free(weights);
        free(stack);
        wv_draws_done(self);
        return psd_error_set(err, PSD_NOMEM, "no memory to draw words");
    }
    fill_keep(self, vocabulary, sample);
    fill_alias(self, vocabulary, weights, stack);
    free(weights);
    free(stack);
    return PSD_OK;
}

double wv_draws_kept(const wv_draws_t *self, const wv_vocabulary_t *vocabulary, uint32_t word)
{
    return word == WV_END
               ? 0
               : (double)vocabulary->words[word].count * ((double)self->keep[word] + 1) / ALL_BITS;
}

void wv_draws_done(wv_draws_t *self)
{
    free(self->keep);
    free(self->share);
    free(self->other);
    *self = (wv_draws_t){.n = 0};
}
