/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fm_block - some samples with the parameters that they need
 *
 * What     A minibatch to learn from, or samples to measure. The weights come
 *          first: they and the counts say which features have an embedding
 *          (count >= embed-after and weight not 0), and only these are pulled.
 * Owner    the caller; fm_block_done
 */
#ifndef FM_BLOCK_H
#define FM_BLOCK_H

#include "../common/samples/batch.h"
#include "job.h"
#include "kernel.h"

typedef struct fm_block {
    fm_job_t *job;               /* borrowed */
    const ex_samples_t *samples; /* borrowed */
    ex_batch_t batch;
    const uint32_t *chosen; /* n_chosen samples; borrowed */
    size_t n_chosen;
    bool counts_stay; /* the counts no longer grow: counts[] is known */
    int64_t *counts;  /* by feature */
    float *weights;   /* by place in the batch */
    uint32_t *slots;  /* by place */
    size_t n_slots;
    uint64_t *slot_rows; /* by slot */
    size_t slots_room;
    float *factors;   /* dim for each slot */
    double *sums;     /* dim */
    int64_t *scratch; /* by place */
} fm_block_t;

/* PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t fm_block_init(fm_block_t *self, fm_job_t *job,
                                          const ex_samples_t *samples, psd_error_t *err);
void fm_block_done(fm_block_t *self);
/* Takes these samples, and pulls their parameters. Errors: those of psd_pull. */
PSD_MUST_CHECK psd_status_t fm_block_pull(fm_block_t *self, const uint32_t *chosen, size_t n_chosen,
                                          psd_error_t *err);
/* The counts of all features, which no longer grow. */
PSD_MUST_CHECK psd_status_t fm_block_pull_counts(fm_block_t *self, psd_error_t *err);
/* The kernel's input; valid until the next pull. */
fm_view_t fm_block_view(const fm_block_t *self);
/* Measures the samples with the parameters of the last pull. */
void fm_block_measure(fm_block_t *self, ex_quality_t *quality);
#endif
