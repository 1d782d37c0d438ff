/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_map - u64 key -> pointer, open addressing
 *
 * Shape    linear probing, backward-shift deletion, load <= 3/4
 * Owner    The map owns its slots, never the objects that the pointers point
 *          to.
 * Threads  Confined to one thread.
 */
#ifndef PS_BASE_MAP_H
#define PS_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

typedef struct ps_map {
    struct ps_map_slot *slots; /* owned; NULL when empty */
    size_t capacity;           /* 0 or a power of two */
    size_t count;              /* keys held */
} ps_map_t;

/* A zeroed ps_map is an empty map. Frees the slots and zeroes the struct. */
void ps_map_done(ps_map_t *self);
/* NULL when the map does not hold the key. */
void *ps_map_get(const ps_map_t *self, uint64_t key);
/* Adds or replaces; value is not NULL. false: no memory, nothing changed. */
PSD_MUST_CHECK bool ps_map_put(ps_map_t *self, uint64_t key, void *value);
/* Returns the value that the key had, or NULL. */
void *ps_map_remove(ps_map_t *self, uint64_t key);
/* Walks all entries in an order that depends only on the history of calls:
 * start with *at = 0; false at the end. The map must not change during the
 * walk. */
bool ps_map_next(const ps_map_t *self, size_t *at, uint64_t *ret_key, void **ret_value);
#endif
