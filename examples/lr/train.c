/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's part of the training. */
#include "train.h"

#include <stdlib.h>
#include <string.h>

#include "progress.h"

typedef struct trainer {
    lr_job_t *job;
    const lr_samples_t *samples;
    const lr_features_t *features;
    lr_batch_t batch;
    lr_progress_t progress;
    psd_select_t *select;
    uint32_t *order;    /* of the samples, in this epoch */
    int64_t *counts;    /* occurrences of each feature in all data; or NULL */
    float *weights;     /* by place in the minibatch */
    float *deltas;      /* by place: what is pushed */
    double *gradients;  /* by place */
    uint32_t *occurred; /* by place: in this minibatch */
    size_t n_batches;   /* of an epoch, the same for all workers */
    uint64_t n_done;    /* minibatches, of all epochs */
    uint64_t random;    /* state of the generator */
    psd_ticket_t push;  /* the one under way; 0: none */
} trainer_t;

/* splitmix64: Steele, Lea, Flood 2014. */
static uint64_t
next_random(trainer_t *self)
{
    uint64_t z = (self->random += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void
shuffle(trainer_t *self)
{
    for (size_t i = self->samples->n; i > 1; i--) {
        size_t j = (size_t)(next_random(self) % i);
        uint32_t other = self->order[j];

        self->order[j] = self->order[i - 1];
        self->order[i - 1] = other;
    }
}

static size_t
divide_up(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

static void
trainer_done(trainer_t *self)
{
    psd_select_destroy(&self->select);
    lr_batch_done(&self->batch);
    lr_progress_done(&self->progress);
    free(self->order);
    free(self->counts);
    free(self->weights);
    free(self->deltas);
    free(self->gradients);
    free(self->occurred);
}

static psd_status_t
trainer_init(trainer_t *self,
             lr_job_t *job,
             const lr_samples_t *samples,
             const lr_features_t *features,
             psd_error_t *err)
{
    size_t n = features->n + 1; /* never an allocation of nothing */
    size_t share = divide_up(samples->n_seen, job->n_workers);
    psd_status_t rc = PSD_OK;

    memset(self, 0, sizeof(*self));
    self->job = job;
    self->samples = samples;
    self->features = features;
    self->n_batches = divide_up(share, job->options->minibatch);
    self->random = job->options->seed ^ ((uint64_t)job->worker << 32);
    self->select = psd_select_new();
    self->order = malloc((samples->n + 1) * sizeof(*self->order));
    self->counts = calloc(n, sizeof(*self->counts));
    self->weights = calloc(n, sizeof(*self->weights));
    self->deltas = calloc(n, sizeof(*self->deltas));
    self->gradients = calloc(n, sizeof(*self->gradients));
    self->occurred = calloc(n, sizeof(*self->occurred));
    if (self->select == NULL || self->order == NULL || self->counts == NULL ||
        self->weights == NULL || self->deltas == NULL ||
        self->gradients == NULL || self->occurred == NULL) {
        return psd_error_set(err, PSD_NOMEM, "training with %zu features", n);
    }
    for (size_t i = 0; i < samples->n; i++) {
        self->order[i] = (uint32_t)i;
    }
    rc = lr_batch_init(&self->batch, features, err);
    if (rc != PSD_OK) {
        return rc;
    }
    return lr_progress_init(&self->progress, job->options->report_s, share + 1,
                            err);
}

/* Tells the server in how many of our examples each feature occurs, and learns
 * in how many of all. */
static psd_status_t
exchange_counts(trainer_t *self, psd_error_t *err)
{
    const lr_features_t *features = self->features;
    psd_status_t rc = PSD_OK;

    for (size_t k = 0; k < self->samples->n_entries; k++) {
        self->counts[self->samples->features[k]]++;
    }
    if (features->n > 0) {
        rc = psd_push(self->job->counts, features->rows, features->n,
                      self->counts, features->n, err);
    }
    if (rc == PSD_OK) {
        rc = lr_job_meet(self->job, err);
    }
    if (rc == PSD_OK && features->n > 0) {
        rc = psd_pull(self->job->counts, features->rows, features->n,
                      self->counts, features->n, err);
    }
    return rc;
}

/* Adds the gradient of one example to the minibatch's. */
static void
add_example(trainer_t *self, size_t i)
{
    const lr_samples_t *samples = self->samples;
    int8_t label = samples->labels[i];
    double margin = 0;
    double slope = 0;

    for (size_t k = samples->starts[i]; k < samples->starts[i + 1]; k++) {
        uint32_t place = self->batch.places[samples->features[k]];

        margin += (double)self->weights[place] * (double)samples->values[k];
    }
    slope = -label * lr_sigmoid(-label * margin);
    for (size_t k = samples->starts[i]; k < samples->starts[i + 1]; k++) {
        uint32_t place = self->batch.places[samples->features[k]];

        self->gradients[place] += slope * (double)samples->values[k];
        self->occurred[place]++;
    }
    lr_progress_add(&self->progress, margin, label);
}

/* Turns the sums of the minibatch into deltas, and empties them. */
static void
make_deltas(trainer_t *self)
{
    const lr_options_t *options = self->job->options;

    for (size_t place = 0; place < self->batch.n; place++) {
        double gradient = self->gradients[place];

        if (options->objective) {
            double share = (double)self->occurred[place] /
                           (double)self->counts[self->batch.features[place]];

            gradient +=
                share * (double)self->weights[place] / options->objective_c;
        }
        self->deltas[place] = (float)gradient;
        self->gradients[place] = 0;
        self->occurred[place] = 0;
    }
}

/* Waits for the push that is under way. */
static psd_status_t
end_push(trainer_t *self, psd_error_t *err)
{
    psd_ticket_t ticket = self->push;

    self->push = 0;
    if (ticket == 0) {
        return PSD_OK;
    }
    return psd_wait(self->job->client, ticket, self->job->options->timeout_ms,
                    err);
}

/* One minibatch: pull, compute, push. The push goes on while the next minibatch
 * is made ready and its pull is sent. */
static psd_status_t
step(trainer_t *self, const uint32_t *chosen, size_t n, psd_error_t *err)
{
    lr_batch_t *batch = &self->batch;
    psd_status_t rc = PSD_OK;

    lr_batch_take(batch, self->features, self->samples, chosen, n);
    if (batch->n > 0) {
        rc = psd_pull(self->job->weights, batch->rows, batch->n, self->weights,
                      batch->n, err);
    }
    if (rc == PSD_OK) {
        rc = end_push(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        add_example(self, chosen[i]);
    }
    make_deltas(self);
    if (batch->n == 0) {
        return PSD_OK;
    }
    psd_select_rows(self->select, batch->rows, batch->n);
    return psd_push_start(self->job->weights, self->select, self->deltas,
                          batch->n, NULL, &self->push, err);
}

static psd_status_t
run_batch(trainer_t *self, uint32_t epoch, size_t number, psd_error_t *err)
{
    const lr_options_t *options = self->job->options;
    size_t n = self->samples->n;
    size_t first = n * number / self->n_batches;
    size_t end = n * (number + 1) / self->n_batches;
    lr_place_t place = {.epoch = epoch + 1, .epochs = options->epochs};
    psd_status_t rc = step(self, self->order + first, end - first, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self->n_done++;
    place.epoch_ends = number + 1 == self->n_batches;
    place.last = place.epoch_ends && place.epoch == place.epochs;
    if (self->n_done % options->clock_every == 0 || place.last) {
        rc = psd_clock(self->job->client, err);
    }
    place.clock = psd_clock_count(self->job->client);
    return rc == PSD_OK ? lr_progress_tell(&self->progress, &place, err) : rc;
}

/* The loss of our examples under the final weights, added to the sums. */
static psd_status_t
measure(trainer_t *self, psd_error_t *err)
{
    const lr_samples_t *samples = self->samples;
    const lr_features_t *features = self->features;
    lr_quality_t quality = {0};
    psd_status_t rc = PSD_OK;

    if (features->n > 0) {
        rc = psd_pull(self->job->weights, features->rows, features->n,
                      self->weights, features->n, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < samples->n; i++) {
        lr_quality_add(&quality, lr_samples_dot(samples, i, self->weights),
                       samples->labels[i]);
    }
    if (rc == PSD_OK) {
        rc = lr_job_add_sums(self->job, &quality, err);
    }
    return rc == PSD_OK ? lr_job_meet(self->job, err) : rc;
}

/* One pass over the examples. An epoch's pushes add up to the gradient only
 * when all workers have made theirs: a worker that ran far ahead would leave
 * the end of the training to the data of the others. */
static psd_status_t
run_epoch(trainer_t *self, uint32_t epoch, psd_error_t *err)
{
    const lr_options_t *options = self->job->options;
    psd_status_t rc = PSD_OK;

    shuffle(self);
    for (size_t i = 0; rc == PSD_OK && i < self->n_batches; i++) {
        rc = run_batch(self, epoch, i, err);
    }
    if (rc == PSD_OK) {
        rc = end_push(self, err);
    }
    if (rc != PSD_OK || options->meet_every == 0 ||
        (epoch + 1) % options->meet_every != 0) {
        return rc;
    }
    return psd_barrier(self->job->client, options->timeout_ms, err);
}

static psd_status_t
run(trainer_t *self, psd_error_t *err)
{
    const lr_options_t *options = self->job->options;
    psd_status_t rc = PSD_OK;

    if (options->objective) {
        rc = exchange_counts(self, err);
    }
    for (uint32_t epoch = 0; rc == PSD_OK && epoch < options->epochs; epoch++) {
        rc = run_epoch(self, epoch, err);
    }
    if (rc == PSD_OK) {
        rc = lr_job_meet(self->job, err);
    }
    return rc == PSD_OK ? measure(self, err) : rc;
}

psd_status_t
lr_train(lr_job_t *job,
         const lr_samples_t *samples,
         const lr_features_t *features,
         psd_error_t *err)
{
    trainer_t self;
    psd_status_t rc = trainer_init(&self, job, samples, features, err);

    if (rc == PSD_OK) {
        rc = run(&self, err);
    }
    trainer_done(&self);
    return rc;
}
