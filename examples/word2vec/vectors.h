/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_vectors - a file of words and their vectors, as word2vec has it
 *
 * Shape    a line "COUNT SIZE", then for each word: text: word, SIZE numbers,
 *          between blanks, and the end of the line; binary: word, a blank, SIZE
 *          floats of this machine, the end of the line
 * Owner    the caller; wv_vectors_done
 */
#ifndef WV_VECTORS_H
#define WV_VECTORS_H

#include <stdbool.h>

#include "vocabulary.h"

typedef struct wv_vectors {
    wv_vocabulary_t words; /* in the file's order; counts are 0 */
    uint32_t size;
    float *values; /* words.n x size */
} wv_vectors_t;

/* Reads either form. Errors: PSD_IO; PSD_INVALID naming place and what is
 * wrong; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_vectors_read(wv_vectors_t *self, const char *path, psd_error_t *err);
/* Writes it under a temporary name, and renames it when it is complete.
 * words: n x size. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t wv_vectors_write(const wv_vocabulary_t *words, const float *values,
                                             uint32_t size, bool binary, const char *path,
                                             psd_error_t *err);
void wv_vectors_done(wv_vectors_t *self);
#endif
