/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lda_model - how often each word has each topic, and its file
 *
 * What     A line "psd-lda 1 TOPICS WORDS FIRST_ID ALPHA BETA", and for each
 *          word a line "ID TOPIC:COUNT ...", topics ascending.
 * Owner    the caller; lda_model_done
 */
#ifndef LDA_MODEL_H
#define LDA_MODEL_H

#include <stdio.h>

#include "slice.h"

typedef struct lda_model {
    lda_prior_t prior;
    uint64_t first_id; /* of word 0 */
    size_t *starts;    /* prior.n_words + 1 */
    uint32_t *topics;
    int32_t *counts;
    size_t room;
    uint32_t n;            /* words added */
    uint32_t *frequencies; /* by word */
    int64_t *totals;       /* by topic */
} lda_model_t;

/* Without counts yet. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_model_init(lda_model_t *self, const lda_prior_t *prior,
                                           uint64_t first_id, psd_error_t *err);
void lda_model_done(lda_model_t *self);
/* The counts of the next word; fewer than n_words have come. PSD_NOMEM;
 * PSD_DAMAGED a topic that does not exist, or is out of order, a count < 1,
 * 2^31 tokens. */
PSD_MUST_CHECK psd_status_t lda_model_add(lda_model_t *self, const uint32_t *topics,
                                          const int32_t *counts, size_t n, psd_error_t *err);
/* All words, when all have come, as proposals and for lookups. */
PSD_MUST_CHECK psd_status_t lda_model_slice(const lda_model_t *self, lda_slice_t *ret_slice,
                                            psd_error_t *err);
/* The head, and a word's line, of a file that is being written. */
bool lda_model_write_head(FILE *file, const lda_prior_t *prior, uint64_t id);
bool lda_model_write_word(FILE *file, uint64_t id, const uint32_t *topics, const int32_t *counts,
                          size_t n);
/* Errors: PSD_IO; PSD_INVALID naming file and line; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_model_load(lda_model_t *ret_model, const char *path,
                                           psd_error_t *err);
/* Prints each topic's n most frequent words, by the names in a file (a word
 * a line), or by id. Errors: PSD_IO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_model_top(const lda_model_t *self, uint32_t n, const char *names,
                                          psd_error_t *err);
#endif
