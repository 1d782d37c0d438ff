/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_arena - an allocator for the free parts of a lane's arena
 *
 * What     Private memory of the client, outside of the arena, so that the
 *          server cannot corrupt it. It takes the lowest part that is large
 *          enough: memory that was used a moment ago is warm.
 * Units    bytes from the beginning of the arena; all multiples of 64
 * Owner    The caller; embedded.
 * Threads  Confined to one thread.
 */
#ifndef PS_TRANSPORT_LANE_ARENA_H
#define PS_TRANSPORT_LANE_ARENA_H

#include "base/bytes.h"

#define PS_ARENA_ALIGN 64

typedef struct ps_extent_free {
    uint64_t at;
    uint64_t size;
} ps_extent_free_t;

typedef struct ps_arena {
    ps_extent_free_t *free; /* owned; by place; no two touch */
    size_t n_free;
    size_t capacity; /* > n_taken: what is given back always finds a place */
    size_t n_taken;  /* blocks */
} ps_arena_t;

/* All of `size` bytes (a multiple of 64) is free. false: no memory. */
PSD_MUST_CHECK bool ps_arena_init(ps_arena_t *self, uint64_t size);
void ps_arena_done(ps_arena_t *self);
/* What a block of `size` bytes takes. */
static inline uint64_t ps_arena_round(uint64_t size)
{
    return (size + PS_ARENA_ALIGN - 1) / PS_ARENA_ALIGN * PS_ARENA_ALIGN;
}
/* Takes a block of at least 1 byte. false: none is free that is so large, or
 * no memory. */
PSD_MUST_CHECK bool ps_arena_take(ps_arena_t *self, uint64_t size, uint64_t *ret_at);
/* Gives back what was taken with the same size. */
void ps_arena_give(ps_arena_t *self, uint64_t at, uint64_t size);
#endif
