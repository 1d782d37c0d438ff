/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ex_columns - a worker's samples feature by feature, and the margins
 *
 * What     The values that a block of features needs from the data: the
 *          gradient g of sum log(1 + exp(-y w.x)) over the worker's samples and
 *          an upper bound u of its second derivative, as long as the weight
 *          moves by at most delta; and the effect of a step on the margins.
 * Owner    the caller; ex_columns_done
 * Source   Li et al., "Parameter Server for Distributed Machine Learning", 2013
 */
#ifndef EX_COLUMNS_H
#define EX_COLUMNS_H

#include "psd.h"
#include "samples.h"

typedef struct ex_columns {
    size_t n_samples;
    size_t n; /* features */
    const ex_samples_t *samples;
    size_t *starts;    /* n + 1: feature j has the entries starts[j] .. */
    uint32_t *rows;    /* sample of each entry */
    float *values;     /* of each entry */
    double *margins;   /* y w.x of each sample */
    double *residuals; /* 1 / (1 + exp(margin)) of each */
} ex_columns_t;

/* samples are borrowed and must stay. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ex_columns_init(ex_columns_t *self, const ex_samples_t *samples,
                                            psd_error_t *err);
void ex_columns_done(ex_columns_t *self);
/* g and u of feature j. */
void ex_columns_slope(const ex_columns_t *self, size_t j, double delta, double *ret_g,
                      double *ret_u);
/* The weight of feature j has changed by d. */
void ex_columns_move(ex_columns_t *self, size_t j, double d);
/* sum log(1 + exp(-y w.x)) over the samples. */
double ex_columns_loss(const ex_columns_t *self);
#endif
