/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's part of the training. */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common/job/progress.h"
#include "block.h"
#include "loss.h"
#include "stop.h"

/* Waits for the acknowledgement of a push only two minibatches later: by
 * then it has come, and the wait costs nothing. */
#define PUSHES_UNDER_WAY 2
/* Epochs without a better F, after which the steps count as too long. */
#define PATIENCE 3

typedef struct trainer {
    lr_job_t *job;
    const ex_samples_t *samples;
    const lr_loss_t *loss;
    lr_block_t *blocks; /* n_blocks, a ring: minibatch k is k % n_blocks */
    size_t n_blocks;    /* the current one, those pulled, one only taken, and those pushed */
    uint32_t ahead;     /* minibatches that are pulled before their time */
    ex_progress_t progress;
    psd_call_t *last;   /* push of a clock */
    uint32_t *order;    /* of the samples, in this epoch */
    int64_t *counts;    /* occurrences of each feature in all data */
    double *gradients;  /* by place in the minibatch */
    double *margins;    /* of the minibatch's examples */
    uint32_t *occurred; /* by place: in this minibatch */
    size_t n_batches;   /* of an epoch, the same for all workers */
    uint64_t n_done;    /* minibatches, of all epochs */
    uint64_t random;    /* state of the generator */
    double step;        /* as a fraction of the updater's setting */
    double best;        /* F so far; INFINITY at first */
    uint32_t n_worse;   /* epochs since then, or since steps became shorter */
    lr_stop_t stop;     /* with an objective */
} trainer_t;

