/* SPDX-License-Identifier: Apache-2.0 */
/* Agreement of the workers before the training, and the tables. */
#include "trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/job/weights.h"

void bcd_trainer_name(const bcd_trainer_t *self, const char *what, char ret_name[EX_NAME_SIZE])
{
    ex_job_name_scratch(self->job, self->options->table, what, ret_name);
}

/* The number of samples, and the greatest key. */
static psd_status_t agree_on_size(bcd_trainer_t *self, psd_error_t *err)
{
    const ex_samples_t *samples = self->samples;
    double greatest = 0;
    char name[EX_NAME_SIZE];
    psd_status_t rc = PSD_OK;

    self->n_samples = (double)samples->n;
    if (samples->n_features > 0) {
        greatest = (double)samples->keys[samples->n_features - 1];
    }
    rc = ex_job_look_for(self->job, self->options->table, err);
    bcd_trainer_name(self, "size", name);
    if (rc == PSD_OK) {
        rc = ex_job_reduce(self->job, name, "add", &self->n_samples, 1, err);
    }
    bcd_trainer_name(self, "greatest", name);
    if (rc == PSD_OK) {
        rc = ex_job_reduce(self->job, name, "max", &greatest, 1, err);
        self->n_rows = ex_weights_rows(greatest);
    }
    return rc;
}

