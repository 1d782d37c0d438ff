/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_senses - which words have several vectors, and where they are
 *
 * What     The most frequent words, </s> aside, have n senses each: words 1 ..
 *          last. Sense 0 of a word is the row of its own number; the others
 *          follow the vocabulary's rows, those of a word side by side.
 * Threads  any number may look
 */
#ifndef WV_SENSES_H
#define WV_SENSES_H

#include "vectors.h"

typedef struct wv_senses {
    uint32_t n; /* of a word that has several; 1: none has */
    uint32_t last;
    uint32_t n_words; /* of the vocabulary */
} wv_senses_t;

static inline uint32_t wv_senses_of(const wv_senses_t *self, uint32_t word)
{
    return word >= 1 && word <= self->last ? self->n : 1;
}

/* sense  in  below wv_senses_of */
static inline uint32_t wv_senses_row(const wv_senses_t *self, uint32_t word, uint32_t sense)
{
    return sense == 0 ? word : self->n_words + (word - 1) * (self->n - 1) + sense - 1;
}

/* Of all words. */
static inline uint32_t wv_senses_rows(const wv_senses_t *self)
{
    return self->n_words + self->last * (self->n - 1);
}

/*
 * Gives every sense a name and, of each word, the one that was met most its
 * first row. The others become word#2, word#3, … (word##2 where the text has
 * such a word itself).
 *
 * words   in/out  the vocabulary; names of senses are appended, so that a
 *           name's place is its row
 * values  in/out  wv_senses_rows x size
 * met     in/out  (last + 1) x n: how often each sense of a word was met
 *
 * Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t wv_senses_name(const wv_senses_t *self, wv_vocabulary_t *words,
                                           float *values, uint32_t size, float *met,
                                           psd_error_t *err);
/* Writes a line WORD NAME SHARE, between tabs, for each sense of each word that
 * has several. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t wv_senses_write(const wv_senses_t *self, const wv_vocabulary_t *words,
                                            const float *met, const char *path, psd_error_t *err);
#endif
