/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report - what stands at the end: the quality on training and test data
 */
#ifndef LR_REPORT_H
#define LR_REPORT_H

#include "evaluate.h"
#include "model.h"
#include "options.h"
#include "psd.h"
#include "samples.h"

/* Prints "train  6513 examples  logloss …", with F when there is an objective,
 * and in how many seconds it was trained. */
void lr_report_train(const lr_options_t *options,
                     const lr_quality_t *sums,
                     const lr_model_t *model,
                     double seconds);
/* Measures the model with the test file, prints "test …", and writes the
 * probabilities where they are asked for. Errors: those of lr_libsvm_load;
 * PSD_IO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lr_report_test(const lr_options_t *options,
                                           lr_samples_t *samples,
                                           const lr_model_t *model,
                                           psd_error_t *err);
#endif
