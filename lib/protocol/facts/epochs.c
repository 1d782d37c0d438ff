/* SPDX-License-Identifier: Apache-2.0 */
/* The epochs of a partition's records, noted, asked, written and read. */
#include "protocol/facts/epochs.h"

#include <inttypes.h>
#include <string.h>

void ps_epochs_add(ps_epochs_t *self, uint64_t lsn, uint64_t epoch)
{
    if (self->n > 0 && self->epoch[self->n - 1] == epoch) {
        self->last[self->n - 1] = lsn;
        return;
    }
    if (self->n == PS_EPOCHS_MAX) {
        self->n--;
        memmove(&self->epoch[0], &self->epoch[1], self->n * sizeof self->epoch[0]);
        memmove(&self->last[0], &self->last[1], self->n * sizeof self->last[0]);
    }
    self->epoch[self->n] = epoch;
    self->last[self->n++] = lsn;
}

bool ps_epochs_have(const ps_epochs_t *self, uint64_t lsn, uint64_t epoch)
{
    for (uint32_t i = 0; lsn > 0 && i < self->n; i++) {
        if (self->epoch[i] == epoch) {
            return lsn <= self->last[i];
        }
    }
    return lsn == 0;
}

bool ps_epochs_put(const ps_epochs_t *self, ps_buffer_t *to)
{
    bool fits = ps_buffer_u32(to, self->n);

    for (uint32_t i = 0; fits && i < self->n; i++) {
        fits = ps_buffer_u64(to, self->epoch[i]) && ps_buffer_u64(to, self->last[i]);
    }
    return fits;
}

psd_status_t ps_epochs_take(ps_cursor_t *cursor, ps_epochs_t *ret, psd_error_t *err)
{
    ps_epochs_t epochs = {.n = ps_cursor_u32(cursor)};

    if (epochs.n > PS_EPOCHS_MAX) {
        return psd_error_set(err, PSD_PROTO, "a state has %" PRIu32 " epochs; allowed: %d",
                             epochs.n, PS_EPOCHS_MAX);
    }
    for (uint32_t i = 0; i < epochs.n; i++) {
        epochs.epoch[i] = ps_cursor_u64(cursor);
        epochs.last[i] = ps_cursor_u64(cursor);
        if (cursor->failed || (i > 0 && (epochs.epoch[i] <= epochs.epoch[i - 1] ||
                                         epochs.last[i] <= epochs.last[i - 1]))) {
            return psd_error_set(
                err, PSD_PROTO,
                "epoch %" PRIu32 " of a state is truncated, or not greater than the one before", i);
        }
    }
    *ret = epochs;
    return PSD_OK;
}
