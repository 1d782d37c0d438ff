/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's side of the server. */
#include "job.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "number.h"

#define NAME_SIZE 64
#define TEXT_SIZE 160
/* Rows in one pull of the whole model. */
#define CHUNK_ROWS 65536
/* Up to so many rows a model is one partition: 1 MiB of weights stay in the
 * cache of the core that serves them, and a minibatch is one request. */
#define ONE_PARTITION_ROWS (UINT64_C(1) << 18)
/* How long a worker that cannot begin tries to say so. */
#define LEAVE_MS 2000

enum { SUM_LOSS, SUM_EXAMPLES, SUM_CORRECT, N_SUMS };

static psd_status_t
read_environment(const char *name,
                 uint32_t preset,
                 uint32_t *ret_value,
                 psd_error_t *err)
{
    const char *text = getenv(name);
    uint64_t value = preset;

    if (text != NULL && (!lr_number_u64(text, &value) || value > 4096)) {
        return psd_error_set(err, PSD_USAGE,
                             "%s \"%s\" is not a whole number from 0 to 4096",
                             name, text);
    }
    *ret_value = (uint32_t)value;
    return PSD_OK;
}

psd_status_t
lr_job_rank(uint32_t *ret_worker, uint32_t *ret_n_workers, psd_error_t *err)
{
    psd_status_t rc = read_environment("PSD_WORKER", 0, ret_worker, err);

    if (rc == PSD_OK) {
        rc = read_environment("PSD_WORKERS", 1, ret_n_workers, err);
    }
    if (rc == PSD_OK && *ret_worker >= *ret_n_workers) {
        rc = psd_error_set(err, PSD_USAGE,
                           "PSD_WORKER %" PRIu32
                           " is not below PSD_WORKERS %" PRIu32,
                           *ret_worker, *ret_n_workers);
    }
    return rc;
}

/* What psd_join makes of max_delay; it has refused what is no number. */
static int32_t
delay_of(const lr_options_t *options)
{
    const char *text = getenv("PSD_MAX_DELAY");
    int64_t delay = options->max_delay;

    if (options->max_delay == PSD_DELAY_ENV &&
        (text == NULL || !lr_number_i64(text, &delay))) {
        delay = 0;
    }
    return (int32_t)delay;
}

static psd_status_t
connect_client(const lr_options_t *options,
               psd_client_t **ret_client,
               psd_error_t *err)
{
    psd_options_t *how = psd_options_new();
    psd_status_t rc = PSD_OK;

    if (how == NULL) {
        return psd_error_set(err, PSD_NOMEM, "connect");
    }
    psd_options_set_timeout_ms(how, options->timeout_ms);
    rc = psd_connect(NULL, how, ret_client, err);
    psd_options_destroy(&how);
    return rc;
}

psd_status_t
lr_job_open(lr_job_t *self, const lr_options_t *options, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    memset(self, 0, sizeof(*self));
    self->options = options;
    rc = lr_job_rank(&self->worker, &self->n_workers, err);
    if (rc == PSD_OK) {
        rc = connect_client(options, &self->client, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rc = psd_join(self->client, NULL, self->worker, self->n_workers,
                  options->max_delay, err);
    if (rc != PSD_OK) {
        lr_job_close(self);
    }
    self->max_delay = delay_of(options);
    return rc;
}

/* A spec from pairs of key and value; NULL ends them. */
static psd_status_t
make_spec(const char *const *pairs, psd_spec_t **ret_spec, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_status_t rc = PSD_OK;

    if (spec == NULL) {
        return psd_error_set(err, PSD_NOMEM, "spec of a table");
    }
    for (; rc == PSD_OK && *pairs != NULL; pairs += 2) {
        rc = psd_spec_set(spec, pairs[0], pairs[1], err);
    }
    if (rc != PSD_OK) {
        psd_spec_destroy(&spec);
        return rc;
    }
    *ret_spec = spec;
    return PSD_OK;
}

static psd_status_t
ensure(lr_job_t *self,
       const char *name,
       const char *const *pairs,
       uint64_t n_rows,
       psd_table_t **ret_table,
       psd_error_t *err)
{
    psd_spec_t *spec = NULL;
    char rows[TEXT_SIZE];
    char replicas[TEXT_SIZE];
    psd_status_t rc = make_spec(pairs, &spec, err);

    (void)snprintf(rows, sizeof(rows), "%" PRIu64, n_rows);
    (void)snprintf(replicas, sizeof(replicas), "%" PRIu32,
                   self->options->replicas);
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "rows", rows, err);
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "replicas", replicas, err);
    }
    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "ack", self->options->ack, err);
    }
    if (rc == PSD_OK && n_rows <= ONE_PARTITION_ROWS) {
        rc = psd_spec_set(spec, "partitions", "1", err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(self->client, name, spec, ret_table, err);
    }
    psd_spec_destroy(&spec);
    return rc;
}

