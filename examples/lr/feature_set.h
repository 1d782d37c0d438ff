/* SPDX-License-Identifier: Apache-2.0 */
/*
 * features - which rows a set of samples, or a minibatch of it, uses
 *
 * What     A worker sees a part of the data, so a part of the features. They
 *          are numbered anew, 0 .. n - 1 in ascending order of the row, and the
 *          samples are rewritten to these numbers; rows[] leads back. A
 *          minibatch uses a part of them again: its features, each once and in
 *          ascending order, are the rows that it pulls and pushes.
 * Owner    the caller; lr_features_done and lr_batch_done free what is inside
 */
#ifndef LR_FEATURE_SET_H
#define LR_FEATURE_SET_H

#include "psd.h"
#include "samples.h"

typedef struct lr_features {
    size_t n;
    uint64_t *rows; /* n, ascending */
} lr_features_t;

/* Numbers the features of the samples and rewrites these. PSD_NOMEM: the
 * samples are unchanged. */
PSD_MUST_CHECK psd_status_t lr_features_init(lr_features_t *self,
                                             lr_samples_t *samples,
                                             psd_error_t *err);
void lr_features_done(lr_features_t *self);

typedef struct lr_batch {
    size_t n;           /* features of the minibatch */
    uint32_t *features; /* n: numbers of lr_features, ascending */
    uint64_t *rows;     /* n: the same as rows */
    uint32_t *places;   /* by feature: its place in the lists above */
    uint64_t *marks;    /* a bit for each feature */
    size_t n_marks;     /* words of it */
} lr_batch_t;

/* Room for the minibatches of samples with these features. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lr_batch_init(lr_batch_t *self,
                                          const lr_features_t *features,
                                          psd_error_t *err);
void lr_batch_done(lr_batch_t *self);
/* Lists the features of samples chosen[0 .. n_chosen - 1]. */
void lr_batch_take(lr_batch_t *self,
                   const lr_features_t *features,
                   const lr_samples_t *samples,
                   const uint32_t *chosen,
                   size_t n_chosen);
#endif
