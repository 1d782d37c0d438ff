/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate - how good scores are: AUC, log-loss, accuracy
 *
 * Units    a margin is w.x; the model says "positive" when it is above 0, with
 *          probability 1 / (1 + exp(-margin)); labels are +1 and -1
 */
#ifndef EX_EVALUATE_H
#define EX_EVALUATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd.h"

typedef struct ex_quality {
    size_t n;              /* examples */
    size_t n_correct;      /* margin's sign is the label */
    double loss;           /* sum of their losses */
    const char *loss_name; /* NULL: "logloss" */
    double auc;            /* NaN when a class is missing, or not asked for */
} ex_quality_t;

/* log(1 + exp(-x)), without overflow. */
double ex_logistic_loss(double x);
/* 1 / (1 + exp(-x)). */
double ex_sigmoid(double x);
/* Adds one example, of that loss; auc stays. */
void ex_quality_add(ex_quality_t *self, double margin, float label, double loss);

/*
 * The area under the ROC curve, exactly: the share of pairs of a positive and a
 * negative example in which the positive has the greater margin; a tie counts
 * for half. NaN when there is no such pair.
 *
 * Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ex_auc(const double *margins, const float *labels, size_t n,
                                   double *ret_auc, psd_error_t *err);
/* "0.9321", or "-" when there is none. */
const char *ex_auc_text(double auc, char ret_text[32]);
/* Whether there are examples and their loss is below the best so far,
 * INFINITY at first. A loss that is not a number, from a model that has
 * diverged, never is. */
bool ex_quality_is_better(const ex_quality_t *self, double best_loss);
/* Prints "WHAT  N examples  logloss X  accuracy X", without an end of line. */
void ex_quality_print(const char *what, const ex_quality_t *quality);
#endif
