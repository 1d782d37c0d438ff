/* SPDX-License-Identifier: Apache-2.0 */
/* Three groups of keys at a time, each one step further than the next. */
#include "model/row_walk.h"

#include "model/row_loops.h"

#define WIDE_BYTES 128 /* of a row: from here on a few are enough */
#define WIDE_GROUP 8
#define WIDE_AHEAD 32 /* rows asked for before their group begins */

/* Rows of the slice up to `ahead` behind the group at hand. */
static uint64_t
reach(const ps_row_walk_t *self, uint64_t ahead)
{
    uint64_t end = self->first + self->n + ahead;

    return end < self->n_rows ? end : self->n_rows;
}

static bool
is_wide(const ps_row_walk_t *self)
{
    return self->group == WIDE_GROUP;
}

/* Between narrow rows the processor runs ahead far enough to find buckets by
 * itself. The prefetch stands here, not in a function of its own: to gcc 12 one
 * that does nothing else has no effect, and it drops the call. */
static void
ask_for_buckets(ps_row_walk_t *self, uint64_t end)
{
    const ps_row_index_t *index = &self->rows->index;
    bool asks = is_wide(self) && index->n > 0;

    for (uint64_t i = self->n_buckets; i < end; i++) {
        uint64_t hash =
            ps_row_hash(ps_slice_row(self->slice, self->payload, i));

        self->hashes[i % PS_WALK_RING] = hash;
    }
    for (uint64_t i = self->n_buckets; asks && i < end; i++) {
        uint64_t hash = self->hashes[i % PS_WALK_RING];

        __builtin_prefetch(ps_row_index_home(index, hash));
    }
    self->n_buckets = end;
}

/* wide: as is_wide, but known to the compiler where this is called, for a test
 * of it in the loop is seen in the time that a row of one value takes. */
static inline void
guess_rows(ps_row_walk_t *self, uint64_t end, bool wide)
{
    size_t size = self->rows->rows.item_size;

    for (uint64_t i = self->n_guesses; i < end; i++) {
        uint8_t *guess = ps_row_index_guess(&self->rows->index,
                                            self->hashes[i % PS_WALK_RING]);

        self->guesses[i % PS_WALK_RING] = guess;
        if (guess == NULL) {
            continue;
        }
        if (wide) {
            ps_row_prefetch_early(guess, size);
        } else {
            ps_row_prefetch(guess, size);
            __builtin_prefetch(guess + size - 1, 1);
        }
    }
    self->n_guesses = end;
}

static void
ask_for_rows(ps_row_walk_t *self, uint64_t end)
{
    if (is_wide(self)) {
        guess_rows(self, end, true);
    } else {
        guess_rows(self, end, false);
    }
}

/* Asks for what comes behind the group at hand. */
static void
ask_ahead(ps_row_walk_t *self)
{
    uint64_t ahead = is_wide(self) ? WIDE_AHEAD : self->group;

    ask_for_buckets(self, reach(self, 2 * ahead));
    ask_for_rows(self, reach(self, ahead));
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
    self->group =
        rows->rows.item_size >= WIDE_BYTES ? WIDE_GROUP : PS_WALK_ROWS;
    self->first = 0;
    self->n = 0;
    self->n_buckets = 0;
    self->n_guesses = 0;
    ask_ahead(self);
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
    uint64_t left = 0;

    self->first += self->n;
    left = self->n_rows - self->first;
    self->n = left < self->group ? (size_t)left : self->group;
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
