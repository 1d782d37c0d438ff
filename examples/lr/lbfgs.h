/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lr_lbfgs - training by steps of L-BFGS, with the gradient of all samples
 *
 * What     Each epoch has a direction (history.h), the best of a few lengths of
 *          a step along it, and the gradient and the curvature at its end, to
 *          which each worker adds the part of its samples. Workers meet for
 *          each of the three, in every mode: their sums are exact, and F falls
 *          with every step. There is no learning rate. Every step is pushed to
 *          the table of weights, so that it always has the model. When a worker
 *          is lost, the others see it at the next sum, and start again with the
 *          model in the table.
 */
#ifndef LR_LBFGS_H
#define LR_LBFGS_H

#include "../common/samples/samples.h"
#include "job.h"

/* As lr_train. */
PSD_MUST_CHECK psd_status_t lr_lbfgs(lr_job_t *job, const ex_samples_t *samples, psd_error_t *err);
#endif
