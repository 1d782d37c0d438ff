/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's part of the training. */
#include "train.h"

#include <errno.h> /* program_invocation_short_name */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/job/progress.h"
#include "../common/program/random.h"
#include "block.h"

typedef struct trainer {
    fm_job_t *job;
    const ex_samples_t *train;
    fm_block_t batch; /* of train */
    fm_block_t valid; /* all of it */
    uint32_t *valid_order;
    uint32_t *order;          /* of the samples, in this epoch */
    double *gradients;        /* of the weights, by place */
    double *factor_gradients; /* dim for each slot */
    float *deltas;            /* either of them, as it is pushed */
    size_t room;              /* of the two above */
    ex_progress_t progress;
    size_t n_batches; /* of an epoch, the same for all workers */
    uint64_t random;
    fm_epoch_t epoch;  /* this worker's part, then that of all */
    double best_loss;  /* of an epoch's validation; INFINITY: none yet */
    uint32_t n_worse;  /* epochs since */
    fm_model_t *model; /* the first worker's result; borrowed */
    bool has_kept;     /* a model */
} trainer_t;

static void trainer_done(trainer_t *self)
{
    fm_block_done(&self->batch);
    fm_block_done(&self->valid);
    ex_progress_done(&self->progress);
    free(self->valid_order);
    free(self->order);
    free(self->gradients);
    free(self->factor_gradients);
    free(self->deltas);
}

static uint32_t *make_order(size_t n)
{
    uint32_t *order = malloc((n + 1) * sizeof(*order));

    for (size_t i = 0; order != NULL && i < n; i++) {
        order[i] = (uint32_t)i;
    }
    return order;
}

static psd_status_t trainer_init(trainer_t *self, const ex_samples_t *valid, psd_error_t *err)
{
    const fm_options_t *options = self->job->options;
    size_t share = (size_t)self->job->n_share;
    psd_status_t rc = PSD_OK;

    self->best_loss = INFINITY;
    self->n_batches = (share + options->minibatch - 1) / options->minibatch;
    self->random = options->seed ^ ((uint64_t)self->job->ex.worker << 32);
    self->order = make_order(self->train->n);
    self->valid_order = make_order(valid->n);
    self->gradients = calloc(self->train->n_features + 1, sizeof(*self->gradients));
    if (self->order == NULL || self->valid_order == NULL || self->gradients == NULL) {
        return psd_error_set(err, PSD_NOMEM, "training with %zu features", self->train->n_features);
    }
    rc = fm_block_init(&self->batch, self->job, self->train, err);
    if (rc == PSD_OK) {
        rc = fm_block_init(&self->valid, self->job, valid, err);
    }
    return rc == PSD_OK ? ex_progress_init(&self->progress, options->report_s, share + 1, err) : rc;
}

/* Room for the gradients of the batch, which then are zero. */
static psd_status_t clear_gradients(trainer_t *self, psd_error_t *err)
{
    size_t n_factors = self->batch.n_slots * self->job->options->dim;
    size_t n = self->batch.batch.n;

    n = n < n_factors ? n_factors : n;
    if (n > self->room) {
        free(self->factor_gradients);
        free(self->deltas);
        self->room = 0;
        self->factor_gradients = calloc(n, sizeof(*self->factor_gradients));
        self->deltas = calloc(n, sizeof(*self->deltas));
        if (self->factor_gradients == NULL || self->deltas == NULL) {
            return psd_error_set(err, PSD_NOMEM, "%zu gradients", n);
        }
        self->room = n;
    }
    for (size_t k = 0; k < n_factors; k++) {
        self->factor_gradients[k] = 0;
    }
    for (size_t place = 0; place < self->batch.batch.n; place++) {
        self->gradients[place] = 0;
    }
    return PSD_OK;
}

