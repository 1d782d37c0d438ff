/* SPDX-License-Identifier: Apache-2.0 */
/* SGD steps and least squares, and the pushes of their changes. */
#include "train.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/program/program.h"
#include "../common/program/random.h"

#define NAME_SIZE 256
#define START 0.05 /* first factors are within this of zero */

/* Users or items: the rows as this worker has them, and as it pulled them. */
typedef struct side {
    mf_side_t *model;
    psd_table_t *table;
    psd_select_t *all;
    psd_select_t *some;
    float *pulled;
    float *deltas;
    uint64_t *changed; /* rows that are pushed */
} side_t;

typedef struct trainer {
    const mf_options_t *options;
    ex_job_t *job;
    mf_model_t *model;
    mf_rating_t *mine; /* of this worker's users */
    size_t n_mine;
    side_t users;
    side_t items;
    uint32_t *order;
    uint64_t random;
} trainer_t;

static void side_done(side_t *self)
{
    psd_table_close(&self->table);
    psd_select_destroy(&self->all);
    psd_select_destroy(&self->some);
    free(self->pulled);
    free(self->deltas);
    free(self->changed);
}

static psd_status_t pull(trainer_t *self, side_t *side, psd_error_t *err)
{
    size_t n = side->model->n * self->model->width;
    psd_ticket_t ticket = 0;
    psd_status_t rc =
        psd_pull_start(side->table, side->all, side->model->rows, n, NULL, &ticket, err);

    if (rc == PSD_OK) {
        rc = ex_job_wait(self->job, &ticket, err);
    }
    if (rc == PSD_OK) {
        memcpy(side->pulled, side->model->rows, n * sizeof *side->pulled);
    }
    return rc;
}

/* Pushes by how much the rows differ from what was pulled. */
static psd_status_t push(trainer_t *self, side_t *side, psd_error_t *err)
{
    size_t width = self->model->width;
    psd_ticket_t ticket = 0;
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    for (size_t row = 0; row < side->model->n; row++) {
        const float *now = side->model->rows + row * width;
        const float *before = side->pulled + row * width;

        if (memcmp(now, before, width * sizeof *now) == 0) {
            continue;
        }
        for (size_t k = 0; k < width; k++) {
            side->deltas[n * width + k] = now[k] - before[k];
        }
        side->changed[n++] = row;
    }
    if (n == 0) {
        return PSD_OK;
    }
    psd_select_rows(side->some, side->changed, n);
    rc = psd_push_start(side->table, side->some, side->deltas, n * width, NULL, &ticket, err);
    return rc == PSD_OK ? ex_job_wait(self->job, &ticket, err) : rc;
}

static psd_status_t side_open(trainer_t *self, side_t *side, mf_side_t *model, const char *what,
                              psd_error_t *err)
{
    size_t n = model->n * self->model->width;
    char name[NAME_SIZE];
    char rows[32];
    char cols[32];
    const char *const pairs[] = {"rows",  rows,   "cols",  cols,      "type", "f32", "row-format",
                                 "dense", "keys", "range", "updater", "add",  NULL};
    psd_status_t rc = PSD_OK;

    side->model = model;
    side->all = psd_select_new();
    side->some = psd_select_new();
    side->pulled = calloc(n, sizeof *side->pulled);
    side->deltas = calloc(n, sizeof *side->deltas);
    side->changed = calloc(model->n, sizeof *side->changed);
    if (side->all == NULL || side->some == NULL || side->pulled == NULL || side->deltas == NULL ||
        side->changed == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu %s", model->n, what);
    }
    psd_select_row_range(side->all, 0, model->n);
    (void)snprintf(name, sizeof name, "%s.%s", self->options->table, what);
    (void)snprintf(rows, sizeof rows, "%zu", model->n);
    (void)snprintf(cols, sizeof cols, "%zu", self->model->width);
    rc = ex_job_ensure(self->job, name, pairs, &side->table, err);
    return rc == PSD_OK ? pull(self, side, err) : rc;
}

/* First factors, where the table is new: users' and items' alike. */
static void start(trainer_t *self, side_t *side)
{
    size_t n = side->model->n * self->model->width;

    for (size_t i = 0; i < n; i++) {
        if (side->model->rows[i] != 0) {
            return;
        }
    }
    for (size_t i = 0; i < n; i++) {
        double x = START * (2 * ex_random_real(&self->random) - 1);

        side->model->rows[i] = i % self->model->width == 0 ? 0 : (float)x;
    }
}

