/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_ring_out, ps_ring_in - the two ends of a ring of bytes in shared memory
 *
 * What     One thread writes, one reads. Each end keeps its own position in
 *          private memory and trusts the other's only after a check: the
 *          distance between the two never exceeds the ring.
 * Shape    the ring is mapped twice in a row: n <= size bytes at any place are
 *          in one piece
 * Threads  one for each end
 */
#ifndef PS_TRANSPORT_LANE_RING_H
#define PS_TRANSPORT_LANE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PS_RING_ALIGN 8 /* positions are multiples of it */

typedef struct ps_ring_out {
    uint8_t *data;
    uint64_t size;          /* a power of two */
    _Atomic uint64_t *tail; /* ours: what the reader may read up to */
    _Atomic uint64_t *head; /* the reader's: what it has done with */
    uint64_t at;            /* written up to here */
    uint64_t seen_head;     /* when last looked */
    bool broken;            /* the reader's counter cannot be */
} ps_ring_out_t;

typedef struct ps_ring_in {
    const uint8_t *data;
    uint64_t size;
    _Atomic uint64_t *tail; /* the writer's */
    _Atomic uint64_t *head; /* ours */
    uint64_t at;            /* taken up to here */
    uint64_t seen_tail;     /* when last looked */
    uint64_t given;         /* the position that the writer may overwrite up to */
    bool broken;            /* the writer's counter cannot be */
} ps_ring_in_t;

/* Reads the reader's position again. */
static inline uint64_t ps_ring_done(ps_ring_out_t *self)
{
    uint64_t head = atomic_load_explicit(self->head, memory_order_acquire);

    if (self->at - head > self->size || head - self->seen_head > self->size) {
        self->broken = true;
    } else {
        self->seen_head = head;
    }
    return self->seen_head;
}

/* Where the next n bytes go; NULL when there is no room for them. */
static inline uint8_t *ps_ring_reserve(ps_ring_out_t *self, uint64_t n)
{
    if (n > self->size - (self->at - self->seen_head)) {
        (void)ps_ring_done(self);
        if (self->broken || n > self->size - (self->at - self->seen_head)) {
            return NULL;
        }
    }
    return self->data + (self->at & (self->size - 1));
}

/* n bytes are written there: the reader may have them. */
static inline void ps_ring_commit(ps_ring_out_t *self, uint64_t n)
{
    self->at += n;
    atomic_store_explicit(self->tail, self->at, memory_order_release);
}

/* How much may be read. A position that is no record's makes it broken. */
static inline uint64_t ps_ring_waiting(ps_ring_in_t *self)
{
    if (self->at == self->seen_tail) {
        uint64_t tail = atomic_load_explicit(self->tail, memory_order_acquire);

        if (tail - self->at > self->size || tail % PS_RING_ALIGN != 0) {
            self->broken = true;
            return 0;
        }
        self->seen_tail = tail;
    }
    return self->seen_tail - self->at;
}

static inline const uint8_t *ps_ring_next(const ps_ring_in_t *self)
{
    return self->data + (self->at & (self->size - 1));
}

/* Tells the writer that everything before `up_to` may be written over. */
static inline void ps_ring_give(ps_ring_in_t *self, uint64_t up_to)
{
    if (up_to != self->given) {
        self->given = up_to;
        atomic_store_explicit(self->head, up_to, memory_order_release);
    }
}
#endif
