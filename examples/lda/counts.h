/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lda_counts - the tables of a job, and a worker's part of them
 *
 * What     NAME.words has a row for each word, a column for each topic; the
 *          server stores a row sparse or dense, whichever is smaller.
 *          NAME.topics has one row, the sums over all words. NAME.clocks counts
 *          the clocks of each worker: a worker that is missing there was lost.
 *
 * Exact    A token that moves takes 1 from one column and gives it to another
 *          of the same row, in one push of that row, and a row changes whole or
 *          not at all. So, whatever is lost or late, a word has as many tokens
 *          in the table as in the documents; every pulled row is checked for
 *          that.
 */
#ifndef LDA_COUNTS_H
#define LDA_COUNTS_H

#include "../common/job/job.h"
#include "corpus.h"

typedef struct lda_counts {
    ex_job_t *job; /* borrowed, as the next two */
    const lda_corpus_t *corpus;
    const lda_prior_t *prior;
    psd_table_t *words;
    psd_table_t *topics;
    psd_table_t *clocks;
    psd_select_t *range;   /* of words that are pulled */
    psd_select_t *changed; /* words that are pushed */
    int64_t *totals;       /* by topic, with what this worker has done */
    int64_t *pulled;       /* as they came */
    lda_slice_t slice;
    uint32_t *starts; /* slice s has the words starts[s] .. starts[s + 1] - 1 */
    uint32_t n_slices;
    uint64_t n_clocks;     /* of this worker */
    lda_change_t *changes; /* scratch: of a word */
    uint64_t *rows;        /* and of a push */
    uint32_t *lengths;
    uint32_t *cols;
    int32_t *deltas;
    size_t n_rows, n_deltas;
} lda_counts_t;

/* Creates the tables again and opens them; every worker calls it. */
PSD_MUST_CHECK psd_status_t lda_counts_init(lda_counts_t *self, ex_job_t *job,
                                            const lda_corpus_t *corpus, const lda_prior_t *prior,
                                            const lda_options_t *options, psd_error_t *err);
void lda_counts_done(lda_counts_t *self);
/* The totals as the table has them now. PSD_DAMAGED they do not cover all
 * tokens (`whole`). */
PSD_MUST_CHECK psd_status_t lda_counts_pull_totals(lda_counts_t *self, bool whole,
                                                   psd_error_t *err);
/* The slice as the table has it now; or else, empty. PSD_DAMAGED. */
PSD_MUST_CHECK psd_status_t lda_counts_pull_slice(lda_counts_t *self, uint32_t slice,
                                                  psd_error_t *err);
PSD_MUST_CHECK psd_status_t lda_counts_empty_slice(lda_counts_t *self, uint32_t slice,
                                                   psd_error_t *err);
/* Pushes the changes of the slice; of the totals. */
PSD_MUST_CHECK psd_status_t lda_counts_push_slice(lda_counts_t *self, psd_error_t *err);
PSD_MUST_CHECK psd_status_t lda_counts_push_totals(lda_counts_t *self, psd_error_t *err);
/* Ends a clock. Under BSP all meet. */
PSD_MUST_CHECK psd_status_t lda_counts_clock(lda_counts_t *self, psd_error_t *err);
/* All meet. Names lost workers, as the counts lack their work:
 * PSD_WORKER_LOST. */
PSD_MUST_CHECK psd_status_t lda_counts_meet(lda_counts_t *self, psd_error_t *err);
/* Calls for each word of a slice, with its counts as the table has them. */
typedef psd_status_t lda_counts_visit_t(void *user, uint32_t word, const uint32_t *topics,
                                        const int32_t *counts, size_t n, psd_error_t *err);
PSD_MUST_CHECK psd_status_t lda_counts_visit(lda_counts_t *self, uint32_t slice,
                                             lda_counts_visit_t *visit, void *user,
                                             psd_error_t *err);
#endif
