/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_slab - numbered items of one size that never move
 *
 * Shape    chunks of 2^shift items, so that an item's place is a shift, a mask
 *          and one look-up; items are added, never taken away one by one
 * Owner    The struct's holder; ps_slab_done frees every chunk.
 */
#ifndef PS_MODEL_SLAB_H
#define PS_MODEL_SLAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

typedef struct ps_slab {
    uint8_t **chunks;  /* owned */
    size_t n_chunks;   /* in use */
    size_t max_chunks; /* room in the array */
    size_t item_size;  /* bytes; > 0 */
    uint32_t shift;    /* log2 of the items in a chunk */
    uint32_t n;        /* items added */
} ps_slab_t;

void ps_slab_init(ps_slab_t *self, size_t item_size);
void ps_slab_done(ps_slab_t *self);
/* Adds an item, not zeroed, and gives its number: 0, 1, 2 ... false: no
 * memory, nothing changed. */
PSD_MUST_CHECK bool ps_slab_add(ps_slab_t *self, uint32_t *ret_number);
/* Takes the last item back. */
void ps_slab_pop(ps_slab_t *self);
/* Bytes of the items in use and of the array of chunks. The free room behind
 * the last item has not been touched, and so costs nothing. */
uint64_t ps_slab_bytes(const ps_slab_t *self);

/* number < n */
static inline uint8_t *
ps_slab_at(const ps_slab_t *self, uint32_t number)
{
    uint32_t mask = (UINT32_C(1) << self->shift) - 1;

    return self->chunks[number >> self->shift] +
           (size_t)(number & mask) * self->item_size;
}
#endif
