/* SPDX-License-Identifier: Apache-2.0 */
/* Shared memory between two processes that both spin. */
#include "cli/machine/bench_limit.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/machine/bench_stats.h"

#define LINE 64 /* bytes of a cache line */
#define RING_BYTES ((size_t)8 << 20)
#define SMALL_SLOTS 4096
#define SOURCE_BYTES ((size_t)32 << 20) /* more than a core's own caches */
#define TRIPS_MAX 200000

typedef struct ring {
    size_t bytes;   /* of a message */
    size_t n_slots; /* a power of two */
    _Alignas(LINE) _Atomic uint64_t n_sent;
    _Alignas(LINE) _Atomic uint64_t n_taken;
    _Alignas(LINE) _Atomic uint32_t stop;
    _Alignas(LINE) char slots[RING_BYTES];
} ring_t;

typedef struct trip {
    _Alignas(LINE) _Atomic uint64_t ask;
    _Alignas(LINE) _Atomic uint64_t answer;
} trip_t;

/* A private area that messages come from or go to. */
static char *new_area(void)
{
    char *area = ps_alloc(SOURCE_BYTES, 1);

    if (area != NULL) {
        memset(area, 1, SOURCE_BYTES);
    }
    return area;
}

static void send_all(void *arg)
{
    ring_t *ring = arg;
    PSD_AUTO(ps_free_at) char *area = new_area();
    uint64_t n_taken = 0; /* as last seen: a fresh read costs a cache miss */
    uint32_t n_looks = 0;
    size_t from = 0;

    ps_limit_keep_apart(1);
    for (uint64_t n = 0; area != NULL; n++) {
        while (n - n_taken == ring->n_slots) {
            if (atomic_load_explicit(&ring->stop, memory_order_relaxed) != 0) {
                return;
            }
            n_taken = atomic_load_explicit(&ring->n_taken, memory_order_acquire);
            ps_limit_pause(&n_looks);
        }
        memcpy(ring->slots + (n & (ring->n_slots - 1)) * ring->bytes, area + from, ring->bytes);
        from = (from + ring->bytes) & (SOURCE_BYTES - 1);
        atomic_store_explicit(&ring->n_sent, n + 1, memory_order_release);
    }
}

/* Takes messages until the time is over; the first ring's length is the
 * warm-up. */
static double take_all(ring_t *ring, char *area, uint32_t duration_ms)
{
    uint64_t n_sent = 0;
    uint64_t start = 0;
    uint64_t spent = 0;
    uint64_t warm = ring->n_slots * 4;
    uint32_t n_looks = 0;
    uint64_t n = 0;

    for (; spent < (uint64_t)duration_ms * 1000000U; n++) {
        while (n == n_sent) {
            n_sent = atomic_load_explicit(&ring->n_sent, memory_order_acquire);
            ps_limit_pause(&n_looks);
        }
        memcpy(area + (n * ring->bytes & (SOURCE_BYTES - 1)),
               ring->slots + (n & (ring->n_slots - 1)) * ring->bytes, ring->bytes);
        atomic_store_explicit(&ring->n_taken, n + 1, memory_order_release);
        if (n == warm) {
            start = ps_bench_now_ns();
        } else if (n > warm && (n & (ring->n_slots - 1)) == 0) {
            spent = ps_bench_now_ns() - start;
        }
    }
    atomic_store(&ring->stop, 1);
    return (double)(n - warm) / (double)spent * 1e9;
}

bool ps_limit_ring(size_t bytes, uint32_t duration_ms, double *ret)
{
    ring_t *ring = ps_limit_share(sizeof *ring);
    PSD_AUTO(ps_free_at) char *area = new_area();

    if (ring == NULL || area == NULL) {
        errno = ENOMEM;
        return false;
    }
    ring->bytes = bytes;
    ring->n_slots = RING_BYTES / bytes;
    if (ring->n_slots > SMALL_SLOTS) {
        ring->n_slots = SMALL_SLOTS;
    }
    if (!ps_limit_fork(send_all, ring)) {
        return false;
    }
    ps_limit_keep_apart(0);
    *ret = take_all(ring, area, duration_ms);
    return true;
}

static void answer_all(void *arg)
{
    trip_t *trip = arg;
    uint32_t n_looks = 0;

    ps_limit_keep_apart(1);
    for (uint64_t n = 1;; n++) {
        while (atomic_load_explicit(&trip->ask, memory_order_acquire) != n) {
            ps_limit_pause(&n_looks); /* until the end of the parent kills it */
        }
        atomic_store_explicit(&trip->answer, n, memory_order_release);
    }
}

bool ps_limit_spin(uint32_t duration_ms, double *ret)
{
    trip_t *trip = ps_limit_share(sizeof *trip);
    PSD_AUTO(ps_free_at) double *times = ps_alloc(TRIPS_MAX, sizeof *times);
    uint32_t n_looks = 0;
    uint64_t n = 0;
    uint64_t first = ps_bench_now_ns();
    uint64_t now = first;

    if (trip == NULL || times == NULL) {
        errno = ENOMEM;
        return false;
    }
    if (!ps_limit_fork(answer_all, trip)) {
        return false;
    }
    ps_limit_keep_apart(0);
    while (n < TRIPS_MAX && (n < 3 || now - first < (uint64_t)duration_ms * 1000000U)) {
        uint64_t start = ps_bench_now_ns();

        atomic_store_explicit(&trip->ask, n + 1, memory_order_release);
        while (atomic_load_explicit(&trip->answer, memory_order_acquire) != n + 1) {
            ps_limit_pause(&n_looks);
        }
        now = ps_bench_now_ns();
        times[n++] = (double)(now - start) / 1e9;
    }
    *ret = ps_bench_median(times, (size_t)n);
    return true;
}
