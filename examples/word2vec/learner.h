/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_learner - one trainer's copies of a block's vectors, and what it learns
 *
 * What     Vectors change here word by word, and their changes are added at the
 *          end of the block.
 * Owner    the caller; wv_learner_done. Threads: the trainer's
 * Source   Mikolov et al., 2013 (arXiv 1301.3781) and NIPS 2013: skip-gram and
 *          CBOW, hierarchical softmax and negative sampling; Duchi et al., JMLR
 *          2011: AdaGrad. Senses: Tian et al., COLING 2014.
 */
#ifndef WV_LEARNER_H
#define WV_LEARNER_H

#include "copies.h"

/* A word's output vector, or an inner node of the tree, with the label that it
 * should get. */
typedef struct wv_target {
    wv_table_t table;
    uint32_t slot;
    float label;
    bool is_last; /* of its word */
    float margin; /* wv_margin, before they meet */
} wv_target_t;

typedef struct wv_learner {
    const wv_task_t *task;
    size_t stride;
    wv_copies_t copies[WV_VECTORS];
    wv_copies_t sums[WV_VECTORS]; /* of squares, with --adagrad */
    float *hidden;                /* the mean of a window, with cbow … */
    float *change;                /* … and what it changes by */
    wv_target_t *targets;         /* that are met next */
    uint32_t n_targets;
    uint32_t senses; /* of wv_tables */
    float *weights;  /* of a word's senses */
    /* while a block is worked on: */
    psd_trainer_t *trainer;
    const wv_block_t *block;
    uint64_t random;
    float alpha;
} wv_learner_t;

/* others are borrowed until it is done. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_learner_init(wv_learner_t *self, const wv_task_t *task,
                                            const wv_tables_t *tables, const wv_others_t *others,
                                            psd_error_t *err);
void wv_learner_done(wv_learner_t *self);
/*
 * Learns from this trainer's share of the block, and adds the changes.
 *
 * n_before  in  words that all workers had read before the block
 * lacks     in  its cache lacks the changes of this worker's block before
 *
 * Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t wv_learner_step(wv_learner_t *self, psd_trainer_t *trainer,
                                            const wv_block_t *block, uint64_t n_before, bool lacks,
                                            psd_error_t *err);
/* Adds the targets of the word at `at`, with negatives of their own. */
void wv_learner_draw(wv_learner_t *self, size_t at);
/* The word at `at`, whose neighbours are in [from, end): its senses share what
 * there is to learn (mixture.c). */
void wv_learner_senses(wv_learner_t *self, size_t at, size_t from, size_t end);
/* The step after that many words of all workers. */
double wv_learner_alpha(const wv_task_t *task, uint64_t n_words);
#endif
