/* SPDX-License-Identifier: Apache-2.0 */
/* Items of one size in chunks that double. */
#include "model/rows/slab.h"

#include <assert.h>
#include <string.h>

#define FIRST_BYTES ((size_t)4 * 1024) /* unless one item is larger */
#define SHIFT_MAX 16

void ps_slab_init(ps_slab_t *self, size_t item_size)
{
    assert(item_size > 0);
    memset(self, 0, sizeof *self);
    self->item_size = item_size;
    while (self->shift < SHIFT_MAX && (item_size << (self->shift + 1)) <= FIRST_BYTES) {
        self->shift++;
    }
}

void ps_slab_done(ps_slab_t *self)
{
    for (uint32_t k = 0; k < self->n_chunks; k++) {
        ps_pages_done(&self->chunks[k]);
    }
    memset(self, 0, sizeof *self);
}

/* Items that the chunks hold. */
static uint64_t room(const ps_slab_t *self)
{
    return ((UINT64_C(1) << self->n_chunks) - 1) << self->shift;
}

static bool add_chunk(ps_slab_t *self)
{
    uint32_t k = self->n_chunks;
    size_t bytes = 0;

    if (k == PS_SLAB_CHUNKS ||
        __builtin_mul_overflow((size_t)1 << (self->shift + k), self->item_size, &bytes) ||
        !ps_pages_init(&self->chunks[k], bytes)) {
        return false;
    }
    ps_pages_will_fill(&self->chunks[k]); /* from the front, item by item */
    self->data[k] = self->chunks[k].data;
    self->n_chunks++;
    return true;
}

bool ps_slab_reserve(ps_slab_t *self, uint64_t more)
{
    if (more > PS_SLAB_MAX - self->n) {
        return false;
    }
    while (self->n + more > room(self)) {
        if (!add_chunk(self)) {
            return false;
        }
    }
    return true;
}

bool ps_slab_add(ps_slab_t *self, uint32_t *ret_number)
{
    if (!ps_slab_reserve(self, 1)) {
        return false;
    }
    *ret_number = (uint32_t)self->n++;
    return true;
}

const uint8_t *ps_slab_run(const ps_slab_t *self, uint32_t number, uint64_t *ret_n)
{
    uint64_t place = (uint64_t)number + (UINT64_C(1) << self->shift);
    uint32_t top = 63U - (uint32_t)__builtin_clzll(place);

    *ret_n = (UINT64_C(2) << top) - place;
    return ps_slab_at(self, number);
}

/* All of chunk k is named, so the next one follows; it follows early when a
 * chunk is too small for huge pages and the next is not. */
static bool is_all_named(const ps_slab_t *self, uint32_t k, size_t until)
{
    const ps_pages_t *chunk = &self->chunks[k];

    return self->named == chunk->size ||
           (self->named == 0 && chunk->block == NULL && until > chunk->size / 4 * 3);
}

bool ps_slab_soon(ps_slab_t *self, ps_soon_t *ret_soon)
{
    uint64_t place = self->n + (UINT64_C(1) << self->shift);
    uint32_t top = 63U - (uint32_t)__builtin_clzll(place);
    uint32_t k = top - self->shift; /* where the next item goes */
    size_t until = (size_t)(place ^ (UINT64_C(1) << top)) * self->item_size;

    if (self->soon < k) {
        self->soon = k;
        self->named = 0;
    }
    if (k >= self->n_chunks) {
        return false;
    }
    if (self->soon == k && is_all_named(self, k, until)) {
        if (self->n_chunks == k + 1 && !add_chunk(self)) {
            return false; /* the caller that needs it reports the failure */
        }
        self->soon = k + 1;
        self->named = 0;
    }
    return ps_pages_soon(&self->chunks[self->soon], self->soon == k ? until : 0, &self->named,
                         ret_soon);
}

uint64_t ps_slab_bytes(const ps_slab_t *self)
{
    uint64_t bytes = self->n * self->item_size;

    /* Heap blocks were zeroed, so they take memory even when unused. */
    for (uint32_t k = 0; k < self->n_chunks; k++) {
        uint64_t first = ((UINT64_C(1) << k) - 1) << self->shift;
        uint64_t n = UINT64_C(1) << (self->shift + k);
        uint64_t used = self->n <= first ? 0 : self->n - first;

        if (self->chunks[k].block != NULL && used < n) {
            bytes += (n - used) * self->item_size;
        }
    }
    return bytes;
}
