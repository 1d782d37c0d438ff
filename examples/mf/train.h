/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mf_train - a worker's part of the training
 *
 * What     Users and items are a table each, of f32 that adds, a row for each.
 *          Every worker has read all ratings, so that all number users and
 *          items alike; worker i of n learns the ratings of users u with u mod
 *          n = i. Under SGD it steps through a block of them on its own copy of
 *          the rows, and pushes by how much they have changed; the next pull
 *          brings the changes of all. Under ALS it solves its users for the
 *          items, all meet, and it solves its items for the users.
 */
#ifndef MF_TRAIN_H
#define MF_TRAIN_H

#include "model.h"
#include "options.h"
#include "ratings.h"

/* A rating with rows in place of ids. */
typedef struct mf_rating {
    uint32_t user;
    uint32_t item;
    float rating;
} mf_rating_t;

typedef struct mf_data {
    mf_rating_t *train; /* owned, as test */
    size_t n_train;
    mf_rating_t *test;
    size_t n_test;
} mf_data_t;

/* Numbers users and items, cuts the test ratings off, and makes a model with
 * the mean of the others and rows of zero. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t mf_data_init(mf_data_t *ret_data, mf_model_t *ret_model,
                                         const mf_ratings_t *ratings, const mf_options_t *options,
                                         psd_error_t *err);
void mf_data_done(mf_data_t *self);

/* Afterwards the model has the final rows. */
PSD_MUST_CHECK psd_status_t mf_train(const mf_options_t *options, ex_job_t *job,
                                     const mf_data_t *data, mf_model_t *model, psd_error_t *err);
/* Root of the mean squared error of the model; NaN without ratings. */
double mf_rmse(const mf_model_t *model, const mf_rating_t *ratings, size_t n);

/* Sets row = the least squares solution for `n` ratings of one side's row,
 * given the other side's. width <= room of the scratch. PSD_NOMEM. */
typedef struct mf_solver mf_solver_t;
PSD_MUST_CHECK psd_status_t mf_solver_new(size_t width, mf_solver_t **ret_solver, psd_error_t *err);
void mf_solver_destroy(mf_solver_t **self_p);
/* The sums of no ratings. */
void mf_solver_clear(mf_solver_t *self);
/* A rating, less the mean, of the row that is solved, and the other's row. */
void mf_solver_add(mf_solver_t *self, const float *other, double rating);
/* The row, with lambda for each rating; zero without ratings. */
void mf_solver_solve(mf_solver_t *self, double lambda, float *ret_row);
#endif