/* "ftrl:alpha=0.1,beta=1,l1=1,l2=1" */
static void
print_updater(const lr_options_t *options, char ret_text[TEXT_SIZE])
{
    char beta[TEXT_SIZE / 2] = "";

    if (!isnan(options->beta)) {
        (void)snprintf(beta, sizeof(beta), "beta=%.9g,", options->beta);
    }
    (void)snprintf(ret_text, TEXT_SIZE, "%s:alpha=%.9g,%sl1=%.9g,l2=%.9g",
                   lr_updater_name(options->updater), options->alpha, beta,
                   options->l1, options->l2);
}

/* A table that somebody else made may have more rows than the data, or hash
 * keys, but must be of the right kind. */
static psd_status_t
check_weights(const lr_job_t *self, uint64_t n_rows, psd_error_t *err)
{
    const psd_table_t *table = self->weights;
    uint64_t rows = psd_table_rows(table);

    if (strcmp(psd_table_type(table), "f32") != 0 ||
        psd_table_cols(table) != 1) {
        return psd_error_set(err, PSD_SHAPE,
                             "table \"%s\" is of type %s with %" PRIu32
                             " columns; weights are f32 with 1",
                             psd_table_name(table), psd_table_type(table),
                             psd_table_cols(table));
    }
    if (rows != 0 && rows < n_rows) {
        return psd_error_set(err, PSD_SHAPE,
                             "table \"%s\" has %" PRIu64
                             " rows; the data has features up to %" PRIu64,
                             psd_table_name(table), rows, n_rows - 1);
    }
    return PSD_OK;
}

static psd_status_t
open_weights(lr_job_t *self, uint64_t n_rows, psd_error_t *err)
{
    const lr_options_t *options = self->options;
    char updater[TEXT_SIZE];
    const char *const pairs[] = {"type", "f32", "updater", updater, NULL};
    psd_status_t rc = PSD_NO_TABLE;

    if (!options->updater_given) {
        rc = psd_table_open(self->client, options->table, &self->weights, err);
    }
    if (rc != PSD_NO_TABLE) {
        return rc;
    }
    psd_error_clear(err);
    print_updater(options, updater);
    return ensure(self, options->table, pairs, n_rows, &self->weights, err);
}

static void
name_scratch(const lr_job_t *self, const char *what, char ret_name[NAME_SIZE])
{
    (void)snprintf(ret_name, NAME_SIZE, "%s.%s", self->options->table, what);
}

static psd_status_t
drop_scratch(lr_job_t *self, const char *what, psd_error_t *err)
{
    char name[NAME_SIZE];
    psd_status_t rc = PSD_OK;

    name_scratch(self, what, name);
    rc = psd_table_drop(self->client, name, err);
    if (rc == PSD_NO_TABLE) {
        psd_error_clear(err);
        rc = PSD_OK;
    }
    return rc;
}

/* Copies want nodes, of which the training may lose some: the table is made
 * before, by a client that is no worker, so that no clock marks it. */
static psd_status_t
make_sums(const lr_job_t *self, psd_error_t *err)
{
    const char *const sums[] = {"cols", "3", "type", "f64", NULL};
    lr_job_t maker = {.options = self->options};
    char name[NAME_SIZE];
    psd_status_t rc = connect_client(self->options, &maker.client, err);

    name_scratch(self, "sums", name);
    if (rc == PSD_OK) {
        rc = ensure(&maker, name, sums, 1, &maker.sums, err);
    }
    lr_job_close(&maker);
    return rc;
}

