/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lr_job - the worker's side of the server: connection, rank, tables
 *
 * What     weights  f32, a row for each feature, updated by the server
 *          counts   i64 add: in how many examples a feature occurs; only with
 *                   an objective, and only until all workers know it
 *          sums     f64 add, one row: loss, examples, correct ones; made
 *                   before the training, opened when it has ended
 *          Counts and sums belong to one run. Worker 0 drops what an earlier
 *          one has left before anybody opens them. All are made before the
 *          training: a node that is lost in it is not missed by a table. Each
 *          that the job has opened costs every clock a mark: while it trains,
 *          weights is the only one.
 * Owner    the caller; lr_job_close
 * Threads  one
 */
#ifndef LR_JOB_H
#define LR_JOB_H

#include "evaluate.h"
#include "model.h"
#include "options.h"
#include "psd.h"

typedef struct lr_job {
    const lr_options_t *options;
    psd_client_t *client;
    uint32_t worker;    /* rank */
    uint32_t n_workers; /* of the job */
    int32_t max_delay;  /* of the job: 0 BSP, > 0 SSP, < 0 ASP */
    uint64_t n_rows;    /* that the data wants */
    psd_table_t *weights;
    psd_table_t *counts; /* NULL before and behind their exchange */
    psd_table_t *sums;   /* NULL before this worker adds to them */
} lr_job_t;

/* Which worker of how many this process is: $PSD_WORKER of $PSD_WORKERS, else
 * 0 of 1. Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t lr_job_rank(uint32_t *ret_worker,
                                        uint32_t *ret_n_workers,
                                        psd_error_t *err);
/* Connects and joins. Errors: those of psd_connect and psd_join. */
PSD_MUST_CHECK psd_status_t lr_job_open(lr_job_t *self,
                                        const lr_options_t *options,
                                        psd_error_t *err);
/* Opens the weights, and makes them when they are not there, for features
 * 0 .. greatest; makes the tables of this run. Errors: those of
 * psd_table_ensure; PSD_SHAPE a table that is there does not fit; the worker
 * has then left the job. */
PSD_MUST_CHECK psd_status_t lr_job_open_tables(lr_job_t *self,
                                               uint32_t greatest,
                                               psd_error_t *err);
/* Finishes a clock and waits until all workers are here: what they have pushed
 * before is seen by every pull behind. */
PSD_MUST_CHECK psd_status_t lr_job_meet(lr_job_t *self, psd_error_t *err);
/*
 * Adds this worker's counts to those of all, waits until all workers have done
 * so, and learns the sums. The table is then gone.
 *
 * rows    in      n of them, ascending, below the rows of the weights
 * counts  in/out  n of them
 */
PSD_MUST_CHECK psd_status_t lr_job_exchange_counts(lr_job_t *self,
                                                   const uint64_t *rows,
                                                   size_t n,
                                                   int64_t *counts,
                                                   psd_error_t *err);
/* Adds this worker's part to the sums. */
PSD_MUST_CHECK psd_status_t lr_job_add_sums(lr_job_t *self,
                                            const lr_quality_t *part,
                                            psd_error_t *err);
/* The sums of all workers; auc is NaN. */
PSD_MUST_CHECK psd_status_t lr_job_pull_sums(lr_job_t *self,
                                             lr_quality_t *ret_all,
                                             psd_error_t *err);
/* Every weight that is not zero. */
PSD_MUST_CHECK psd_status_t lr_job_pull_model(lr_job_t *self,
                                              lr_model_t *ret_model,
                                              psd_error_t *err);
/* Leaves the job, drops the tables of this run (worker 0), disconnects. */
PSD_MUST_CHECK psd_status_t lr_job_leave(lr_job_t *self, psd_error_t *err);
/* Disconnects, whatever has happened. */
void lr_job_close(lr_job_t *self);
#endif
