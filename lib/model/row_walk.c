/* SPDX-License-Identifier: Apache-2.0 */
/* Three groups of keys at a time, each one step further than the next. */
#include "model/row_walk.h"

#include "model/row_loops.h"

static size_t
group_size(const ps_row_walk_t *self, uint64_t first)
{
    uint64_t left = first < self->n_rows ? self->n_rows - first : 0;

    return left < PS_WALK_ROWS ? (size_t)left : PS_WALK_ROWS;
}

static uint64_t *
hashes_of(ps_row_walk_t *self, uint64_t first)
{
    return self->hashes[first / PS_WALK_ROWS % 3];
}

static uint8_t **
guesses_of(ps_row_walk_t *self, uint64_t first)
{
    return self->guesses[first / PS_WALK_ROWS % 2];
}

static void
ask_for_buckets(ps_row_walk_t *self, uint64_t first)
{
    size_t n = group_size(self, first);
    uint64_t *hashes = hashes_of(self, first);

    for (size_t i = 0; i < n; i++) {
        hashes[i] =
            ps_row_hash(ps_slice_row(self->slice, self->payload, first + i));
        ps_row_index_prefetch(&self->rows->index, hashes[i]);
    }
}

static void
ask_for_rows(ps_row_walk_t *self, uint64_t first)
{
    size_t n = group_size(self, first);
    const uint64_t *hashes = hashes_of(self, first);
    uint8_t **guesses = guesses_of(self, first);
    size_t size = self->rows->rows.item_size;

    for (size_t i = 0; i < n; i++) {
        guesses[i] = ps_row_index_guess(&self->rows->index, hashes[i]);
        if (guesses[i] != NULL) {
            ps_row_prefetch(guesses[i], size);
            __builtin_prefetch(guesses[i] + size - 1, 1);
        }
    }
}

void
ps_row_walk_begin(ps_row_walk_t *self,
                  const ps_indexed_rows_t *rows,
                  const ps_slice_t *slice,
                  const ps_payload_t *payload,
                  uint64_t n_rows)
{
    self->rows = rows;
    self->slice = slice;
    self->payload = payload;
    self->n_rows = n_rows;
    self->first = 0;
    self->n = 0;
    ask_for_buckets(self, 0);
    ask_for_buckets(self, PS_WALK_ROWS);
    ask_for_rows(self, 0);
}

static uint8_t *
find(const ps_indexed_rows_t *rows, uint64_t key)
{
    uint32_t number = ps_row_index_find(&rows->index, key);

    return number == PS_ROW_NONE ? NULL : ps_slab_at(&rows->rows, number);
}

bool
ps_row_walk_next(ps_row_walk_t *self)
{
    uint8_t **guesses = NULL;

    self->first += self->n;
    self->n = group_size(self, self->first);
    if (self->n == 0) {
        return false;
    }
    ask_for_rows(self, self->first + PS_WALK_ROWS);
    ask_for_buckets(self, self->first + (uint64_t)2 * PS_WALK_ROWS);
    guesses = guesses_of(self, self->first);
    for (size_t i = 0; i < self->n; i++) {
        uint64_t key =
            ps_slice_row(self->slice, self->payload, self->first + i);
        bool is_right = guesses[i] != NULL && ps_load_u64(guesses[i]) == key;

        self->found[i] = is_right ? guesses[i] : find(self->rows, key);
    }
    return true;
}
