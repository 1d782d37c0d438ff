/* SPDX-License-Identifier: Apache-2.0 */
/* Training by steps of L-BFGS. */
#include "lbfgs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "history.h"
#include "loss.h"
#include "stop.h"

/* Lengths of a step that are tried at once: the middle one is 1, each is the
 * square root of 2 times the one before. */
#define N_LENGTHS 13
#define LENGTH_ONE 8
/* When the shortest or the longest is best, it tries others. */
#define TRIES_MAX 12
/* Two tables in turn: no worker pushes to one that another still pulls. */
#define TURNS 2
#define COLS 2 /* gradient and curvature */
#define COLS_TEXT "2"
/* A table does not take an infinite loss. */
#define LOSS_MAX 1e300

enum { SUM_W_W, SUM_W_D, SUM_D_D, SUM_LOSS };
_Static_assert(SUM_LOSS + N_LENGTHS <= LR_SUMS, "room for the losses");
_Static_assert(sizeof(lr_products_t) <= LR_SUMS * sizeof(double), "room for the products");

/* The last steps and changes of the gradient at one feature, by place. */
typedef struct pairs {
    double s[LR_STEPS];
    double y[LR_STEPS];
} pairs_t;

typedef struct lbfgs {
    lr_job_t *job;
    const ex_samples_t *samples;
    const lr_loss_t *loss;
    lr_stop_t stop;
    lr_history_t history;
    size_t n;                 /* features */
    uint32_t n_workers;       /* that were there when it began */
    psd_table_t *sums[TURNS]; /* of COLS numbers for each feature */
    double *seen[TURNS];      /* their values at the last pull */
    uint64_t n_exchanges;
    double *parts;  /* COLS * n: own parts; then the sums */
    double *pulled; /* COLS * n */
    double *w;
    double *g;     /* gradient of F */
    double *curve; /* second derivative of F by each weight */
    double *d;     /* direction */
    pairs_t *pairs;
    double *z; /* margin of each sample */
    double *u; /* what a step of length 1 adds to it */
    double f;
} lbfgs_t;

static psd_status_t init(lbfgs_t *self, lr_job_t *job, const ex_samples_t *samples,
                         psd_error_t *err)
{
    size_t n = samples->n_features + 1; /* never an allocation of nothing */
    psd_status_t rc = lr_stop_init(&self->stop, job, samples, err);

    self->job = job;
    self->samples = samples;
    self->loss = lr_loss_of(job->options->loss);
    self->n = samples->n_features;
    self->seen[0] = calloc(COLS * n, sizeof(double));
    self->seen[1] = calloc(COLS * n, sizeof(double));
    self->parts = calloc(COLS * n, sizeof(double));
    self->pulled = calloc(COLS * n, sizeof(double));
    self->w = calloc(n, sizeof(double));
    self->g = calloc(n, sizeof(double));
    self->curve = calloc(n, sizeof(double));
    self->d = calloc(n, sizeof(double));
    self->pairs = calloc(n, sizeof(*self->pairs));
    self->z = calloc(samples->n + 1, sizeof(double));
    self->u = calloc(samples->n + 1, sizeof(double));
    if (self->seen[0] == NULL || self->seen[1] == NULL || self->parts == NULL ||
        self->pulled == NULL || self->w == NULL || self->g == NULL || self->curve == NULL ||
        self->d == NULL || self->pairs == NULL || self->z == NULL || self->u == NULL) {
        return psd_error_set(err, PSD_NOMEM, "training with %zu features", n);
    }
    return rc;
}

static void done(lbfgs_t *self)
{
    for (int i = 0; i < TURNS; i++) {
        psd_table_close(&self->sums[i]);
        free(self->seen[i]);
    }
    lr_stop_done(&self->stop);
    free(self->parts);
    free(self->pulled);
    free(self->w);
    free(self->g);
    free(self->curve);
    free(self->d);
    free(self->pairs);
    free(self->z);
    free(self->u);
}

static psd_status_t pull_sums(lbfgs_t *self, size_t turn, double *values, psd_error_t *err)
{
    if (self->n == 0) {
        return PSD_OK;
    }
    return psd_pull(self->sums[turn], self->samples->keys, self->n, values, COLS * self->n, err);
}

/* The parts of all workers, summed up. The tables only grow; a sum is the
 * difference since the last pull. */