static psd_status_t meet(trainer_t *self, psd_error_t *err)
{
    psd_status_t rc = ex_job_meet(self->job, err);

    if (rc == PSD_OK) {
        rc = pull(self, &self->users, err);
    }
    return rc == PSD_OK ? pull(self, &self->items, err) : rc;
}

static psd_status_t open_tables(trainer_t *self, psd_error_t *err)
{
    char name[NAME_SIZE];
    psd_status_t rc = PSD_OK;

    (void)snprintf(name, sizeof name, "%s.users", self->options->table);
    rc = ex_job_look_for(self->job, name, err);
    if (rc == PSD_OK) {
        rc = ex_job_barrier(self->job, err);
    }
    if (rc == PSD_OK) {
        rc = side_open(self, &self->users, &self->model->users, "users", err);
    }
    if (rc == PSD_OK) {
        rc = side_open(self, &self->items, &self->model->items, "items", err);
    }
    /* All workers have checked before one fills them. */
    if (rc == PSD_OK) {
        ex_job_tell_old(self->job);
        rc = ex_job_barrier(self->job, err);
    }
    if (rc == PSD_OK && ex_job_is_first(self->job)) {
        start(self, &self->users);
        start(self, &self->items);
        rc = push(self, &self->users, err);
        if (rc == PSD_OK) {
            rc = push(self, &self->items, err);
        }
    }
    return rc == PSD_OK ? meet(self, err) : rc;
}

static psd_status_t take_mine(trainer_t *self, const mf_data_t *data, psd_error_t *err)
{
    self->mine = calloc(data->n_train + 1, sizeof *self->mine);
    self->order = calloc(data->n_train + 1, sizeof *self->order);
    if (self->mine == NULL || self->order == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu ratings", data->n_train);
    }
    for (size_t i = 0; i < data->n_train; i++) {
        if (data->train[i].user % self->job->n_workers == self->job->worker) {
            self->order[self->n_mine] = (uint32_t)self->n_mine;
            self->mine[self->n_mine++] = data->train[i];
        }
    }
    return PSD_OK;
}

/* One step down the slope of the rating's squared error and its rows' size. */
static void step(trainer_t *self, const mf_rating_t *rating, double size)
{
    size_t width = self->model->width;
    float *user = self->users.model->rows + rating->user * width;
    float *item = self->items.model->rows + rating->item * width;
    double lambda = self->options->lambda;
    double off = (double)rating->rating - mf_model_predict(self->model, user, item);

    for (size_t k = 0; k < width; k++) {
        double u = (double)user[k];
        double v = (double)item[k];

        user[k] += (float)(size * (off * (k == 0 ? 1 : v) - lambda * u));
        item[k] += (float)(size * (off * (k == 0 ? 1 : u) - lambda * v));
    }
}

static psd_status_t run_sgd_epoch(trainer_t *self, uint32_t epoch, psd_error_t *err)
{
    const mf_options_t *options = self->options;
    double size = options->step / (1 + options->decay * (double)epoch);
    psd_status_t rc = PSD_OK;

    ex_shuffle(self->order, self->n_mine, &self->random);
    for (uint32_t b = 0; rc == PSD_OK && b < options->blocks; b++) {
        size_t end = self->n_mine * (b + 1) / options->blocks;

        for (size_t i = self->n_mine * b / options->blocks; i < end; i++) {
            step(self, &self->mine[self->order[i]], size);
        }
        rc = push(self, &self->users, err);
        if (rc == PSD_OK) {
            rc = push(self, &self->items, err);
        }
        if (rc == PSD_OK) {
            rc = meet(self, err);
        }
    }
    return rc;
}

/* Ratings by user or by item: those of row r are lists[starts[r] ..]. */
typedef struct lists {
    size_t *starts;
    uint32_t *ratings;
} lists_t;

static void lists_done(lists_t *self)
{
    free(self->starts);
    free(self->ratings);
}

