/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_alloc - the one door to the heap
 *
 * What     Checks the multiplication. All allocations go through one function
 *          (ps_alloc_resize), so that a test can make the n-th allocation fail
 *          at link time.
 * Units    bytes, after count x size
 * Threads  any
 */
#ifndef PS_BASE_ALLOC_H
#define PS_BASE_ALLOC_H

#include <stddef.h>

#include "psd/status.h"

#define PSD_AUTO(destroy) __attribute__((cleanup(destroy)))

/* Zeroed memory for count items of size bytes; NULL when count x size overflows
 * or memory runs out. A count of zero gives a unique pointer. */
PSD_MUST_CHECK void *ps_alloc(size_t count, size_t size);
/* Like ps_alloc, not zeroed. */
PSD_MUST_CHECK void *ps_alloc_raw(size_t count, size_t size);
/* Every allocation goes through here: realloc with an overflow check. On
 * failure the old block stays. */
PSD_MUST_CHECK void *ps_alloc_resize(void *old, size_t count, size_t size);
/* NULL is ignored. */
void ps_free(void *block);
/* A copy of text; NULL when there is no memory. */
PSD_MUST_CHECK char *ps_strdup(const char *text);
/* Cleanup form for PSD_AUTO(ps_free_at) char *text. */
void ps_free_at(void *pointer_to_pointer);

/* Makes room for at least `need` items in the array at *items_p, which has
 * room for *capacity_p, by doubling. false: no memory, nothing changed. */
PSD_MUST_CHECK _Bool ps_grow(void *items_p, size_t *capacity_p, size_t need, size_t item_size);
#endif
