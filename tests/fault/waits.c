/* SPDX-License-Identifier: Apache-2.0 */
/* The page of waits: who reads or writes a slot has it for itself meanwhile. */
#include "waits.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

waits_t *waits_open(int fd)
{
    void *page = mmap(NULL, sizeof(waits_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return page == MAP_FAILED ? NULL : page;
}

waits_t *waits_new(int *ret_fd)
{
    waits_t *self = NULL;

    *ret_fd = memfd_create("waits", MFD_CLOEXEC);
    if (*ret_fd >= 0 && ftruncate(*ret_fd, sizeof *self) == 0) {
        self = waits_open(*ret_fd);
    }
    return self;
}

void waits_destroy(waits_t **self_p)
{
    if (*self_p != NULL) {
        (void)munmap(*self_p, sizeof **self_p);
        *self_p = NULL;
    }
}

static void take_slot(wait_slot_t *slot)
{
    while (atomic_exchange(&slot->taken, true)) {
        /* the other one copies a page's part */
    }
}

static void write_state(wait_slot_t *slot, const wait_state_t *state)
{
    take_slot(slot);
    slot->state = *state;
    atomic_store(&slot->taken, false);
}

void waits_begin(waits_t *self, uint32_t worker, uint64_t now_ms)
{
    write_state(&self->each[worker], &(wait_state_t){.since_ms = now_ms});
}

void waits_tell(waits_t *self, uint32_t worker, uint64_t now_ms, const char *text)
{
    wait_state_t state = self->each[worker].state;

    state.told_ms = now_ms;
    (void)snprintf(state.text, sizeof state.text, "%s", text);
    write_state(&self->each[worker], &state);
}

void waits_end(waits_t *self, uint32_t worker)
{
    write_state(&self->each[worker], &(wait_state_t){.since_ms = 0});
}

wait_state_t waits_read(waits_t *self, uint32_t worker)
{
    wait_slot_t *slot = &self->each[worker];
    wait_state_t state;

    take_slot(slot);
    state = slot->state;
    atomic_store(&slot->taken, false);
    state.text[sizeof state.text - 1] = '\0';
    return state;
}
