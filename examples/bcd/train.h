/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train - a worker's part of the training
 *
 * What     A worker has some of the samples, and all weights that they use. For
 *          each block of features, one after another, it
 *          1. pushes how much g and u of its samples have changed since its
 *             last push: the table "slopes" (add) holds the sums over all
 *             samples of all workers;
 *          2. finishes a clock, and pulls the sums: under BSP each worker gets
 *             the same bits;
 *          3. makes the step of each weight from them. Each worker computes
 *             it, and all get the same; no weight need be sent.
 *          With a delay of N the sums of N further blocks are in flight
 *          meanwhile: step 1 of a block misses the steps of the N before it,
 *          never more or fewer.
 *          Each feature has one owner among the workers, which counts it in the
 *          sums of a pass, and puts its weight into the table of weights.
 */
#ifndef BCD_TRAIN_H
#define BCD_TRAIN_H

#include "../common/job/job.h"
#include "../common/samples/model.h"
#include "../common/samples/samples.h"
#include "options.h"
#include "psd.h"

/* The result of the training; the same for all workers. */
typedef struct bcd_result {
    double f;         /* C sum log(1 + exp(-y w.x)) + |w|_1 */
    double loss;      /* mean of the samples */
    double n_samples; /* of all workers */
    uint64_t n_nonzeros;
    uint32_t n_passes;
    bool has_converged; /* else it ran out of passes */
} bcd_result_t;

/*
 * Trains. ret_model is set for worker 0 only. Errors: those of push, pull,
 * clock and barrier; PSD_SHAPE a table of weights that does not fit; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t bcd_train(ex_job_t *job, const bcd_options_t *options,
                                      ex_samples_t *samples, bcd_result_t *ret_result,
                                      ex_model_t *ret_model, psd_error_t *err);
#endif
