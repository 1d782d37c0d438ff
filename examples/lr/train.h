/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train - a worker's part of the training
 *
 * What     Epoch by epoch the worker's examples are shuffled and cut into
 *          minibatches; all workers make equally many, so that their clocks
 *          agree. For each: pull the weights of its features, push the sum of
 *          the gradients of log(1 + exp(-y w.x)), finish the clock. With the
 *          objective C sum log(1 + exp(-y w.x)) + 1/2 |w|^2 a feature that
 *          occurs n times in all data carries, with each occurrence, the n-th
 *          part of its penalty, divided by C: the pushes of an epoch add up to
 *          the exact gradient of F / C, and a minibatch touches no weight that
 *          it does not use.
 */
#ifndef LR_TRAIN_H
#define LR_TRAIN_H

#include "../common/samples/samples.h"
#include "job.h"

/* Trains, then adds the loss of the worker's examples under the final
 * weights to the sums. All workers have finished it on return. Errors: those
 * of push, pull, clock and barrier; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lr_train(lr_job_t *job, const ex_samples_t *samples, psd_error_t *err);
#endif
