/* SPDX-License-Identifier: Apache-2.0 */
/* A model measured with samples. */
#include "report.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "evaluate.h"

/* The margin of every sample. */
static psd_status_t score(const ex_samples_t *samples, const ex_model_t *model, double *ret_margins,
                          psd_error_t *err)
{
    float *weights = malloc((samples->n_features + 1) * sizeof(*weights));

    if (weights == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu weights", samples->n_features);
    }
    ex_model_pick(model, samples->keys, samples->n_features, weights);
    for (size_t i = 0; i < samples->n; i++) {
        ret_margins[i] = ex_samples_dot(samples, i, weights);
    }
    free(weights);
    return PSD_OK;
}

static psd_status_t write_scores(const ex_measure_t *how, const double *margins, size_t n,
                                 psd_error_t *err)
{
    FILE *stream = fopen(how->scores_path, "we");
    bool good = stream != NULL;

    for (size_t i = 0; good && i < n; i++) {
        double value = how->loss == NULL ? ex_sigmoid(margins[i]) : margins[i];

        good = fprintf(stream, "%.6g\n", value) > 0;
    }
    good = stream != NULL && fclose(stream) == 0 && good;
    return good ? PSD_OK
                : psd_error_set(err, PSD_IO, "write %s: %s", how->scores_path, strerror(errno));
}

psd_status_t ex_report_margins(const ex_measure_t *how, const ex_samples_t *samples,
                               const double *margins, psd_error_t *err)
{
    ex_quality_t quality = {.loss_name = how->loss_name};
    char text[32];
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < samples->n; i++) {
        float label = samples->labels[i];

        ex_quality_add(&quality, margins[i], label,
                       how->loss != NULL ? how->loss(margins[i], (double)label)
                                         : ex_logistic_loss((double)label * margins[i]));
    }
    rc = ex_auc(margins, samples->labels, samples->n, &quality.auc, err);
    if (rc == PSD_OK) {
        ex_quality_print("test ", &quality);
        (void)printf("  AUC %s\n", ex_auc_text(quality.auc, text));
    }
    if (rc == PSD_OK && how->scores_path != NULL) {
        rc = write_scores(how, margins, samples->n, err);
    }
    return rc;
}

psd_status_t ex_report_test(const ex_measure_t *how, const ex_samples_t *samples,
                            const ex_model_t *model, psd_error_t *err)
{
    double *margins = calloc(samples->n + 1, sizeof(*margins));
    psd_status_t rc = PSD_OK;

    if (margins == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu scores", samples->n);
    }
    rc = score(samples, model, margins, err);
    if (rc == PSD_OK) {
        rc = ex_report_margins(how, samples, margins, err);
    }
    free(margins);
    return rc;
}
