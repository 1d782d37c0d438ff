/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's samples feature by feature. */
#include "columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "evaluate.h"

/* The greatest second derivative of log(1 + exp(-m)). */
#define CURVATURE_MAX 0.25

static void fill(ex_columns_t *self)
{
    const ex_samples_t *samples = self->samples;

    for (size_t k = 0; k < samples->n_entries; k++) {
        self->starts[samples->features[k] + 1]++;
    }
    for (size_t j = 0; j < self->n; j++) {
        self->starts[j + 1] += self->starts[j];
    }
    /* starts[j] goes to the end of feature j, and is put back below. */
    for (size_t i = 0; i < samples->n; i++) {
        for (size_t k = samples->starts[i]; k < samples->starts[i + 1]; k++) {
            size_t at = self->starts[samples->features[k]]++;

            self->rows[at] = (uint32_t)i;
            self->values[at] = samples->values[k];
        }
    }
    memmove(self->starts + 1, self->starts, self->n * sizeof(*self->starts));
    self->starts[0] = 0;
    for (size_t i = 0; i < samples->n; i++) {
        self->margins[i] = 0;
        self->residuals[i] = 0.5;
    }
}

psd_status_t ex_columns_init(ex_columns_t *self, const ex_samples_t *samples, psd_error_t *err)
{
    size_t n_entries = samples->n_entries + 1; /* never nothing */

    memset(self, 0, sizeof(*self));
    self->samples = samples;
    self->n_samples = samples->n;
    self->n = samples->n_features;
    self->starts = calloc(self->n + 2, sizeof(*self->starts));
    self->rows = malloc(n_entries * sizeof(*self->rows));
    self->values = malloc(n_entries * sizeof(*self->values));
    self->margins = malloc((samples->n + 1) * sizeof(*self->margins));
    self->residuals = malloc((samples->n + 1) * sizeof(*self->residuals));
    if (self->starts == NULL || self->rows == NULL || self->values == NULL ||
        self->margins == NULL || self->residuals == NULL) {
        ex_columns_done(self);
        return psd_error_set(err, PSD_NOMEM, "%zu entries by feature", samples->n_entries);
    }
    fill(self);
    return PSD_OK;
}

void ex_columns_done(ex_columns_t *self)
{
    free(self->starts);
    free(self->rows);
    free(self->values);
    free(self->margins);
    free(self->residuals);
    memset(self, 0, sizeof(*self));
}

void ex_columns_slope(const ex_columns_t *self, size_t j, double delta, double *ret_g,
                      double *ret_u)
{
    const float *labels = self->samples->labels;
    const float *weights = self->samples->weights;
    double g = 0;
    double u = 0;
    double factor = exp(delta); /* of a value of 1, as most are */

    for (size_t k = self->starts[j]; k < self->starts[j + 1]; k++) {
        size_t i = self->rows[k];
        double v = (double)self->values[k];
        double r = self->residuals[i];
        double bound = r * (1 - r) * (v == 1 ? factor : exp(fabs(v) * delta));

        g -= (double)weights[i] * (double)labels[i] * r * v;
        u += (double)weights[i] * fmin(bound, CURVATURE_MAX) * v * v;
    }
    *ret_g = g;
    *ret_u = u;
}

void ex_columns_move(ex_columns_t *self, size_t j, double d)
{
    const float *labels = self->samples->labels;

    for (size_t k = self->starts[j]; k < self->starts[j + 1]; k++) {
        size_t i = self->rows[k];

        self->margins[i] += d * (double)labels[i] * (double)self->values[k];
        self->residuals[i] = ex_sigmoid(-self->margins[i]);
    }
}

double ex_columns_loss(const ex_columns_t *self)
{
    double sum = 0;

    for (size_t i = 0; i < self->n_samples; i++) {
        sum += (double)self->samples->weights[i] * ex_logistic_loss(self->margins[i]);
    }
    return sum;
}
