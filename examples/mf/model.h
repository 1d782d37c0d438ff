/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mf_model - rating = mean + bias of user + bias of item + p . q
 *
 * What     Each user and each item has a row of 1 + factors floats: its bias,
 *          then its factors. Rows are numbered as ids ascend.
 * Owner    the caller; mf_model_done
 */
#ifndef MF_MODEL_H
#define MF_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "psd.h"

typedef struct mf_side {
    size_t n;
    uint64_t *ids; /* ascending */
    float *rows;   /* n x width */
} mf_side_t;

typedef struct mf_model {
    size_t width; /* 1 + factors */
    double mean;
    mf_side_t users;
    mf_side_t items;
} mf_model_t;

/* Room for a side; ids are copied, rows are zero. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t mf_side_init(mf_side_t *self, const uint64_t *ids, size_t n,
                                         size_t width, psd_error_t *err);
void mf_model_done(mf_model_t *self);
/* The row of an id; NULL: there is none. */
const float *mf_side_find(const mf_side_t *self, uint64_t id, size_t width);
/* The prediction from two rows; a NULL row adds nothing. */
double mf_model_predict(const mf_model_t *self, const float *user, const float *item);
/* A text file: sizes and mean, then for each user and item its id and row.
 * Errors: PSD_IO; load: PSD_INVALID naming the line; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t mf_model_save(const mf_model_t *self, const char *path,
                                          psd_error_t *err);
PSD_MUST_CHECK psd_status_t mf_model_load(mf_model_t *ret_model, const char *path,
                                          psd_error_t *err);
#endif
