/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_block - some words of the text, and which vectors they need
 *
 * What     wv_feed reads the text and skips frequent words at random;
 *          wv_block_prepare draws the negatives and gives every row that the
 *          block needs a slot, 0, 1, 2, … Negatives of a block come from a pool
 *          of draws, as many as it has words: each is drawn by the same chance,
 *          and few rows are needed.
 * Shape    words: slots of input vectors; WV_UNKNOWN between sentences; the
 *          word of a slot is in.rows[slot], and the slots after it are those
 *          of its other senses
 * Owner    wv_block_free
 */
#ifndef WV_BLOCK_H
#define WV_BLOCK_H

#include "draws.h"
#include "options.h"
#include "senses.h"
#include "text.h"
#include "tree.h"

/* What stays constant during the training. */
typedef struct wv_task {
    const wv_options_t *options;
    uint32_t block; /* words of one: wv_block_words */
    wv_vocabulary_t vocabulary;
    wv_draws_t draws;
    wv_tree_t tree; /* with --hs */
    wv_senses_t senses;
} wv_task_t;

/* Rows of a table, each with a slot. */
typedef struct wv_rows {
    uint64_t *rows; /* by slot */
    float *met;     /* by slot: how often the block meets it */
    size_t n;
    size_t room;
    uint32_t *slot_of; /* by row; WV_UNKNOWN: none */
    uint32_t n_slots;  /* rows of the table */
} wv_rows_t;

typedef struct wv_block {
    const wv_task_t *task; /* borrowed */
    uint32_t *words;       /* numbers of words, before it is prepared */
    uint32_t *targets;     /* of each word: slot of its output vector */
    size_t n;
    size_t room;
    uint32_t *pool; /* slots of output vectors */
    uint32_t n_pool;
    uint64_t n_read;   /* words of the text that it stands for */
    uint32_t epoch;    /* from 1 */
    uint64_t n_before; /* words that this worker has read before it */
    uint64_t seed;
    uint64_t *several; /* words that have several senses */
    size_t n_several;
    wv_rows_t in;    /* vectors of words */
    wv_rows_t out;   /* … as targets */
    wv_rows_t nodes; /* of the tree */
} wv_block_t;

/* The words of one worker's part of the text, epoch after epoch. */
typedef struct wv_feed {
    const wv_task_t *task;
    wv_text_t text;
    uint32_t part;
    uint32_t n_parts;
    uint32_t epoch;
    uint64_t n_read;
    uint64_t random;
    bool is_open;
} wv_feed_t;

/* How many words a block has: --block, or what lets each of several learners
 * have 40 in an epoch, and 400 where these have 1000 words still: with fewer they
 * see each other's changes too late. */
uint32_t wv_block_words(const wv_task_t *task, uint32_t n_workers);
void wv_feed_init(wv_feed_t *self, const wv_task_t *task, uint32_t part, uint32_t n_parts);
void wv_feed_done(wv_feed_t *self);
/* The next block; *ret is NULL after the last one of the last epoch. Errors:
 * PSD_IO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_feed_next(wv_feed_t *self, wv_block_t **ret, psd_error_t *err);
/* Draws, and gives slots. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_block_prepare(wv_block_t *self, psd_error_t *err);
/* Takes NULL; a psd_train_free_t. */
void wv_block_free(void *block);
#endif