/* Adds up the gradients of the batch's samples. */
static void learn(trainer_t *self)
{
    const ex_samples_t *samples = self->train;
    fm_block_t *batch = &self->batch;
    fm_view_t view = fm_block_view(batch);

    for (size_t c = 0; c < batch->n_chosen; c++) {
        size_t i = batch->chosen[c];
        float label = samples->labels[i];
        double weight = (double)samples->weights[i];
        double margin = (double)label * fm_margin(&view, samples, i, batch->sums);
        double loss = ex_logistic_loss(margin);

        fm_gradient(&view, samples, i, batch->sums, -(double)label * ex_sigmoid(-margin) * weight,
                    self->gradients, self->factor_gradients);
        ex_progress_add(&self->progress, margin * (double)label, label, loss);
        ex_quality_add(&self->epoch.train, margin * (double)label, label, weight * loss);
    }
}

/* For each feature, the number of the batch's samples that have it. */
static psd_status_t push_counts(trainer_t *self, psd_error_t *err)
{
    const ex_batch_t *batch = &self->batch.batch;
    const ex_samples_t *samples = self->train;
    int64_t *counts = self->batch.scratch;

    memset(counts, 0, batch->n * sizeof(*counts));
    for (size_t c = 0; c < self->batch.n_chosen; c++) {
        size_t i = self->batch.chosen[c];

        for (size_t e = samples->starts[i]; e < samples->starts[i + 1]; e++) {
            counts[batch->places[samples->features[e]]]++;
        }
    }
    return psd_push(self->job->counts, batch->rows, batch->n, counts, batch->n, err);
}

static psd_status_t push_gradients(trainer_t *self, psd_error_t *err)
{
    const fm_block_t *batch = &self->batch;
    size_t n = batch->n_slots * self->job->options->dim;
    psd_status_t rc = PSD_OK;

    for (size_t place = 0; place < batch->batch.n; place++) {
        self->deltas[place] = (float)self->gradients[place];
    }
    rc = psd_push(self->job->weights, batch->batch.rows, batch->batch.n, self->deltas,
                  batch->batch.n, err);
    for (size_t k = 0; k < n; k++) {
        self->deltas[k] = (float)self->factor_gradients[k];
    }
    if (rc == PSD_OK && n > 0) {
        rc = psd_push(self->job->factors, batch->slot_rows, batch->n_slots, self->deltas, n, err);
    }
    return rc;
}

static psd_status_t run_batch(trainer_t *self, bool counts, size_t number, psd_error_t *err)
{
    size_t size = self->job->options->minibatch;
    size_t n = self->train->n;
    size_t first = number >= n / size + 1 ? n : number * size;
    size_t end = n - first < size ? n : first + size;
    psd_status_t rc = PSD_OK;

    if (first < end) { /* else its share is shorter than that of others */
        rc = fm_block_pull(&self->batch, self->order + first, end - first, err);
        if (rc == PSD_OK) {
            rc = clear_gradients(self, err);
        }
        if (rc == PSD_OK) {
            learn(self);
        }
        if (rc == PSD_OK && self->batch.batch.n > 0) {
            rc = push_gradients(self, err);
        }
        if (rc == PSD_OK && self->batch.batch.n > 0 && counts) {
            rc = push_counts(self, err);
        }
    }
    return rc == PSD_OK ? psd_clock(self->job->ex.client, err) : rc;
}

/* After an epoch: its result, over all workers. */
static psd_status_t measure(trainer_t *self, uint32_t epoch, psd_error_t *err)
{
    psd_status_t rc = ex_job_meet(&self->job->ex, err);

    if (rc == PSD_OK && self->job->options->valid != NULL) {
        rc = fm_block_pull(&self->valid, self->valid_order, self->valid.samples->n, err);
    }
    if (rc == PSD_OK && self->job->options->valid != NULL) {
        fm_block_measure(&self->valid, &self->epoch.valid);
    }
    return rc == PSD_OK ? fm_job_share(self->job, epoch, &self->epoch, err) : rc;
}

/* The first worker keeps the model as it is now; no worker changes it meanwhile. */
static psd_status_t keep_model(trainer_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (ex_job_is_first(&self->job->ex)) {
        fm_model_done(self->model);
        rc = fm_job_pull_model(self->job, self->model, err);
        self->has_kept = true;
    }
    return rc == PSD_OK ? ex_job_barrier(&self->job->ex, err) : rc;
}

