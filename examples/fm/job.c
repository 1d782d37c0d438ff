/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a training. */
#include "job.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/job/weights.h"

#define TEXT_SIZE 160
/* Rows in one pull of counts and embeddings. */
#define CHUNK_ROWS 16384
enum { SHAPE_KEY, SHAPE_SHARE, SHAPE_VALID, N_SHAPE };
enum { SUM_LOSS, SUM_EXAMPLES, SUM_CORRECT, N_SUMS };

psd_status_t fm_job_open(fm_job_t *self, const fm_options_t *options, psd_error_t *err)
{
    memset(self, 0, sizeof(*self));
    self->options = options;
    return ex_job_open(&self->ex, &options->job, err);
}

static void name_table(const fm_job_t *self, const char *what, char ret_name[EX_NAME_SIZE])
{
    (void)snprintf(ret_name, EX_NAME_SIZE, "%s.%s", self->options->table, what);
}

static void name_scratch(const fm_job_t *self, const char *what, char ret_name[EX_NAME_SIZE])
{
    ex_job_name_scratch(&self->ex, self->options->table, what, ret_name);
}

static uint64_t greatest_key(const ex_samples_t *samples)
{
    return samples->n_features == 0 ? 0 : samples->keys[samples->n_features - 1];
}

/* Each worker publishes its sizes, and all get the maximum; so all refuse an
 * empty validation. */
static psd_status_t agree(fm_job_t *self, const ex_samples_t *train, const ex_samples_t *valid,
                          psd_error_t *err)
{
    double shape[N_SHAPE] = {0};
    char name[EX_NAME_SIZE];
    psd_status_t rc = PSD_OK;

    shape[SHAPE_KEY] = fmax((double)greatest_key(train), (double)greatest_key(valid));
    shape[SHAPE_SHARE] = (double)train->n;
    shape[SHAPE_VALID] = (double)valid->n;
    rc = ex_job_look_for(&self->ex, self->options->table, err);
    name_scratch(self, "shape", name);
    rc = rc != PSD_OK ? rc : ex_job_reduce(&self->ex, name, "max", shape, N_SHAPE, err);
    if (rc == PSD_OK) {
        self->n_share = (uint64_t)shape[SHAPE_SHARE];
        self->n_rows = ex_weights_rows(shape[SHAPE_KEY]);
    }
    if (rc == PSD_OK && self->options->valid != NULL && shape[SHAPE_VALID] == 0) {
        rc = psd_error_set(err, PSD_INVALID, "%s has no sample", self->options->valid);
    }
    return rc;
}

static psd_status_t prepare_sums(fm_job_t *self, psd_error_t *err)
{
    static const char *const SUMS[] = {"cols", "6", "type", "f64", "keys", "hash", NULL};
    char name[EX_NAME_SIZE];

    name_scratch(self, "sums", name);
    return ex_job_prepare(&self->ex, name, SUMS, err);
}

static psd_status_t open_weights(fm_job_t *self, psd_error_t *err)
{
    const fm_options_t *options = self->options;
    char updater[TEXT_SIZE];
    char name[EX_NAME_SIZE];
    const char *const weights[] = {"type", "f32", "updater", updater, NULL};
    const char *const counts[] = {"type", "i64", "updater", "add", NULL};
    psd_status_t rc = PSD_OK;

    (void)snprintf(updater, sizeof(updater), "ftrl:alpha=%.9g,beta=%.9g,l1=%.9g,l2=%.9g",
                   options->alpha, options->beta, options->l1, options->l2);
    rc = ex_weights_ensure(&self->ex, options->table, weights, self->n_rows, &self->weights, err);
    if (rc == PSD_OK) {
        name_table(self, "counts", name);
        rc = ex_weights_ensure(&self->ex, name, counts, self->n_rows, &self->counts, err);
    }
    return rc;
}

static psd_status_t open_factors(fm_job_t *self, psd_error_t *err)
{
    const fm_options_t *options = self->options;
    char cols[TEXT_SIZE];
    char updater[TEXT_SIZE];
    char init[TEXT_SIZE];
    char seed[TEXT_SIZE];
    char name[EX_NAME_SIZE];
    const char *const pairs[] = {"keys", "hash",    "cols",  cols,   "type", "f32", "init",
                                 init,   "updater", updater, "seed", seed,   NULL};

    (void)snprintf(cols, sizeof(cols), "%" PRIu32, options->dim);
    (void)snprintf(updater, sizeof(updater), "adagrad:alpha=%.9g,beta=%.9g,l1=0,l2=%.9g",
                   options->factor_alpha, options->factor_beta, options->factor_l2);
    (void)snprintf(init, sizeof(init), "uniform:%.9g,%.9g", -options->init, options->init);
    (void)snprintf(seed, sizeof(seed), "%" PRIu64, options->seed);
    name_table(self, "factors", name);
    return ex_job_ensure(&self->ex, name, pairs, &self->factors, err);
}

static psd_status_t open_tables(fm_job_t *self, const ex_samples_t *train,
                                const ex_samples_t *valid, psd_error_t *err)
{
    char name[EX_NAME_SIZE];
    psd_status_t rc = PSD_OK;

    if (self->ex.worker == 0) {
        rc = prepare_sums(self, err);
    }
    if (rc == PSD_OK) {
        rc = agree(self, train, valid, err);
    }
    if (rc == PSD_OK) {
        rc = open_weights(self, err);
    }
    if (rc == PSD_OK) {
        rc = open_factors(self, err);
    }
    if (rc == PSD_OK) {
        ex_job_tell_old(&self->ex);
        name_scratch(self, "sums", name);
        rc = psd_table_open(self->ex.client, name, &self->sums, err);
    }
    return rc;
}

