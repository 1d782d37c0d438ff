/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_slab - numbered items of one size that never move
 *
 * What     Chunks that double in size, so that there are few of them: an item's
 *          address takes a count of leading zeros, a look-up and a
 *          multiplication. Items are added, never removed one by one.
 * Shape    chunk k holds 2^(shift + k) items and begins at a multiple of 64
 * Units    a number is 0 .. PS_SLAB_MAX - 1
 * Owner    The struct's holder; ps_slab_done frees every chunk.
 */
#ifndef PS_MODEL_SLAB_H
#define PS_MODEL_SLAB_H

#include "model/rows/pages.h"

#define PS_SLAB_MAX ((UINT64_C(1) << 31) - 1) /* items */
#define PS_SLAB_CHUNKS 32                     /* reach PS_SLAB_MAX for any shift */

typedef struct ps_slab {
    uint8_t *data[PS_SLAB_CHUNKS]; /* of each chunk, as ps_slab_at needs it */
    ps_pages_t chunks[PS_SLAB_CHUNKS];
    uint32_t n_chunks; /* in use */
    uint32_t shift;    /* log2 of the items in the first chunk */
    size_t item_size;  /* bytes; > 0 */
    uint64_t n;        /* items added */
    uint32_t soon;     /* the current chunk of ps_slab_soon … */
    size_t named;      /* … and the bytes of it that it named */
} ps_slab_t;

void ps_slab_init(ps_slab_t *self, size_t item_size);
void ps_slab_done(ps_slab_t *self);
/* Reserves room for `more` items, so that adding them cannot fail. Unused room
 * costs address space, not memory. false: no memory, or more than PS_SLAB_MAX;
 * items are unchanged. */
PSD_MUST_CHECK bool ps_slab_reserve(ps_slab_t *self, uint64_t more);
/* Adds an item of zeros and returns its number: 0, 1, 2 ... false: as
 * ps_slab_reserve. */
PSD_MUST_CHECK bool ps_slab_add(ps_slab_t *self, uint32_t *ret_number);
/* Names the memory of future items, once; as ps_pages_soon. */
bool ps_slab_soon(ps_slab_t *self, ps_soon_t *ret_soon);
/* Bytes of the items in use. */
uint64_t ps_slab_bytes(const ps_slab_t *self);

/* The contiguous items from `number` on: their address, and the number of them
 * in the chunk; number < n. */
const uint8_t *ps_slab_run(const ps_slab_t *self, uint32_t number, uint64_t *ret_n);

/* number < n */
static inline uint8_t *ps_slab_at(const ps_slab_t *self, uint32_t number)
{
    uint64_t place = (uint64_t)number + (UINT64_C(1) << self->shift);
    uint32_t top = 63U - (uint32_t)__builtin_clzll(place);

    return self->data[top - self->shift] + (place ^ (UINT64_C(1) << top)) * self->item_size;
}
#endif
