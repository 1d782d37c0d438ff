/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_copies - a trainer's own copies of a block's rows of one table
 *
 * What     A row is copied at its first use; its change goes to the server at
 *          the end of the block. The copy should be where the row will be after
 *          the others' blocks too (others.h): its changes go wv_copies_times as
 *          far as this trainer's part, and only that part is added. With the
 *          pipeline on, a cache may be loaded during work on the block before
 *          it, and then lacks that block's changes: a trainer adds the whole
 *          change of its copy. So one worker with one trainer learns as if it
 *          were alone with its vectors, and several as if each had seen most of
 *          the others' changes. Without that, frequent words swing.
 * Shape    row of slot i from values + i * stride on
 * Owner    the caller; wv_copies_done. Threads: the trainer's
 */
#ifndef WV_COPIES_H
#define WV_COPIES_H

#include "others.h"

typedef struct wv_copies {
    uint32_t table; /* of psd_train_table */
    wv_table_t kind;
    const wv_others_t *others; /* borrowed; the learners that also change its rows */
    size_t size;               /* of a row */
    size_t stride;
    bool carries;          /* changes of the last block may be lacking in the next */
    const wv_rows_t *rows; /* of the block at hand */
    float *values;         /* by slot */
    size_t room;           /* slots */
    const float **cached;  /* by slot: the row that was copied; NULL: it is not yet */
    float *times;          /* by slot: how far a change goes */
    size_t here_room;
    float *part;    /* of a row's change: this trainer's own */
    float *carried; /* changes of the last block, by its slots */
    size_t carried_room;
    uint64_t *carried_rows; /* which they are of */
    size_t n_carried;
    uint32_t *carried_slot; /* by row; WV_UNKNOWN: none */
    bool failed;            /* a row was not in the cache */
} wv_copies_t;

/* table: its number of psd_train_table. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_copies_init(wv_copies_t *self, const wv_task_t *task,
                                           const wv_others_t *others, wv_table_t kind,
                                           uint32_t table, psd_error_t *err);
void wv_copies_done(wv_copies_t *self);
/* Starts a block with these rows; lacks: its cache lacks the changes of the
 * one before. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_copies_begin(wv_copies_t *self, const wv_rows_t *rows, bool lacks,
                                            psd_error_t *err);
/* Copies a row; wv_copies_row calls it at the first use. */
void wv_copies_fetch(wv_copies_t *self, psd_trainer_t *trainer, uint32_t slot);
/* Ends the block: adds this trainer's part of the changes. */
void wv_copies_end(wv_copies_t *self, psd_trainer_t *trainer);

/* How far a change of this trainer's goes. */
static inline float wv_copies_times(const wv_copies_t *self, uint32_t slot)
{
    return self->times[slot];
}

static inline float *wv_copies_row(wv_copies_t *self, psd_trainer_t *trainer, uint32_t slot)
{
    if (self->cached[slot] == NULL) {
        wv_copies_fetch(self, trainer, slot);
    }
    return self->values + slot * self->stride;
}
#endif
