/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lr_samples - labelled sparse examples in memory, row by row
 *
 * Shape    sample i has the entries starts[i] .. starts[i + 1] - 1; within a
 *          sample the features ascend
 * Owner    the caller; lr_samples_done frees what is inside
 */
#ifndef LR_SAMPLES_H
#define LR_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lr_samples {
    size_t n;           /* samples kept */
    size_t n_entries;   /* entries of all of them */
    size_t *starts;     /* n + 1, or NULL while n is 0 */
    int8_t *labels;     /* n, each +1 or -1 */
    uint32_t *features; /* n_entries */
    float *values;      /* n_entries */
    size_t samples_room;
    size_t entries_room;
    size_t n_seen;     /* samples read, with those that others keep */
    uint32_t greatest; /* feature of all that were seen */
} lr_samples_t;

/* Frees what is inside and leaves it empty. */
void lr_samples_done(lr_samples_t *self);
/* Begins a sample, to which the next entries belong. False: no memory. */
bool lr_samples_add(lr_samples_t *self, int8_t label);
/* Adds an entry to the last sample. False: no memory. */
bool lr_samples_add_entry(lr_samples_t *self, uint32_t feature, float value);
/* w.x of sample i, with weights indexed by the samples' features. */
double lr_samples_dot(const lr_samples_t *self, size_t i, const float *weights);
#endif
