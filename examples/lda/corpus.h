/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lda_corpus - facts about all documents, and blocks of them
 *
 * What     The documents stay in their file. It is read once to learn which
 *          words there are and how often, and once for each block that is made,
 *          so that no more than a block is ever in memory.
 * Shape    a word is its id in the file less the lowest one there; documents
 *          are numbered from 0 in the order of the file, held-out and learnt
 *          ones separately
 * Owner    the caller; lda_corpus_done
 */
#ifndef LDA_CORPUS_H
#define LDA_CORPUS_H

#include "block.h"
#include "options.h"
#include "slice.h"

typedef struct lda_corpus {
    uint64_t first_id;     /* of word 0 */
    uint32_t n_words;      /* from the lowest id to the highest one */
    uint32_t *frequencies; /* owned: tokens of each word that are learnt */
    uint64_t n_documents;  /* that are learnt */
    uint64_t n_tokens;     /* of these */
} lda_corpus_t;

/* Errors: those of psd_reader_open and psd_reader_next; PSD_INVALID an id
 * above 2^27, a bad count, no token at all; PSD_LIMIT 2^31 tokens of a word;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t lda_corpus_scan(lda_corpus_t *self, const lda_options_t *options,
                                            psd_error_t *err);
void lda_corpus_done(lda_corpus_t *self);
/* A model whose words give initial topics. */
typedef struct lda_warm {
    const lda_slice_t *slice; /* all its words; borrowed */
    uint64_t first_id;
} lda_warm_t;

/* Documents i with i mod n_blocks = block, tokens by ascending word. Each token
 * gets a first topic, by document and seed: any of n_topics; where warm (NULL:
 * none) has the word, one that fits it there. */
PSD_MUST_CHECK psd_status_t lda_corpus_block(const lda_options_t *options,
                                             const lda_block_key_t *key, const lda_warm_t *warm,
                                             lda_block_t *ret_block, psd_error_t *err);

/* Which documents to give. */
typedef struct lda_held {
    const char *path;
    uint32_t test_every; /* 0: all documents */
    uint32_t part, n_parts;
    uint64_t first_id; /* leaves out words of other ids */
    uint32_t n_words;
} lda_held_t;

/* Held-out documents, tokens in the order of the file. */
PSD_MUST_CHECK psd_status_t lda_corpus_held(const lda_options_t *options, const lda_held_t *held,
                                            lda_block_t *ret_block, psd_error_t *err);
#endif
