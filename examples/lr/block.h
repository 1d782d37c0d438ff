/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lr_block - one minibatch on its way: taken, pulled, trained, pushed
 *
 * What     Pulls and pushes are asynchronous, so that a worker can have several
 *          blocks in flight: while it computes with one, the weights of the
 *          next come in and the deltas of the last go out. When the rows of a
 *          block are so close together that their keys would take more bytes
 *          than the rows between them, it pulls the whole range.
 * Owner    the caller; lr_block_done
 */
#ifndef LR_BLOCK_H
#define LR_BLOCK_H

#include "../common/samples/batch.h"
#include "job.h"

typedef struct lr_block {
    ex_batch_t batch;
    const uint32_t *chosen; /* n_chosen samples; borrowed */
    size_t n_chosen;
    float *weights; /* by place in the batch */
    float *deltas;  /* by place */
    psd_select_t *select;
    psd_ticket_t pull; /* in flight; 0: none */
    psd_ticket_t push;
    bool is_range; /* the pull is of all rows from the first to the last */
} lr_block_t;

/* PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lr_block_init(lr_block_t *self, const ex_samples_t *samples,
                                          psd_error_t *err);
/* Wait for its tickets first, or close the client. */
void lr_block_done(lr_block_t *self);
/* Makes it the minibatch of these samples, after its last push has ended.
 * Errors: those of that push. */
PSD_MUST_CHECK psd_status_t lr_block_take(lr_block_t *self, const lr_job_t *job,
                                          const ex_samples_t *samples, const uint32_t *chosen,
                                          size_t n_chosen, psd_error_t *err);
/* Starts the pull of its weights. */
PSD_MUST_CHECK psd_status_t lr_block_pull(lr_block_t *self, const lr_job_t *job, psd_error_t *err);
/* Waits for them. */
PSD_MUST_CHECK psd_status_t lr_block_wait(lr_block_t *self, const lr_job_t *job, psd_error_t *err);
/* Starts the push of its deltas. call: how; may be NULL. */
PSD_MUST_CHECK psd_status_t lr_block_push(lr_block_t *self, const lr_job_t *job,
                                          const psd_call_t *call, psd_error_t *err);
/* Waits for the push in flight, if any. */
PSD_MUST_CHECK psd_status_t lr_block_end(lr_block_t *self, const lr_job_t *job, psd_error_t *err);
#endif
