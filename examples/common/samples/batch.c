/* SPDX-License-Identifier: Apache-2.0 */
/* The features of a minibatch. */
#include "batch.h"

#include <stdlib.h>
#include <string.h>

#define WORD_BITS 64

psd_status_t ex_batch_init(ex_batch_t *self, const ex_samples_t *samples, psd_error_t *err)
{
    size_t n = samples->n_features;

    memset(self, 0, sizeof(*self));
    self->n_marks = n / WORD_BITS + 1;
    self->features = malloc((n + 1) * sizeof(*self->features));
    self->rows = malloc((n + 1) * sizeof(*self->rows));
    self->places = calloc(n + 1, sizeof(*self->places));
    self->marks = calloc(self->n_marks, sizeof(*self->marks));
    if (self->features == NULL || self->rows == NULL || self->places == NULL ||
        self->marks == NULL) {
        ex_batch_done(self);
        return psd_error_set(err, PSD_NOMEM, "minibatches of %zu features", n);
    }
    return PSD_OK;
}

void ex_batch_done(ex_batch_t *self)
{
    free(self->features);
    free(self->rows);
    free(self->places);
    free(self->marks);
    memset(self, 0, sizeof(*self));
}

void ex_batch_take(ex_batch_t *self, const ex_samples_t *samples, const uint32_t *chosen,
                   size_t n_chosen)
{
    for (size_t i = 0; i < n_chosen; i++) {
        size_t end = samples->starts[chosen[i] + 1];

        for (size_t k = samples->starts[chosen[i]]; k < end; k++) {
            uint32_t feature = samples->features[k];

            self->marks[feature / WORD_BITS] |= UINT64_C(1) << feature % WORD_BITS;
        }
    }
    /* Bits are in the order of the features, so there is nothing to sort. */
    self->n = 0;
    for (size_t word = 0; word < self->n_marks; word++) {
        uint64_t bits = self->marks[word];

        self->marks[word] = 0;
        for (; bits != 0; bits &= bits - 1) {
            uint32_t feature = (uint32_t)(word * WORD_BITS) + (uint32_t)__builtin_ctzll(bits);

            self->places[feature] = (uint32_t)self->n;
            self->features[self->n] = feature;
            self->rows[self->n] = samples->keys[feature];
            self->n++;
        }
    }
}
