/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evaluate - how good the counts of a job are, and whether they are consistent
 *
 * Exact    The tokens of each topic are counted three times: in the documents,
 *          in the rows of words, in the row of topics. All three must agree.
 */
#ifndef LDA_EVALUATE_H
#define LDA_EVALUATE_H

#include "counts.h"
#include "store.h"

typedef struct lda_quality {
    double documents; /* log p(z), for each token that is learnt */
    double words;     /* log p(w | z) */
} lda_quality_t;

/* For each token that is learnt; all workers call it, and all get it. Errors:
 * PSD_DAMAGED the counts differ; those of the tables and files. */
PSD_MUST_CHECK psd_status_t lda_evaluate(lda_counts_t *counts, lda_store_t *store,
                                         const char *table, lda_quality_t *ret_quality,
                                         psd_error_t *err);
/* Held-out documents; worker i of n measures every n-th. */
PSD_MUST_CHECK psd_status_t lda_evaluate_held(lda_counts_t *counts, const lda_options_t *options,
                                              psd_error_t *err);
/* Writes the model, a slice at a time. PSD_IO. */
PSD_MUST_CHECK psd_status_t lda_save(lda_counts_t *counts, const char *path, psd_error_t *err);
#endif
