/* SPDX-License-Identifier: Apache-2.0 */
/* Training by one model for each worker. */
#include "consensus.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/program/program.h"
#include "../common/samples/columns.h"
#include "stop.h"

/* A curvature of nothing would make steps without bound. */
#define CURVATURE_MIN 1e-10
#define DELTA_MAX 5.0

typedef struct consensus {
    lr_job_t *job;
    lr_stop_t stop;
    ex_columns_t columns; /* its margins are those of x */
    size_t n;             /* features */
    int64_t *sharers;     /* by feature: workers that have it */
    double *x;            /* this worker's model */
    double *z;            /* the common one, as it was pulled */
    double *u;            /* admm: the sum of x's deviations */
    double *pushed;       /* admm: x + u as they are in the sums */
    double *delta;        /* greatest next step */
    double *buffer;       /* n: what is pushed and pulled */
    float *weights;       /* n: the same of the table of weights */
    psd_table_t *sums;    /* admm: of x + u */
} consensus_t;

static bool is_admm(const consensus_t *self)
{
    return self->job->options->variant == LR_ADMM;
}

static psd_status_t init(consensus_t *self, lr_job_t *job, const ex_samples_t *samples,
                         psd_error_t *err)
{
    size_t n = samples->n_features + 1; /* never an allocation of nothing */
    psd_status_t rc = PSD_OK;

    self->job = job;
    self->n = samples->n_features;
    self->sharers = malloc(n * sizeof(*self->sharers));
    self->x = calloc(n, sizeof(*self->x));
    self->z = calloc(n, sizeof(*self->z));
    self->u = calloc(n, sizeof(*self->u));
    self->pushed = calloc(n, sizeof(*self->pushed));
    self->delta = malloc(n * sizeof(*self->delta));
    self->buffer = calloc(n, sizeof(*self->buffer));
    self->weights = calloc(n, sizeof(*self->weights));
    if (self->sharers == NULL || self->x == NULL || self->z == NULL || self->u == NULL ||
        self->pushed == NULL || self->delta == NULL || self->buffer == NULL ||
        self->weights == NULL) {
        return psd_error_set(err, PSD_NOMEM, "models of %zu features", n);
    }
    for (size_t j = 0; j < self->n; j++) {
        self->sharers[j] = 1;
        self->delta[j] = 1;
    }
    rc = lr_stop_init(&self->stop, job, samples, err);
    return rc == PSD_OK ? ex_columns_init(&self->columns, samples, err) : rc;
}

static void done(consensus_t *self)
{
    psd_table_close(&self->sums);
    ex_columns_done(&self->columns);
    lr_stop_done(&self->stop);
    free(self->sharers);
    free(self->x);
    free(self->z);
    free(self->u);
    free(self->pushed);
    free(self->delta);
    free(self->buffer);
    free(self->weights);
}

static const uint64_t *rows_of(const consensus_t *self)
{
    return self->columns.samples->keys;
}

static void move(consensus_t *self, size_t j, double d)
{
    if (d != 0) {
        self->x[j] += d;
        ex_columns_move(&self->columns, j, d);
    }
}

/* Newton steps of each weight of x, on the worker's own objective. */
static void run_pass(consensus_t *self)
{
    const lr_options_t *options = self->job->options;
    double penalty =
        is_admm(self) ? options->rho : 1 / (options->objective_c * self->job->ex.n_workers);

    for (size_t j = 0; j < self->n; j++) {
        double centre = is_admm(self) ? self->z[j] - self->u[j] : 0;
        double g = 0;
        double u = 0;
        double d = 0;

        ex_columns_slope(&self->columns, j, self->delta[j], &g, &u);
        d = -(g + penalty * (self->x[j] - centre)) / (u + penalty + CURVATURE_MIN);
        d = fmin(fmax(d, -self->delta[j]), self->delta[j]);
        self->delta[j] = fmin(DELTA_MAX, 2 * fabs(d) + 0.1);
        move(self, j, d);
    }
}

/* The common model as the table has it. */
static psd_status_t pull_common(consensus_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->n > 0) {
        rc = psd_pull(self->job->weights, rows_of(self), self->n, self->weights, self->n, err);
    }
    for (size_t j = 0; rc == PSD_OK && j < self->n; j++) {
        self->z[j] = (double)self->weights[j];
    }
    return rc;
}

/* Adds part[j] to the common model, and closes the clock. */
static psd_status_t push_common(consensus_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t j = 0; j < self->n; j++) {
        self->weights[j] = (float)self->buffer[j];
    }
    if (self->n > 0) {
        rc = psd_push(self->job->weights, rows_of(self), self->n, self->weights, self->n, err);
    }
    return rc == PSD_OK ? psd_clock(self->job->ex.client, err) : rc;
}

