/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a training. */
#include "job.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "loss.h"

#define TEXT_SIZE 160
enum { SUM_LOSS, SUM_EXAMPLES, SUM_CORRECT, N_SUMS };
enum { SHAPE_KEY, SHAPE_SHARE, N_SHAPE };
static const char *const MODELS[] = {"models", "models2"};

psd_status_t lr_job_open(lr_job_t *self, const lr_options_t *options, psd_error_t *err)
{
    memset(self, 0, sizeof(*self));
    self->options = options;
    return ex_job_open(&self->ex, &options->job, err);
}

/* Makes or opens a table with a row for each feature. */
static psd_status_t ensure(lr_job_t *self, const char *name, const char *type, const char *updater,
                           psd_table_t **ret_table, psd_error_t *err)
{
    const char *const pairs[] = {"type", type, "updater", updater, NULL};

    return ex_weights_ensure(&self->ex, name, pairs, self->n_rows, ret_table, err);
}

/* "ftrl:alpha=0.1,beta=1,l1=1,l2=1" */
static void print_updater(const lr_options_t *options, char ret_text[TEXT_SIZE])
{
    char beta[TEXT_SIZE / 2] = "";

    if (options->variant != LR_UPDATER) {
        (void)snprintf(ret_text, TEXT_SIZE, "add");
        return;
    }
    if (options->updater != LR_SGD) {
        (void)snprintf(beta, sizeof(beta), "beta=%.9g,", options->beta);
    }
    (void)snprintf(ret_text, TEXT_SIZE, "%s:alpha=%.9g,%sl1=%.9g,l2=%.9g",
                   lr_updater_name(options->updater), options->alpha, beta, options->l1,
                   options->l2);
}

static psd_status_t open_weights(lr_job_t *self, psd_error_t *err)
{
    char updater[TEXT_SIZE];

    print_updater(self->options, updater);
    return ensure(self, self->options->table, "f32", updater, &self->weights, err);
}

static void name_scratch(const lr_job_t *self, const char *what, char ret_name[EX_NAME_SIZE])
{
    ex_job_name_scratch(&self->ex, self->options->table, what, ret_name);
}

static psd_status_t drop_scratch(lr_job_t *self, const char *what, psd_error_t *err)
{
    char name[EX_NAME_SIZE];

    name_scratch(self, what, name);
    return ex_job_drop(&self->ex, name, err);
}

/* Makes the tables of this run. Copies need nodes, and the training may lose
 * some, so it also makes the tables for the end now. */
static psd_status_t prepare(lr_job_t *self, psd_error_t *err)
{
    static const char *const SUMS[] = {"cols", "3",          "type", "f64", "rows",
                                       "1",    "partitions", "1",    NULL};
    char name[EX_NAME_SIZE];
    psd_status_t rc = ex_job_look_for(&self->ex, self->options->table, err);

    if (rc == PSD_OK) {
        rc = drop_scratch(self, "counts", err);
    }
    for (size_t i = 0; rc == PSD_OK && i < EX_COUNT(MODELS); i++) {
        rc = drop_scratch(self, MODELS[i], err);
    }
    if (rc == PSD_OK) {
        name_scratch(self, "steps", name);
        rc = self->options->objective == NULL ? ex_job_drop(&self->ex, name, err)
                                              : ex_sums_prepare(&self->ex, name, LR_SUMS, err);
    }
    if (rc == PSD_OK) {
        name_scratch(self, "sums", name);
        rc = ex_job_prepare(&self->ex, name, SUMS, err);
    }
    return rc;
}

/* Each worker publishes its sizes; all get the maximum. */
static psd_status_t agree(lr_job_t *self, const ex_samples_t *samples, psd_error_t *err)
{
    uint64_t greatest = self->options->features;
    double shape[N_SHAPE] = {0};
    char name[EX_NAME_SIZE];
    psd_status_t rc = PSD_OK;

    if (greatest == 0 && samples->n_features > 0) {
        greatest = samples->keys[samples->n_features - 1];
    }
    shape[SHAPE_KEY] = (double)greatest;
    shape[SHAPE_SHARE] = (double)samples->n;
    name_scratch(self, "shape", name);
    rc = ex_job_reduce(&self->ex, name, "max", shape, N_SHAPE, err);
    if (rc == PSD_OK) {
        self->n_share = (uint64_t)shape[SHAPE_SHARE];
        self->n_rows = ex_weights_rows(shape[SHAPE_KEY]);
    }
    return rc;
}

static psd_status_t open_counts(lr_job_t *self, psd_error_t *err)
{
    char name[EX_NAME_SIZE];

    if (self->options->variant == LR_LBFGS) {
        return PSD_OK; /* it counts its own */
    }
    name_scratch(self, "counts", name);
    return ensure(self, name, "i64", "add", &self->counts, err);
}

static psd_status_t open_steps(lr_job_t *self, psd_error_t *err)
{
    char name[EX_NAME_SIZE];

    name_scratch(self, "steps", name);
    return ex_sums_open(&self->steps, &self->ex, name, LR_SUMS, err);
}

