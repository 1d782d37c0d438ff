/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the binder: one push under way, and the places of its items. */
#ifndef PS_TRAIN_BINDER_TASK_H
#define PS_TRAIN_BINDER_TASK_H

#include "train/values/binder.h"

/* One push. An item's key is the row and the chunk as one number, or only the
 * row when that is too large; its place counts the slots of all sums. */
typedef struct ps_binder_task {
    ps_binder_t *binder;
    ps_crew_t *crew; /* borrowed */
    const ps_sums_t *const *sums;
    size_t n_sums;
    size_t starts[PS_BINDER_SUMS_MAX]; /* places of each one's first slots */
    size_t n;                          /* items */
    uint64_t n_chunks;                 /* keys of a row */
    bool by_row;                       /* a key is only the row */
    ps_sheaf_t sheaf;                  /* owned */
} ps_binder_task_t;

/* Sorts the slots of all sums into the binder's items, by row and chunk. The
 * order of the same cells of several sums is not defined, unless by_row.
 * Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_binder_sort(ps_binder_task_t *task, psd_error_t *err);

/* The sums that an item is of, and its slot. */
static inline const ps_sums_t *ps_binder_locate(const ps_binder_task_t *task,
                                                const ps_key_item_t *item, size_t *ret_slot)
{
    size_t low = 0;
    size_t high = task->n_sums;

    if (task->sums[0]->direct) {
        *ret_slot = (size_t)item->key;
        return task->sums[0];
    }
    while (high - low > 1) {
        size_t middle = (low + high) / 2;

        if (item->place < task->starts[middle]) {
            high = middle;
        } else {
            low = middle;
        }
    }
    *ret_slot = item->place - task->starts[low];
    return task->sums[low];
}

static inline uint64_t ps_binder_row_of(const ps_binder_task_t *task, const ps_key_item_t *item)
{
    return task->by_row || task->n_chunks == 1 ? item->key : item->key / task->n_chunks;
}

static inline uint32_t ps_binder_chunk_of(const ps_binder_task_t *task, const ps_key_item_t *item)
{
    size_t slot = 0;

    if (!task->by_row) {
        return task->n_chunks == 1 ? 0 : (uint32_t)(item->key % task->n_chunks);
    }
    return ps_binder_locate(task, item, &slot)->chunks[slot];
}
#endif
