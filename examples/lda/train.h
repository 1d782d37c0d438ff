/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lda_train - a worker's part of the training
 *
 * What     Document i is in block i mod B, and block b with worker b mod n. In
 *          each clock a worker takes the totals and, slice by slice, the counts
 *          of the words, samples the tokens of one of its blocks, and pushes
 *          by how much the counts have changed. A sweep is as many clocks as
 *          the worker with most blocks needs.
 *
 * Restart  With a directory of state each block is written, whole, after the
 *          clock in which it was sampled. A job that starts creates its tables
 *          again and counts the topics of all its blocks into them: whenever it
 *          was killed, and whatever it had pushed, table and blocks agree. A
 *          block that is a sweep ahead of others is not sampled again until
 *          they have caught up.
 */
#ifndef LDA_TRAIN_H
#define LDA_TRAIN_H

#include "options.h"

/* Errors: those of the job, the files, lda_counts; PSD_DAMAGED counts that are
 * not those of the documents. */
PSD_MUST_CHECK psd_status_t lda_train(const lda_options_t *options, psd_error_t *err);
#endif