static psd_status_t open_tables(lr_job_t *self, const ex_samples_t *samples, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->ex.worker == 0) {
        rc = prepare(self, err);
    }
    if (rc == PSD_OK) {
        rc = agree(self, samples, err);
    }
    if (rc == PSD_OK) {
        rc = open_weights(self, err);
    }
    if (rc == PSD_OK) {
        ex_job_tell_old(&self->ex);
    }
    if (rc == PSD_OK && self->options->objective != NULL) {
        rc = open_counts(self, err);
        if (rc == PSD_OK) {
            rc = open_steps(self, err);
        }
    }
    return rc;
}

psd_status_t lr_job_open_tables(lr_job_t *self, const ex_samples_t *samples, psd_error_t *err)
{
    psd_status_t rc = open_tables(self, samples, err);

    if (rc != PSD_OK) {
        ex_job_give_up(&self->ex);
    }
    return rc;
}

psd_status_t lr_job_exchange_counts(lr_job_t *self, const uint64_t *rows, size_t n, int64_t *counts,
                                    psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (n > 0) {
        rc = psd_push(self->counts, rows, n, counts, n, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_meet(&self->ex, err);
    }
    if (rc == PSD_OK && n > 0) {
        rc = psd_pull(self->counts, rows, n, counts, n, err);
    }
    psd_table_close(&self->counts);
    /* No worker may still need them when they are dropped. */
    if (rc == PSD_OK) {
        rc = ex_job_barrier(&self->ex, err);
    }
    if (rc == PSD_OK && ex_job_is_first(&self->ex)) {
        rc = drop_scratch(self, "counts", err);
    }
    return rc;
}

psd_status_t lr_job_open_models(lr_job_t *self, size_t which, const char *cols,
                                psd_table_t **ret_table, psd_error_t *err)
{
    const char *const pairs[] = {"type", "f64", "cols", cols, NULL};
    char name[EX_NAME_SIZE];

    name_scratch(self, MODELS[which], name);
    return ex_weights_ensure(&self->ex, name, pairs, self->n_rows, ret_table, err);
}

psd_status_t lr_measure(lr_job_t *self, const ex_samples_t *samples, float *weights,
                        psd_error_t *err)
{
    const lr_loss_t *loss = lr_loss_of(self->options->loss);
    ex_quality_t quality = {0};
    psd_status_t rc = PSD_OK;

    if (samples->n_features > 0) {
        rc = psd_pull(self->weights, samples->keys, samples->n_features, weights,
                      samples->n_features, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < samples->n; i++) {
        double margin = ex_samples_dot(samples, i, weights);
        float label = samples->labels[i];

        ex_quality_add(&quality, margin, label,
                       (double)samples->weights[i] * loss->value(margin, (double)label));
    }
    if (rc == PSD_OK) {
        rc = lr_job_add_sums(self, &quality, err);
    }
    return rc == PSD_OK ? ex_job_meet(&self->ex, err) : rc;
}

psd_status_t lr_job_add_sums(lr_job_t *self, const ex_quality_t *part, psd_error_t *err)
{
    const uint64_t row = 0;
    double sums[N_SUMS] = {0};
    char name[EX_NAME_SIZE];
    psd_status_t rc = PSD_OK;

    sums[SUM_LOSS] = part->loss;
    sums[SUM_EXAMPLES] = (double)part->n;
    sums[SUM_CORRECT] = (double)part->n_correct;
    name_scratch(self, "sums", name);
    rc = psd_table_open(self->ex.client, name, &self->sums, err);
    return rc == PSD_OK ? psd_push(self->sums, &row, 1, sums, N_SUMS, err) : rc;
}

psd_status_t lr_job_pull_sums(lr_job_t *self, ex_quality_t *ret_all, psd_error_t *err)
{
    const uint64_t row = 0;
    double sums[N_SUMS] = {0};
    psd_status_t rc = psd_pull(self->sums, &row, 1, sums, N_SUMS, err);

    if (rc == PSD_OK) {
        *ret_all = (ex_quality_t){
            .n = (size_t)sums[SUM_EXAMPLES],
            .n_correct = (size_t)sums[SUM_CORRECT],
            .loss = sums[SUM_LOSS],
            .auc = NAN,
        };
    }
    return rc;
}

psd_status_t lr_job_leave(lr_job_t *self, psd_error_t *err)
{
    psd_status_t rc = ex_job_leave(&self->ex, err);

    psd_table_close(&self->sums);
    ex_sums_done(&self->steps);
    if (rc == PSD_OK && ex_job_is_first(&self->ex)) {
        rc = drop_scratch(self, "sums", err);
        if (rc == PSD_OK) {
            rc = drop_scratch(self, "steps", err);
        }
        for (size_t i = 0; rc == PSD_OK && i < EX_COUNT(MODELS); i++) {
            rc = drop_scratch(self, MODELS[i], err);
        }
    }
    lr_job_close(self);
    return rc;
}

void lr_job_close(lr_job_t *self)
{
    psd_table_close(&self->weights);
    psd_table_close(&self->counts);
    psd_table_close(&self->sums);
    ex_sums_done(&self->steps);
    ex_job_close(&self->ex);
}
