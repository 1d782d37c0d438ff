/* SPDX-License-Identifier: Apache-2.0 */
/* What trainers have touched, in the order of row and column. */
#include <stdlib.h>

#include "base/alloc.h"
#include "train/values/binder_task.h"

/* When at least one in this many slots was touched, it scans all slots. */
#define SCANNED_OF_ONE 8

/* A slot of a table whose rows and chunks are too many for one number. */
typedef struct place {
    uint64_t row;
    uint32_t chunk;
    uint32_t place;
} place_t;

static int compare_places(const void *left, const void *right)
{
    const place_t *a = left;
    const place_t *b = right;

    if (a->row != b->row) {
        return a->row < b->row ? -1 : 1;
    }
    if (a->chunk != b->chunk) {
        return a->chunk < b->chunk ? -1 : 1;
    }
    return a->place < b->place ? -1 : a->place > b->place;
}

static psd_status_t sort_by_row(ps_binder_task_t *task, psd_error_t *err)
{
    PSD_AUTO(ps_free_at)
    place_t *places = ps_alloc_raw(task->n, sizeof *places);
    size_t n = 0;

    if (places == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a push");
    }
    for (size_t k = 0; k < task->n_sums; k++) {
        const ps_sums_t *sums = task->sums[k];

        for (size_t i = 0; i < sums->n_touched; i++, n++) {
            places[n] =
                (place_t){.row = sums->rows[i], .chunk = sums->chunks[i], .place = (uint32_t)n};
        }
    }
    qsort(places, n, sizeof *places, compare_places);
    for (size_t i = 0; i < n; i++) {
        task->binder->items[i] = (ps_key_item_t){.key = places[i].row, .place = places[i].place};
    }
    return PSD_OK;
}

/* The slots of one that has a place for each lie in their order already. */
static void scan_slots(const ps_binder_task_t *task)
{
    const ps_sums_t *sums = task->sums[0];
    size_t n = 0;

    for (size_t slot = 0; n < task->n; slot++) {
        if (sums->masks[slot] != 0) {
            task->binder->items[n++].key = slot;
        }
    }
}

static void list_keys(const ps_binder_task_t *task)
{
    uint64_t *key = task->binder->keys;

    for (size_t k = 0; k < task->n_sums; k++) {
        const ps_sums_t *sums = task->sums[k];

        for (size_t i = 0; i < sums->n_touched; i++) {
            *key++ = sums->direct         ? sums->touched[i]
                     : sums->n_chunks > 1 ? sums->rows[i] * sums->n_chunks + sums->chunks[i]
                                          : sums->rows[i];
        }
    }
}

/* Rows and chunks are more than a number can have. */
static bool is_beyond_keys(const ps_binder_task_t *task)
{
    const ps_sums_t *first = task->sums[0];
    uint64_t greatest = UINT64_MAX / first->n_chunks - 1;

    for (size_t k = 0; !first->direct && first->n_chunks > 1 && k < task->n_sums; k++) {
        for (size_t i = 0; i < task->sums[k]->n_touched; i++) {
            if (task->sums[k]->rows[i] > greatest) {
                return true;
            }
        }
    }
    return false;
}

psd_status_t ps_binder_sort(ps_binder_task_t *task, psd_error_t *err)
{
    ps_binder_t *binder = task->binder;

    if (!ps_grow(&binder->items, &binder->items_capacity, task->n, sizeof *binder->items) ||
        !ps_grow(&binder->spare, &binder->spare_capacity, task->n, sizeof *binder->spare) ||
        !ps_grow(&binder->keys, &binder->keys_capacity, task->n, sizeof *binder->keys)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a push");
    }
    task->by_row = is_beyond_keys(task);
    if (task->by_row) {
        return sort_by_row(task, err);
    }
    if (task->sums[0]->direct && task->n >= task->sums[0]->capacity / SCANNED_OF_ONE) {
        scan_slots(task);
        return PSD_OK;
    }
    list_keys(task);
    ps_key_sort(task->crew, binder->counts, binder->keys, task->n, binder->items, binder->spare);
    return PSD_OK;
}