/* A table of this run: worker 0 creates it again, all open it. */
static psd_status_t open_anew(bcd_trainer_t *self, const char *what, const char *const *pairs,
                              uint64_t n_rows, psd_table_t **ret_table, psd_error_t *err)
{
    char name[EX_NAME_SIZE];
    psd_status_t rc = PSD_OK;

    bcd_trainer_name(self, what, name);
    if (self->job->worker == 0) {
        rc = ex_job_drop(self->job, name, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_barrier(self->job, err);
    }
    return rc == PSD_OK ? ex_weights_ensure(self->job, name, pairs, n_rows, ret_table, err) : rc;
}

/* The owner of a feature is the worker of the greatest rank that has it. */
static psd_status_t agree_on_owners(bcd_trainer_t *self, psd_error_t *err)
{
    static const char *const PAIRS[] = {"type", "i32", "updater", "max", NULL};
    const ex_samples_t *samples = self->samples;
    size_t n = samples->n_features;
    int32_t mine = (int32_t)self->job->worker + 1;
    int32_t *ranks = malloc((n + 1) * sizeof(*ranks));
    psd_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    if (ranks == NULL) {
        return psd_error_set(err, PSD_NOMEM, "owners of %zu features", n);
    }
    for (size_t j = 0; j < n; j++) {
        ranks[j] = mine;
    }
    rc = open_anew(self, "owners", PAIRS, self->n_rows, &table, err);
    if (rc == PSD_OK && n > 0) {
        rc = psd_push(table, samples->keys, n, ranks, n, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_meet(self->job, err);
    }
    if (rc == PSD_OK && n > 0) {
        rc = psd_pull(table, samples->keys, n, ranks, n, err);
    }
    for (size_t j = 0; j < n; j++) {
        self->is_owned[j] = ranks[j] == mine;
    }
    psd_table_close(&table);
    free(ranks);
    return rc;
}

/* With separate groups a feature may be in several: all workers take the
 * group in which its owner saw it first. */
static psd_status_t agree_on_groups(bcd_trainer_t *self, ex_samples_t *samples, psd_error_t *err)
{
    static const char *const PAIRS[] = {"type", "i64", "updater", "add", NULL};
    size_t n = samples->n_features;
    psd_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    if (self->options->prior == NULL) {
        return PSD_OK;
    }
    rc = open_anew(self, "places", PAIRS, self->n_rows, &table, err);
    for (size_t j = 0; j < n; j++) {
        samples->groups[j] = self->is_owned[j] ? samples->groups[j] : 0;
    }
    if (rc == PSD_OK && n > 0) {
        rc = psd_push(table, samples->keys, n, samples->groups, n, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_meet(self->job, err);
    }
    if (rc == PSD_OK && n > 0) {
        rc = psd_pull(table, samples->keys, n, samples->groups, n, err);
    }
    psd_table_close(&table);
    return rc;
}

static int compare_groups(const void *a, const void *b)
{
    int64_t x = ((const bcd_group_t *)a)->id;
    int64_t y = ((const bcd_group_t *)b)->id;

    return (x > y) - (x < y);
}

/* This worker's groups, with its number of entries in each. NULL: no memory. */
static bcd_group_t *own_groups(const bcd_trainer_t *self, size_t *ret_n)
{
    const ex_samples_t *samples = self->samples;
    size_t n = samples->n_features;
    bcd_group_t *list = malloc((n + 1) * sizeof(*list));
    size_t kept = 0;

    if (list == NULL) {
        return NULL;
    }
    for (size_t j = 0; j < n; j++) {
        list[j].id = samples->groups[j];
        list[j].n_entries = (double)(self->columns.starts[j + 1] - self->columns.starts[j]);
    }
    qsort(list, n, sizeof(*list), compare_groups);
    for (size_t j = 0; j < n; j++) {
        if (kept > 0 && list[kept - 1].id == list[j].id) {
            list[kept - 1].n_entries += list[j].n_entries;
        } else {
            list[kept++] = list[j];
        }
    }
    *ret_n = kept;
    return list;
}

static psd_status_t push_groups(psd_table_t *table, const bcd_group_t *groups, size_t n,
                                psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t g = 0; rc == PSD_OK && g < n; g++) {
        uint64_t row = (uint64_t)groups[g].id;

        rc = psd_push(table, &row, 1, &groups[g].n_entries, 1, err);
    }
    return rc;
}

/* The groups of all workers, ascending. */
static psd_status_t fetch_groups(psd_table_t *table, bcd_group_t **ret_groups, size_t *ret_n,
                                 psd_error_t *err)
{
    psd_select_t *select = psd_select_new();
    psd_result_t *result = NULL;
    bcd_group_t *groups = NULL;
    psd_status_t rc = PSD_OK;

    if (select == NULL) {
        return psd_error_set(err, PSD_NOMEM, "selection of groups");
    }
    psd_select_all_rows(select);
    rc = psd_fetch(table, select, false, 0, NULL, &result, err);
    psd_select_destroy(&select);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_n = psd_result_count(result);
    groups = malloc((*ret_n + 1) * sizeof(*groups));
    for (size_t g = 0; groups != NULL && g < *ret_n; g++) {
        uint64_t row = 0;
        const void *values = NULL;

        psd_result_row(result, g, &row, NULL, &values, NULL);
        groups[g].id = (int64_t)row;
        groups[g].n_entries = *(const double *)values;
    }
    psd_result_destroy(&result);
    if (groups == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu groups", *ret_n);
    }
    qsort(groups, *ret_n, sizeof(*groups), compare_groups);
    *ret_groups = groups;
    return PSD_OK;
}

/* Puts the groups that come first at the front, in the order of the option;
 * returns their number. */
static size_t put_prior_first(const bcd_options_t *options, bcd_group_t *groups, size_t n)
{
    size_t n_prior = 0;

    for (size_t p = 0; p < options->n_prior; p++) {
        for (size_t g = n_prior; g < n; g++) {
            if (groups[g].id == options->prior_groups[p]) {
                bcd_group_t found = groups[g];

                memmove(&groups[n_prior + 1], &groups[n_prior], (g - n_prior) * sizeof(*groups));
                groups[n_prior++] = found;
                break;
            }
        }
    }
    return n_prior;
}

static psd_status_t agree_on_blocks(bcd_trainer_t *self, psd_error_t *err)
{
    static const char *const PAIRS[] = {"type", "f64", "updater", "add", NULL};
    bcd_cut_t cut = {.n_samples = self->n_samples, .ratio = self->options->block_ratio};
    bcd_group_t *groups = own_groups(self, &cut.n_groups);
    psd_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    if (groups == NULL) {
        return psd_error_set(err, PSD_NOMEM, "groups of features");
    }
    rc = open_anew(self, "groups", PAIRS, 0, &table, err);
    if (rc == PSD_OK) {
        rc = push_groups(table, groups, cut.n_groups, err);
    }
    free(groups);
    groups = NULL;
    if (rc == PSD_OK) {
        rc = ex_job_meet(self->job, err);
    }
    if (rc == PSD_OK) {
        rc = fetch_groups(table, &groups, &cut.n_groups, err);
    }
    psd_table_close(&table);
    if (rc == PSD_OK) {
        cut.n_prior = put_prior_first(self->options, groups, cut.n_groups);
        cut.groups = groups;
        rc = bcd_blocks_init(&self->blocks, self->samples, &cut, err);
    }
    free(groups);
    return rc;
}

static psd_status_t open_tables(bcd_trainer_t *self, psd_error_t *err)
{
    static const char *const SLOPES[] = {"type", "f64", "cols", "2", "updater", "add", NULL};
    static const char *const WEIGHTS[] = {"type", "f32", "updater", "assign", NULL};
    uint64_t n_passes = (uint64_t)self->options->passes + self->options->prior_passes;
    char cols[24];
    const char *const passes[] = {"type", "f64", "cols", cols, "updater", "add", NULL};
    psd_status_t rc = open_anew(self, "slopes", SLOPES, self->n_rows, &self->slopes, err);

    (void)snprintf(cols, sizeof(cols), "%" PRIu32, BCD_PASS_COLS(self->job->n_workers));
    if (rc == PSD_OK) {
        rc = open_anew(self, "passes", passes, n_passes, &self->passes, err);
    }
    if (rc == PSD_OK) {
        rc = ex_weights_ensure(self->job, self->options->table, WEIGHTS, self->n_rows, &self->table,
                               err);
    }
    if (rc == PSD_OK) {
        ex_job_tell_old(self->job);
    }
    return rc;
}

/* Continues from the stored weights. */
static psd_status_t take_weights(bcd_trainer_t *self, psd_error_t *err)
{
    const ex_samples_t *samples = self->samples;
    size_t n = samples->n_features;
    psd_status_t rc = PSD_OK;

    if (n > 0) {
        rc = psd_pull(self->table, samples->keys, n, self->saved, n, err);
    }
    for (size_t j = 0; rc == PSD_OK && j < n; j++) {
        self->weights[j].w = (double)self->saved[j];
        self->weights[j].delta = self->options->delta_init;
        if (self->weights[j].w != 0) {
            ex_columns_move(&self->columns, j, self->weights[j].w);
        }
    }
    /* No worker may push before all have pulled. */
    return rc == PSD_OK ? ex_job_barrier(self->job, err) : rc;
}

psd_status_t bcd_trainer_init(bcd_trainer_t *self, ex_job_t *job, const bcd_options_t *options,
                              ex_samples_t *samples, psd_error_t *err)
{
    size_t n = samples->n_features + 1; /* never an allocation of nothing */
    psd_status_t rc = PSD_OK;

    memset(self, 0, sizeof(*self));
    self->job = job;
    self->options = options;
    self->samples = samples;
    self->weights = calloc(n, sizeof(*self->weights));
    self->pushed = calloc(2 * n, sizeof(*self->pushed));
    self->saved = calloc(n, sizeof(*self->saved));
    self->is_owned = calloc(n, sizeof(*self->is_owned));
    if (self->weights == NULL || self->pushed == NULL || self->saved == NULL ||
        self->is_owned == NULL) {
        return psd_error_set(err, PSD_NOMEM, "training with %zu features", n);
    }
    rc = ex_columns_init(&self->columns, samples, err);
    if (rc == PSD_OK) {
        rc = agree_on_size(self, err);
    }
    if (rc == PSD_OK) {
        rc = agree_on_owners(self, err);
    }
    if (rc == PSD_OK) {
        rc = agree_on_groups(self, samples, err);
    }
    if (rc == PSD_OK) {
        rc = agree_on_blocks(self, err);
    }
    if (rc == PSD_OK) {
        rc = open_tables(self, err);
    }
    return rc == PSD_OK ? take_weights(self, err) : rc;
}

void bcd_trainer_done(bcd_trainer_t *self)
{
    psd_table_close(&self->slopes);
    psd_table_close(&self->passes);
    psd_table_close(&self->table);
    ex_columns_done(&self->columns);
    bcd_blocks_done(&self->blocks);
    free(self->weights);
    free(self->pushed);
    free(self->saved);
    free(self->is_owned);
    memset(self, 0, sizeof(*self));
}

psd_status_t bcd_trainer_save(bcd_trainer_t *self, psd_error_t *err)
{
    size_t room = self->samples->n_features + 1;
    uint64_t *rows = malloc(room * sizeof(*rows));
    float *values = malloc(room * sizeof(*values));
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    if (rows == NULL || values == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "%zu weights", room);
    }
    for (size_t j = 0; rc == PSD_OK && j < self->samples->n_features; j++) {
        float w = (float)self->weights[j].w;

        if (self->is_owned[j] && w != self->saved[j]) {
            rows[n] = self->samples->keys[j];
            values[n++] = w;
            self->saved[j] = w;
        }
    }
    if (rc == PSD_OK && n > 0) {
        rc = psd_push(self->table, rows, n, values, n, err);
    }
    free(rows);
    free(values);
    return rc;
}
