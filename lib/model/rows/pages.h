/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_pages - a large zeroed block whose untouched pages cost nothing
 *
 * What     Small blocks come from ps_alloc; large ones are mapped, so the
 *          kernel allocates each page on its first write.
 * Shape    data is aligned to 64 bytes, a cache line
 * Owner    The struct's holder; ps_pages_done gives the memory back.
 */
#ifndef PS_MODEL_PAGES_H
#define PS_MODEL_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

typedef struct ps_pages {
    uint8_t *data; /* NULL when there is none */
    size_t size;   /* bytes */
    void *block;   /* from ps_alloc; NULL when data is mapped */
    size_t step;   /* bytes that are returned at once; mapped only */
} ps_pages_t;

/* size > 0. false: no memory, nothing changed. */
PSD_MUST_CHECK bool ps_pages_init(ps_pages_t *self, size_t size);
/* Hints that all of the block will be used soon, so that the kernel uses huge
 * pages: random reads then have far fewer TLB misses. */
void ps_pages_will_fill(ps_pages_t *self);
/* Returns memory before byte `until` to the kernel, in steps; those bytes must
 * not be used any more. `*returned` is 0 at first and records the progress.
 * Heap blocks keep their memory. */
void ps_pages_return(const ps_pages_t *self, size_t until, size_t *returned);
/* Memory that will be written soon. Any thread with time to spare may prefault
 * it, because a page fault may take milliseconds. Prefaulting is optional. */
typedef struct ps_soon {
    void *data;
    size_t size;
} ps_soon_t;
/* For a block of huge pages that is written sequentially, up to byte `until` so
 * far: names the rest of that page and the next one, without memory that was
 * named before. `*named` is 0 at first. false: nothing new. */
bool ps_pages_soon(const ps_pages_t *self, size_t until, size_t *named, ps_soon_t *ret_soon);
/* Takes a zeroed struct too, and zeroes the struct. */
void ps_pages_done(ps_pages_t *self);
#endif
