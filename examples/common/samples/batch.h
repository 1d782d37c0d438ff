/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ex_batch - which features a minibatch uses
 *
 * What     Its features, each once and in ascending order, are the rows that it
 *          pulls and pushes.
 * Owner    the caller; ex_batch_done frees what is inside
 */
#ifndef EX_BATCH_H
#define EX_BATCH_H

#include "psd.h"
#include "samples.h"

typedef struct ex_batch {
    size_t n;           /* features of the minibatch */
    uint32_t *features; /* n: numbers of the samples' features, ascending */
    uint64_t *rows;     /* n: the same as rows */
    uint32_t *places;   /* by feature: its place in the lists above */
    uint64_t *marks;    /* a bit for each feature */
    size_t n_marks;     /* words of it */
} ex_batch_t;

/* Room for the minibatches of these samples. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ex_batch_init(ex_batch_t *self, const ex_samples_t *samples,
                                          psd_error_t *err);
void ex_batch_done(ex_batch_t *self);
/* Lists the features of samples chosen[0 .. n_chosen - 1]. */
void ex_batch_take(ex_batch_t *self, const ex_samples_t *samples, const uint32_t *chosen,
                   size_t n_chosen);
#endif
