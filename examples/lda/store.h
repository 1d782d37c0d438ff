/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lda_store - a worker's blocks, in memory or in files
 *
 * What     Worker w of n has the blocks w, w + n, w + 2n ... of all. In files
 *          two of them are in memory: the one that is sampled, and the next
 *          one, which a thread reads meanwhile.
 * Owner    the caller; lda_store_done
 * Threads  the one that made it; its own thread has a block that no other
 *          thread reads
 */
#ifndef LDA_STORE_H
#define LDA_STORE_H

#include <pthread.h>

#include "corpus.h"

typedef struct lda_reading {
    pthread_t thread;
    bool runs;
    uint32_t at; /* which of the blocks */
    const char *dir;
    lda_block_key_t key;
    lda_block_t block;
    psd_status_t rc;
    psd_error_t *err; /* owned */
} lda_reading_t;

typedef struct lda_store {
    const char *dir; /* NULL: all blocks are in memory */
    int lock;        /* of the directory, for this worker; -1: none */
    lda_block_key_t key;
    uint32_t worker, n_workers;
    uint32_t n;          /* blocks of this worker */
    lda_block_t *blocks; /* n; of files, those not in memory are empty */
    uint64_t *sweeps;    /* n: of each */
    uint32_t in_memory;  /* of files: which one; n: none */
    lda_reading_t reading;
    uint64_t n_tokens; /* of all of them */
} lda_store_t;

typedef struct lda_store_args {
    const lda_options_t *options;
    const lda_corpus_t *corpus;
    const lda_warm_t *warm; /* or NULL */
    uint32_t worker, n_workers;
} lda_store_args_t;

/* Makes the blocks, except those already in files. Errors: those of
 * lda_corpus_block and lda_block_load; PSD_FAILED another process has the
 * directory. */
PSD_MUST_CHECK psd_status_t lda_store_init(lda_store_t *self, const lda_store_args_t *args,
                                           psd_error_t *err);
void lda_store_done(lda_store_t *self);
/* Block `at` < n; borrowed until the next call. Errors: those of
 * lda_block_load. */
PSD_MUST_CHECK psd_status_t lda_store_take(lda_store_t *self, uint32_t at, lda_block_t **ret_block,
                                           psd_error_t *err);
/* Marks the last block taken as sampled once more. Errors: those of
 * lda_block_save. */
PSD_MUST_CHECK psd_status_t lda_store_put(lda_store_t *self, uint32_t at, psd_error_t *err);
#endif
