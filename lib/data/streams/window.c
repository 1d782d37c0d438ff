/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer over an input, that holds what is asked for as one stretch. */
#include "data/streams/window.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

#define READ_SIZE ((size_t)256 << 10) /* small enough to stay in a cache */

psd_status_t ps_window_open(ps_byte_window_t *ret_window, const char *path, psd_error_t *err)
{
    ps_byte_window_t self = {0};
    psd_status_t rc = ps_source_open(path, &self.source, err);

    if (rc == PSD_OK) {
        *ret_window = self;
    }
    return rc;
}

void ps_window_done(ps_byte_window_t *self)
{
    ps_source_close(&self->source);
    ps_free(self->data);
    *self = (ps_byte_window_t){0};
}

/* Makes room for `size` bytes from data[at]. */
static psd_status_t make_room(ps_byte_window_t *self, size_t size, psd_error_t *err)
{
    size_t capacity = size < READ_SIZE ? READ_SIZE : size;
    uint8_t *data = self->data;

    if (self->capacity - self->at >= size) {
        return PSD_OK;
    }
    if (self->at > 0) {
        memmove(data, data + self->at, self->filled - self->at);
        self->filled -= self->at;
        self->at = 0;
    }
    if (self->capacity >= size) {
        return PSD_OK;
    }
    data = ps_alloc_resize(data, capacity, 1);
    if (data == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu bytes of %s", capacity,
                             ps_source_path(self->source));
    }
    self->data = data;
    self->capacity = capacity;
    return PSD_OK;
}

psd_status_t ps_window_peek(ps_byte_window_t *self, size_t size, const uint8_t **ret_bytes,
                            size_t *ret_size, psd_error_t *err)
{
    psd_status_t rc = make_room(self, size, err);
    size_t n = 1;

    while (rc == PSD_OK && n > 0 && self->filled - self->at < size) {
        rc = ps_source_read(self->source, self->data + self->filled, self->capacity - self->filled,
                            &n, err);
        self->filled += rc == PSD_OK ? n : 0;
    }
    if (rc != PSD_OK) {
        return rc;
    }
    n = self->filled - self->at;
    *ret_size = n < size ? n : size;
    *ret_bytes = self->data + self->at;
    return PSD_OK;
}

static psd_status_t ends_early(const ps_byte_window_t *self, size_t size, uint64_t want,
                               psd_error_t *err)
{
    return psd_error_set(err, PSD_DAMAGED,
                         "%s ends early: after byte %" PRIu64 " there are %zu of %" PRIu64 " bytes",
                         ps_source_path(self->source), self->offset, size, want);
}

psd_status_t ps_window_take(ps_byte_window_t *self, size_t size, const uint8_t **ret_bytes,
                            psd_error_t *err)
{
    size_t n = 0;
    psd_status_t rc = ps_window_peek(self, size, ret_bytes, &n, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (n < size) {
        return ends_early(self, n, size, err);
    }
    self->at += size;
    self->offset += size;
    return PSD_OK;
}

psd_status_t ps_window_skip(ps_byte_window_t *self, uint64_t size, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (size > self->filled - self->at && ps_source_can_seek(self->source)) {
        uint64_t left = ps_source_size(self->source);

        left = left < self->offset ? 0 : left - self->offset;
        if (size > left) {
            return ends_early(self, (size_t)left, size, err);
        }
        self->at = 0;
        self->filled = 0;
        self->offset += size;
        return ps_source_seek(self->source, self->offset, err);
    }
    while (rc == PSD_OK && size > 0) {
        const uint8_t *bytes = NULL;
        size_t step = size < READ_SIZE ? (size_t)size : READ_SIZE;

        rc = ps_window_take(self, step, &bytes, err);
        size -= step;
    }
    return rc;
}