/* splitmix64: Steele, Lea, Flood 2014. */
static uint64_t next_random(trainer_t *self)
{
    uint64_t z = (self->random += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void shuffle(trainer_t *self)
{
    for (size_t i = self->samples->n; i > 1; i--) {
        size_t j = (size_t)(next_random(self) % i);
        uint32_t other = self->order[j];

        self->order[j] = self->order[i - 1];
        self->order[i - 1] = other;
    }
}

static size_t divide_up(size_t n, size_t by)
{
    return (n + by - 1) / by;
}

static void trainer_done(trainer_t *self)
{
    for (size_t i = 0; self->blocks != NULL && i < self->n_blocks; i++) {
        lr_block_done(&self->blocks[i]);
    }
    ex_progress_done(&self->progress);
    lr_stop_done(&self->stop);
    psd_call_destroy(&self->last);
    free(self->blocks);
    free(self->order);
    free(self->counts);
    free(self->gradients);
    free(self->margins);
    free(self->occurred);
}

static psd_status_t init_blocks(trainer_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    self->ahead = self->job->options->ahead;
    if (self->ahead == LR_AHEAD_AUTO) {
        self->ahead = self->job->ex.max_delay == 0 ? 0 : 1;
    }
    self->n_blocks = self->ahead + 2 + PUSHES_UNDER_WAY;
    self->blocks = calloc(self->n_blocks, sizeof(*self->blocks));
    if (self->blocks == NULL) {
        return psd_error_set(err, PSD_NOMEM, "minibatches");
    }
    for (size_t i = 0; rc == PSD_OK && i < self->n_blocks; i++) {
        rc = lr_block_init(&self->blocks[i], self->samples, err);
    }
    return rc;
}

static psd_status_t trainer_init(trainer_t *self, lr_job_t *job, const ex_samples_t *samples,
                                 psd_error_t *err)
{
    size_t n = samples->n_features + 1; /* never an allocation of nothing */
    size_t share = (size_t)job->n_share;
    psd_status_t rc = PSD_OK;

    memset(self, 0, sizeof(*self));
    self->job = job;
    self->samples = samples;
    self->step = 1;
    self->best = INFINITY;
    self->loss = lr_loss_of(job->options->loss);
    self->n_batches = divide_up(share, job->options->minibatch);
    self->random = job->options->seed ^ ((uint64_t)job->ex.worker << 32);
    self->order = malloc((samples->n + 1) * sizeof(*self->order));
    self->counts = calloc(n, sizeof(*self->counts));
    self->gradients = calloc(n, sizeof(*self->gradients));
    self->margins = malloc((samples->n + 1) * sizeof(*self->margins));
    self->occurred = calloc(n, sizeof(*self->occurred));
    self->last = psd_call_new();
    if (self->order == NULL || self->counts == NULL || self->gradients == NULL ||
        self->margins == NULL || self->occurred == NULL || self->last == NULL) {
        return psd_error_set(err, PSD_NOMEM, "training with %zu features", n);
    }
    psd_call_set_ends_clock(self->last, true);
    for (size_t i = 0; i < samples->n; i++) {
        self->order[i] = (uint32_t)i;
    }
    rc = init_blocks(self, err);
    if (rc != PSD_OK) {
        return rc;
    }
    return ex_progress_init(&self->progress, job->options->report_s, share + 1, err);
}

/* Pushes in how many of its examples each feature occurs, and gets the
 * number over all workers. */
static psd_status_t exchange_counts(trainer_t *self, psd_error_t *err)
{
    const ex_samples_t *samples = self->samples;

    psd_status_t rc = lr_stop_init(&self->stop, self->job, samples, err);

    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t k = 0; k < samples->n_entries; k++) {
        self->counts[samples->features[k]]++;
    }
    rc = lr_job_exchange_counts(self->job, samples->keys, samples->n_features, self->counts, err);
    for (size_t k = 0; rc == PSD_OK && k < samples->n_entries; k++) {
        uint32_t feature = samples->features[k];

        self->stop.share[feature] += 1 / (double)self->counts[feature];
    }
    return rc;
}

/* Adds the gradient of one example to the minibatch's; gives its margin. */
static double add_example(trainer_t *self, const lr_block_t *block, size_t i)
{
    const ex_samples_t *samples = self->samples;
    const uint32_t *places = block->batch.places;
    float label = samples->labels[i];
    double margin = 0;
    double slope = 0;

    for (size_t k = samples->starts[i]; k < samples->starts[i + 1]; k++) {
        margin += (double)block->weights[places[samples->features[k]]] * (double)samples->values[k];
    }
    slope = self->loss->slope(margin, (double)label) * (double)samples->weights[i];
    for (size_t k = samples->starts[i]; k < samples->starts[i + 1]; k++) {
        uint32_t place = places[samples->features[k]];

        self->gradients[place] += slope * (double)samples->values[k];
        self->occurred[place]++;
    }
    return margin;
}

/* Turns the sums of the minibatch into deltas, and empties them. */
static void make_deltas(trainer_t *self, lr_block_t *block)
{
    const lr_options_t *options = self->job->options;
    double rate = self->step * lr_rate(options->schedule != 0, options->beta, (double)self->n_done);

    for (size_t place = 0; place < block->batch.n; place++) {
        double gradient = self->gradients[place];

        if (options->objective != NULL) {
            double share =
                (double)self->occurred[place] / (double)self->counts[block->batch.features[place]];

            gradient += share * (double)block->weights[place] / options->objective_c;
        }
        block->deltas[place] = (float)(gradient * rate);
        self->gradients[place] = 0;
        self->occurred[place] = 0;
    }
}

static lr_block_t *block_of(trainer_t *self, size_t number)
{
    return &self->blocks[number % self->n_blocks];
}

/* Lists the features of a minibatch, if the epoch has that many. */
static psd_status_t take(trainer_t *self, size_t number, psd_error_t *err)
{
    size_t n = self->samples->n;
    size_t first = n * number / self->n_batches;
    size_t end = n * (number + 1) / self->n_batches;

    if (number >= self->n_batches) {
        return PSD_OK;
    }
    return lr_block_take(block_of(self, number), self->job, self->samples, self->order + first,
                         end - first, err);
}

/* Starts the pull of a minibatch that was taken, if the epoch has that many. */
static psd_status_t pull(trainer_t *self, size_t number, psd_error_t *err)
{
    if (number >= self->n_batches) {
        return PSD_OK;
    }
    return lr_block_pull(block_of(self, number), self->job, err);
}

/* Makes deltas of a minibatch, and starts its push, with which the clock may
 * end. */
static psd_status_t compute(trainer_t *self, lr_block_t *block, bool ends_clock, psd_error_t *err)
{
    for (size_t i = 0; i < block->n_chosen; i++) {
        self->margins[i] = add_example(self, block, block->chosen[i]);
    }
    make_deltas(self, block);
    if (ends_clock && block->batch.n == 0) {
        return psd_clock(self->job->ex.client, err);
    }
    return lr_block_push(block, self->job, ends_clock ? self->last : NULL, err);
}

/* Adds the minibatch to the progress. */
static void score(trainer_t *self, const lr_block_t *block)
{
    for (size_t i = 0; i < block->n_chosen; i++) {
        float label = self->samples->labels[block->chosen[i]];

        ex_progress_add(&self->progress, self->margins[i], label,
                        self->loss->value(self->margins[i], (double)label));
    }
}

/* Pulls the next minibatch, after the pushes and the clock. Meanwhile it
 * prepares the one after that, and does other work without weights. */
static psd_status_t go_on(trainer_t *self, size_t number, psd_error_t *err)
{
    psd_status_t rc = pull(self, number + self->ahead, err);

    return rc == PSD_OK ? take(self, number + self->ahead + 1, err) : rc;
}

/* One minibatch, whose weights are in flight or here. */
static psd_status_t run_batch(trainer_t *self, uint32_t epoch, size_t number, psd_error_t *err)
{
    const lr_options_t *options = self->job->options;
    ex_place_t place = {.epoch = epoch + 1, .epochs = options->epochs};
    lr_block_t *block = block_of(self, number);
    psd_status_t rc = lr_block_wait(block, self->job, err);

    self->n_done++;
    place.epoch_ends = number + 1 == self->n_batches;
    place.last = place.epoch_ends && place.epoch == place.epochs;
    if (rc == PSD_OK) {
        rc = compute(self, block, self->n_done % options->clock_every == 0 || place.last, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    place.clock = psd_clock_count(self->job->ex.client);
    rc = go_on(self, number + 1, err);
    score(self, block);
    return rc == PSD_OK ? ex_progress_tell(&self->progress, &place, err) : rc;
}

/* Whether the job's bound lets a worker get a whole epoch ahead of another:
 * by the bound, one clock more, and its early pulls. Under BSP none can. */
static bool gets_ahead(const trainer_t *self)
{
    int64_t max_delay = self->job->ex.max_delay;

    return max_delay < 0 ||
           (max_delay > 0 &&
            (uint64_t)(max_delay + 1) * self->job->options->clock_every + self->ahead >=
                self->n_batches);
}

/* Minibatches between barriers. */
static uint64_t meet_every(const trainer_t *self)
{
    const lr_options_t *options = self->job->options;
    uint64_t part = (uint64_t)options->epochs * self->n_batches / LR_MEET_PARTS + 1;

    if (options->meet_every != LR_MEET_AUTO) {
        return options->meet_every;
    }
    return part < LR_MEET_MOST ? part : LR_MEET_MOST;
}

/* Whether an epoch ends with a barrier. An epoch's pushes add up to the
 * gradient only when all workers have made theirs: a worker that ran far
 * ahead would leave the end of the training to the data of the others. When
 * epochs have few minibatches, a barrier after each would be most of the
 * work. */
static bool meets(const trainer_t *self, uint32_t epoch)
{
    uint64_t every = meet_every(self);
    uint64_t from = (uint64_t)epoch * self->n_batches;

    return self->job->ex.n_workers > 1 && gets_ahead(self) && every != 0 &&
           from / every != (from + self->n_batches) / every;
}

/* Whether to measure F after each epoch, where all workers meet. */
static bool is_watched(const trainer_t *self)
{
    const lr_options_t *options = self->job->options;

    return options->objective != NULL && options->tolerance > 0;
}

/* One pass over the examples. */
static psd_status_t run_epoch(trainer_t *self, uint32_t epoch, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    shuffle(self);
    rc = take(self, 0, err);
    for (uint32_t i = 0; rc == PSD_OK && i <= self->ahead; i++) {
        rc = pull(self, i, err);
        if (rc == PSD_OK) {
            rc = take(self, i + 1, err);
        }
    }
    for (size_t i = 0; rc == PSD_OK && i < self->n_batches; i++) {
        rc = run_batch(self, epoch, i, err);
    }
    if (rc != PSD_OK || is_watched(self) || !meets(self, epoch)) {
        return rc;
    }
    return ex_job_barrier(&self->job->ex, err);
}

/* Checks the result of an epoch: whether it was the last one, and whether
 * the steps are too long to improve. */
static psd_status_t judge(trainer_t *self, uint32_t epoch, bool *ret_stops, psd_error_t *err)
{
    double f = 0;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < self->n_blocks; i++) {
        rc = lr_block_end(&self->blocks[i], self->job, err);
    }
    if (rc == PSD_OK) {
        rc = lr_stop_measure(&self->stop, &f, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (f < self->best * (1 - self->job->options->tolerance)) {
        self->best = f;
        self->n_worse = 0;
    } else if (++self->n_worse == PATIENCE) {
        self->step /= 2;
        self->n_worse = 0;
    }
    *ret_stops = lr_stop_now(&self->stop, epoch, f);
    return PSD_OK;
}

static psd_status_t run(trainer_t *self, psd_error_t *err)
{
    const lr_options_t *options = self->job->options;
    bool stops = false;
    psd_status_t rc = PSD_OK;

    if (options->objective != NULL) {
        rc = exchange_counts(self, err);
    }
    for (uint32_t epoch = 0; rc == PSD_OK && !stops && epoch < options->epochs; epoch++) {
        rc = run_epoch(self, epoch, err);
        if (rc == PSD_OK && is_watched(self)) {
            rc = judge(self, epoch + 1, &stops, err);
        }
    }
    if (rc == PSD_OK) {
        rc = ex_job_meet(&self->job->ex, err);
    }
    /* Room for all features. */
    return rc == PSD_OK ? lr_measure(self->job, self->samples, self->blocks[0].weights, err) : rc;
}

psd_status_t lr_train(lr_job_t *job, const ex_samples_t *samples, psd_error_t *err)
{
    trainer_t self;
    psd_status_t rc = trainer_init(&self, job, samples, err);

    if (rc == PSD_OK) {
        rc = run(&self, err);
    }
    trainer_done(&self);
    return rc;
}
