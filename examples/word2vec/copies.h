/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_copies - a trainer's own copies of a block's rows of one table
 *
 * What     A row is copied when it is used first; what has changed of it goes
 *          to the server at the end of the block. With the pipeline on, a cache
 *          may be loaded while the block before it is worked on, and lacks what
 *          that one has changed: a trainer adds its own part of it, so that
 *          one worker with one trainer learns as if it were alone with its
 *          vectors. Without that, frequent words swing.
 * Shape    row of slot i from values + i * stride on
 * Owner    the caller; wv_copies_done. Threads: the trainer's
 */
#ifndef WV_COPIES_H
#define WV_COPIES_H

#include "block.h"
#include "psd_train.h"

typedef struct wv_copies {
    uint32_t table; /* of psd_train_table */
    size_t size;    /* of a row */
    size_t stride;
    const float *weights; /* by row, of what is added; NULL: all are 1.
                             Borrowed; whoever has them sets them */
    bool carries; /* changes of the last block may be lacking in the next */
    const wv_rows_t *rows; /* of the block at hand */
    float *values;         /* by slot */
    size_t room;           /* slots */
    bool *is_here;         /* by slot */
    size_t here_room;
    float *carried; /* changes of the last block, by its slots */
    size_t carried_room;
    uint64_t *carried_rows; /* which they are of */
    size_t n_carried;
    uint32_t *carried_slot; /* by row; WV_UNKNOWN: none */
    bool failed;            /* a row was not in the cache */
} wv_copies_t;

/* Of a table of n_rows. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_copies_init(wv_copies_t *self,
                                           uint32_t table,
                                           size_t size,
                                           uint32_t n_rows,
                                           bool carries,
                                           psd_error_t *err);
void wv_copies_done(wv_copies_t *self);
/* A block begins, with these rows; lacks: its cache has not what the one before
 * has changed. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_copies_begin(wv_copies_t *self,
                                            const wv_rows_t *rows,
                                            bool lacks,
                                            psd_error_t *err);
/* Copies a row; wv_copies_row does when it is to be. */
void wv_copies_fetch(wv_copies_t *self, psd_trainer_t *trainer, uint32_t slot);
/* The block ends: adds what has changed. */
void wv_copies_end(wv_copies_t *self, psd_trainer_t *trainer);

static inline float *
wv_copies_row(wv_copies_t *self, psd_trainer_t *trainer, uint32_t slot)
{
    if (!self->is_here[slot]) {
        wv_copies_fetch(self, trainer, slot);
    }
    return self->values + slot * self->stride;
}
#endif
