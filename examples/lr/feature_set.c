/* SPDX-License-Identifier: Apache-2.0 */
/* The features of samples and of minibatches. */
#include "feature_set.h"

#include <stdlib.h>
#include <string.h>

#define WORD_BITS 64

static int
compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Sorts and drops what is there twice; gives how many are left. */
static size_t
sort_unique(uint32_t *list, size_t n)
{
    size_t kept = 0;

    if (n == 0) {
        return 0;
    }
    qsort(list, n, sizeof(*list), compare);
    for (size_t i = 1; i < n; i++) {
        if (list[i] != list[kept]) {
            list[++kept] = list[i];
        }
    }
    return kept + 1;
}

/* Where a feature that is there stands in the list. */
static uint32_t
find(const lr_features_t *self, uint32_t feature)
{
    size_t low = 0;
    size_t high = self->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->rows[middle] < feature) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return (uint32_t)low;
}

psd_status_t
lr_features_init(lr_features_t *self, lr_samples_t *samples, psd_error_t *err)
{
    size_t n = samples->n_entries;
    uint32_t *list = malloc((n + 1) * sizeof(*list));

    memset(self, 0, sizeof(*self));
    if (list == NULL) {
        return psd_error_set(err, PSD_NOMEM, "features of %zu entries", n);
    }
    if (n > 0) {
        memcpy(list, samples->features, n * sizeof(*list));
    }
    self->n = sort_unique(list, n);
    self->rows = malloc((self->n + 1) * sizeof(*self->rows));
    if (self->rows == NULL) {
        free(list);
        return psd_error_set(err, PSD_NOMEM, "%zu features", self->n);
    }
    for (size_t i = 0; i < self->n; i++) {
        self->rows[i] = list[i];
    }
    free(list);
    for (size_t i = 0; i < n; i++) {
        samples->features[i] = find(self, samples->features[i]);
    }
    return PSD_OK;
}

void
lr_features_done(lr_features_t *self)
{
    free(self->rows);
    memset(self, 0, sizeof(*self));
}

psd_status_t
lr_batch_init(lr_batch_t *self, const lr_features_t *features, psd_error_t *err)
{
    size_t n = features->n;

    memset(self, 0, sizeof(*self));
    self->n_marks = n / WORD_BITS + 1;
    self->features = malloc((n + 1) * sizeof(*self->features));
    self->rows = malloc((n + 1) * sizeof(*self->rows));
    self->places = calloc(n + 1, sizeof(*self->places));
    self->marks = calloc(self->n_marks, sizeof(*self->marks));
    if (self->features == NULL || self->rows == NULL || self->places == NULL ||
        self->marks == NULL) {
        lr_batch_done(self);
        return psd_error_set(err, PSD_NOMEM, "minibatches of %zu features", n);
    }
    return PSD_OK;
}

void
lr_batch_done(lr_batch_t *self)
{
    free(self->features);
    free(self->rows);
    free(self->places);
    free(self->marks);
    memset(self, 0, sizeof(*self));
}

void
lr_batch_take(lr_batch_t *self,
              const lr_features_t *features,
              const lr_samples_t *samples,
              const uint32_t *chosen,
              size_t n_chosen)
{
    for (size_t i = 0; i < n_chosen; i++) {
        size_t end = samples->starts[chosen[i] + 1];

        for (size_t k = samples->starts[chosen[i]]; k < end; k++) {
            uint32_t feature = samples->features[k];

            self->marks[feature / WORD_BITS] |= UINT64_C(1)
                                                << feature % WORD_BITS;
        }
    }
    /* Bits are in the order of the features: nothing is left to be sorted. */
    self->n = 0;
    for (size_t word = 0; word < self->n_marks; word++) {
        uint64_t bits = self->marks[word];

        self->marks[word] = 0;
        for (; bits != 0; bits &= bits - 1) {
            uint32_t feature =
                (uint32_t)(word * WORD_BITS) + (uint32_t)__builtin_ctzll(bits);

            self->places[feature] = (uint32_t)self->n;
            self->features[self->n] = feature;
            self->rows[self->n] = features->rows[feature];
            self->n++;
        }
    }
}
