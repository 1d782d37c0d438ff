/* SPDX-License-Identifier: Apache-2.0 */
/* A reply's memory. */
#include "model/reply.h"

#include <inttypes.h>

#include "base/alloc.h"

bool
ps_reply_init(ps_reply_t *self)
{
    /* Keys are whole eights; the index may leave values odd by four. */
    size_t gap = self->index_size % 8;
    size_t size = 0;

    if (__builtin_add_overflow(self->keys_size, self->index_size + gap,
                               &size) ||
        __builtin_add_overflow(size, self->values_size, &size)) {
        return false;
    }
    self->block = ps_alloc_raw(size, 1);
    if (self->block == NULL) {
        return false;
    }
    self->keys = self->block;
    self->index = self->keys + self->keys_size;
    self->values = self->index + self->index_size + gap;
    return true;
}

void
ps_reply_done(ps_reply_t *self)
{
    ps_free(self->block);
}

ps_payload_t *
ps_reply_finish(ps_reply_t *self)
{
    ps_payload_t *payload = ps_payload_new(
        (ps_bytes_t){self->keys, self->keys_size},
        (ps_bytes_t){self->index, self->index_size},
        (ps_bytes_t){self->values, self->values_size}, self->block, ps_free);

    if (payload != NULL) {
        self->block = NULL;
    }
    return payload;
}

psd_status_t
ps_reply_no_memory(uint64_t n_rows, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to read %" PRIu64 " rows",
                         n_rows);
}

void
ps_store_prefetch(const ps_store_t *self,
                  const ps_slice_t *want,
                  const ps_payload_t *rows,
                  uint64_t i,
                  uint64_t n_rows)
{
    uint64_t end = i + PS_REPLY_AHEAD < n_rows ? i + PS_REPLY_AHEAD : n_rows;

    if (i % PS_REPLY_AHEAD != 0) {
        return;
    }
    for (uint64_t j = i; j < end; j++) {
        uint64_t row = ps_slice_row(want, rows, j);

        if (self->is_array) {
            ps_array_rows_prefetch(&self->array, row, false);
        } else {
            ps_row_index_prefetch(&self->indexed.index, row);
        }
    }
    for (uint64_t j = i; !self->is_array && j < end; j++) {
        ps_indexed_rows_prefetch(&self->indexed, ps_slice_row(want, rows, j));
    }
}