static psd_status_t exchange(lbfgs_t *self, psd_error_t *err)
{
    size_t turn = self->n_exchanges++ % TURNS;
    double *seen = self->seen[turn];
    psd_status_t rc = PSD_OK;

    if (self->n > 0) {
        rc = psd_push(self->sums[turn], self->samples->keys, self->n, self->parts, COLS * self->n,
                      err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_meet(&self->job->ex, err);
    }
    if (rc == PSD_OK) {
        rc = pull_sums(self, turn, self->pulled, err);
    }
    for (size_t k = 0; rc == PSD_OK && k < COLS * self->n; k++) {
        self->parts[k] = self->pulled[k] - seen[k];
        seen[k] = self->pulled[k];
    }
    return rc;
}

static psd_status_t pull_weights(lbfgs_t *self, psd_error_t *err)
{
    if (self->n == 0) {
        return PSD_OK;
    }
    return psd_pull(self->job->weights, self->samples->keys, self->n, self->stop.weights, self->n,
                    err);
}

/* Adds the contents of weights to the table. */
static psd_status_t push_weights(lbfgs_t *self, psd_error_t *err)
{
    if (self->n == 0) {
        return PSD_OK;
    }
    return psd_push(self->job->weights, self->samples->keys, self->n, self->stop.weights, self->n,
                    err);
}

/* margins[i] = v.x of each sample. */
static void fill_margins(const lbfgs_t *self, const double *v, double *margins)
{
    const ex_samples_t *samples = self->samples;

    for (size_t i = 0; i < samples->n; i++) {
        double sum = 0;

        for (size_t k = samples->starts[i]; k < samples->starts[i + 1]; k++) {
            sum += v[samples->features[k]] * (double)samples->values[k];
        }
        margins[i] = sum;
    }
}

/* The gradient of F, and its curvature, at w. */
static psd_status_t differentiate(lbfgs_t *self, psd_error_t *err)
{
    const ex_samples_t *samples = self->samples;
    double c = self->job->options->objective_c;
    psd_status_t rc = PSD_OK;

    memset(self->parts, 0, COLS * self->n * sizeof(*self->parts));
    for (size_t i = 0; i < samples->n; i++) {
        double label = (double)samples->labels[i];
        double weight = (double)samples->weights[i] * c;
        double slope = weight * self->loss->slope(self->z[i], label);
        double curve = weight * self->loss->curve(self->z[i], label);

        for (size_t k = samples->starts[i]; k < samples->starts[i + 1]; k++) {
            double *part = self->parts + COLS * (size_t)samples->features[k];
            double x = (double)samples->values[k];

            part[0] += slope * x;
            part[1] += curve * x * x;
        }
    }
    rc = exchange(self, err);
    for (size_t j = 0; rc == PSD_OK && j < self->n; j++) {
        self->g[j] = self->w[j] + self->parts[COLS * j];
        self->curve[j] = 1 + fmax(0, self->parts[COLS * j + 1]);
    }
    return rc;
}

/* F of w + length * d, from sums over all workers. */
static double objective(const lbfgs_t *self, const double *sums, double length, double loss)
{
    return self->job->options->objective_c * loss +
           (sums[SUM_W_W] + length * (2 * sums[SUM_W_D] + length * sums[SUM_D_D])) / 2;
}

/* F of steps of many lengths, `one` and its neighbours. */
static psd_status_t try_lengths(lbfgs_t *self, double one, double ret_f[N_LENGTHS],
                                psd_error_t *err)
{
    const ex_samples_t *samples = self->samples;
    double lengths[N_LENGTHS];
    double sums[LR_SUMS] = {0};
    psd_status_t rc = PSD_OK;

    for (int k = 0; k < N_LENGTHS; k++) {
        lengths[k] = one * exp2((k - LENGTH_ONE) / 2.0);
    }
    for (size_t j = 0; j < self->n; j++) {
        double part = self->stop.share[j];

        sums[SUM_W_W] += part * self->w[j] * self->w[j];
        sums[SUM_W_D] += part * self->w[j] * self->d[j];
        sums[SUM_D_D] += part * self->d[j] * self->d[j];
    }
    for (size_t i = 0; i < samples->n; i++) {
        double label = (double)samples->labels[i];

        for (int k = 0; k < N_LENGTHS; k++) {
            double loss = self->loss->value(self->z[i] + lengths[k] * self->u[i], label);

            sums[SUM_LOSS + k] += (double)samples->weights[i] * loss;
        }
    }
    for (int k = 0; k < N_LENGTHS; k++) {
        sums[SUM_LOSS + k] = fmin(sums[SUM_LOSS + k], LOSS_MAX);
    }
    rc = ex_sums_add(&self->job->steps, sums, err);
    for (int k = 0; rc == PSD_OK && k < N_LENGTHS; k++) {
        ret_f[k] = objective(self, sums, lengths[k], sums[SUM_LOSS + k]);
    }
    return rc;
}

static int least(const double f[N_LENGTHS])
{
    int best = 0;

    for (int k = 1; k < N_LENGTHS; k++) {
        best = f[k] < f[best] ? k : best;
    }
    return best;
}

/* The best length of a step along d, and F there; 0 when none makes F less.
 * F is convex along it: when the best is neither the shortest nor the
 * longest tried, there is no better one elsewhere. */
static psd_status_t search(lbfgs_t *self, double *ret_length, psd_error_t *err)
{
    double one = 1;
    double f[N_LENGTHS] = {0};
    int before = 0; /* -1: went to shorter ones; 1: to longer ones */
    psd_status_t rc = PSD_OK;

    *ret_length = 0;
    for (int i = 0; rc == PSD_OK && i < TRIES_MAX; i++) {
        int best = 0;
        int way = 0;

        rc = try_lengths(self, one, f, err);
        if (rc != PSD_OK) {
            return rc;
        }
        best = least(f);
        if (f[best] < self->f) {
            *ret_length = one * exp2((best - LENGTH_ONE) / 2.0);
            self->f = f[best];
        }
        way = best == 0 ? -1 : best == N_LENGTHS - 1 ? 1 : 0;
        if (way == 0 || way == -before) {
            break;
        }
        before = way;
        one *= exp2(way * (N_LENGTHS - 1) / 2.0);
    }
    return rc;
}

/* Scalar products of this worker's part of the vectors. */
static void multiply(const lbfgs_t *self, lr_products_t *ret_products)
{
    size_t n = self->history.n;
    size_t last = n > 0 ? lr_history_last(&self->history) : 0;
    lr_products_t products = {0};

    for (size_t j = 0; j < self->n; j++) {
        const pairs_t *at = &self->pairs[j];
        double part = self->stop.share[j];
        double by_curve = part / self->curve[j];
        double g = self->g[j];

        products.g_g += by_curve * g * g;
        for (size_t a = 0; a < n; a++) {
            double y = by_curve * at->y[a];

            products.last_s_y[a] += part * at->s[last] * at->y[a];
            products.s_last_y[a] += part * at->s[a] * at->y[last];
            products.s_g[a] += part * at->s[a] * g;
            products.y_g[a] += y * g;
            for (size_t b = a; b < n; b++) {
                products.y_y[a][b] += y * at->y[b];
            }
        }
    }
    *ret_products = products;
}

/* The next direction, and what a step along it adds to the margins. */
static psd_status_t direct(lbfgs_t *self, psd_error_t *err)
{
    union {
        lr_products_t products;
        double sums[LR_SUMS];
    } all = {.sums = {0}};
    lr_direction_t by = {0};
    psd_status_t rc = PSD_OK;

    multiply(self, &all.products);
    rc = ex_sums_add(&self->job->steps, all.sums, err);
    if (rc != PSD_OK) {
        return rc;
    }
    lr_history_direct(&self->history, &all.products, &by);
    for (size_t j = 0; j < self->n; j++) {
        const pairs_t *at = &self->pairs[j];
        double sum = by.g * self->g[j];
        double steps = 0;

        for (size_t a = 0; a < self->history.n; a++) {
            sum += by.y[a] * at->y[a];
            steps += by.s[a] * at->s[a];
        }
        self->d[j] = sum / self->curve[j] + steps;
    }
    fill_margins(self, self->d, self->u);
    return PSD_OK;
}

/* Goes that far along d, and pushes the change to the table. */
static psd_status_t move(lbfgs_t *self, double length, psd_error_t *err)
{
    size_t place = lr_history_next(&self->history);

    for (size_t j = 0; j < self->n; j++) {
        double step = length * self->d[j];

        self->pairs[j].s[place] = step;
        self->pairs[j].y[place] = -self->g[j]; /* the new one comes to it */
        self->w[j] += step;
        self->stop.weights[j] = (float)(self->stop.share[j] * step);
    }
    for (size_t i = 0; i < self->samples->n; i++) {
        self->z[i] += length * self->u[i];
    }
    return push_weights(self, err);
}

/* Gradient and curvature where the last step has led. */
static psd_status_t look(lbfgs_t *self, psd_error_t *err)
{
    psd_status_t rc = differentiate(self, err);
    size_t last = lr_history_last(&self->history);

    for (size_t j = 0; rc == PSD_OK && j < self->n; j++) {
        self->pairs[j].y[last] += self->g[j];
    }
    return rc;
}

/* How the occurrences of each feature are divided among the workers. */
static psd_status_t find_shares(lbfgs_t *self, psd_error_t *err)
{
    const ex_samples_t *samples = self->samples;
    psd_status_t rc = PSD_OK;

    memset(self->parts, 0, COLS * self->n * sizeof(*self->parts));
    memset(self->stop.share, 0, self->n * sizeof(*self->stop.share));
    for (size_t k = 0; k < samples->n_entries; k++) {
        self->parts[COLS * (size_t)samples->features[k]]++;
        self->stop.share[samples->features[k]]++;
    }
    rc = exchange(self, err);
    for (size_t j = 0; rc == PSD_OK && j < self->n; j++) {
        self->stop.share[j] /= fmax(1, self->parts[COLS * j]);
    }
    return rc;
}

/* F, gradient and curvature at the model that is in the table. */
static psd_status_t begin(lbfgs_t *self, psd_error_t *err)
{
    double f[N_LENGTHS] = {0};
    psd_status_t rc = ex_job_meet(&self->job->ex, err);

    self->history = (lr_history_t){0};
    self->stop.last = NAN;
    for (size_t i = 0; rc == PSD_OK && i < TURNS; i++) {
        rc = pull_sums(self, i, self->seen[i], err);
    }
    if (rc == PSD_OK) {
        rc = pull_weights(self, err);
    }
    if (rc == PSD_OK) { /* before any worker pushes */
        rc = ex_job_meet(&self->job->ex, err);
    }
    if (rc == PSD_OK) {
        rc = find_shares(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t j = 0; j < self->n; j++) {
        self->w[j] = (double)self->stop.weights[j];
        self->d[j] = 0;
    }
    fill_margins(self, self->w, self->z);
    memset(self->u, 0, self->samples->n * sizeof(*self->u));
    rc = try_lengths(self, 0, f, err); /* none of them helps */
    self->f = f[0];
    self->n_workers = self->job->steps.n_workers;
    return rc == PSD_OK ? differentiate(self, err) : rc;
}

static bool is_somebody_lost(const lbfgs_t *self)
{
    return self->job->steps.n_workers != self->n_workers;
}

static psd_status_t run_epoch(lbfgs_t *self, uint32_t epoch, bool *ret_stops, psd_error_t *err)
{
    double length = 0;
    psd_status_t rc = direct(self, err);

    if (rc == PSD_OK && !is_somebody_lost(self)) {
        rc = search(self, &length, err);
    }
    if (rc == PSD_OK && is_somebody_lost(self)) {
        return begin(self, err);
    }
    if (rc == PSD_OK && length > 0) {
        rc = move(self, length, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_stops = lr_stop_now(&self->stop, epoch, self->f) || epoch == self->job->options->epochs;
    if (*ret_stops) {
        return PSD_OK;
    }
    if (length == 0) { /* the history misleads, or F is at its minimum */
        *ret_stops = self->history.n == 0;
        self->job->outcome.has_converged = *ret_stops;
        self->history = (lr_history_t){0};
        return PSD_OK;
    }
    return look(self, err);
}

/* Pulls the table, in which many small pushes were rounded. */
static psd_status_t settle(lbfgs_t *self, psd_error_t *err)
{
    psd_status_t rc = ex_job_meet(&self->job->ex, err);

    if (rc == PSD_OK) {
        rc = pull_weights(self, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_meet(&self->job->ex, err);
    }
    for (size_t j = 0; rc == PSD_OK && j < self->n; j++) {
        double off = self->w[j] - (double)self->stop.weights[j];

        self->stop.weights[j] = (float)(self->stop.share[j] * off);
    }
    if (rc == PSD_OK) {
        rc = push_weights(self, err);
    }
    return rc == PSD_OK ? ex_job_meet(&self->job->ex, err) : rc;
}

static psd_status_t run(lbfgs_t *self, psd_error_t *err)
{
    uint32_t n_epochs = self->job->options->epochs;
    bool stops = false;
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < TURNS; i++) {
        rc = lr_job_open_models(self->job, i, COLS_TEXT, &self->sums[i], err);
    }
    if (rc == PSD_OK) {
        rc = begin(self, err);
    }
    for (uint32_t epoch = 1; rc == PSD_OK && !stops && epoch <= n_epochs; epoch++) {
        rc = run_epoch(self, epoch, &stops, err);
    }
    return rc == PSD_OK ? settle(self, err) : rc;
}

psd_status_t lr_lbfgs(lr_job_t *job, const ex_samples_t *samples, psd_error_t *err)
{
    lbfgs_t self = {0};
    psd_status_t rc = init(&self, job, samples, err);

    if (rc == PSD_OK) {
        rc = run(&self, err);
    }
    if (rc == PSD_OK) {
        rc = lr_measure(job, samples, self.stop.weights, err);
    }
    done(&self);
    return rc;
}
