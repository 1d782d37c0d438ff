/* SPDX-License-Identifier: Apache-2.0 */
/* Zeroed memory, from the heap or mapped. */
#include "model/rows/pages.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"

#define ALIGNMENT 64
#define MAP_FROM ((size_t)64 * 1024) /* bytes; below, zeroing is cheap */
#define HUGE_BYTES ((size_t)2 << 20) /* a huge page, if the kernel has them */
#define HUGE_FROM ((size_t)4 << 20)  /* blocks from this size on use huge pages */
#define SMALL_STEP ((size_t)16 * 1024)

static bool take_heap(ps_pages_t *self, size_t size)
{
    void *block = ps_alloc(size + ALIGNMENT, 1);
    size_t past = 0;

    if (block == NULL) {
        return false;
    }
    past = (uintptr_t)block % ALIGNMENT;
    self->block = block;
    self->data = (uint8_t *)block + (ALIGNMENT - past);
    self->size = size;
    return true;
}

/* The only place besides ps_alloc that allocates memory: no malloc guarantees
 * zeroed pages without writing them. NORESERVE, because a table may be declared
 * larger than the part that is ever used. */
static bool take_mapping(ps_pages_t *self, size_t size)
{
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (data == MAP_FAILED) {
        return false;
    }
    self->block = NULL;
    self->data = data;
    self->size = size;
    self->step = SMALL_STEP;
    return true;
}

bool ps_pages_init(ps_pages_t *self, size_t size)
{
    assert(size > 0);
    return size < MAP_FROM ? take_heap(self, size) : take_mapping(self, size);
}

void ps_pages_will_fill(ps_pages_t *self)
{
    if (self->block == NULL && self->size >= HUGE_FROM) {
        self->step = HUGE_BYTES;
        (void)madvise(self->data, self->size, MADV_HUGEPAGE); /* a hint */
    }
}

void ps_pages_return(const ps_pages_t *self, size_t until, size_t *returned)
{
    size_t past = 0;

    if (self->block != NULL || self->step == 0) {
        return;
    }
    past = (uintptr_t)(self->data + until) % self->step;
    if (until < past || until - past <= *returned) {
        return;
    }
    until -= past;
    (void)madvise(self->data + *returned, until - *returned, MADV_DONTNEED);
    *returned = until;
}

bool ps_pages_soon(const ps_pages_t *self, size_t until, size_t *named, ps_soon_t *ret_soon)
{
    size_t from = until > *named ? until : *named;
    size_t end = 0;

    if (self->step != HUGE_BYTES) {
        return false;
    }
    end = until + 2 * HUGE_BYTES - (uintptr_t)(self->data + until) % HUGE_BYTES;
    end = end < self->size ? end : self->size;
    if (from >= end) {
        return false;
    }
    *named = end;
    *ret_soon = (ps_soon_t){.data = self->data + from, .size = end - from};
    return true;
}

void ps_pages_done(ps_pages_t *self)
{
    if (self->block != NULL) {
        ps_free(self->block);
    } else if (self->data != NULL) {
        (void)munmap(self->data, self->size);
    }
    memset(self, 0, sizeof *self);
}
