/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd-lr - sparse logistic regression on a psd parameter server
 *
 * What     A user's program: it sees <psd.h> and nothing else of psd. Each
 *          process is one worker with a part of the examples; the weights are a
 *          table on the server, whose updater turns gradients into steps.
 *          Errors are one line on stderr; the exit code is the status's.
 */
#include <stdio.h>

#include "feature_set.h"
#include "job.h"
#include "libsvm.h"
#include "model.h"
#include "options.h"
#include "progress.h"
#include "psd.h"
#include "report.h"
#include "train.h"

/* The examples of one process. */
typedef struct data {
    lr_samples_t train;
    lr_samples_t test; /* worker 0 only */
    lr_features_t features;
} data_t;

static void
data_done(data_t *self)
{
    lr_samples_done(&self->train);
    lr_samples_done(&self->test);
    lr_features_done(&self->features);
}

static psd_status_t
load_test(const lr_options_t *options, lr_samples_t *test, psd_error_t *err)
{
    lr_slice_t all = {.n_parts = 1, .index_max = LR_INDEX_MAX};

    if (options->features > 0) {
        all.index_max = options->features;
    }
    return lr_libsvm_load(options->test, &all, test, err);
}

/* Reads the data before anything is asked of the server: a mistake in it shows
 * before others wait for this worker. */
static psd_status_t
load(const lr_options_t *options, data_t *ret_data, psd_error_t *err)
{
    lr_slice_t slice = {.index_max = LR_INDEX_MAX};
    psd_status_t rc = lr_job_rank(&slice.part, &slice.n_parts, err);

    if (options->features > 0) {
        slice.index_max = options->features;
    }
    if (rc == PSD_OK) {
        rc = lr_libsvm_load(options->train, &slice, &ret_data->train, err);
    }
    if (rc == PSD_OK && options->test != NULL && slice.part == 0) {
        rc = load_test(options, &ret_data->test, err);
    }
    if (rc == PSD_OK) {
        rc = lr_features_init(&ret_data->features, &ret_data->train, err);
    }
    return rc;
}

/* What worker 0 does with the model, which was trained in so many seconds. */
static psd_status_t
finish(lr_job_t *job, data_t *data, double seconds, psd_error_t *err)
{
    const lr_options_t *options = job->options;
    lr_quality_t sums = {0};
    lr_model_t model = {0};
    psd_status_t rc = lr_job_pull_sums(job, &sums, err);

    if (rc == PSD_OK) {
        rc = lr_job_pull_model(job, &model, err);
    }
    if (rc == PSD_OK) {
        lr_report_train(options, &sums, &model, seconds);
    }
    if (rc == PSD_OK && options->test != NULL) {
        rc = lr_report_test(options, &data->test, &model, err);
    }
    if (rc == PSD_OK && options->save != NULL) {
        rc = lr_model_save(&model, options->save, err);
    }
    lr_model_done(&model);
    return rc;
}

static psd_status_t
train(const lr_options_t *options, data_t *data, psd_error_t *err)
{
    lr_job_t job = {0};
    uint32_t greatest = 0;
    double start_s = 0;
    psd_status_t rc = load(options, data, err);

    if (rc == PSD_OK) {
        rc = lr_job_open(&job, options, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    greatest = options->features > 0 ? options->features : data->train.greatest;
    rc = lr_job_open_tables(&job, greatest, err);
    start_s = lr_now_s();
    if (rc == PSD_OK) {
        rc = lr_train(&job, &data->train, &data->features, err);
    }
    if (rc == PSD_OK && job.worker == 0) {
        rc = finish(&job, data, lr_now_s() - start_s, err);
    }
    if (rc == PSD_OK) {
        return lr_job_leave(&job, err);
    }
    lr_job_close(&job);
    return rc;
}

static psd_status_t
predict(const lr_options_t *options, data_t *data, psd_error_t *err)
{
    lr_model_t model = {0};
    psd_status_t rc = lr_model_load(&model, options->predict, err);

    if (rc == PSD_OK) {
        rc = load_test(options, &data->test, err);
    }
    if (rc == PSD_OK) {
        rc = lr_report_test(options, &data->test, &model, err);
    }
    lr_model_done(&model);
    return rc;
}

static psd_status_t
run(int argc, char **argv, psd_error_t *err)
{
    lr_options_t options;
    data_t data = {0};
    psd_status_t rc = lr_options_read(&options, argc, argv, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (options.help) {
        lr_help();
        return PSD_OK;
    }
    rc = options.predict != NULL ? predict(&options, &data, err)
                                 : train(&options, &data, err);
    data_done(&data);
    return rc;
}

int
main(int argc, char **argv)
{
    psd_error_t *err = psd_error_new();
    psd_status_t rc = run(argc, argv, err);

    if (rc != PSD_OK) {
        const char *text = psd_error_text(err);

        (void)fprintf(stderr, "psd-lr: %s %s\n", psd_status_code(rc),
                      *text != '\0' ? text : psd_status_text(rc));
    } else if (fflush(stdout) != 0) {
        (void)fprintf(stderr, "psd-lr: stdout cannot be written\n");
        rc = PSD_IO;
    }
    psd_error_destroy(&err);
    return psd_status_exit(rc);
}
