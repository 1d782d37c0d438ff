/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_others - how much the other learners change a row at the same time
 *
 * What     Learners, the trainers of all workers, work on blocks at the same
 *          time. Each begins with the same vectors, and what each has changed
 *          is added up. A row that only one of them meets is then as it would
 *          be if the blocks were learnt one after the other. A frequent word or
 *          an upper node of the tree is met by all: each of n learners takes it
 *          where its block would have it, and the sum goes n times as far, past
 *          its place, and swings. So a learner also acts for the others: where
 *          all of them together meet a row k times as often as it does, each of
 *          its own changes of its copy goes k times as far, and of what has
 *          changed at the end of the block 1/k is added. The copy then is where
 *          the row is once all blocks are learnt, within the block already, and
 *          steps shrink as it gets near. What is added is the mean of such
 *          copies for a frequent row, and a plain sum (k is 1) for one that no
 *          other learner meets. Steps do not grow beyond what is stable,
 *          however many learners there are: from there on frequent rows learn
 *          more slowly. How often others meet a row in their blocks follows
 *          from the counts of words, which all workers have, so none asks
 *          another.
 * Owner    the caller; wv_others_done. Threads: any number may look
 */
#ifndef WV_OTHERS_H
#define WV_OTHERS_H

#include "tables.h"

typedef struct wv_others {
    uint32_t n_workers;
    uint32_t n_trainers;         /* of each */
    float times_most;            /* that a change goes as far */
    float *expected[WV_VECTORS]; /* by row: meetings in a block, as rows.met
                                    counts them; NULL: there are no others */
} wv_others_t;

/* For a training by n_workers. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_others_init(wv_others_t *self, const wv_task_t *task,
                                           uint32_t n_workers, psd_error_t *err);
void wv_others_done(wv_others_t *self);
/* How many times as often as a learner all of them meet a row, from 1 to their
 * number; met: by the block of the learner's worker. */
float wv_others_times(const wv_others_t *self, wv_table_t table, uint64_t row, float met);
#endif
