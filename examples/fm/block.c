/* SPDX-License-Identifier: Apache-2.0 */
/* Some samples with the parameters that they need. */
#include "block.h"

#include <stdlib.h>
#include <string.h>

psd_status_t fm_block_init(fm_block_t *self, fm_job_t *job, const ex_samples_t *samples,
                           psd_error_t *err)
{
    size_t n = samples->n_features + 1; /* never an allocation of nothing */
    psd_status_t rc = PSD_OK;

    memset(self, 0, sizeof(*self));
    self->job = job;
    self->samples = samples;
    rc = ex_batch_init(&self->batch, samples, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->counts = calloc(n, sizeof(*self->counts));
    self->weights = calloc(n, sizeof(*self->weights));
    self->slots = calloc(n, sizeof(*self->slots));
    self->slot_rows = calloc(n, sizeof(*self->slot_rows));
    self->scratch = calloc(n, sizeof(*self->scratch));
    self->sums = calloc(job->options->dim, sizeof(*self->sums));
    if (self->counts == NULL || self->weights == NULL || self->slots == NULL ||
        self->slot_rows == NULL || self->scratch == NULL || self->sums == NULL) {
        fm_block_done(self);
        return psd_error_set(err, PSD_NOMEM, "minibatches of %zu features", samples->n_features);
    }
    return PSD_OK;
}

void fm_block_done(fm_block_t *self)
{
    ex_batch_done(&self->batch);
    free(self->counts);
    free(self->weights);
    free(self->slots);
    free(self->slot_rows);
    free(self->scratch);
    free(self->sums);
    free(self->factors);
    memset(self, 0, sizeof(*self));
}

static psd_status_t fit_factors(fm_block_t *self, psd_error_t *err)
{
    size_t dim = self->job->options->dim;
    float *more = NULL;

    if (self->n_slots <= self->slots_room) {
        return PSD_OK;
    }
    more = realloc(self->factors, self->n_slots * dim * sizeof(*more));
    if (more == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu embeddings", self->n_slots);
    }
    self->factors = more;
    self->slots_room = self->n_slots;
    return PSD_OK;
}

static psd_status_t pull_factors(fm_block_t *self, psd_error_t *err)
{
    const fm_options_t *options = self->job->options;
    psd_status_t rc = PSD_OK;

    self->n_slots = 0;
    for (size_t place = 0; place < self->batch.n; place++) {
        bool has = self->weights[place] != 0 &&
                   self->counts[self->batch.features[place]] >= (int64_t)options->embed_after;

        self->slots[place] = has ? (uint32_t)self->n_slots : FM_NO_SLOT;
        if (has) {
            self->slot_rows[self->n_slots++] = self->batch.rows[place];
        }
    }
    rc = fit_factors(self, err);
    if (rc == PSD_OK && self->n_slots > 0) {
        rc = psd_pull(self->job->factors, self->slot_rows, self->n_slots, self->factors,
                      self->n_slots * options->dim, err);
    }
    return rc;
}

/* The counts of the batch's features. */
static psd_status_t pull_counts(fm_block_t *self, psd_error_t *err)
{
    const ex_batch_t *batch = &self->batch;
    psd_status_t rc =
        psd_pull(self->job->counts, batch->rows, batch->n, self->scratch, batch->n, err);

    for (size_t place = 0; rc == PSD_OK && place < batch->n; place++) {
        self->counts[batch->features[place]] = self->scratch[place];
    }
    return rc;
}

psd_status_t fm_block_pull(fm_block_t *self, const uint32_t *chosen, size_t n_chosen,
                           psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ex_batch_take(&self->batch, self->samples, chosen, n_chosen);
    self->chosen = chosen;
    self->n_chosen = n_chosen;
    if (self->batch.n > 0) {
        rc = psd_pull(self->job->weights, self->batch.rows, self->batch.n, self->weights,
                      self->batch.n, err);
    }
    if (rc == PSD_OK && self->batch.n > 0 && !self->counts_stay) {
        rc = pull_counts(self, err);
    }
    return rc == PSD_OK ? pull_factors(self, err) : rc;
}

psd_status_t fm_block_pull_counts(fm_block_t *self, psd_error_t *err)
{
    size_t n = self->samples->n_features;

    self->counts_stay = true;
    return n == 0 ? PSD_OK
                  : psd_pull(self->job->counts, self->samples->keys, n, self->counts, n, err);
}

fm_view_t fm_block_view(const fm_block_t *self)
{
    return (fm_view_t){
        .dim = self->job->options->dim,
        .places = self->batch.places,
        .weights = self->weights,
        .slots = self->slots,
        .factors = self->factors,
    };
}

void fm_block_measure(fm_block_t *self, ex_quality_t *quality)
{
    fm_view_t view = fm_block_view(self);

    for (size_t c = 0; c < self->n_chosen; c++) {
        size_t i = self->chosen[c];
        float label = self->samples->labels[i];
        double margin = fm_margin(&view, self->samples, i, self->sums);

        ex_quality_add(quality, margin, label,
                       (double)self->samples->weights[i] *
                           ex_logistic_loss((double)label * margin));
    }
}
