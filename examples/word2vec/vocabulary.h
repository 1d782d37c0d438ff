/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_vocabulary - the words of a corpus that occur often enough
 *
 * What     Words by falling count, words of one count as they are spelt; first
 *          of all the end of a line, "</s>", whatever its count. A word's
 *          number is its row in the tables of vectors.
 * Owner    the caller; wv_vocabulary_done
 * Threads  any number may look
 */
#ifndef WV_VOCABULARY_H
#define WV_VOCABULARY_H

#include <stdint.h>

#include "psd.h"

#define WV_END 0 /* number of the end of a line */
#define WV_UNKNOWN UINT32_MAX

typedef struct wv_word {
    char *text;
    uint64_t count;
} wv_word_t;

typedef struct wv_vocabulary {
    wv_word_t *words;
    uint32_t n;
    uint64_t n_tokens; /* of all words that are in it */
    uint32_t *index;   /* places of `words`; WV_UNKNOWN: free */
    uint32_t capacity; /* of index: a power of two */
    uint32_t room;     /* of words */
} wv_vocabulary_t;

/* Counts the words of a text; those seen less than min_count times are left
 * out. Errors: PSD_IO; PSD_INVALID there is none left; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_vocabulary_count(wv_vocabulary_t *self, const char *path,
                                                uint64_t min_count, psd_error_t *err);
void wv_vocabulary_done(wv_vocabulary_t *self);
/* Adds a word, or finds it, with its count unchanged; WV_UNKNOWN: no memory. */
uint32_t wv_vocabulary_add(wv_vocabulary_t *self, const char *text);
/* WV_UNKNOWN: it is not in it. */
uint32_t wv_vocabulary_find(const wv_vocabulary_t *self, const char *text);
#endif
