/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/quorum/quorum_cache.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

void ps_quorum_cache_done(ps_quorum_cache_t *self)
{
    ps_quorum_cache_begin(self, 0);
    ps_free(self->at);
    *self = (ps_quorum_cache_t){0};
}

void ps_quorum_cache_begin(ps_quorum_cache_t *self, uint64_t base)
{
    ps_quorum_cache_cut(self, self->base + 1);
    self->base = base;
}

uint64_t ps_quorum_cache_last(const ps_quorum_cache_t *self)
{
    return self->base + self->n;
}

ps_quorum_entry_t *ps_quorum_cache_find(const ps_quorum_cache_t *self, uint64_t index)
{
    return index > self->base && index <= ps_quorum_cache_last(self)
               ? &self->at[index - self->base - 1]
               : NULL;
}

bool ps_quorum_cache_reserve(ps_quorum_cache_t *self, size_t n)
{
    return ps_grow(&self->at, &self->capacity, self->n + n, sizeof *self->at);
}

void ps_quorum_cache_add(ps_quorum_cache_t *self, ps_quorum_entry_t *entry)
{
    assert(self->n < self->capacity);
    self->at[self->n++] = *entry;
    entry->bytes = (ps_buffer_t){0};
}

void ps_quorum_cache_cut(ps_quorum_cache_t *self, uint64_t index)
{
    while (self->n > 0 && ps_quorum_cache_last(self) >= index) {
        ps_buffer_done(&self->at[--self->n].bytes);
    }
}

void ps_quorum_cache_forget(ps_quorum_cache_t *self, uint64_t index)
{
    size_t n = index > self->base ? (size_t)(index - self->base) : 0;

    assert(n <= self->n);
    for (size_t i = 0; i < n; i++) {
        ps_buffer_done(&self->at[i].bytes);
    }
    if (n > 0) {
        self->n -= n;
        memmove(self->at, self->at + n, self->n * sizeof *self->at);
        self->base = index;
    }
}
