/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fm_job - the tables of a training
 *
 * What     NAME          f32, a row for each key: weights; the updater is FTRL
 *          NAME.counts   i64 add, the same rows: the number of samples with
 *                        a key
 *          NAME.factors  f32 of DIM columns, hash keys: embeddings, AdaGrad.
 *                        A row exists after its first push, so only for
 *                        features that had an embedding; others read as the
 *                        random initial values of the table.
 *          NAME.JOB-sums f64 add, hash keys: the sums of an epoch, in the row
 *                        of its number; of one run
 * Owner    the caller; fm_job_close
 * Threads  one
 */
#ifndef FM_JOB_H
#define FM_JOB_H

#include "../common/job/job.h"
#include "../common/samples/evaluate.h"
#include "../common/samples/samples.h"
#include "model.h"
#include "options.h"

typedef struct fm_job {
    const fm_options_t *options;
    ex_job_t ex;
    uint64_t n_rows;  /* that the data of all workers needs; 0: hash keys */
    uint64_t n_share; /* samples of the worker that has most */
    psd_table_t *weights;
    psd_table_t *counts;
    psd_table_t *factors;
    psd_table_t *sums;
} fm_job_t;

/* The result of an epoch, over all workers; without AUC. */
typedef struct fm_epoch {
    ex_quality_t train; /* each sample before it was learnt */
    ex_quality_t valid;
} fm_epoch_t;

/* Connects and joins. Errors: those of ex_job_open. */
PSD_MUST_CHECK psd_status_t fm_job_open(fm_job_t *self, const fm_options_t *options,
                                        psd_error_t *err);
/* Agrees with all workers on the data's sizes, and opens the tables. Errors:
 * those of psd_table_ensure; PSD_SHAPE an existing table does not fit;
 * PSD_INVALID --valid is given, and no worker has a sample of it; the worker
 * has then left the job. */
PSD_MUST_CHECK psd_status_t fm_job_open_tables(fm_job_t *self, const ex_samples_t *train,
                                               const ex_samples_t *valid, psd_error_t *err);
/* All workers call it, after their last push of the epoch: adds this
 * worker's part, meets, gets the sums. */
PSD_MUST_CHECK psd_status_t fm_job_share(fm_job_t *self, uint32_t epoch, fm_epoch_t *sums,
                                         psd_error_t *err);
/* The model as it is in the tables. */
PSD_MUST_CHECK psd_status_t fm_job_pull_model(fm_job_t *self, fm_model_t *ret_model,
                                              psd_error_t *err);
/* Leaves the job, drops the table of this run (the first worker), disconnects. */
PSD_MUST_CHECK psd_status_t fm_job_leave(fm_job_t *self, psd_error_t *err);
/* Disconnects, whatever has happened. */
void fm_job_close(fm_job_t *self);
#endif
