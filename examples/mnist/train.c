/* SPDX-License-Identifier: Apache-2.0 */
/* Minibatch after minibatch: pull, forward, backward, push. */
#include "train.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/job/outer.h"
#include "../common/job/progress.h"
#include "../common/program/random.h"
#include "psd.h"

/* Those of DiLoCo. */
#define OUTER_ALPHA 0.7f
#define OUTER_MOMENTUM 0.9f
#define OUTER_UPDATER "nesterov:alpha=0.7,momentum=0.9"

typedef struct trainer {
    const mnist_options_t *options;
    ex_job_t *job;
    mnist_network_t *network;
    const mnist_images_t *train;
    psd_table_t *table;
    psd_select_t *all;  /* rows of the table */
    psd_call_t *ending; /* push of a clock */
    bool averages;      /* measures and saves means */
    ex_outer_t outer;   /* with --outer-every */
    float *before;      /* parameters of the step before; with --outer-every the last step */
    float *deltas;
    double *sums;    /* of each parameter, over the steps of this epoch */
    uint64_t n_sums; /* steps in them */
    uint32_t *order; /* of the images, in this epoch */
    mnist_verdict_t *verdicts;
    ex_progress_t progress;
    uint64_t random;
} trainer_t;

static void trainer_done(trainer_t *self)
{
    ex_progress_done(&self->progress);
    psd_table_close(&self->table);
    psd_select_destroy(&self->all);
    psd_call_destroy(&self->ending);
    ex_outer_done(&self->outer);
    free(self->before);
    free(self->deltas);
    free(self->sums);
    free(self->order);
    free(self->verdicts);
}

static psd_status_t trainer_init(trainer_t *self, psd_error_t *err)
{
    size_t n = self->network->n;

    self->random = self->options->seed;
    self->averages = self->options->average == EX_YES && self->options->outer_every == 0;
    self->all = psd_select_new();
    self->ending = psd_call_new();
    self->before = calloc(n, sizeof *self->before);
    self->deltas = calloc(n, sizeof *self->deltas);
    self->sums = calloc(n, sizeof *self->sums);
    self->order = calloc(self->train->n, sizeof *self->order);
    self->verdicts = calloc(self->network->room, sizeof *self->verdicts);
    if (self->all == NULL || self->ending == NULL || self->before == NULL || self->deltas == NULL ||
        self->sums == NULL || self->order == NULL || self->verdicts == NULL) {
        return psd_error_set(err, PSD_NOMEM, "training of %zu parameters", n);
    }
    for (size_t i = 0; i < self->train->n; i++) {
        self->order[i] = (uint32_t)i;
    }
    psd_select_row_range(self->all, 0, n);
    psd_call_set_ends_clock(self->ending, true);
    return ex_progress_init(&self->progress, self->options->report_s, 0, err);
}

static psd_status_t pull(trainer_t *self, psd_error_t *err)
{
    psd_ticket_t ticket = 0;
    psd_status_t rc = psd_pull_start(self->table, self->all, self->network->parameters,
                                     self->network->n, NULL, &ticket, err);

    return rc == PSD_OK ? ex_job_wait(self->job, &ticket, err) : rc;
}

static psd_status_t push(trainer_t *self, const float *deltas, psd_call_t *call, psd_error_t *err)
{
    psd_ticket_t ticket = 0;
    psd_status_t rc =
        psd_push_start(self->table, self->all, deltas, self->network->n, call, &ticket, err);

    return rc == PSD_OK ? ex_job_wait(self->job, &ticket, err) : rc;
}

/* Pushes (deltas) or pulls (values) the fragment whose turn it is. */
static psd_status_t send_fragment(trainer_t *self, float *deltas, float *ret_values,
                                  psd_error_t *err)
{
    psd_select_t *rows = psd_select_new();
    psd_ticket_t ticket = 0;
    size_t first = 0;
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    if (rows == NULL) {
        return psd_error_set(err, PSD_NOMEM, "a fragment's rows");
    }
    ex_outer_fragment(&self->outer, &first, &n);
    psd_select_row_range(rows, first, n);
    rc = deltas != NULL ? psd_push_start(self->table, rows, deltas, n, self->ending, &ticket, err)
                        : psd_pull_start(self->table, rows, ret_values, n, NULL, &ticket, err);
    if (rc == PSD_OK) {
        rc = ex_job_wait(self->job, &ticket, err);
    }
    psd_select_destroy(&rows);
    return rc;
}

