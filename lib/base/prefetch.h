/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_prefetch - asks the processor for memory that will be needed
 *
 * What     Into the second cache: the first one has so few lines on their way
 *          at once that whoever asks next would wait. (An AMD EPYC adds to rows
 *          of 64 floats at random in 74 ns when it is asked so, in 103 when it
 *          is asked into the first, one and the other in turn.)
 * Calls    gcc 12 takes a function that does nothing else for one without
 *          effects, and drops its calls before it would inline them; so here
 *          is an effect, of no instruction.
 */
#ifndef PS_BASE_PREFETCH_H
#define PS_BASE_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

#define PS_LINE 64        /* bytes of a cache line */
#define PS_PAGE 4096      /* bytes of a page at least */
#define PS_LINES_AHEAD 16 /* of a row; then the processor goes on by itself */

/* The line with the byte at `at`. */
static inline void ps_prefetch(const void *at)
{
    __asm__ volatile("");
    __builtin_prefetch(at, 0, 2);
}

/* What lies a page behind `at`, in memory that is read from the front to the
 * back: within a page the processor goes on by itself. It need not be there. */
static inline void ps_prefetch_next_page(const uint8_t *at)
{
    ps_prefetch((const void *)((uintptr_t)at + PS_PAGE));
}

/* The beginning of a row of `size` > 0 bytes, and its end. */
static inline void ps_prefetch_row(const uint8_t *row, size_t size)
{
    for (size_t k = 0; k < PS_LINES_AHEAD && k * PS_LINE < size; k++) {
        ps_prefetch(row + k * PS_LINE);
    }
    ps_prefetch(row + size - 1);
}
#endif
