/* SPDX-License-Identifier: Apache-2.0 */
/* Items of one size in chunks. */
#include "model/slab.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

#define CHUNK_BYTES ((size_t)256 * 1024) /* unless one item is larger */
#define SHIFT_MAX 16

void
ps_slab_init(ps_slab_t *self, size_t item_size)
{
    assert(item_size > 0);
    memset(self, 0, sizeof *self);
    self->item_size = item_size;
    while (self->shift < SHIFT_MAX &&
           (item_size << (self->shift + 1)) <= CHUNK_BYTES) {
        self->shift++;
    }
}

void
ps_slab_done(ps_slab_t *self)
{
    for (size_t i = 0; i < self->n_chunks; i++) {
        ps_free(self->chunks[i]);
    }
    ps_free(self->chunks);
    memset(self, 0, sizeof *self);
}

static bool
add_chunk(ps_slab_t *self)
{
    uint8_t *chunk = NULL;

    if (!ps_grow(&self->chunks, &self->max_chunks, self->n_chunks + 1,
                 sizeof *self->chunks)) {
        return false;
    }
    /* Not zeroed: the pages of a chunk cost nothing until items use them. */
    chunk = ps_alloc_raw((size_t)1 << self->shift, self->item_size);
    if (chunk == NULL) {
        return false;
    }
    self->chunks[self->n_chunks++] = chunk;
    return true;
}

bool
ps_slab_add(ps_slab_t *self, uint32_t *ret_number)
{
    if (self->n == UINT32_MAX) {
        return false;
    }
    if ((self->n >> self->shift) == self->n_chunks && !add_chunk(self)) {
        return false;
    }
    *ret_number = self->n++;
    return true;
}

void
ps_slab_pop(ps_slab_t *self)
{
    assert(self->n > 0);
    self->n--;
}

uint64_t
ps_slab_bytes(const ps_slab_t *self)
{
    return (uint64_t)self->n * self->item_size +
           self->max_chunks * sizeof *self->chunks;
}
