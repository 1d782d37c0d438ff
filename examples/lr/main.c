/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd-lr - sparse logistic regression on a psd parameter server
 *
 * What     A user's program: it sees <psd.h> and nothing else of psd. Each
 *          process is one worker with a part of the examples; the weights are a
 *          table on the server, whose updater turns gradients into steps.
 *          Errors are one line on stderr; the exit code is the status's.
 */
#include "../common/program/program.h"
#include "../common/samples/load.h"
#include "../common/samples/model.h"
#include "../common/samples/report.h"
#include "consensus.h"
#include "job.h"
#include "lbfgs.h"
#include "loss.h"
#include "options.h"
#include "psd.h"
#include "report.h"
#include "train.h"

/* The examples of one process. */
typedef struct data {
    ex_samples_t train;
    ex_samples_t test; /* worker 0 only, unless it is lost */
} data_t;

static void data_done(data_t *self)
{
    ex_samples_done(&self->train);
    ex_samples_done(&self->test);
}

/* Reads a file: a worker's share of it, or all. */
static psd_status_t load(const lr_options_t *options, const char *path, ex_share_t share,
                         ex_samples_t *ret_samples, psd_error_t *err)
{
    share.any_label = options->loss == LR_SQUARE;
    share.key_max = options->features > 0 ? options->features : UINT64_MAX;
    return ex_load(path, &options->data, &share, ret_samples, err);
}

static psd_status_t load_test(const lr_options_t *options, ex_samples_t *test, psd_error_t *err)
{
    ex_share_t all = {.n_parts = 1};

    return load(options, options->test, all, test, err);
}

/* Reads the data before it contacts the server, so that an error in the data
 * shows before others wait for this worker. */
static psd_status_t load_data(const lr_options_t *options, data_t *ret_data, psd_error_t *err)
{
    ex_share_t share = {0};
    psd_status_t rc = ex_job_rank(&share.part, &share.n_parts, err);

    if (rc == PSD_OK) {
        rc = load(options, options->train, share, &ret_data->train, err);
    }
    if (rc == PSD_OK && options->test != NULL && share.part == 0) {
        rc = load_test(options, &ret_data->test, err);
    }
    return rc;
}

static psd_status_t report_test(const lr_options_t *options, const ex_samples_t *test,
                                const ex_model_t *model, psd_error_t *err)
{
    const lr_loss_t *loss = lr_loss_of(options->loss);
    ex_measure_t how = {.scores_path = options->scores};

    if (options->loss != LR_LOGIT) {
        how.loss_name = loss->name;
        how.loss = loss->value;
    }
    return ex_report_test(&how, test, model, err);
}

/* The first worker's use of the model; seconds: the time of the training. */
static psd_status_t finish(lr_job_t *job, data_t *data, double seconds, psd_error_t *err)
{
    const lr_options_t *options = job->options;
    ex_quality_t sums = {0};
    ex_model_t model = {0};
    psd_status_t rc = lr_job_pull_sums(job, &sums, err);

    if (rc == PSD_OK) {
        rc = ex_weights_pull(&job->ex, job->weights, &model, err);
    }
    if (rc == PSD_OK) {
        lr_report_train(options, &sums, &model, seconds);
        lr_report_outcome(options, &job->outcome);
    }
    if (rc == PSD_OK && options->save != NULL) {
        rc = ex_model_save(&model, options->save, err);
    }
    if (rc == PSD_OK && options->test != NULL && job->ex.worker != 0) {
        rc = load_test(options, &data->test, err); /* worker 0 had it, and was lost */
    }
    if (rc == PSD_OK && options->test != NULL) {
        rc = report_test(options, &data->test, &model, err);
    }
    ex_model_done(&model);
    return rc;
}

typedef psd_status_t train_t(lr_job_t *job, const ex_samples_t *samples, psd_error_t *err);

static train_t *train_of(const lr_options_t *options)
{
    switch (options->variant) {
    case LR_UPDATER:
        return lr_train;
    case LR_LBFGS:
        return lr_lbfgs;
    default:
        return lr_consensus;
    }
}

static psd_status_t train(const lr_options_t *options, data_t *data, psd_error_t *err)
{
    lr_job_t job = {0};
    double start_s = 0;
    psd_status_t rc = load_data(options, data, err);

    if (rc == PSD_OK) {
        rc = lr_job_open(&job, options, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rc = lr_job_open_tables(&job, &data->train, err);
    start_s = ex_now_s();
    if (rc == PSD_OK) {
        rc = train_of(options)(&job, &data->train, err);
    }
    if (rc == PSD_OK && ex_job_is_first(&job.ex)) {
        rc = finish(&job, data, ex_now_s() - start_s, err);
    }
    if (rc == PSD_OK) {
        return lr_job_leave(&job, err);
    }
    lr_job_close(&job);
    return rc;
}

static psd_status_t predict(const lr_options_t *options, data_t *data, psd_error_t *err)
{
    ex_model_t model = {0};
    psd_status_t rc = ex_model_load(&model, options->predict, err);

    if (rc == PSD_OK) {
        rc = load_test(options, &data->test, err);
    }
    if (rc == PSD_OK) {
        rc = report_test(options, &data->test, &model, err);
    }
    ex_model_done(&model);
    return rc;
}

static psd_status_t run(int argc, char **argv, psd_error_t *err)
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
    rc = options.predict != NULL ? predict(&options, &data, err) : train(&options, &data, err);
    data_done(&data);
    return rc;
}

int main(int argc, char **argv)
{
    return ex_program("psd-lr", run, argc, argv);
}