static psd_status_t lists_init(lists_t *self, const mf_data_t *data, size_t n_rows, bool by_user,
                               psd_error_t *err)
{
    self->starts = calloc(n_rows + 2, sizeof *self->starts);
    self->ratings = calloc(data->n_train + 1, sizeof *self->ratings);
    if (self->starts == NULL || self->ratings == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu ratings", data->n_train);
    }
    for (size_t i = 0; i < data->n_train; i++) {
        const mf_rating_t *rating = &data->train[i];

        self->starts[(by_user ? rating->user : rating->item) + 2]++;
    }
    for (size_t r = 0; r < n_rows; r++) {
        self->starts[r + 2] += self->starts[r + 1];
    }
    for (size_t i = 0; i < data->n_train; i++) {
        const mf_rating_t *rating = &data->train[i];
        size_t *at = &self->starts[(by_user ? rating->user : rating->item) + 1];

        self->ratings[(*at)++] = (uint32_t)i;
    }
    return PSD_OK;
}

/* This worker's rows of one side, given those of the other. */
static psd_status_t solve(trainer_t *self, const mf_data_t *data, mf_solver_t *solver,
                          const lists_t *lists, bool by_user, psd_error_t *err)
{
    side_t *side = by_user ? &self->users : &self->items;
    const mf_side_t *other = by_user ? self->items.model : self->users.model;
    size_t width = self->model->width;
    psd_status_t rc = PSD_OK;

    for (size_t r = self->job->worker; r < side->model->n; r += self->job->n_workers) {
        mf_solver_clear(solver);
        for (size_t i = lists->starts[r]; i < lists->starts[r + 1]; i++) {
            const mf_rating_t *rating = &data->train[lists->ratings[i]];

            mf_solver_add(solver, other->rows + (by_user ? rating->item : rating->user) * width,
                          (double)rating->rating - self->model->mean);
        }
        mf_solver_solve(solver, self->options->lambda, side->model->rows + r * width);
    }
    rc = push(self, side, err);
    return rc == PSD_OK ? meet(self, err) : rc;
}

/* After each epoch; the first worker prints. */
static void tell(const trainer_t *self, const mf_data_t *data, uint32_t epoch, double start_s)
{
    if (ex_job_is_first(self->job)) {
        printf("%7.1f s  epoch %u/%u  train RMSE %.4f", ex_now_s() - start_s, epoch,
               self->options->epochs, mf_rmse(self->model, data->train, data->n_train));
        if (data->n_test > 0) {
            printf("  test RMSE %.4f", mf_rmse(self->model, data->test, data->n_test));
        }
        puts("");
        (void)fflush(stdout);
    }
}

static psd_status_t run(trainer_t *self, const mf_data_t *data, psd_error_t *err)
{
    mf_solver_t *solver = NULL;
    lists_t by_user = {0};
    lists_t by_item = {0};
    bool als = self->options->method == MF_ALS;
    double start_s = ex_now_s();
    psd_status_t rc = mf_solver_new(self->model->width, &solver, err);

    if (rc == PSD_OK && als) {
        rc = lists_init(&by_user, data, self->users.model->n, true, err);
    }
    if (rc == PSD_OK && als) {
        rc = lists_init(&by_item, data, self->items.model->n, false, err);
    }
    for (uint32_t epoch = 0; rc == PSD_OK && epoch < self->options->epochs; epoch++) {
        if (!als) {
            rc = run_sgd_epoch(self, epoch, err);
        } else {
            rc = solve(self, data, solver, &by_user, true, err);
            if (rc == PSD_OK) {
                rc = solve(self, data, solver, &by_item, false, err);
            }
        }
        if (rc == PSD_OK) {
            tell(self, data, epoch + 1, start_s);
        }
    }
    lists_done(&by_user);
    lists_done(&by_item);
    mf_solver_destroy(&solver);
    return rc;
}

psd_status_t mf_train(const mf_options_t *options, ex_job_t *job, const mf_data_t *data,
                      mf_model_t *model, psd_error_t *err)
{
    trainer_t self = {.options = options,
                      .job = job,
                      .model = model,
                      .random = options->seed ^ ((uint64_t)job->worker << 32)};
    psd_status_t rc = take_mine(&self, data, err);

    if (rc == PSD_OK) {
        rc = open_tables(&self, err);
    }
    if (rc == PSD_OK) {
        rc = run(&self, data, err);
    }
    side_done(&self.users);
    side_done(&self.items);
    free(self.mine);
    free(self.order);
    return rc;
}
