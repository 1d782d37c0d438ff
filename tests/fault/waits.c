/* SPDX-License-Identifier: Apache-2.0 */
/* The page of waits: each slot is read again when it was written meanwhile. */
#include "waits.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

waits_t *
waits_open(int fd)
{
    void *page =
        mmap(NULL, sizeof(waits_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return page == MAP_FAILED ? NULL : page;
}

waits_t *
waits_new(int *ret_fd)
{
    waits_t *self = NULL;

    *ret_fd = memfd_create("waits", MFD_CLOEXEC);
    if (*ret_fd >= 0 && ftruncate(*ret_fd, sizeof *self) == 0) {
        self = waits_open(*ret_fd);
    }
    return self;
}

void
waits_destroy(waits_t **self_p)
{
    if (*self_p != NULL) {
        (void)munmap(*self_p, sizeof **self_p);
        *self_p = NULL;
    }
}

static void
write_state(wait_slot_t *slot, const wait_state_t *state)
{
    (void)atomic_fetch_add(&slot->version, 1);
    atomic_thread_fence(memory_order_seq_cst);
    slot->state = *state;
    atomic_thread_fence(memory_order_seq_cst);
    (void)atomic_fetch_add(&slot->version, 1);
}

void
waits_begin(waits_t *self, uint32_t worker, uint64_t now_ms)
{
    write_state(&self->each[worker], &(wait_state_t){.since_ms = now_ms});
}

void
waits_tell(waits_t *self, uint32_t worker, uint64_t now_ms, const char *text)
{
    wait_state_t state = self->each[worker].state;

    state.told_ms = now_ms;
    (void)snprintf(state.text, sizeof state.text, "%s", text);
    write_state(&self->each[worker], &state);
}

void
waits_end(waits_t *self, uint32_t worker)
{
    write_state(&self->each[worker], &(wait_state_t){.since_ms = 0});
}

wait_state_t
waits_read(const waits_t *self, uint32_t worker)
{
    const wait_slot_t *slot = &self->each[worker];
    wait_state_t state = {0};
    uint32_t version = 0;

    do {
        version = atomic_load(&slot->version);
        atomic_thread_fence(memory_order_seq_cst);
        state = slot->state;
        atomic_thread_fence(memory_order_seq_cst);
    } while ((version & 1) != 0 || atomic_load(&slot->version) != version);
    state.text[sizeof state.text - 1] = '\0';
    return state;
}
