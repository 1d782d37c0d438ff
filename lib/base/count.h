/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_count - numbers that one thread writes and any thread reads
 *
 * What     A counter, a histogram, and a box for one message. The writer never
 *          waits and takes no lock; a reader never asks the writer, so it reads
 *          while that hangs.
 * Units    The owner's. A histogram counts nanoseconds.
 * Threads  One writer for each; any readers. A box: one that puts, one that
 *          takes.
 */
#ifndef PS_BASE_COUNT_H
#define PS_BASE_COUNT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* ---- one number ---- */

typedef struct ps_count {
    atomic_uint_fast64_t n;
} ps_count_t;

static inline uint64_t ps_count_get(const ps_count_t *self)
{
    return atomic_load_explicit(&self->n, memory_order_relaxed);
}

static inline void ps_count_set(ps_count_t *self, uint64_t n)
{
    atomic_store_explicit(&self->n, n, memory_order_relaxed);
}

/* Not an atomic addition: there is one writer. */
static inline void ps_count_add(ps_count_t *self, uint64_t n)
{
    ps_count_set(self, ps_count_get(self) + n);
}

/* ---- how long things took ---- */

#define PS_BUCKETS 27 /* up to 1, 2, 4, … 2^26 us (67 s) */

typedef struct ps_histogram {
    ps_count_t in[PS_BUCKETS + 1]; /* the last one: longer. Each is counted once */
    ps_count_t sum;                /* ns */
} ps_histogram_t;

/* The bucket of a duration: the first whose bound, 2^i us, is not below it. */
static inline size_t ps_bucket_of(uint64_t ns)
{
    uint64_t us = (ns + 999) / 1000;
    size_t i = us <= 1 ? 0 : 64 - (size_t)__builtin_clzll(us - 1);

    return i < PS_BUCKETS ? i : PS_BUCKETS;
}

static inline void ps_histogram_add(ps_histogram_t *self, uint64_t ns)
{
    ps_count_add(&self->in[ps_bucket_of(ns)], 1);
    ps_count_add(&self->sum, ns);
}

/* ---- the newest of several messages ---- */

typedef struct ps_box {
    _Atomic(void *) newest; /* owned; NULL: it was taken */
} ps_box_t;

/* Leaves a message, which the caller gives away with all that it points at. Gives
 * back the one before, if nobody has taken it. */
static inline void *ps_box_put(ps_box_t *self, void *message)
{
    return atomic_exchange_explicit(&self->newest, message, memory_order_acq_rel);
}

/* The newest message, now the caller's; NULL: none since the last one. */
static inline void *ps_box_take(ps_box_t *self)
{
    return atomic_exchange_explicit(&self->newest, NULL, memory_order_acq_rel);
}
#endif
