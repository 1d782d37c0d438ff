/* SPDX-License-Identifier: Apache-2.0 */
/* A minibatch between the worker and the table. */
#include "block.h"

#include <stdlib.h>
#include <string.h>

/* A key is 8 bytes and a weight 4: rows by list cost 12 bytes each, by range 4
 * for each row between the first and the last. */
#define RANGE_PER_ROW 3

psd_status_t lr_block_init(lr_block_t *self, const ex_samples_t *samples, psd_error_t *err)
{
    size_t n = samples->n_features + 1; /* never an allocation of nothing */
    psd_status_t rc = PSD_OK;

    memset(self, 0, sizeof(*self));
    rc = ex_batch_init(&self->batch, samples, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->select = psd_select_new();
    self->weights = calloc(RANGE_PER_ROW * n, sizeof(*self->weights));
    self->deltas = calloc(n, sizeof(*self->deltas));
    if (self->select == NULL || self->weights == NULL || self->deltas == NULL) {
        lr_block_done(self);
        return psd_error_set(err, PSD_NOMEM, "minibatches of %zu features", samples->n_features);
    }
    return PSD_OK;
}

void lr_block_done(lr_block_t *self)
{
    psd_select_destroy(&self->select);
    ex_batch_done(&self->batch);
    free(self->weights);
    free(self->deltas);
    memset(self, 0, sizeof(*self));
}

psd_status_t lr_block_take(lr_block_t *self, const lr_job_t *job, const ex_samples_t *samples,
                           const uint32_t *chosen, size_t n_chosen, psd_error_t *err)
{
    psd_status_t rc = lr_block_end(self, job, err);

    if (rc == PSD_OK) {
        ex_batch_take(&self->batch, samples, chosen, n_chosen);
        self->chosen = chosen;
        self->n_chosen = n_chosen;
    }
    return rc;
}

psd_status_t lr_block_pull(lr_block_t *self, const lr_job_t *job, psd_error_t *err)
{
    const ex_batch_t *batch = &self->batch;
    size_t n = batch->n;
    uint64_t span = 0;

    if (n == 0) {
        return PSD_OK;
    }
    span = batch->rows[n - 1] - batch->rows[0] + 1;
    self->is_range = psd_table_rows(job->weights) > 0 && span <= RANGE_PER_ROW * n;
    if (self->is_range) {
        n = (size_t)span;
        psd_select_row_range(self->select, batch->rows[0], span);
    } else {
        psd_select_rows(self->select, batch->rows, n);
    }
    return psd_pull_start(job->weights, self->select, self->weights, n, NULL, &self->pull, err);
}

psd_status_t lr_block_wait(lr_block_t *self, const lr_job_t *job, psd_error_t *err)
{
    const ex_batch_t *batch = &self->batch;
    psd_status_t rc = ex_job_wait(&job->ex, &self->pull, err);

    if (rc != PSD_OK || !self->is_range) {
        return rc;
    }
    /* Rows ascend: no weight is overwritten before it has been moved. */
    for (size_t place = 0; place < batch->n; place++) {
        self->weights[place] = self->weights[batch->rows[place] - batch->rows[0]];
    }
    return PSD_OK;
}

psd_status_t lr_block_push(lr_block_t *self, const lr_job_t *job, const psd_call_t *call,
                           psd_error_t *err)
{
    const ex_batch_t *batch = &self->batch;

    if (batch->n == 0) {
        return PSD_OK;
    }
    psd_select_rows(self->select, batch->rows, batch->n);
    return psd_push_start(job->weights, self->select, self->deltas, batch->n, call, &self->push,
                          err);
}

psd_status_t lr_block_end(lr_block_t *self, const lr_job_t *job, psd_error_t *err)
{
    return ex_job_wait(&job->ex, &self->push, err);
}
