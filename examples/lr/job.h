/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lr_job - the tables of a training
 *
 * What     weights  f32, a row for each feature, updated by the server
 *          counts   i64 add: in how many examples a feature occurs; only with
 *                   an objective, and only until all workers know it
 *          sums     f64 add, one row: loss, examples, correct ones; made
 *                   before the training, opened when it has ended
 *          steps    f64 assign, sums of every epoch (sums.h in common); only
 *                   with an objective
 *          models   f64 add, a row for each feature, and models2: what the
 *                   workers of a variant exchange
 *          shape    f64 max, one row: the greatest key of all data, samples of
 *                   the largest share; before the training
 *          Counts, sums and shape belong to one run; their names have the
 *          job's. Worker 0 drops what an earlier run of the job has left before
 *          any worker opens them. All are made before the training, so that a
 *          node lost later keeps no table from being made. Each open table
 *          costs every clock a mark: while it trains, weights is the only one.
 * Owner    the caller; lr_job_close
 * Threads  one
 */
#ifndef LR_JOB_H
#define LR_JOB_H

#include "../common/job/job.h"
#include "../common/job/sums.h"
#include "../common/job/weights.h"
#include "../common/samples/evaluate.h"
#include "../common/samples/samples.h"
#include "options.h"
#include "psd.h"

/* Numbers of a sum of every epoch, at most. */
#define LR_SUMS 97

/* How a training for an objective has ended. */
typedef struct lr_outcome {
    uint32_t n_epochs;
    double change; /* relative change of F in the last epoch; NAN: not known */
    bool has_converged;
} lr_outcome_t;

typedef struct lr_job {
    const lr_options_t *options;
    ex_job_t ex;
    uint64_t n_rows;  /* that the data of all workers needs; 0: hash keys */
    uint64_t n_share; /* samples of the worker that has most */
    psd_table_t *weights;
    psd_table_t *counts; /* NULL before and after their exchange */
    psd_table_t *sums;   /* NULL before this worker adds to them */
    ex_sums_t steps;     /* open with an objective */
    lr_outcome_t outcome;
} lr_job_t;

/* Connects and joins. Errors: those of ex_job_open. */
PSD_MUST_CHECK psd_status_t lr_job_open(lr_job_t *self, const lr_options_t *options,
                                        psd_error_t *err);
/* Agrees with all workers on the data's sizes, opens the weights or creates
 * them, and makes the tables of this run. Errors: those of psd_table_ensure;
 * PSD_SHAPE an existing table does not fit; the worker has then left the
 * job. */
PSD_MUST_CHECK psd_status_t lr_job_open_tables(lr_job_t *self, const ex_samples_t *samples,
                                               psd_error_t *err);
/*
 * Adds this worker's counts to those of all, waits until all workers have done
 * so, and gets the sums. The table is then dropped.
 *
 * rows    in      n of them, ascending, below the rows of the weights
 * counts  in/out  n of them
 */
PSD_MUST_CHECK psd_status_t lr_job_exchange_counts(lr_job_t *self, const uint64_t *rows, size_t n,
                                                   int64_t *counts, psd_error_t *err);
/* A table of f64 with a row for each feature, zero, for sums of this run. All
 * workers call it.
 *
 * which  in  0 or 1: there are two such tables
 * cols   in  numbers of a feature */
PSD_MUST_CHECK psd_status_t lr_job_open_models(lr_job_t *self, size_t which, const char *cols,
                                               psd_table_t **ret_table, psd_error_t *err);
/* Adds the loss of the worker's samples under the weights as they are now to
 * the sums; all workers have finished it on return. weights has room for the
 * samples' features. */
PSD_MUST_CHECK psd_status_t lr_measure(lr_job_t *self, const ex_samples_t *samples, float *weights,
                                       psd_error_t *err);
/* Adds this worker's part to the sums. */
PSD_MUST_CHECK psd_status_t lr_job_add_sums(lr_job_t *self, const ex_quality_t *part,
                                            psd_error_t *err);
/* The sums of all workers; auc is NaN. */
PSD_MUST_CHECK psd_status_t lr_job_pull_sums(lr_job_t *self, ex_quality_t *ret_all,
                                             psd_error_t *err);
/* Leaves the job, drops the tables of this run (the first worker), disconnects. */
PSD_MUST_CHECK psd_status_t lr_job_leave(lr_job_t *self, psd_error_t *err);
/* Disconnects, whatever has happened. */
void lr_job_close(lr_job_t *self);
#endif