static psd_status_t
open_sums(lr_job_t *self, psd_error_t *err)
{
    char name[NAME_SIZE];

    name_scratch(self, "sums", name);
    return psd_table_open(self->client, name, &self->sums, err);
}

static psd_status_t
open_counts(lr_job_t *self, psd_error_t *err)
{
    const char *const counts[] = {"type", "i64", NULL};
    char name[NAME_SIZE];

    name_scratch(self, "counts", name);
    return ensure(self, name, counts, self->n_rows, &self->counts, err);
}

static psd_status_t
open_tables(lr_job_t *self, uint32_t greatest, psd_error_t *err)
{
    uint64_t n_rows = (uint64_t)greatest + 1;
    psd_status_t rc = PSD_OK;

    self->n_rows = n_rows;
    if (self->worker == 0) {
        rc = drop_scratch(self, "sums", err);
        if (rc == PSD_OK) {
            rc = drop_scratch(self, "counts", err);
        }
        if (rc == PSD_OK) {
            rc = make_sums(self, err);
        }
    }
    if (rc == PSD_OK) {
        rc = psd_barrier(self->client, self->options->timeout_ms, err);
    }
    if (rc == PSD_OK) {
        rc = open_weights(self, n_rows, err);
    }
    if (rc == PSD_OK) {
        rc = check_weights(self, n_rows, err);
    }
    if (rc == PSD_OK && self->options->objective) {
        rc = open_counts(self, err);
    }
    return rc;
}

psd_status_t
lr_job_open_tables(lr_job_t *self, uint32_t greatest, psd_error_t *err)
{
    psd_status_t rc = open_tables(self, greatest, err);

    /* Nothing has been trained: leave, so that the rank is free at once for the
     * next try. Later a worker that fails shall be seen as lost. */
    if (rc != PSD_OK) {
        psd_status_t left = psd_leave(self->client, LEAVE_MS, NULL);

        (void)left; /* the first error counts */
    }
    return rc;
}

psd_status_t
lr_job_meet(lr_job_t *self, psd_error_t *err)
{
    psd_status_t rc =
        psd_wait_all(self->client, self->options->timeout_ms, err);

    if (rc == PSD_OK) {
        rc = psd_clock(self->client, err);
    }
    if (rc == PSD_OK) {
        rc = psd_barrier(self->client, self->options->timeout_ms, err);
    }
    return rc;
}

psd_status_t
lr_job_exchange_counts(lr_job_t *self,
                       const uint64_t *rows,
                       size_t n,
                       int64_t *counts,
                       psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (n > 0) {
        rc = psd_push(self->counts, rows, n, counts, n, err);
    }
    if (rc == PSD_OK) {
        rc = lr_job_meet(self, err);
    }
    if (rc == PSD_OK && n > 0) {
        rc = psd_pull(self->counts, rows, n, counts, n, err);
    }
    psd_table_close(&self->counts);
    /* Nobody may still want them when they go. */
    if (rc == PSD_OK) {
        rc = psd_barrier(self->client, self->options->timeout_ms, err);
    }
    if (rc == PSD_OK && self->worker == 0) {
        rc = drop_scratch(self, "counts", err);
    }
    return rc;
}

psd_status_t
lr_job_add_sums(lr_job_t *self, const lr_quality_t *part, psd_error_t *err)
{
    const uint64_t row = 0;
    double sums[N_SUMS] = {0};
    psd_status_t rc = PSD_OK;

    sums[SUM_LOSS] = part->loss;
    sums[SUM_EXAMPLES] = (double)part->n;
    sums[SUM_CORRECT] = (double)part->n_correct;
    rc = open_sums(self, err);
    return rc == PSD_OK ? psd_push(self->sums, &row, 1, sums, N_SUMS, err) : rc;
}

