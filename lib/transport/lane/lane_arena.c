/* SPDX-License-Identifier: Apache-2.0 */
/* An ordered array of free extents: there are few, for requests are answered
 * about in the order in which they were made. */
#include "transport/lane/lane_arena.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

bool ps_arena_init(ps_arena_t *self, uint64_t size)
{
    *self = (ps_arena_t){0};
    if (!ps_grow(&self->free, &self->capacity, 1, sizeof *self->free)) {
        return false;
    }
    self->free[0] = (ps_extent_free_t){.at = 0, .size = size};
    self->n_free = 1;
    return true;
}

void ps_arena_done(ps_arena_t *self)
{
    ps_free(self->free);
    *self = (ps_arena_t){0};
}

static void remove_extent(ps_arena_t *self, size_t i)
{
    self->n_free--;
    memmove(&self->free[i], &self->free[i + 1], (self->n_free - i) * sizeof *self->free);
}

bool ps_arena_take(ps_arena_t *self, uint64_t size, uint64_t *ret_at)
{
    uint64_t need = ps_arena_round(size);

    /* n blocks leave at most n + 1 free extents between them. */
    if (size == 0 || need < size ||
        !ps_grow(&self->free, &self->capacity, self->n_taken + 2, sizeof *self->free)) {
        return false;
    }
    for (size_t i = 0; i < self->n_free; i++) {
        ps_extent_free_t *extent = &self->free[i];

        if (extent->size < need) {
            continue;
        }
        *ret_at = extent->at;
        extent->at += need;
        extent->size -= need;
        if (extent->size == 0) {
            remove_extent(self, i);
        }
        self->n_taken++;
        return true;
    }
    return false;
}

/* The first extent after `at`. */
static size_t place_of(const ps_arena_t *self, uint64_t at)
{
    size_t low = 0;
    size_t high = self->n_free;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->free[middle].at < at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void ps_arena_give(ps_arena_t *self, uint64_t at, uint64_t size)
{
    uint64_t given = ps_arena_round(size);
    size_t i = place_of(self, at);
    ps_extent_free_t *before = i > 0 ? &self->free[i - 1] : NULL;
    ps_extent_free_t *behind = i < self->n_free ? &self->free[i] : NULL;

    assert(self->n_taken > 0);
    assert(before == NULL || before->at + before->size <= at);
    assert(behind == NULL || at + given <= behind->at);
    self->n_taken--;
    if (before != NULL && before->at + before->size == at) {
        before->size += given;
        if (behind != NULL && before->at + before->size == behind->at) {
            before->size += behind->size;
            remove_extent(self, i);
        }
    } else if (behind != NULL && at + given == behind->at) {
        behind->at = at;
        behind->size += given;
    } else {
        assert(self->n_free < self->capacity);
        memmove(&self->free[i + 1], &self->free[i], (self->n_free - i) * sizeof *self->free);
        self->free[i] = (ps_extent_free_t){.at = at, .size = given};
        self->n_free++;
    }
}
