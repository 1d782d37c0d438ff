/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_weights - how much counts of what a learner has changed of a tree's node
 *
 * What     Learners, the trainers of all workers, work on blocks at the same
 *          time: each begins with the same vectors, and what each has changed
 *          of them is added up. That is right for a row that a block meets now
 *          and then, as vectors of words are. The upper nodes of the tree are
 *          met thousands of times, and end each block near to where that block
 *          would have them: added up they go as many times too far as there are
 *          learners, swing, and in the end are no numbers. So their changes
 *          count by a weight. The weights of n changes that know nothing of
 *          each other let them go together as far as they would one after the
 *          other: the whole way for a node that is rarely met, one n-th, which
 *          is the mean of the models, for the root.
 *          How often a block meets a node follows from the counts of words,
 *          which all workers have: none asks another.
 * Owner    the caller; wv_weights_done. Threads: any number may look
 */
#ifndef WV_WEIGHTS_H
#define WV_WEIGHTS_H

#include "block.h"

typedef struct wv_weights {
    float *nodes; /* by row of the tree's table; NULL: all are 1 */
} wv_weights_t;

/* The weight of a change when n of them know nothing of each other, and each
 * alone leaves exp(-way) of the distance to where the row is to be. 1 with n 1;
 * towards 1 / n when the way is long. */
double wv_weight_of(double way, double n);
/* For a training by n_workers. Without a tree, and for one worker with one
 * trainer, there are none: all that is changed counts. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_weights_make(wv_weights_t *self,
                                            const wv_task_t *task,
                                            uint32_t n_workers,
                                            psd_error_t *err);
void wv_weights_done(wv_weights_t *self);
#endif
