/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report - a model measured with samples of two classes
 */
#ifndef EX_REPORT_H
#define EX_REPORT_H

#include "model.h"
#include "psd.h"
#include "samples.h"

/* How a model is measured. */
typedef struct ex_measure {
    const char *loss_name; /* NULL: the logistic loss */
    double (*loss)(double margin, double label);
    const char *scores_path; /* NULL, or where the samples' probabilities go
                                (their margins with another loss) */
} ex_measure_t;

/* Prints "test  N examples  logloss …  AUC …". Errors: PSD_IO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ex_report_test(const ex_measure_t *how, const ex_samples_t *samples,
                                           const ex_model_t *model, psd_error_t *err);
/* The same of margins, one for each sample. */
PSD_MUST_CHECK psd_status_t ex_report_margins(const ex_measure_t *how, const ex_samples_t *samples,
                                              const double *margins, psd_error_t *err);
#endif
