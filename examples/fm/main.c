/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd-fm - factorisation machine on a psd parameter server
 *
 * What     A user's program: it sees <psd.h> and <psd_data.h>. Each process is
 *          one worker with a part of the samples; the model is in tables on the
 *          server. Errors are one line on stderr; the exit code is the
 *          status's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../common/program/program.h"
#include "../common/samples/load.h"
#include "../common/samples/report.h"
#include "job.h"
#include "model.h"
#include "options.h"
#include "train.h"

/* The samples of one process. */
typedef struct data {
    ex_samples_t train;
    ex_samples_t valid;
    ex_samples_t test; /* worker 0 only, unless it is lost */
} data_t;

static psd_status_t load_test(const fm_options_t *options, data_t *data, psd_error_t *err)
{
    ex_share_t all = {.n_parts = 1, .key_max = UINT64_MAX};

    return ex_load(options->test, &options->data, &all, &data->test, err);
}

/* Reads the data before it contacts the server, so that an error in the data
 * shows before others wait for this worker. */
static psd_status_t load_data(const fm_options_t *options, data_t *data, psd_error_t *err)
{
    ex_share_t share = {.key_max = UINT64_MAX};
    psd_status_t rc = ex_job_rank(&share.part, &share.n_parts, err);

    if (rc == PSD_OK) {
        rc = ex_load(options->train, &options->data, &share, &data->train, err);
    }
    if (rc == PSD_OK && options->valid != NULL) {
        rc = ex_load(options->valid, &options->data, &share, &data->valid, err);
    }
    if (rc == PSD_OK && options->test != NULL && share.part == 0) {
        rc = load_test(options, data, err);
    }
    return rc;
}

static psd_status_t report_test(const fm_options_t *options, const ex_samples_t *test,
                                const fm_model_t *model, psd_error_t *err)
{
    ex_measure_t how = {.scores_path = options->scores};
    double *margins = calloc(test->n + 1, sizeof(*margins));
    psd_status_t rc = PSD_OK;

    if (margins == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu scores", test->n);
    }
    rc = fm_model_score(model, test, margins, err);
    if (rc == PSD_OK) {
        rc = ex_report_margins(&how, test, margins, err);
    }
    free(margins);
    return rc;
}

/* The first worker's use of the model; seconds: the time of the training. */
static psd_status_t finish(const fm_job_t *job, data_t *data, const fm_epoch_t *last,
                           const fm_model_t *model, double seconds, psd_error_t *err)
{
    const fm_options_t *options = job->options;
    psd_status_t rc = PSD_OK;

    ex_quality_print("train", &last->train);
    (void)printf("  nonzeros %zu  embeddings %zu  %.3f s\n", model->n, model->n_slots, seconds);
    if (options->save != NULL) {
        rc = fm_model_save(model, options->save, err);
    }
    if (rc == PSD_OK && options->test != NULL && job->ex.worker != 0) {
        rc = load_test(options, data, err); /* worker 0 had it, and was lost */
    }
    if (rc == PSD_OK && options->test != NULL) {
        rc = report_test(options, &data->test, model, err);
    }
    return rc;
}

static psd_status_t learn(const fm_options_t *options, data_t *data, psd_error_t *err)
{
    fm_job_t job = {0};
    fm_epoch_t last = {.train = {0}};
    fm_model_t model = {0};
    double start_s = 0;
    psd_status_t rc = fm_job_open(&job, options, err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = fm_job_open_tables(&job, &data->train, &data->valid, err);
    start_s = ex_now_s();
    if (rc == PSD_OK) {
        rc = fm_train(&job, &data->train, &data->valid, &last, &model, err);
    }
    if (rc == PSD_OK && ex_job_is_first(&job.ex)) {
        rc = finish(&job, data, &last, &model, ex_now_s() - start_s, err);
    }
    fm_model_done(&model);
    if (rc == PSD_OK) {
        return fm_job_leave(&job, err);
    }
    fm_job_close(&job);
    return rc;
}

static psd_status_t predict(const fm_options_t *options, data_t *data, psd_error_t *err)
{
    fm_model_t model = {0};
    psd_status_t rc = fm_model_load(&model, options->predict, err);

    if (rc == PSD_OK) {
        rc = load_test(options, data, err);
    }
    if (rc == PSD_OK) {
        rc = report_test(options, &data->test, &model, err);
    }
    fm_model_done(&model);
    return rc;
}

static psd_status_t train(const fm_options_t *options, data_t *data, psd_error_t *err)
{
    psd_status_t rc = load_data(options, data, err);

    return rc == PSD_OK ? learn(options, data, err) : rc;
}

static psd_status_t run(int argc, char **argv, psd_error_t *err)
{
    fm_options_t options;
    data_t data = {.train = {0}};
    psd_status_t rc = fm_options_read(&options, argc, argv, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (options.help) {
        fm_help();
        return PSD_OK;
    }
    rc = options.predict != NULL ? predict(&options, &data, err) : train(&options, &data, err);
    ex_samples_done(&data.train);
    ex_samples_done(&data.valid);
    ex_samples_done(&data.test);
    return rc;
}

int main(int argc, char **argv)
{
    return ex_program("psd-fm", run, argc, argv);
}
