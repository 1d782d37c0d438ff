/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fm_model - the weights that are not zero, and the embeddings
 *
 * What     A model in memory, and its file: "psd-fm 2 DIM KEYS", then a line
 *          for each key, ascending: "key weight" or "key weight v_1 ... v_DIM".
 * Owner    The caller; fm_model_done frees what is inside.
 */
#ifndef FM_MODEL_H
#define FM_MODEL_H

#include "../common/samples/samples.h"
#include "kernel.h"
#include "psd.h"

typedef struct fm_model {
    size_t dim;
    size_t n;
    uint64_t *keys;  /* n, ascending */
    float *weights;  /* n */
    uint32_t *slots; /* n; FM_NO_SLOT: no embedding */
    size_t n_slots;
    float *factors; /* dim for each slot */
    size_t room;
    size_t slots_room;
} fm_model_t;

void fm_model_done(fm_model_t *self);
/* Appends a key. factors: dim of them, or NULL. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t fm_model_add(fm_model_t *self, uint64_t key, float weight,
                                         const float *factors, psd_error_t *err);
/* The margin of each sample; keys that the model lacks count for nothing.
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t fm_model_score(const fm_model_t *self, const ex_samples_t *samples,
                                           double *ret_margins, psd_error_t *err);
/* Writes the file whole or not at all. PSD_IO. */
PSD_MUST_CHECK psd_status_t fm_model_save(const fm_model_t *self, const char *path,
                                          psd_error_t *err);
/* Errors: PSD_IO; PSD_INVALID naming file and line; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t fm_model_load(fm_model_t *ret_model, const char *path,
                                          psd_error_t *err);
#endif