/* Checks whether the epoch was better than those before. All workers see the
 * same sums, and so decide alike. */
static psd_status_t judge(trainer_t *self, psd_error_t *err)
{
    const ex_quality_t *valid = &self->epoch.valid;

    if (!ex_quality_is_better(valid, self->best_loss)) {
        self->n_worse++;
        return PSD_OK;
    }
    self->best_loss = valid->loss;
    self->n_worse = 0;
    return keep_model(self, err);
}

static void tell_valid(const trainer_t *self, uint32_t epoch)
{
    if (ex_job_is_first(&self->job->ex)) {
        char what[32];

        (void)snprintf(what, sizeof(what), "valid epoch %u", epoch + 1);
        ex_quality_print(what, &self->epoch.valid);
        (void)printf("%s\n", self->n_worse > 0 ? "" : "  best");
        (void)fflush(stdout);
    }
}

static psd_status_t run_epoch(trainer_t *self, uint32_t epoch, psd_error_t *err)
{
    ex_place_t place = {.epoch = epoch + 1, .epochs = self->job->options->epochs};
    psd_status_t rc = PSD_OK;

    self->epoch = (fm_epoch_t){0};
    ex_shuffle(self->order, self->train->n, &self->random);
    for (size_t i = 0; rc == PSD_OK && i < self->n_batches; i++) {
        rc = run_batch(self, epoch == 0, i, err);
        place.clock = psd_clock_count(self->job->ex.client);
        place.epoch_ends = i + 1 == self->n_batches;
        place.last = place.epoch_ends && place.epoch == place.epochs;
        if (rc == PSD_OK) {
            rc = ex_progress_tell(&self->progress, &place, err);
        }
    }
    if (rc == PSD_OK) {
        rc = measure(self, epoch, err);
    }
    if (rc == PSD_OK && epoch == 0) {
        rc = fm_block_pull_counts(&self->batch, err);
    }
    if (rc == PSD_OK && self->job->options->valid != NULL) {
        rc = judge(self, err);
        tell_valid(self, epoch);
    }
    return rc;
}

/* Without --valid the model is that of the end, else that of the best epoch. */
static psd_status_t choose_model(trainer_t *self, psd_error_t *err)
{
    const fm_options_t *options = self->job->options;

    if (options->valid == NULL) {
        return keep_model(self, err);
    }
    if (isinf(self->best_loss)) {
        return psd_error_set(
            err, PSD_INVALID,
            "%s: no epoch has a finite loss on it; use smaller steps: --alpha, --factor-alpha",
            options->valid);
    }
    if (ex_job_is_first(&self->job->ex) && !self->has_kept) {
        (void)fprintf(stderr,
                      "%s: the worker that had the model of the best epoch was lost; this is the "
                      "model of the last one\n",
                      program_invocation_short_name);
        return fm_job_pull_model(self->job, self->model, err);
    }
    return PSD_OK;
}

static psd_status_t run(trainer_t *self, psd_error_t *err)
{
    const fm_options_t *options = self->job->options;
    psd_status_t rc = PSD_OK;

    for (uint32_t epoch = 0;
         rc == PSD_OK && epoch < options->epochs && self->n_worse < options->patience; epoch++) {
        rc = run_epoch(self, epoch, err);
    }
    return rc == PSD_OK ? choose_model(self, err) : rc;
}

psd_status_t fm_train(fm_job_t *job, const ex_samples_t *train, const ex_samples_t *valid,
                      fm_epoch_t *ret_last, fm_model_t *ret_model, psd_error_t *err)
{
    trainer_t self = {.job = job, .train = train, .model = ret_model};
    psd_status_t rc = trainer_init(&self, valid, err);

    if (rc == PSD_OK) {
        rc = run(&self, err);
    }
    *ret_last = self.epoch;
    trainer_done(&self);
    return rc;
}