static psd_status_t push_outer(trainer_t *self, psd_error_t *err)
{
    ex_outer_push(&self->outer, self->network->parameters, self->deltas);
    return send_fragment(self, self->deltas, NULL, err);
}

static psd_status_t pull_outer(trainer_t *self, psd_error_t *err)
{
    psd_status_t rc = send_fragment(self, NULL, self->deltas, err);

    if (rc == PSD_OK) {
        ex_outer_mix(&self->outer, self->deltas, self->network->parameters);
    }
    return rc;
}

/* What has not been sent yet, fragment by fragment. A fragment without steps stays: nesterov would
 * go on by its momentum alone. Then all workers have the table's parameters. */
static psd_status_t finish_outer(trainer_t *self, psd_error_t *err)
{
    psd_status_t rc = self->outer.pulls < self->outer.pushes ? pull_outer(self, err) : PSD_OK;
    uint32_t n_left = ex_outer_left(&self->outer);

    for (uint32_t i = 0; rc == PSD_OK && i < n_left; i++) {
        rc = push_outer(self, err);
        if (rc == PSD_OK) {
            rc = pull_outer(self, err);
        }
    }
    return rc;
}

/* Fills an outer table. Each worker pushes the same, so that the mean is it: two
 * clocks, after which the parameters are there and nesterov's s is 0. */
static psd_status_t start_outer(trainer_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < self->network->n; i++) {
        self->deltas[i] = self->network->parameters[i] / -OUTER_ALPHA;
    }
    rc = push(self, self->deltas, self->ending, err);
    for (size_t i = 0; i < self->network->n; i++) {
        self->deltas[i] *= -OUTER_MOMENTUM;
    }
    return rc == PSD_OK ? push(self, self->deltas, self->ending, err) : rc;
}

static bool is_zero(const float *values, size_t n)
{
    size_t i = 0;

    while (i < n && values[i] == 0) {
        i++;
    }
    return i == n;
}

