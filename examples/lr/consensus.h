/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consensus - training by one model for each worker, combined once a clock
 *
 * What     For F = C sum log(1 + exp(-y w.x)) + 1/2 |w|^2, each worker i has a
 *          model x_i of the features of its samples, and between two clocks it
 *          makes passes of Newton steps over them, one weight at a time.
 *
 *          average  x_i begins as the common model x and fits the worker's
 *                   samples with its part of the penalty; it then adds
 *                   (x_i - x) / n to x: the sum over n workers is their average
 *          admm     x_i fits the worker's samples + rho/2 |x_i - z + u_i|^2;
 *                   of the features that m workers have, z is then
 *                   rho s / (1/C + rho m) with s = sum over them of x_i + u_i,
 *                   and u_i += x_i - z. It comes to the optimum of F.
 * Source   Boyd et al., "Distributed Optimization and Statistical Learning via
 *          the Alternating Direction Method of Multipliers", 2011, section 7
 */
#ifndef LR_CONSENSUS_H
#define LR_CONSENSUS_H

#include "../common/samples/samples.h"
#include "job.h"
#include "psd.h"

/* As lr_train: trains, and adds the loss of the worker's samples under the
 * final weights to the sums. */
PSD_MUST_CHECK psd_status_t lr_consensus(lr_job_t *job, const ex_samples_t *samples,
                                         psd_error_t *err);
#endif
