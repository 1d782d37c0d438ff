/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report - the report at the end: the quality on the training data
 */
#ifndef LR_REPORT_H
#define LR_REPORT_H

#include "../common/samples/evaluate.h"
#include "../common/samples/model.h"
#include "job.h"
#include "options.h"
#include "psd.h"

/* Prints "train  6513 examples  logloss …", with F when there is an
 * objective, and the seconds of the training. */
void lr_report_train(const lr_options_t *options, const ex_quality_t *sums, const ex_model_t *model,
                     double seconds);
/* With an objective, and F measured: whether it has converged, and in how many
 * epochs. */
void lr_report_outcome(const lr_options_t *options, const lr_outcome_t *outcome);
#endif
