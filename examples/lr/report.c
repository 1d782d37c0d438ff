/* SPDX-License-Identifier: Apache-2.0 */
/* What stands at the end. */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature_set.h"
#include "progress.h"

static void
print_quality(const char *what, const lr_quality_t *quality)
{
    (void)printf("%s  %zu examples  logloss %.5f  accuracy %.4f", what,
                 quality->n, quality->loss / (double)quality->n,
                 (double)quality->n_correct / (double)quality->n);
}

void
lr_report_train(const lr_options_t *options,
                const lr_quality_t *sums,
                const lr_model_t *model,
                double seconds)
{
    print_quality("train", sums);
    (void)printf("  nonzeros %zu", model->n);
    if (options->objective) {
        (void)printf("  F %.4f", options->objective_c * sums->loss +
                                     lr_model_norm2(model) / 2);
    }
    (void)printf("  %.3f s\n", seconds);
}

/* The margin of every sample. */
static psd_status_t
score(lr_samples_t *samples,
      const lr_model_t *model,
      double *ret_margins,
      psd_error_t *err)
{
    lr_features_t features = {0};
    float *weights = NULL;
    psd_status_t rc = lr_features_init(&features, samples, err);

    if (rc != PSD_OK) {
        return rc;
    }
    weights = malloc((features.n + 1) * sizeof(*weights));
    if (weights == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "%zu weights", features.n);
    } else {
        lr_model_pick(model, features.rows, features.n, weights);
        for (size_t i = 0; i < samples->n; i++) {
            ret_margins[i] = lr_samples_dot(samples, i, weights);
        }
    }
    free(weights);
    lr_features_done(&features);
    return rc;
}

static psd_status_t
write_scores(const char *path,
             const double *margins,
             size_t n,
             psd_error_t *err)
{
    FILE *stream = fopen(path, "we");
    bool good = stream != NULL;

    for (size_t i = 0; good && i < n; i++) {
        good = fprintf(stream, "%.6g\n", lr_sigmoid(margins[i])) > 0;
    }
    good = stream != NULL && fclose(stream) == 0 && good;
    return good ? PSD_OK
                : psd_error_set(err, PSD_IO, "write %s: %s", path,
                                strerror(errno));
}

psd_status_t
lr_report_test(const lr_options_t *options,
               lr_samples_t *samples,
               const lr_model_t *model,
               psd_error_t *err)
{
    double *margins = calloc(samples->n + 1, sizeof(*margins));
    lr_quality_t quality = {0};
    char text[32];
    psd_status_t rc = PSD_OK;

    if (margins == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu scores", samples->n);
    }
    rc = score(samples, model, margins, err);
    for (size_t i = 0; rc == PSD_OK && i < samples->n; i++) {
        lr_quality_add(&quality, margins[i], samples->labels[i]);
    }
    if (rc == PSD_OK) {
        rc = lr_auc(margins, samples->labels, samples->n, &quality.auc, err);
    }
    if (rc == PSD_OK) {
        print_quality("test ", &quality);
        (void)printf("  AUC %s\n", lr_auc_text(quality.auc, text));
    }
    if (rc == PSD_OK && options->scores != NULL) {
        rc = write_scores(options->scores, margins, samples->n, err);
    }
    free(margins);
    return rc;
}