psd_status_t
lr_job_pull_sums(lr_job_t *self, lr_quality_t *ret_all, psd_error_t *err)
{
    const uint64_t row = 0;
    double sums[N_SUMS] = {0};
    psd_status_t rc = psd_pull(self->sums, &row, 1, sums, N_SUMS, err);

    if (rc == PSD_OK) {
        *ret_all = (lr_quality_t){
            .n = (size_t)sums[SUM_EXAMPLES],
            .n_correct = (size_t)sums[SUM_CORRECT],
            .loss = sums[SUM_LOSS],
            .auc = NAN,
        };
    }
    return rc;
}

static psd_status_t
pull_chunk(lr_job_t *self,
           psd_select_t *select,
           float *weights,
           size_t n,
           psd_error_t *err)
{
    psd_ticket_t ticket = 0;
    psd_status_t rc =
        psd_pull_start(self->weights, select, weights, n, NULL, &ticket, err);

    if (rc != PSD_OK) {
        return rc;
    }
    return psd_wait(self->client, ticket, self->options->timeout_ms, err);
}

/* All rows of a range table, chunk by chunk. */
static psd_status_t
pull_range(lr_job_t *self,
           psd_select_t *select,
           lr_model_t *model,
           psd_error_t *err)
{
    uint64_t n_rows = psd_table_rows(self->weights);
    float *weights = malloc(CHUNK_ROWS * sizeof(*weights));
    psd_status_t rc = PSD_OK;

    if (weights == NULL) {
        return psd_error_set(err, PSD_NOMEM, "pull of %d rows", CHUNK_ROWS);
    }
    for (uint64_t first = 0; rc == PSD_OK && first < n_rows;
         first += CHUNK_ROWS) {
        size_t n =
            n_rows - first < CHUNK_ROWS ? (size_t)(n_rows - first) : CHUNK_ROWS;

        psd_select_row_range(select, first, n);
        rc = pull_chunk(self, select, weights, n, err);
        for (size_t i = 0; rc == PSD_OK && i < n; i++) {
            rc = lr_model_add(model, first + i, weights[i], err);
        }
    }
    free(weights);
    return rc;
}

/* The rows that are present in a table with hash keys. */
static psd_status_t
fetch_hash(lr_job_t *self,
           psd_select_t *select,
           lr_model_t *model,
           psd_error_t *err)
{
    psd_result_t *result = NULL;
    psd_status_t rc = PSD_OK;

    psd_select_all_rows(select);
    rc = psd_fetch(self->weights, select, false, 0, NULL, &result, err);
    for (size_t i = 0; rc == PSD_OK && i < psd_result_count(result); i++) {
        uint64_t row = 0;
        const void *values = NULL;

        psd_result_row(result, i, &row, NULL, &values, NULL);
        rc = lr_model_add(model, row, *(const float *)values, err);
    }
    psd_result_destroy(&result);
    return rc;
}

psd_status_t
lr_job_pull_model(lr_job_t *self, lr_model_t *ret_model, psd_error_t *err)
{
    psd_select_t *select = psd_select_new();
    lr_model_t model = {0};
    psd_status_t rc = PSD_OK;

    if (select == NULL) {
        return psd_error_set(err, PSD_NOMEM, "selection of rows");
    }
    if (psd_table_rows(self->weights) > 0) {
        rc = pull_range(self, select, &model, err);
    } else {
        rc = fetch_hash(self, select, &model, err);
    }
    psd_select_destroy(&select);
    if (rc != PSD_OK) {
        lr_model_done(&model);
        return rc;
    }
    *ret_model = model;
    return PSD_OK;
}

psd_status_t
lr_job_leave(lr_job_t *self, psd_error_t *err)
{
    psd_status_t rc = psd_leave(self->client, self->options->timeout_ms, err);

    psd_table_close(&self->sums);
    if (rc == PSD_OK && self->worker == 0) {
        rc = drop_scratch(self, "sums", err);
    }
    lr_job_close(self);
    return rc;
}

void
lr_job_close(lr_job_t *self)
{
    psd_table_close(&self->weights);
    psd_table_close(&self->counts);
    psd_table_close(&self->sums);
    psd_close(&self->client);
}
