/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd-bcd - L1 logistic regression by delayed block proximal gradient
 *
 * What     A user's program: it sees the public headers and nothing else of
 *          psd. Each process is one worker with a part of the samples.
 */
#include <inttypes.h>
#include <stdio.h>

#include "../common/program/program.h"
#include "../common/samples/load.h"
#include "../common/samples/model.h"
#include "../common/samples/report.h"
#include "options.h"
#include "psd.h"
#include "train.h"

/* The samples of one process. */
typedef struct data {
    ex_samples_t train;
    ex_samples_t test; /* worker 0 only */
} data_t;

static psd_status_t load_test(const bcd_options_t *options, ex_samples_t *test, psd_error_t *err)
{
    const ex_share_t all = {.n_parts = 1, .key_max = UINT64_MAX};

    return ex_load(options->test, &options->data, &all, test, err);
}

/* Reads the data before it contacts the server, so that an error in the data
 * shows before others wait for this worker. */
static psd_status_t load(const bcd_options_t *options, data_t *ret_data, psd_error_t *err)
{
    /* Groups matter only with --groups; merged, dense ones do not share keys. */
    ex_share_t share = {.groups = options->prior != NULL, .key_max = UINT64_MAX};
    psd_status_t rc = ex_job_rank(&share.part, &share.n_parts, err);

    if (rc == PSD_OK) {
        rc = ex_load(options->train, &options->data, &share, &ret_data->train, err);
    }
    if (rc == PSD_OK && options->test != NULL && share.part == 0) {
        rc = load_test(options, &ret_data->test, err);
    }
    return rc;
}

/* Worker 0's use of the model. */
static psd_status_t finish(const bcd_options_t *options, const data_t *data,
                           const bcd_result_t *result, const ex_model_t *model, psd_error_t *err)
{
    const ex_measure_t how = {.scores_path = options->scores};
    psd_status_t rc = PSD_OK;

    (void)printf("train  %.0f examples  logloss %.5f  nonzeros %" PRIu64 "  F %.6f  %" PRIu32
                 " passes, %s\n",
                 result->n_samples, result->loss, result->n_nonzeros, result->f, result->n_passes,
                 result->has_converged ? "converged" : "not converged");
    if (options->test != NULL) {
        rc = ex_report_test(&how, &data->test, model, err);
    }
    if (rc == PSD_OK && options->save != NULL) {
        rc = ex_model_save(model, options->save, err);
    }
    return rc;
}

static psd_status_t train(const bcd_options_t *options, data_t *data, psd_error_t *err)
{
    ex_job_t job = {0};
    bcd_result_t result = {0};
    ex_model_t model = {0};
    psd_status_t rc = load(options, data, err);

    if (rc == PSD_OK) {
        rc = ex_job_open(&job, &options->job, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rc = bcd_train(&job, options, &data->train, &result, &model, err);
    if (rc == PSD_OK && job.worker == 0) {
        rc = finish(options, data, &result, &model, err);
    }
    if (rc == PSD_OK) {
        rc = ex_job_leave(&job, err);
    }
    ex_model_done(&model);
    ex_job_close(&job);
    return rc;
}

static psd_status_t predict(const bcd_options_t *options, data_t *data, psd_error_t *err)
{
    const ex_measure_t how = {.scores_path = options->scores};
    ex_model_t model = {0};
    psd_status_t rc = ex_model_load(&model, options->predict, err);

    if (rc == PSD_OK) {
        rc = load_test(options, &data->test, err);
    }
    if (rc == PSD_OK) {
        rc = ex_report_test(&how, &data->test, &model, err);
    }
    ex_model_done(&model);
    return rc;
}

static psd_status_t run(int argc, char **argv, psd_error_t *err)
{
    bcd_options_t options;
    data_t data = {0};
    psd_status_t rc = bcd_options_read(&options, argc, argv, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (options.help) {
        bcd_help();
        return PSD_OK;
    }
    rc = options.predict != NULL ? predict(&options, &data, err) : train(&options, &data, err);
    ex_samples_done(&data.train);
    ex_samples_done(&data.test);
    return rc;
}

int main(int argc, char **argv)
{
    return ex_program("psd-bcd", run, argc, argv);
}