/* Opens the table, which worker 0 fills when it is new. */
static psd_status_t open_table(trainer_t *self, psd_error_t *err)
{
    mnist_network_t *network = self->network;
    bool outer = self->options->outer_every > 0;
    const char *updater = outer ? OUTER_UPDATER : "add";
    const char *combine = outer ? "combine" : NULL; /* else the pairs end there */
    char rows[32];
    const char *const pairs[] = {"rows",    rows,         "cols",  "1",          "type",
                                 "f32",     "row-format", "dense", "keys",       "range",
                                 "updater", updater,      combine, "clock-mean", NULL};
    psd_status_t rc = PSD_OK;

    (void)snprintf(rows, sizeof rows, "%zu", network->n);
    rc = ex_job_look_for(self->job, self->options->table, err);
    if (rc == PSD_OK) {
        rc = ex_job_barrier(self->job, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_ensure(self->job, self->options->table, pairs, &self->table, err);
    }
    if (rc == PSD_OK) {
        ex_job_tell_old(self->job);
        rc = pull(self, err);
    }
    /* All workers have checked before one fills it. */
    if (rc == PSD_OK) {
        rc = ex_job_barrier(self->job, err);
    }
    if (rc == PSD_OK && (outer || ex_job_is_first(self->job)) &&
        is_zero(network->parameters, network->n)) {
        mnist_network_start(network, self->options->seed);
        rc = outer ? start_outer(self, err) : push(self, network->parameters, NULL, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_meet(self->job, err);
    }
    if (rc == PSD_OK) {
        rc = pull(self, err);
    }
    if (rc == PSD_OK && outer) {
        const ex_outer_rule_t rule = {.every = self->options->outer_every,
                                      .fragments = self->options->outer_fragments,
                                      .overlap = self->options->outer_overlap};

        return ex_outer_init(&self->outer, &rule, network->n, network->parameters, err);
    }
    memcpy(self->before, network->parameters, network->n * sizeof *self->before);
    return rc;
}

/* What this worker adds to the parameters. */
static void make_deltas(trainer_t *self)
{
    const mnist_network_t *network = self->network;
    float step = (float)self->options->step;
    float again = self->job->worker == 0 ? (float)self->options->momentum : 0.0f;

    for (size_t i = 0; i < network->n; i++) {
        float now = network->parameters[i];

        self->deltas[i] = again * (now - self->before[i]) - step * network->slopes[i];
        self->before[i] = now;
    }
}

/* A step of this worker alone, and what is due after it. */
static psd_status_t step_outer(trainer_t *self, psd_error_t *err)
{
    mnist_network_t *network = self->network;
    float step = (float)self->options->step;
    float again = (float)self->options->momentum;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < network->n; i++) {
        self->before[i] = again * self->before[i] - step * network->slopes[i];
        network->parameters[i] += self->before[i];
    }
    if (ex_outer_step(&self->outer)) {
        rc = push_outer(self, err);
    }
    if (rc == PSD_OK && ex_outer_pulls(&self->outer)) {
        rc = pull_outer(self, err);
    }
    return rc;
}

static psd_status_t step_together(trainer_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    make_deltas(self);
    rc = push(self, self->deltas, self->ending, err);
    return rc == PSD_OK ? pull(self, err) : rc;
}

/* This worker's part of the minibatch, which is order[first .. first + n). */
static psd_status_t run_step(trainer_t *self, size_t first, size_t n, psd_error_t *err)
{
    bool outer = self->options->outer_every > 0;
    uint32_t worker = self->job->worker;
    uint32_t n_workers = self->job->n_workers;
    size_t from = n * worker / n_workers;
    size_t mine = n * (worker + 1) / n_workers - from;
    const uint32_t *list = self->order + first + from;
    psd_status_t rc =
        mnist_network_look(self->network, self->train, list, mine, self->verdicts, err);

    if (rc == PSD_OK) {
        rc = mnist_network_learn(self->network, self->train, list, mine,
                                 outer ? (mine > 0 ? mine : 1) : n, err);
    }
    if (rc == PSD_OK) {
        rc = outer ? step_outer(self, err) : step_together(self, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < mine; i++) {
        ex_progress_add_loss(&self->progress, self->verdicts[i].loss,
                             self->verdicts[i].class == self->train->classes[list[i]]);
    }
    return rc;
}

/* Adds the parameters to the means of the epoch. */
static void add_up(trainer_t *self)
{
    for (size_t i = 0; i < self->network->n; i++) {
        self->sums[i] += (double)self->network->parameters[i];
    }
    self->n_sums++;
}

/* Swaps the parameters and their means: before code that needs the means,
 * and after it. */
static void swap_means(trainer_t *self)
{
    for (size_t i = 0; i < self->network->n; i++) {
        double now = (double)self->network->parameters[i];

        self->network->parameters[i] = (float)(self->sums[i] / (double)self->n_sums);
        self->sums[i] = now * (double)self->n_sums;
    }
}

/* Swaps this worker's parameters and the table's: as swap_means. */
static void swap_start(trainer_t *self)
{
    for (size_t i = 0; i < self->network->n; i++) {
        float local = self->network->parameters[i];

        self->network->parameters[i] = self->outer.start[i];
        self->outer.start[i] = local;
    }
}

/* What is measured and saved stands in the network's parameters, or goes back. */
static void swap_best(trainer_t *self)
{
    if (self->averages) {
        swap_means(self);
    } else if (self->options->outer_every > 0) {
        swap_start(self);
    }
}

static psd_status_t measure_test(trainer_t *self, const mnist_images_t *test, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    swap_best(self);
    rc = mnist_measure("test", self->network, test, NULL, err);
    swap_best(self);
    return rc;
}

static psd_status_t run_epoch(trainer_t *self, uint32_t epoch, psd_error_t *err)
{
    size_t n = self->train->n;
    size_t minibatch = self->options->minibatch;
    psd_status_t rc = PSD_OK;

    ex_shuffle(self->order, n, &self->random);
    memset(self->sums, 0, self->network->n * sizeof *self->sums);
    self->n_sums = 0;
    for (size_t first = 0; rc == PSD_OK && first < n; first += minibatch) {
        size_t left = n - first;
        ex_place_t place = {
            .epoch = epoch, .epochs = self->options->epochs, .epoch_ends = left <= minibatch};

        place.last = place.epoch_ends && epoch == place.epochs;
        rc = run_step(self, first, left < minibatch ? left : minibatch, err);
        place.clock = psd_clock_count(self->job->client);
        if (rc == PSD_OK && self->averages) {
            add_up(self);
        }
        if (rc == PSD_OK) {
            rc = ex_progress_tell(&self->progress, &place, err);
        }
    }
    return rc;
}

psd_status_t mnist_train(const mnist_options_t *options, ex_job_t *job, mnist_network_t *network,
                         const mnist_images_t *train, const mnist_images_t *test, psd_error_t *err)
{
    trainer_t self = {.options = options, .job = job, .network = network, .train = train};
    psd_status_t rc = PSD_OK;

    if (options->momentum > 0 && job->max_delay != 0) {
        return psd_error_set(err, PSD_USAGE,
                             "--momentum needs --max-delay 0: the last step is known only when all "
                             "workers have made theirs");
    }
    if (options->outer_every > 0 && job->max_delay != 0) {
        return psd_error_set(err, PSD_USAGE,
                             "--outer-every needs --max-delay 0: an outer step is the mean of all "
                             "workers");
    }
    if (options->outer_every > 0 && options->outer_fragments > network->n) {
        return psd_error_set(err, PSD_USAGE,
                             "--outer-fragments is %" PRIu32 "; at most %zu, the parameters, are "
                             "allowed",
                             options->outer_fragments, network->n);
    }
    rc = trainer_init(&self, err);
    if (rc == PSD_OK) {
        rc = open_table(&self, err);
    }
    for (uint32_t epoch = 1; rc == PSD_OK && epoch <= options->epochs; epoch++) {
        rc = run_epoch(&self, epoch, err);
        if (rc == PSD_OK && options->outer_every > 0 && epoch == options->epochs) {
            rc = finish_outer(&self, err);
        }
        if (rc == PSD_OK && test != NULL && ex_job_is_first(job)) {
            rc = measure_test(&self, test, err);
        }
    }
    if (rc == PSD_OK) { /* of all workers, when they were not in step */
        rc = ex_job_meet(job, err);
    }
    if (rc == PSD_OK) {
        rc = pull(&self, err);
    }
    if (rc == PSD_OK && self.averages) {
        swap_means(&self);
    }
    if (rc == PSD_OK && test != NULL && job->worker != 0 && ex_job_is_first(job)) {
        rc = mnist_measure("test", network, test, NULL, err); /* worker 0 was lost */
    }
    trainer_done(&self);
    return rc;
}

psd_status_t mnist_measure(const char *what, mnist_network_t *network, const mnist_images_t *images,
                           uint8_t *ret_classes, psd_error_t *err)
{
    size_t room = network->room;
    mnist_verdict_t *verdicts = calloc(room, sizeof *verdicts);
    uint32_t *list = calloc(room, sizeof *list);
    ex_quality_t sum = {.n = images->n};
    psd_status_t rc = PSD_OK;

    if (verdicts == NULL || list == NULL) {
        free(list);
        free(verdicts);
        return psd_error_set(err, PSD_NOMEM, "measuring");
    }
    for (size_t first = 0; rc == PSD_OK && first < images->n; first += room) {
        size_t n = images->n - first < room ? images->n - first : room;

        for (size_t i = 0; i < n; i++) {
            list[i] = (uint32_t)(first + i);
        }
        rc = mnist_network_look(network, images, list, n, verdicts, err);
        for (size_t i = 0; rc == PSD_OK && i < n; i++) {
            sum.loss += verdicts[i].loss;
            sum.n_correct += verdicts[i].class == images->classes[first + i];
            if (ret_classes != NULL) {
                ret_classes[first + i] = verdicts[i].class;
            }
        }
    }
    free(list);
    free(verdicts);
    if (rc == PSD_OK) {
        ex_quality_print(what, &sum);
        puts("");
        (void)fflush(stdout);
    }
    return rc;
}
