/* SPDX-License-Identifier: Apache-2.0 */
/* The least keys of a range: a heap with the greatest on top, which a lesser
 * key replaces; sorted in its place at the end. */
#include "model/store/present_rows.h"

#include <string.h>

#include "base/alloc.h"

static void sift_down(uint64_t *heap, size_t n, size_t at)
{
    uint64_t key = heap[at];

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < n && heap[child + 1] > heap[child]) {
            child++;
        }
        if (child >= n || heap[child] <= key) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = key;
}

static void make_heap(uint64_t *keys, size_t n)
{
    for (size_t i = n / 2; i > 0; i--) {
        sift_down(keys, n, i - 1);
    }
}

static void sort_heap(uint64_t *heap, size_t n)
{
    for (; n > 1; n--) {
        uint64_t greatest = heap[0];

        heap[0] = heap[n - 1];
        heap[n - 1] = greatest;
        sift_down(heap, n - 1, 0);
    }
}

static bool append(ps_present_rows_t *self, uint64_t key)
{
    if (!ps_grow(&self->keys, &self->capacity, self->n + 1, sizeof key)) {
        return false;
    }
    self->keys[self->n++] = key;
    return true;
}

/* Takes one more key; the first `limit` keys form the heap. */
static bool offer(ps_present_rows_t *self, uint64_t key, size_t limit)
{
    if (self->n < limit) {
        if (!append(self, key)) {
            return false;
        }
        if (self->n == limit) {
            make_heap(self->keys, self->n);
        }
        return true;
    }
    self->is_cut = true;
    if (key < self->keys[0]) {
        self->keys[0] = key;
        sift_down(self->keys, self->n, 0);
    }
    return true;
}

static bool find_in_rows(const ps_indexed_rows_t *rows, uint64_t first, uint64_t last,
                         const uint64_t *since, size_t limit, ps_present_rows_t *ret)
{
    /* in insertion order, which is the order in memory */
    for (uint32_t i = 0; i < rows->rows.n; i++) {
        const uint8_t *at = ps_slab_at(&rows->rows, i);
        uint64_t key = ps_load_u64(at);
        bool is_wanted = key >= first && key <= last &&
                         (since == NULL || ps_indexed_row_version(rows, at) > *since) &&
                         ps_indexed_row_is_present(rows, at);

        if (is_wanted && !offer(ret, key, limit)) {
            return false;
        }
    }
    if (ret->n < limit) {
        make_heap(ret->keys, ret->n);
    }
    sort_heap(ret->keys, ret->n);
    return true;
}

/* Takes the next row in order; sets *ret_go_on to false when there are
 * enough. */
static bool take(ps_present_rows_t *self, uint64_t row, size_t limit, bool *ret_go_on)
{
    if (self->n == limit) {
        self->is_cut = true;
        *ret_go_on = false;
        return true;
    }
    return append(self, row);
}

/* RANGE keys: every row that the hash puts here is present. */
static bool find_by_number(const ps_extent_t *extent, uint64_t first, uint64_t last, size_t limit,
                           ps_present_rows_t *ret)
{
    bool go_on = true;

    for (uint64_t row = first; row <= last && go_on; row++) {
        if (ps_extent_has_row(extent, row) && !take(ret, row, limit, &go_on)) {
            return false;
        }
    }
    return true;
}

static bool find_in_array(const ps_array_rows_t *array, uint64_t first, uint64_t last,
                          uint64_t since, size_t limit, ps_present_rows_t *ret)
{
    bool go_on = true;

    for (uint64_t row = first; row <= last && go_on; row++) {
        if (ps_array_rows_version(array, row) > since && !take(ret, row, limit, &go_on)) {
            return false;
        }
    }
    return true;
}

bool ps_present_rows_find(const ps_store_t *store, uint64_t first, uint64_t n_rows,
                          const uint64_t *since, size_t limit, ps_present_rows_t *ret)
{
    uint64_t last = first + (n_rows - 1);
    bool found = false;

    memset(ret, 0, sizeof *ret);
    if (store->is_array && since != NULL) {
        found = find_in_array(&store->array, first, last, *since, limit, ret);
    } else if (store->spec.keys == PS_KEYS_HASH || since != NULL) {
        found = find_in_rows(&store->indexed, first, last, since, limit, ret);
    } else {
        found = find_by_number(&store->extent, first, last, limit, ret);
    }
    if (!found) {
        ps_present_rows_done(ret);
    }
    return found;
}

void ps_present_rows_done(ps_present_rows_t *self)
{
    ps_free(self->keys);
    memset(self, 0, sizeof *self);
}
