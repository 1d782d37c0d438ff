/* SPDX-License-Identifier: Apache-2.0 */
/* Three groups of keys at a time, each one a stage further than the next. */
#include "model/rows/row_walk.h"

#include "base/prefetch.h"

/* Rows of the slice up to `ahead` after the current group. */
static uint64_t reach(const ps_row_walk_t *self, uint64_t ahead)
{
    uint64_t end = self->first + self->n + ahead;

    return end < self->n_rows ? end : self->n_rows;
}

static void ask_for_buckets(ps_row_walk_t *self, uint64_t end)
{
    const ps_row_index_t *index = &self->rows->index;

    for (uint64_t i = self->n_buckets; i < end; i++) {
        uint64_t hash = ps_row_hash(ps_slice_row(self->slice, self->payload, i));

        self->hashes[i % PS_WALK_RING] = hash;
        ps_row_index_prefetch(index, hash);
    }
    self->n_buckets = end;
}

static void ask_for_rows(ps_row_walk_t *self, uint64_t end)
{
    for (uint64_t i = self->n_guesses; i < end; i++) {
        uint8_t *guess = ps_row_index_guess(&self->rows->index, self->hashes[i % PS_WALK_RING]);

        self->guesses[i % PS_WALK_RING] = guess;
        if (guess != NULL) {
            ps_prefetch_row(guess, self->bytes);
        }
    }
    self->n_guesses = end;
}

/* Prefetches what comes after the current group. */
static void ask_ahead(ps_row_walk_t *self)
{
    ask_for_buckets(self, reach(self, 2 * PS_WALK_ROWS));
    ask_for_rows(self, reach(self, PS_WALK_ROWS));
}

/* Bytes from the front of an item on. */
static size_t bytes_of(const ps_indexed_rows_t *rows, ps_row_need_t need)
{
    const ps_row_shape_t *shape = &rows->shape;

    if (need == PS_NEED_ALL || ps_rows_are_mixed(rows)) {
        return rows->rows.item_size;
    }
    return rows->values_at + (need == PS_NEED_HEAD ? 0 : (size_t)shape->width * shape->value_size);
}

void ps_row_walk_begin(ps_row_walk_t *self, const ps_indexed_rows_t *rows, const ps_slice_t *slice,
                       const ps_payload_t *payload, uint64_t n_rows, ps_row_need_t need)
{
    self->rows = rows;
    self->slice = slice;
    self->payload = payload;
    self->n_rows = n_rows;
    self->bytes = bytes_of(rows, need);
    self->first = 0;
    self->n = 0;
    self->n_buckets = 0;
    self->n_guesses = 0;
    ask_ahead(self);
}

static uint8_t *find(const ps_indexed_rows_t *rows, uint64_t key)
{
    uint32_t number = ps_row_index_find(&rows->index, key);

    return number == PS_ROW_NONE ? NULL : ps_slab_at(&rows->rows, number);
}

bool ps_row_walk_next(ps_row_walk_t *self)
{
    uint64_t left = 0;

    self->first += self->n;
    left = self->n_rows - self->first;
    self->n = left < PS_WALK_ROWS ? (size_t)left : PS_WALK_ROWS;
    if (self->n == 0) {
        return false;
    }
    ask_ahead(self);
    for (size_t i = 0; i < self->n; i++) {
        uint64_t at = self->first + i;
        uint64_t key = ps_slice_row(self->slice, self->payload, at);
        uint8_t *guess = self->guesses[at % PS_WALK_RING];
        bool is_right = guess != NULL && ps_load_u64(guess) == key;

        self->found[i] = is_right ? guess : find(self->rows, key);
    }
    return true;
}
