/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train - a worker's part of the training
 *
 * What     Epoch by epoch the worker's samples are shuffled and cut into
 *          minibatches; all workers make equally many, so that their clocks
 *          agree. For each: pull what it needs, push the sums of its gradients,
 *          which FTRL (weights) and AdaGrad (embeddings) turn into steps in the
 *          tables; in the first epoch, count its features; finish the clock.
 *          Each push to a row applies an embedding's penalty: frequent features
 *          are penalised more, and features that are too rare have no embedding
 *          at all.
 * Source   Li, Liu, Smola, Wang, "DiFacto: distributed factorization machines",
 *          WSDM 2016
 */
#ifndef FM_TRAIN_H
#define FM_TRAIN_H

#include "../common/samples/samples.h"
#include "job.h"

/*
 * All workers have finished it on return.
 *
 * valid      in   this worker's share of the samples measured after each epoch
 * ret_last   out  the result of the last epoch
 * ret_model  out  the first worker: the model of the best epoch, or of the last one
 *                 when nothing is measured; it owns it
 *
 * Errors: those of push, pull, clock and barrier; PSD_NOMEM; PSD_INVALID valid
 * was predicted with a number for a loss after no epoch.
 */
PSD_MUST_CHECK psd_status_t fm_train(fm_job_t *job, const ex_samples_t *train,
                                     const ex_samples_t *valid, fm_epoch_t *ret_last,
                                     fm_model_t *ret_model, psd_error_t *err);
#endif