psd_status_t fm_job_open_tables(fm_job_t *self, const ex_samples_t *train,
                                const ex_samples_t *valid, psd_error_t *err)
{
    psd_status_t rc = open_tables(self, train, valid, err);

    if (rc != PSD_OK) {
        ex_job_give_up(&self->ex);
    }
    return rc;
}

static void put(const ex_quality_t *quality, double *ret_sums)
{
    ret_sums[SUM_LOSS] = quality->loss;
    ret_sums[SUM_EXAMPLES] = (double)quality->n;
    ret_sums[SUM_CORRECT] = (double)quality->n_correct;
}

static ex_quality_t get(const double *sums)
{
    return (ex_quality_t){
        .n = (size_t)sums[SUM_EXAMPLES],
        .n_correct = (size_t)sums[SUM_CORRECT],
        .loss = sums[SUM_LOSS],
        .auc = NAN,
    };
}

psd_status_t fm_job_share(fm_job_t *self, uint32_t epoch, fm_epoch_t *sums, psd_error_t *err)
{
    const uint64_t row = epoch;
    double values[2 * N_SUMS] = {0};
    psd_status_t rc = PSD_OK;

    put(&sums->train, values);
    put(&sums->valid, values + N_SUMS);
    rc = psd_push(self->sums, &row, 1, values, 2 * N_SUMS, err);
    if (rc == PSD_OK) {
        rc = ex_job_meet(&self->ex, err);
    }
    if (rc == PSD_OK) {
        rc = psd_pull(self->sums, &row, 1, values, 2 * N_SUMS, err);
    }
    if (rc == PSD_OK) {
        sums->train = get(values);
        sums->valid = get(values + N_SUMS);
    }
    return rc;
}

/* Some of the model's weights, with the embeddings of those that have one. */
typedef struct chunk {
    const uint64_t *rows;
    const float *weights;
    size_t n;
    int64_t *counts;
    uint64_t *embedded; /* rows with an embedding */
    float *factors;     /* of these */
} chunk_t;

static psd_status_t pull_chunk(fm_job_t *self, chunk_t *chunk, fm_model_t *model, psd_error_t *err)
{
    size_t dim = model->dim;
    size_t n = 0;
    size_t next = 0;
    psd_status_t rc = psd_pull(self->counts, chunk->rows, chunk->n, chunk->counts, chunk->n, err);

    for (size_t i = 0; rc == PSD_OK && i < chunk->n; i++) {
        if (chunk->counts[i] >= (int64_t)self->options->embed_after) {
            chunk->embedded[n++] = chunk->rows[i];
        }
    }
    if (rc == PSD_OK && n > 0) {
        rc = psd_pull(self->factors, chunk->embedded, n, chunk->factors, n * dim, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < chunk->n; i++) {
        bool has = next < n && chunk->embedded[next] == chunk->rows[i];

        rc = fm_model_add(model, chunk->rows[i], chunk->weights[i],
                          has ? chunk->factors + next * dim : NULL, err);
        next += has ? 1 : 0;
    }
    return rc;
}

/* The embeddings of a model of weights. */
static psd_status_t pull_factors(fm_job_t *self, const ex_model_t *linear, fm_model_t *model,
                                 psd_error_t *err)
{
    chunk_t chunk = {
        .counts = malloc(CHUNK_ROWS * sizeof(*chunk.counts)),
        .embedded = malloc(CHUNK_ROWS * sizeof(*chunk.embedded)),
        .factors = malloc(CHUNK_ROWS * model->dim * sizeof(*chunk.factors)),
    };
    psd_status_t rc = PSD_OK;

    if (chunk.counts == NULL || chunk.embedded == NULL || chunk.factors == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "%d embeddings", CHUNK_ROWS);
    }
    for (size_t first = 0; rc == PSD_OK && first < linear->n; first += CHUNK_ROWS) {
        chunk.rows = linear->rows + first;
        chunk.weights = linear->weights + first;
        chunk.n = linear->n - first < CHUNK_ROWS ? linear->n - first : CHUNK_ROWS;
        rc = pull_chunk(self, &chunk, model, err);
    }
    free(chunk.counts);
    free(chunk.embedded);
    free(chunk.factors);
    return rc;
}

psd_status_t fm_job_pull_model(fm_job_t *self, fm_model_t *ret_model, psd_error_t *err)
{
    ex_model_t linear = {0};
    fm_model_t model = {.dim = self->options->dim};
    psd_status_t rc = ex_weights_pull(&self->ex, self->weights, &linear, err);

    if (rc == PSD_OK) {
        rc = pull_factors(self, &linear, &model, err);
    }
    ex_model_done(&linear);
    if (rc != PSD_OK) {
        fm_model_done(&model);
        return rc;
    }
    *ret_model = model;
    return PSD_OK;
}

psd_status_t fm_job_leave(fm_job_t *self, psd_error_t *err)
{
    char name[EX_NAME_SIZE];
    psd_status_t rc = ex_job_barrier(&self->ex, err); /* all have the sums */

    if (rc == PSD_OK) {
        rc = ex_job_leave(&self->ex, err);
    }
    psd_table_close(&self->sums);
    if (rc == PSD_OK && ex_job_is_first(&self->ex)) {
        name_scratch(self, "sums", name);
        rc = ex_job_drop(&self->ex, name, err);
    }
    fm_job_close(self);
    return rc;
}

void fm_job_close(fm_job_t *self)
{
    psd_table_close(&self->weights);
    psd_table_close(&self->counts);
    psd_table_close(&self->factors);
    psd_table_close(&self->sums);
    ex_job_close(&self->ex);
}
