/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lr_stop - F after each epoch, and when to stop
 *
 * What     F = C sum loss + 1/2 |w|^2 over the samples of all workers. A
 *          training has converged when F has changed by less than
 *          options->tolerance, as a part of F, in each of two epochs, one after
 *          the other. All workers know the same F, to the bit, and stop at the
 *          same epoch.
 * Owner    the caller; lr_stop_done
 */
#ifndef LR_STOP_H
#define LR_STOP_H

#include <stdbool.h>

#include "../common/samples/samples.h"
#include "job.h"

typedef struct lr_stop {
    lr_job_t *job;               /* borrowed */
    const ex_samples_t *samples; /* borrowed */
    double *share;               /* by feature, the caller fills it: this
                                  * worker's share of a square; the shares of
                                  * all workers add up to 1 */
    float *weights;              /* room for a weight of each feature */
    double last;                 /* F of the epoch before; NAN: there is none */
    uint32_t n_still;            /* epochs with hardly a change, one after the other */
    double start_s;
    double told_s; /* of the last line */
} lr_stop_t;

/* PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lr_stop_init(lr_stop_t *self, lr_job_t *job,
                                         const ex_samples_t *samples, psd_error_t *err);
void lr_stop_done(lr_stop_t *self);
/* F of the weights as they are now in the table. All workers call it and
 * meet in it, twice: it sees all earlier pushes, and no worker pushes
 * meanwhile. */
PSD_MUST_CHECK psd_status_t lr_stop_measure(lr_stop_t *self, double *ret_f, psd_error_t *err);
/* Takes F after an epoch, from 1; worker 0 prints a line when one is due.
 * True when the training has converged. Notes the result in the job. */
bool lr_stop_now(lr_stop_t *self, uint32_t epoch, double f);
#endif