/* x becomes the average of all workers' models. */
static psd_status_t average(consensus_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t j = 0; j < self->n; j++) {
        self->buffer[j] = (self->x[j] - self->z[j]) / self->job->ex.n_workers;
    }
    rc = push_common(self, err);
    if (rc == PSD_OK) {
        rc = pull_common(self, err);
    }
    for (size_t j = 0; rc == PSD_OK && j < self->n; j++) {
        move(self, j, self->z[j] - self->x[j]);
    }
    return rc;
}

/* s, summed over the workers. */
static psd_status_t sum_models(consensus_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t j = 0; j < self->n; j++) {
        double now = self->x[j] + self->u[j];

        self->buffer[j] = now - self->pushed[j];
        self->pushed[j] = now;
    }
    if (self->n > 0) {
        rc = psd_push(self->sums, rows_of(self), self->n, self->buffer, self->n, err);
    }
    if (rc == PSD_OK) {
        rc = psd_clock(self->job->ex.client, err);
    }
    if (rc == PSD_OK && self->n > 0) {
        rc = psd_pull(self->sums, rows_of(self), self->n, self->buffer, self->n, err);
    }
    return rc;
}

/* One step of z and u. All workers compute the same z; each that has a
 * feature adds its part of the change to the table. */
static psd_status_t multipliers(consensus_t *self, psd_error_t *err)
{
    const lr_options_t *options = self->job->options;
    psd_status_t rc = sum_models(self, err);

    for (size_t j = 0; rc == PSD_OK && j < self->n; j++) {
        double m = (double)self->sharers[j];
        double z = options->rho * self->buffer[j] / (1 / options->objective_c + options->rho * m);

        self->buffer[j] = (z - self->z[j]) / m;
        self->z[j] = z;
        self->u[j] += self->x[j] - z;
    }
    return rc == PSD_OK ? push_common(self, err) : rc;
}

static psd_status_t run_round(consensus_t *self, uint32_t round, psd_error_t *err)
{
    const lr_options_t *options = self->job->options;
    psd_status_t rc = PSD_OK;

    for (uint32_t pass = 0; pass < options->local_passes; pass++) {
        run_pass(self);
    }
    rc = is_admm(self) ? multipliers(self, err) : average(self, err);
    if (rc == PSD_OK && options->report_s == 0) {
        (void)printf("round %" PRIu32 "/%" PRIu32 "  loss of the own samples "
                     "under the own model %.5f\n",
                     round + 1, options->epochs,
                     ex_columns_loss(&self->columns) / fmax(1, (double)self->columns.n_samples));
    }
    return rc;
}

/* Whether the common model has almost stopped changing. */
static psd_status_t judge(consensus_t *self, uint32_t epoch, bool *ret_stops, psd_error_t *err)
{
    double f = 0;
    psd_status_t rc = PSD_OK;

    if (self->job->options->tolerance > 0) {
        rc = lr_stop_measure(&self->stop, &f, err);
        *ret_stops = rc == PSD_OK && lr_stop_now(&self->stop, epoch, f);
    }
    return rc;
}

static psd_status_t run(consensus_t *self, psd_error_t *err)
{
    lr_job_t *job = self->job;
    bool stops = false;
    psd_status_t rc = PSD_OK;

    rc = lr_job_exchange_counts(job, rows_of(self), self->n, self->sharers, err);
    if (rc == PSD_OK && is_admm(self)) {
        rc = lr_job_open_models(job, 0, "1", &self->sums, err);
    }
    if (rc == PSD_OK) {
        rc = pull_common(self, err);
    }
    for (size_t j = 0; rc == PSD_OK && j < self->n; j++) {
        move(self, j, self->z[j]);
        self->stop.share[j] = 1 / (double)self->sharers[j];
    }
    if (rc == PSD_OK) {
        rc = ex_job_meet(&job->ex, err); /* before any worker pushes */
    }
    for (uint32_t r = 0; rc == PSD_OK && !stops && r < job->options->epochs; r++) {
        rc = run_round(self, r, err);
        if (rc == PSD_OK) {
            rc = judge(self, r + 1, &stops, err);
        }
    }
    return rc == PSD_OK ? ex_job_meet(&job->ex, err) : rc;
}

psd_status_t lr_consensus(lr_job_t *job, const ex_samples_t *samples, psd_error_t *err)
{
    consensus_t self = {0};
    psd_status_t rc = init(&self, job, samples, err);

    if (rc == PSD_OK) {
        rc = run(&self, err);
    }
    if (rc == PSD_OK) {
        rc = lr_measure(job, samples, self.weights, err);
    }
    done(&self);
    return rc;
}
