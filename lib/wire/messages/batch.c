/* SPDX-License-Identifier: Apache-2.0 */
/* Several small messages in one frame. */
#include "wire/messages/batch.h"

#include <inttypes.h>
#include <string.h>

#include "base/cursor.h"

#define SIZE_SIZE sizeof(uint32_t)                   /* in front of a message */
#define BATCH_HEAD (PS_HEAD_SIZE + sizeof(uint32_t)) /* head and n */

static uint8_t *append(uint8_t *to, ps_bytes_t part)
{
    if (part.size > 0) {
        memcpy(to, part.data, part.size);
    }
    return to + part.size;
}

bool ps_batch_add(ps_batch_t *self, const ps_message_t *message, const ps_payload_t *payload)
{
    size_t begin = self->n == 0 ? BATCH_HEAD : self->bytes.size;
    size_t body = ps_payload_size(payload);
    uint8_t *at = NULL;
    size_t size = 0;

    if (!ps_buffer_reserve(&self->bytes,
                           begin - self->bytes.size + SIZE_SIZE + PS_HEADER_MAX + body)) {
        return false;
    }
    at = self->bytes.data + begin + SIZE_SIZE;
    size = ps_message_encode(message, at);
    ps_store_u32(at - SIZE_SIZE, (uint32_t)(size + body));
    at += size;
    if (payload != NULL) {
        at = append(at, payload->keys);
        at = append(at, payload->index);
        for (size_t i = 0; i < payload->n_spans; i++) {
            at = append(at, payload->spans[i]);
        }
    }
    self->bytes.size = (size_t)(at - self->bytes.data);
    self->n++;
    return true;
}

ps_bytes_t ps_batch_frame(ps_batch_t *self)
{
    uint8_t *head = self->bytes.data;

    if (self->n == 1) {
        return (ps_bytes_t){head + BATCH_HEAD + SIZE_SIZE,
                            self->bytes.size - BATCH_HEAD - SIZE_SIZE};
    }
    ps_store_u32(head, PS_SIGNATURE);
    ps_store_u16(head + 4, PS_VERSION);
    ps_store_u8(head + 6, PS_BATCH_KIND);
    ps_store_u8(head + 7, 0);
    ps_store_u32(head + PS_HEAD_SIZE, self->n);
    return (ps_bytes_t){head, self->bytes.size};
}

void ps_batch_clear(ps_batch_t *self)
{
    self->bytes.size = 0;
    self->n = 0;
}

void ps_batch_done(ps_batch_t *self)
{
    ps_buffer_done(&self->bytes);
    *self = (ps_batch_t){.n = 0};
}

psd_status_t ps_batch_open(ps_bytes_t frame, ps_batch_rest_t *ret_rest, psd_error_t *err)
{
    uint32_t n = 0;
    size_t rest = 0;

    if (frame.size < BATCH_HEAD) {
        return psd_error_set(err, PSD_PROTO, "BATCH is %zu bytes; its head needs %zu", frame.size,
                             BATCH_HEAD);
    }
    if (ps_load_u32(frame.data) != PS_SIGNATURE) {
        return psd_error_set(err, PSD_PROTO, "signature is 0x%08" PRIx32 "; allowed: 0x%08" PRIx32,
                             ps_load_u32(frame.data), PS_SIGNATURE);
    }
    if (ps_load_u16(frame.data + 4) < PS_VERSION_MIN || ps_load_u16(frame.data + 4) > PS_VERSION) {
        return psd_error_set(err, PSD_VERSION, "version is %u; allowed: %d..%d",
                             (unsigned)ps_load_u16(frame.data + 4), PS_VERSION_MIN, PS_VERSION);
    }
    if (frame.data[7] != 0) {
        return psd_error_set(err, PSD_PROTO, "BATCH.flags is %u; allowed: 0",
                             (unsigned)frame.data[7]);
    }
    n = ps_load_u32(frame.data + PS_HEAD_SIZE);
    rest = frame.size - BATCH_HEAD;
    if (n == 0 || n > rest / (SIZE_SIZE + PS_HEAD_SIZE)) {
        return psd_error_set(err, PSD_PROTO,
                             "BATCH.n is %" PRIu32 "; allowed: 1..%zu as %zu bytes follow", n,
                             rest / (SIZE_SIZE + PS_HEAD_SIZE), rest);
    }
    *ret_rest = (ps_batch_rest_t){{frame.data + BATCH_HEAD, rest}, n};
    return PSD_OK;
}

psd_status_t ps_batch_next(ps_batch_rest_t *self, ps_bytes_t *ret_message, psd_error_t *err)
{
    ps_bytes_t *bytes = &self->bytes;
    ps_bytes_t message = {NULL, 0};
    uint32_t size = bytes->size < SIZE_SIZE ? 0 : ps_load_u32(bytes->data);
    uint32_t n = self->n;

    self->n = 0; /* until this one is known to be good */
    if (size < PS_HEAD_SIZE || size > bytes->size - SIZE_SIZE) {
        return psd_error_set(err, PSD_PROTO,
                             "a message in a BATCH is %" PRIu32
                             " bytes; allowed: %d and up, and %zu are left",
                             size, PS_HEAD_SIZE, bytes->size);
    }
    message = (ps_bytes_t){bytes->data + SIZE_SIZE, size};
    if (ps_is_batch(message)) {
        return psd_error_set(err, PSD_PROTO, "a BATCH is inside a BATCH");
    }
    if (n == 1 && bytes->size != SIZE_SIZE + size) {
        return psd_error_set(err, PSD_PROTO, "BATCH has %zu bytes after its last message",
                             bytes->size - SIZE_SIZE - size);
    }
    bytes->data += SIZE_SIZE + size;
    bytes->size -= SIZE_SIZE + size;
    self->n = n - 1;
    *ret_message = message;
    return PSD_OK;
}
