/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room examples/common/samples: samples and models on this machine
 *
 * It is       Samples read and numbered, minibatches, columns, linear models and
 *             their files, measures.
 * It uses     program, the public headers.
 * It ignores  Workers, tables and clocks.
 * Start at    samples.h, load.h, model.h.
 */
/*
 * ex_samples - labelled sparse samples in memory
 *
 * Shape    sample i has the entries starts[i] .. starts[i + 1] - 1. A worker
 *          sees a part of the keys, which may be any 64-bit numbers: they are
 *          numbered 0 .. n_features - 1, in ascending order once
 *          ex_samples_number was called, and keys[] maps back.
 * Owner    the caller; ex_samples_done frees what is inside
 */
#ifndef EX_SAMPLES_H
#define EX_SAMPLES_H

#include <stddef.h>
#include <stdint.h>

#include "psd.h"

typedef struct ex_samples {
    size_t n;           /* samples kept */
    size_t n_entries;   /* entries of all of them */
    size_t n_features;  /* keys in them */
    size_t *starts;     /* n + 1, or NULL while n is 0 */
    float *labels;      /* n */
    float *weights;     /* n: how much each counts */
    uint32_t *features; /* n_entries */
    float *values;      /* n_entries */
    uint64_t *keys;     /* n_features */
    int64_t *groups;    /* n_features: group in which it was first seen */
    size_t samples_room;
    size_t entries_room;
    size_t features_room;
    uint32_t *table; /* of key to feature + 1, by hash; 0: free */
    size_t table_size;
    uint64_t n_seen; /* samples read, including those of other workers */
} ex_samples_t;

/* Frees what is inside and leaves it empty. */
void ex_samples_done(ex_samples_t *self);
/* Starts a sample; the next entries belong to it. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ex_samples_add(ex_samples_t *self, float label, float weight,
                                           psd_error_t *err);
/* Adds an entry to the last sample. PSD_NOMEM; PSD_LIMIT 2^32 - 1 keys. */
PSD_MUST_CHECK psd_status_t ex_samples_add_entry(ex_samples_t *self, int64_t group, uint64_t key,
                                                 float value, psd_error_t *err);
/* After the last sample: numbers the features in the order of their keys.
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ex_samples_number(ex_samples_t *self, psd_error_t *err);
/* w.x of sample i, with weights by feature. */
double ex_samples_dot(const ex_samples_t *self, size_t i, const float *weights);
#endif
