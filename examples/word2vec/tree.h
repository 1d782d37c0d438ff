/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_tree - the Huffman tree over a vocabulary, for hierarchical softmax
 *
 * What     A word's code is the way from the root to it: at each inner node a
 *          bit says which side it is on. Frequent words have short codes.
 * Shape    inner nodes 0 .. n - 2 of n words; the root is n - 2
 * Owner    the caller; wv_tree_done. Threads: any number may look
 * Source   Mikolov et al., NIPS 2013 (section 2.1); Huffman 1952.
 */
#ifndef WV_TREE_H
#define WV_TREE_H

#include "vocabulary.h"

#define WV_CODE_MAX 64

typedef struct wv_code {
    uint8_t n;
    uint8_t bits[WV_CODE_MAX];
    uint32_t nodes[WV_CODE_MAX]; /* whose bit it is */
} wv_code_t;

typedef struct wv_tree {
    wv_code_t *codes; /* by word */
} wv_tree_t;

/* Errors: PSD_LIMIT a code is longer than WV_CODE_MAX; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_tree_make(wv_tree_t *self, const wv_vocabulary_t *vocabulary,
                                         psd_error_t *err);
void wv_tree_done(wv_tree_t *self);
#endif
