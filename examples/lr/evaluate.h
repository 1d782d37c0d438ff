/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate - how good scores are: AUC, log-loss, accuracy
 *
 * Units    a margin is w.x; the model says "positive" when it is above 0, with
 *          probability 1 / (1 + exp(-margin)); labels are +1 and -1
 */
#ifndef LR_EVALUATE_H
#define LR_EVALUATE_H

#include <stddef.h>
#include <stdint.h>

#include "psd.h"

typedef struct lr_quality {
    size_t n;         /* examples */
    size_t n_correct; /* margin's sign is the label */
    double loss;      /* sum of log(1 + exp(-label * margin)) */
    double auc;       /* NaN when a class is missing, or not asked for */
} lr_quality_t;

/* log(1 + exp(-x)), without overflow. */
double lr_logistic_loss(double x);
/* 1 / (1 + exp(-x)). */
double lr_sigmoid(double x);
/* Adds one example; auc stays. */
void lr_quality_add(lr_quality_t *self, double margin, int8_t label);

/*
 * The area under the ROC curve, exactly: the share of pairs of a positive and a
 * negative example in which the positive has the greater margin; a tie counts
 * for half. NaN when there is no such pair.
 *
 * Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t lr_auc(const double *margins,
                                   const int8_t *labels,
                                   size_t n,
                                   double *ret_auc,
                                   psd_error_t *err);
#endif
