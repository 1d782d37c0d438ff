/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lda_block - documents and the topics of their tokens, in memory or in a file
 *
 * Shape    document d has the tokens starts[d] .. starts[d + 1] - 1
 * Owner    the caller; lda_block_done
 *
 * A file is written under a temporary name and renamed, so that it is always
 * whole: of one sweep or another, never of two. Its topics are enough to count
 * again.
 */
#ifndef LDA_BLOCK_H
#define LDA_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "psd.h"

typedef struct lda_block {
    size_t n_documents;
    size_t n_tokens;
    size_t *starts;   /* n_documents + 1, or NULL while there is none */
    uint32_t *words;  /* n_tokens */
    uint32_t *topics; /* n_tokens */
    size_t documents_room, tokens_room;
    uint64_t sweeps; /* sweeps done with these topics */
} lda_block_t;

/* What a block's file must match. */
typedef struct lda_block_key {
    uint32_t block, n_blocks;
    uint32_t n_topics;
    uint32_t n_words;
    uint32_t test_every;
    uint64_t first_id; /* of word 0 */
} lda_block_key_t;

void lda_block_done(lda_block_t *self);
/* Starts a document; the next tokens belong to it. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_block_add_document(lda_block_t *self, psd_error_t *err);
/* Adds n tokens of one word, of topic 0. PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_block_add_word(lda_block_t *self, uint32_t word, uint32_t n,
                                               psd_error_t *err);
/* Orders the tokens of the last document by word; topics stay as they are. */
void lda_block_sort_last(lda_block_t *self);

/* Writes DIR/block-B-of-N, whole or not at all. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t lda_block_save(const lda_block_t *self, const char *dir,
                                           const lda_block_key_t *key, psd_error_t *err);
/* Errors: PSD_IO; PSD_RANGE there is no such file; PSD_INVALID it is of other
 * data or settings; PSD_DAMAGED; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_block_load(lda_block_t *ret_block, const char *dir,
                                           const lda_block_key_t *key, psd_error_t *err);
#endif
