/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_lane_share - the memory that the two ends of a lane share
 *
 * What     One sealed memfd: a page of counters, a ring of requests, a ring of
 *          replies, and an arena for large bodies. The server makes it and
 *          hands it over. Its size cannot change any more, so that neither end
 *          can truncate it under the other.
 * Shape    each ring is mapped twice in a row, so that a record over its end
 *          is in one piece
 * Owner    Held by the lane and by every payload that lies in it; the last
 *          ps_lane_share_drop unmaps it.
 * Threads  counters: as each says; the arena belongs to the client's thread
 */
#ifndef PS_TRANSPORT_LANE_SHARE_H
#define PS_TRANSPORT_LANE_SHARE_H

#include <stdatomic.h>

#include "transport/threads/fork.h"
#include "transport/lane/lane_arena.h"

#define PS_LANE_APART                                      \
    128 /* bytes between what two threads write: two cache \
           lines, for the processor fetches them in pairs */
#define PS_LANE_REQUEST_BYTES (UINT64_C(1) << 20)
#define PS_LANE_REPLY_BYTES (UINT64_C(4) << 20)
#define PS_LANE_RING_MIN (UINT64_C(1) << 16)
#define PS_LANE_BYTES_MAX (UINT64_C(1) << 40)

/* Positions count bytes since the beginning and never wrap; modulo the ring's
 * size they are places in it. */
typedef struct ps_lane_counters {
    _Alignas(PS_LANE_APART) _Atomic uint64_t request_tail; /* client writes */
    _Alignas(PS_LANE_APART) _Atomic uint64_t request_head; /* server writes */
    _Alignas(PS_LANE_APART) _Atomic uint64_t reply_tail;   /* server writes */
    _Alignas(PS_LANE_APART) _Atomic uint64_t reply_head;   /* client writes */
    _Alignas(PS_LANE_APART) _Atomic uint64_t server_waits; /* lane_bell.h */
    _Alignas(PS_LANE_APART) _Atomic uint64_t client_waits;
    _Alignas(PS_LANE_APART) _Atomic uint64_t request_passed; /* server writes */
} ps_lane_counters_t;

typedef struct ps_lane_sizes {
    uint64_t request_bytes; /* of the ring; a power of two */
    uint64_t reply_bytes;   /* the same */
    uint64_t arena_bytes;   /* a multiple of the page size */
} ps_lane_sizes_t;

typedef struct ps_lane_share {
    ps_lane_counters_t *counters;
    uint8_t *requests; /* the ring, twice */
    uint8_t *replies;  /* the ring, twice */
    uint8_t *arena;
    ps_lane_sizes_t sizes;
    ps_arena_t free;       /* the client's: what of the arena is free */
    uint64_t room_bytes;   /* the client's: of it, lent for answers */
    uint64_t caller_bytes; /* of it, lent to callers */
    uint8_t *mapped;       /* all of it */
    size_t mapped_bytes;
    ps_fork_item_t apart; /* an adopted one: a forked child does not share it */
    atomic_uint n_holders;
} ps_lane_share_t;

/* Makes one; *ret_fd is the memory to hand over, the caller closes it. Errors:
 * PSD_NOMEM, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_lane_share_new(const ps_lane_sizes_t *sizes,
                                              ps_lane_share_t **ret_share, int *ret_fd,
                                              psd_error_t *err);
/* Maps what was handed over. Errors: PSD_PROTO sizes that cannot be or that the
 * memory does not have, or memory that may shrink; PSD_NOMEM, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_lane_share_adopt(int fd, const ps_lane_sizes_t *sizes,
                                                ps_lane_share_t **ret_share, psd_error_t *err);
/* One holder more; returns self. */
ps_lane_share_t *ps_lane_share_keep(ps_lane_share_t *self);
/* One holder less, nulls *self_p. Takes NULL. */
void ps_lane_share_drop(ps_lane_share_t **self_p);

/* True when `size` bytes at `at` are all within the arena. */
static inline bool ps_lane_share_has(const ps_lane_share_t *self, uint64_t at, uint64_t size)
{
    return at <= self->sizes.arena_bytes && size <= self->sizes.arena_bytes - at;
}

/* True when the bytes lie in the arena; *ret_at is then where. */
static inline bool ps_lane_share_holds(const ps_lane_share_t *self, ps_bytes_t bytes,
                                       uint64_t *ret_at)
{
    uint64_t at = (uint64_t)((uintptr_t)bytes.data - (uintptr_t)self->arena);

    *ret_at = at;
    return ps_lane_share_has(self, at, bytes.size);
}
#endif
