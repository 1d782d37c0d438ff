/* SPDX-License-Identifier: Apache-2.0 */
/* F after each epoch, and when to stop. */
#include "stop.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/program/program.h"
#include "loss.h"

#define STILL_EPOCHS 2
enum { SUM_LOSS, SUM_NORM2, N_SUMS };

psd_status_t lr_stop_init(lr_stop_t *self, lr_job_t *job, const ex_samples_t *samples,
                          psd_error_t *err)
{
    size_t n = samples->n_features + 1; /* never an allocation of nothing */

    memset(self, 0, sizeof(*self));
    self->job = job;
    self->samples = samples;
    self->last = NAN;
    self->start_s = ex_now_s();
    self->told_s = self->start_s;
    self->share = calloc(n, sizeof(*self->share));
    self->weights = calloc(n, sizeof(*self->weights));
    if (self->share == NULL || self->weights == NULL) {
        return psd_error_set(err, PSD_NOMEM, "weights of %zu features", n);
    }
    return PSD_OK;
}

void lr_stop_done(lr_stop_t *self)
{
    free(self->share);
    free(self->weights);
}

psd_status_t lr_stop_measure(lr_stop_t *self, double *ret_f, psd_error_t *err)
{
    const lr_options_t *options = self->job->options;
    const lr_loss_t *loss = lr_loss_of(options->loss);
    const ex_samples_t *samples = self->samples;
    double sums[LR_SUMS] = {0};
    psd_status_t rc = ex_job_meet(&self->job->ex, err);

    if (rc == PSD_OK && samples->n_features > 0) {
        rc = psd_pull(self->job->weights, samples->keys, samples->n_features, self->weights,
                      samples->n_features, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < samples->n; i++) {
        double margin = ex_samples_dot(samples, i, self->weights);

        sums[SUM_LOSS] +=
            (double)samples->weights[i] * loss->value(margin, (double)samples->labels[i]);
    }
    for (size_t j = 0; rc == PSD_OK && j < samples->n_features; j++) {
        double weight = (double)self->weights[j];

        sums[SUM_NORM2] += self->share[j] * weight * weight;
    }
    if (rc == PSD_OK) {
        rc = ex_sums_add(&self->job->steps, sums, err);
    }
    *ret_f = options->objective_c * sums[SUM_LOSS] + sums[SUM_NORM2] / 2;
    return rc;
}

static void tell(lr_stop_t *self, uint32_t epoch, double f)
{
    const lr_options_t *options = self->job->options;
    double now_s = ex_now_s();

    if (!ex_job_is_first(&self->job->ex) || now_s - self->told_s < options->report_s) {
        return;
    }
    (void)printf("%9.3f s  epoch %" PRIu32 "/%" PRIu32 "  clock %" PRIu64 "  F %.4f\n",
                 now_s - self->start_s, epoch, options->epochs,
                 psd_clock_count(self->job->ex.client), f);
    (void)fflush(stdout);
    self->told_s = now_s;
}

bool lr_stop_now(lr_stop_t *self, uint32_t epoch, double f)
{
    double tolerance = self->job->options->tolerance;
    lr_outcome_t *outcome = &self->job->outcome;

    outcome->n_epochs = epoch;
    /* The relative change is unknown when F is 0 or not a number. */
    outcome->change = fabs(self->last - f) / fabs(f);
    self->n_still = outcome->change < tolerance ? self->n_still + 1 : 0;
    outcome->has_converged = self->n_still >= STILL_EPOCHS;
    self->last = f;
    tell(self, epoch, f);
    return outcome->has_converged;
}
