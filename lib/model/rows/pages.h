/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_pages - a large zeroed block that costs nothing where it is not touched
 *
 * What     Small blocks come from ps_alloc; large ones are mapped, so that the
 *          kernel hands out each page when it is first written.
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
    void *block;   /* what ps_alloc gave; NULL when data is mapped */
    size_t step;   /* bytes that are given back at once; mapped only */
} ps_pages_t;

/* size > 0. false: no memory, nothing changed. */
PSD_MUST_CHECK bool ps_pages_init(ps_pages_t *self, size_t size);
/* Says that all of the block will be used soon, so that it may as well come in
 * huge pages: random reads then walk far fewer page tables. */
void ps_pages_will_fill(ps_pages_t *self);
/* Gives back, in steps, what lies before byte `until` and has not been given
 * back yet; those bytes must not be used any more. `*returned` is 0 at first
 * and remembers how far it has come. Blocks of the heap keep what they have. */
void ps_pages_return(const ps_pages_t *self, size_t until, size_t *returned);
/* Memory that will be written soon, and that whoever has the time may have the
 * kernel bring in before that: a page that nobody had in hand may take it
 * milliseconds. Nobody has to. */
typedef struct ps_soon {
    void *data;
    size_t size;
} ps_soon_t;
/* For a block that comes in huge pages and is written from the front on, up to
 * byte `until` so far: the rest of that page and the next one, without what
 * was named before. `*named` is 0 at first. false: nothing new. */
bool ps_pages_soon(const ps_pages_t *self, size_t until, size_t *named, ps_soon_t *ret_soon);
/* Takes a zeroed struct too, and leaves one. */
void ps_pages_done(ps_pages_t *self);
#endif
