/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ex_model - the weights that are not zero
 *
 * What     A model in memory, taken from the table or read from a file, and the
 *          file: "# N weights", and a line "key value" for each, ascending; #
 *          begins a comment. Without that first line, as in a file written by
 *          hand, the number is not checked.
 * Owner    the caller; ex_model_done frees what is inside
 */
#ifndef EX_MODEL_H
#define EX_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "psd.h"

typedef struct ex_model {
    size_t n;
    size_t room;
    uint64_t *rows; /* n, ascending */
    float *weights; /* n, none of them zero */
} ex_model_t;

void ex_model_done(ex_model_t *self);
/* Appends a weight, unless it is zero. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ex_model_add(ex_model_t *self, uint64_t row, float weight,
                                         psd_error_t *err);
/* Sum of the squares of the weights. */
double ex_model_norm2(const ex_model_t *self);
/* The weights of n ascending rows, zero where the model has none. */
void ex_model_pick(const ex_model_t *self, const uint64_t *rows, size_t n, float *ret_weights);
/* Writes the file whole or not at all. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ex_model_save(const ex_model_t *self, const char *path,
                                          psd_error_t *err);
/* Errors: PSD_IO; PSD_INVALID naming file and line; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ex_model_load(ex_model_t *self, const char *path, psd_error_t *err);
#endif
