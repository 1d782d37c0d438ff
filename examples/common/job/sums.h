/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ex_sums - sums over all workers, as often as wanted
 *
 * What     Each worker adds its own numbers; all get the same sums, to the bit,
 *          in every mode, because they add in the order of the ranks. A lost
 *          worker is missing from then on, and the others see how many took
 *          part. The table has two rows for each worker, used in turn, so that
 *          one barrier is enough for a sum: no worker overwrites a row that
 *          another still reads.
 * Owner    the caller; ex_sums_done
 * Threads  one
 */
#ifndef EX_SUMS_H
#define EX_SUMS_H

#include "job.h"

typedef struct ex_sums {
    ex_job_t *job; /* borrowed */
    psd_table_t *table;
    size_t n;            /* numbers of a sum */
    uint64_t n_done;     /* sums */
    uint32_t n_workers;  /* that took part in the last one */
    double *rows;        /* one of each worker, as pulled */
    uint64_t *row_names; /* of them */
} ex_sums_t;

/* Makes the table, for sums of n numbers. For one worker, before the others
 * open it. Errors: those of ex_job_prepare. */
PSD_MUST_CHECK psd_status_t ex_sums_prepare(ex_job_t *job, const char *name, size_t n,
                                            psd_error_t *err);
/* Opens it. Errors: those of psd_table_open; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ex_sums_open(ex_sums_t *self, ex_job_t *job, const char *name, size_t n,
                                         psd_error_t *err);
void ex_sums_done(ex_sums_t *self);
/*
 * All workers call it, and meet in it: as after ex_job_meet, each sees what the
 * others have pushed before.
 *
 * values  in/out  n of them: this worker's; the sums
 */
PSD_MUST_CHECK psd_status_t ex_sums_add(ex_sums_t *self, double *values, psd_error_t *err);
#endif
