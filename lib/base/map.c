/* SPDX-License-Identifier: Apache-2.0 */
/* Open addressing: a key lies at its home slot or in the unbroken run of full
 * slots after it. Removal shifts the run back, so there are no tombstones. */
#include "base/map.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/hash.h"

#define FIRST_CAPACITY 16 /* slots; a power of two */

struct ps_map_slot {
    uint64_t key;
    void *value; /* NULL: the slot is free */
};

static size_t home_of(const ps_map_t *self, uint64_t key)
{
    return (size_t)ps_hash_u64(key) & (self->capacity - 1);
}

/* The slot that holds the key, or the free one where it belongs. The load
 * bound keeps at least one slot free, so the walk ends. */
static size_t find_slot(const ps_map_t *self, uint64_t key)
{
    size_t at = home_of(self, key);

    while (self->slots[at].value != NULL && self->slots[at].key != key) {
        at = (at + 1) & (self->capacity - 1);
    }
    return at;
}

static bool double_capacity(ps_map_t *self)
{
    ps_map_t bigger = {.count = self->count};

    if (self->capacity > SIZE_MAX / 2) {
        return false;
    }
    bigger.capacity = self->capacity > 0 ? self->capacity * 2 : FIRST_CAPACITY;
    bigger.slots = ps_alloc(bigger.capacity, sizeof *bigger.slots);
    if (bigger.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < self->capacity; i++) {
        if (self->slots[i].value != NULL) {
            bigger.slots[find_slot(&bigger, self->slots[i].key)] = self->slots[i];
        }
    }
    ps_free(self->slots);
    *self = bigger;
    return true;
}

void ps_map_done(ps_map_t *self)
{
    ps_free(self->slots);
    *self = (ps_map_t){0};
}

void *ps_map_get(const ps_map_t *self, uint64_t key)
{
    if (self->count == 0) {
        return NULL;
    }
    return self->slots[find_slot(self, key)].value;
}

bool ps_map_put(ps_map_t *self, uint64_t key, void *value)
{
    size_t at = 0;

    assert(value != NULL);
    if (self->capacity > 0) {
        at = find_slot(self, key);
        if (self->slots[at].value != NULL) {
            self->slots[at].value = value;
            return true;
        }
    }
    if (self->count >= self->capacity / 4 * 3) {
        if (!double_capacity(self)) {
            return false;
        }
        at = find_slot(self, key);
    }
    self->slots[at].key = key;
    self->slots[at].value = value;
    self->count++;
    return true;
}

/* Closes the gap at `gap`: an entry later in the run moves into the gap when
 * the gap lies between the entry's home slot and the entry. */
static void close_gap(ps_map_t *self, size_t gap)
{
    size_t mask = self->capacity - 1;

    for (size_t at = (gap + 1) & mask; self->slots[at].value != NULL; at = (at + 1) & mask) {
        size_t from_home = (at - home_of(self, self->slots[at].key)) & mask;

        if (from_home >= ((at - gap) & mask)) {
            self->slots[gap] = self->slots[at];
            gap = at;
        }
    }
    self->slots[gap] = (struct ps_map_slot){0};
}

void *ps_map_remove(ps_map_t *self, uint64_t key)
{
    size_t at = 0;
    void *value = NULL;

    if (self->count == 0) {
        return NULL;
    }
    at = find_slot(self, key);
    value = self->slots[at].value;
    if (value != NULL) {
        close_gap(self, at);
        self->count--;
    }
    return value;
}

bool ps_map_next(const ps_map_t *self, size_t *at, uint64_t *ret_key, void **ret_value)
{
    while (*at < self->capacity) {
        const struct ps_map_slot *slot = &self->slots[(*at)++];

        if (slot->value != NULL) {
            *ret_key = slot->key;
            *ret_value = slot->value;
            return true;
        }
    }
    return false;
}
