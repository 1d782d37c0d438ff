/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_train - the training: tables, blocks, call-backs, and results
 *
 * What     One block is one clock. The step falls with the sum of all words
 *          read. From its own count a worker knows which of its blocks a cache
 *          has, and, with --resume, which are learnt. Worker 0 drops what an
 *          earlier run has left, without --resume.
 */
#ifndef WV_TRAIN_H
#define WV_TRAIN_H

#include "block.h"

/*
 * Trains as one worker of the job.
 *
 * ret_vectors  out  worker 0: the vectors of all words, when all workers are
 *                   done (wv_senses_rows x size), which the caller frees;
 *                   the others: NULL
 * ret_met      out  with senses, likewise: how often each was met
 *                   ((last + 1) x n)
 *
 * Errors: those of psd_train_…; PSD_DEADLINE worker 0: other workers read no
 * more; PSD_IO, PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t wv_train(const wv_task_t *task, uint32_t worker, uint32_t n_workers,
                                     float **ret_vectors, float **ret_met, psd_error_t *err);
#endif
