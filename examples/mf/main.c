/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd-mf - matrix factorisation on a psd parameter server
 *
 * What     A user's program: it sees <psd.h> and <psd_data.h>. Each process is
 *          one worker; users and items are tables on the server.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../common/program/program.h"
#include "options.h"
#include "train.h"

static psd_status_t learn(const mf_options_t *options, const mf_data_t *data, mf_model_t *model,
                          psd_error_t *err)
{
    ex_job_t job = {0};
    psd_status_t rc = ex_job_open(&job, &options->job, err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = mf_train(options, &job, data, model, err);
    if (rc == PSD_OK && ex_job_is_first(&job) && options->save != NULL) {
        rc = mf_model_save(model, options->save, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_leave(&job, err);
    }
    ex_job_close(&job);
    return rc;
}

static psd_status_t train(const mf_options_t *options, psd_error_t *err)
{
    mf_ratings_t ratings = {0};
    mf_data_t data = {0};
    mf_model_t model = {0};
    psd_status_t rc = mf_ratings_load(&ratings, options->train, err);

    if (rc == PSD_OK) {
        rc = mf_data_init(&data, &model, &ratings, options, err);
    }
    mf_ratings_done(&ratings);
    if (rc == PSD_OK) {
        rc = learn(options, &data, &model, err);
    }
    mf_model_done(&model);
    mf_data_done(&data);
    return rc;
}

/* Predicts each, prints the error, writes the prediction. */
static psd_status_t score(const mf_model_t *model, const mf_ratings_t *ratings, const char *path,
                          psd_error_t *err)
{
    FILE *file = path == NULL ? NULL : fopen(path, "we");
    bool good = path == NULL || file != NULL;
    double sum = 0;
    char reason[128];

    for (size_t i = 0; good && i < ratings->n; i++) {
        double rating =
            mf_model_predict(model, mf_side_find(&model->users, ratings->users[i], model->width),
                             mf_side_find(&model->items, ratings->items[i], model->width));

        sum += (rating - (double)ratings->ratings[i]) * (rating - (double)ratings->ratings[i]);
        good = file == NULL || fprintf(file, "%.6g\n", rating) > 0;
    }
    if (file != NULL) {
        good = fclose(file) == 0 && good;
    }
    if (!good) {
        return psd_error_set(err, PSD_IO, "%s: %s", path, strerror_r(errno, reason, sizeof reason));
    }
    printf("test  %zu ratings  RMSE %.4f\n", ratings->n, sqrt(sum / (double)ratings->n));
    return PSD_OK;
}

static psd_status_t predict(const mf_options_t *options, psd_error_t *err)
{
    mf_ratings_t ratings = {0};
    mf_model_t model = {0};
    psd_status_t rc = mf_model_load(&model, options->predict, err);

    if (rc == PSD_OK) {
        rc = mf_ratings_load(&ratings, options->test, err);
    }
    if (rc == PSD_OK) {
        rc = score(&model, &ratings, options->scores, err);
    }
    mf_ratings_done(&ratings);
    mf_model_done(&model);
    return rc;
}

static psd_status_t run(int argc, char **argv, psd_error_t *err)
{
    mf_options_t options;
    psd_status_t rc = mf_options_read(&options, argc, argv, err);

    if (rc == PSD_OK && options.help) {
        mf_help();
        return PSD_OK;
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return options.predict != NULL ? predict(&options, err) : train(&options, err);
}

int main(int argc, char **argv)
{
    return ex_program("psd-mf", run, argc, argv);
}
