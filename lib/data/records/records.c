/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with heads. */
#include "data/records/records.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#define MAGIC UINT32_C(0x3ed7230a)
#define SHORT_HEAD ((size_t)8)
#define LONG_HEAD ((size_t)20)
#define RATIO_MAX 1040 /* zlib packs no better */

/* A head, as it was read. */
typedef struct head {
    uint64_t size;   /* of the message */
    uint64_t packed; /* size of what it is packed into; 0: it is not */
} head_t;

static uint32_t read_u32(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t read_u64(const uint8_t *at)
{
    return read_u32(at) | (uint64_t)read_u32(at + 4) << 32;
}

bool ps_records_know(const uint8_t *head, size_t size)
{
    return size >= SHORT_HEAD && read_u32(head) == MAGIC;
}

psd_status_t ps_records_open(ps_records_t *ret_records, const char *path, psd_error_t *err)
{
    ps_records_t self = {0};
    const uint8_t *head = NULL;
    size_t size = 0;
    psd_status_t rc = ps_window_open(&self.window, path, err);

    if (rc == PSD_OK) {
        rc = ps_window_peek(&self.window, LONG_HEAD, &head, &size, err);
    }
    if (rc == PSD_OK && size > 0 && !ps_records_know(head, size)) {
        rc = psd_error_set(err, PSD_INVALID,
                           "%s is not a file of records: it does not begin with their magic number",
                           path);
    }
    if (rc != PSD_OK) {
        ps_records_done(&self);
        return rc;
    }
    self.long_heads = size == LONG_HEAD && read_u32(head + 8) == 0;
    *ret_records = self;
    return PSD_OK;
}

void ps_records_done(ps_records_t *self)
{
    ps_window_done(&self->window);
    ps_buffer_done(&self->plain);
    *self = (ps_records_t){0};
}

/* The next head; *ret_end: there is none. */
static psd_status_t take_head(ps_records_t *self, head_t *ret_head, bool *ret_end, psd_error_t *err)
{
    const uint8_t *bytes = NULL;
    size_t size = 0;
    psd_status_t rc = ps_window_peek(&self->window, 1, &bytes, &size, err);

    self->given = self->window.offset;
    *ret_end = rc == PSD_OK && size == 0;
    if (rc != PSD_OK || *ret_end) {
        return rc;
    }
    rc = ps_window_take(&self->window, self->long_heads ? LONG_HEAD : SHORT_HEAD, &bytes, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_head = self->long_heads
                    ? (head_t){.size = read_u64(bytes + 4), .packed = read_u64(bytes + 12)}
                    : (head_t){.size = read_u32(bytes + 4)};
    if (read_u32(bytes) != MAGIC || ret_head->size > PS_STRETCH_MAX ||
        ret_head->packed > PS_STRETCH_MAX) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: byte %" PRIu64 ": not the head of a record of at most %zu bytes",
                             ps_source_path(self->window.source), self->given, PS_STRETCH_MAX);
    }
    return PSD_OK;
}

static psd_status_t unpack(ps_records_t *self, head_t head, const uint8_t *bytes, psd_error_t *err)
{
    uLongf size = (uLongf)head.size;

    self->plain.size = 0;
    if (head.size / RATIO_MAX > head.packed) {
        return psd_error_set(
            err, PSD_INVALID,
            "%s: byte %" PRIu64 ": %" PRIu64 " bytes cannot be packed into %" PRIu64,
            ps_source_path(self->window.source), self->given, head.size, head.packed);
    }
    if (!ps_buffer_reserve(&self->plain, (size_t)head.size + 1)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a record of %" PRIu64 " bytes",
                             head.size);
    }
    if (uncompress(self->plain.data, &size, bytes, (uLong)head.packed) != Z_OK ||
        size != head.size) {
        return psd_error_set(err, PSD_INVALID,
                             "%s: byte %" PRIu64 ": its record cannot be unpacked",
                             ps_source_path(self->window.source), self->given);
    }
    self->plain.size = (size_t)size;
    return PSD_OK;
}

psd_status_t ps_records_next(ps_records_t *self, ps_bytes_t *ret_message, psd_error_t *err)
{
    head_t head = {0};
    bool ended = false;
    const uint8_t *bytes = NULL;
    psd_status_t rc = take_head(self, &head, &ended, err);

    if (rc == PSD_OK && ended) {
        *ret_message = (ps_bytes_t){0};
        return PSD_OK;
    }
    if (rc == PSD_OK) {
        rc = ps_window_take(&self->window, (size_t)(head.packed != 0 ? head.packed : head.size),
                            &bytes, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (head.packed == 0) {
        *ret_message = (ps_bytes_t){bytes, (size_t)head.size};
        return PSD_OK;
    }
    rc = unpack(self, head, bytes, err);
    *ret_message = (ps_bytes_t){self->plain.data, self->plain.size};
    return rc;
}

psd_status_t ps_records_skip(ps_records_t *self, bool *ret_end, psd_error_t *err)
{
    head_t head = {0};
    psd_status_t rc = take_head(self, &head, ret_end, err);

    return rc == PSD_OK && !*ret_end
               ? ps_window_skip(&self->window, head.packed != 0 ? head.packed : head.size, err)
               : rc;
}

static void write_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

bool ps_records_append(ps_buffer_t *out, bool long_heads, const void *message, size_t size)
{
    uint8_t head[LONG_HEAD] = {0};
    size_t before = out->size;
    uLongf packed = compressBound((uLong)size);

    write_u32(head, MAGIC);
    write_u32(head + 4, (uint32_t)size);
    if (!long_heads) {
        return ps_buffer_append(out, head, SHORT_HEAD) && ps_buffer_append(out, message, size);
    }
    if (!ps_buffer_append(out, head, LONG_HEAD) || !ps_buffer_reserve(out, packed) ||
        compress(out->data + out->size, &packed, message, (uLong)size) != Z_OK) {
        out->size = before;
        return false;
    }
    write_u32(out->data + before + 12, (uint32_t)packed);
    out->size += packed;
    return true;
}
