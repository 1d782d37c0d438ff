/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_binder - makes one push of the sums of several trainers
 *
 * What     Sorts the touched slots of all trainers by row and column. Slots of
 *          the same cells are then adjacent, in the order of the trainers, and
 *          are added up in that order. So the bits depend neither on which
 *          trainer was first nor on the number of threads. When there are many
 *          slots the threads of a crew share the work.
 * Owner    ps_binder_init, ps_binder_done. It keeps memory for the next push.
 * Threads  Confined to one at a time, and its own.
 */
#ifndef PS_TRAIN_BINDER_H
#define PS_TRAIN_BINDER_H

#include "data/feed/key_sort.h"
#include "train/values/sums.h"

#define PS_BINDER_SUMS_MAX 256 /* trainers */

typedef struct ps_binder {
    ps_crew_t *crew;              /* owned; of all members; NULL: alone is it */
    ps_crew_t *alone;             /* owned; one member */
    ps_key_counts_t *counts;      /* owned; one for each member */
    struct ps_binder_part *parts; /* owned; the same */
    uint64_t *keys;               /* owned */
    ps_key_item_t *items;         /* owned */
    ps_key_item_t *spare;         /* owned */
    size_t keys_capacity, items_capacity, spare_capacity;
} ps_binder_t;

/* n_members 1 .. PS_CREW_MAX threads, including the caller's. Errors:
 * PSD_NOMEM; those of ps_crew_start. */
PSD_MUST_CHECK psd_status_t ps_binder_init(ps_binder_t *self, uint32_t n_members, psd_error_t *err);
/* Takes one that is zeroed, too. */
void ps_binder_done(ps_binder_t *self);
/*
 * Makes a sheaf of all touched cells, rounded to the table's type.
 *
 * sums  in  n of them, 1 .. PS_BINDER_SUMS_MAX, of one shape; in each something
 *           was touched; of direct ones n is 1
 *
 * Errors: PSD_RANGE the type cannot hold a sum; PSD_NOT_FINITE;
 * PSD_LIMIT 2^32 slots or more; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_binder_bind(ps_binder_t *self, const ps_sums_t *const *sums,
                                           size_t n, ps_sheaf_t *ret_sheaf, psd_error_t *err);
#endif
