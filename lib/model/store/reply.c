/* SPDX-License-Identifier: Apache-2.0 */
/* A reply's memory. */
#include "model/store/reply.h"

#include <inttypes.h>

bool ps_reply_init(ps_reply_t *self, ps_room_t room)
{
    bool fits = self->values_size > 0 && self->values_size <= room.size;
    uint8_t *bytes = NULL;

    self->payload =
        ps_payload_room(self->keys_size, self->index_size, fits ? 0 : self->values_size, &bytes);
    if (self->payload == NULL) {
        return false;
    }
    self->keys = bytes;
    self->index = self->keys + self->keys_size;
    self->values = self->index + self->index_size;
    if (fits) {
        self->values = room.data;
        self->payload->span = (ps_bytes_t){room.data, self->values_size};
        self->payload->spans = &self->payload->span;
        self->payload->n_spans = 1;
    }
    return true;
}

void ps_reply_done(ps_reply_t *self)
{
    ps_payload_destroy(&self->payload);
}

psd_status_t ps_reply_no_memory(uint64_t n_rows, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to read %" PRIu64 " rows", n_rows);
}
