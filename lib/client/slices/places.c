/* SPDX-License-Identifier: Apache-2.0 */
/* Puts answers where the caller wants them. */
#include "client/slices/cut.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "model/updaters/row_loops.h"

/* Reads a payload's values over the ends of its spans. */
typedef struct reader {
    const ps_payload_t *payload;
    size_t span;
    size_t at; /* byte of the span */
} reader_t;

void ps_places_done(ps_places_t *self)
{
    ps_free(self->rows);
    ps_free(self->cols);
    *self = (ps_places_t){.first = 0};
}

void ps_places_skip(ps_places_t *self, size_t n)
{
    self->n_done += n;
}

static void read_bytes(reader_t *self, uint8_t *to, size_t size)
{
    while (size > 0) {
        const ps_bytes_t *span = NULL;
        size_t n = 0;

        assert(self->span < self->payload->n_spans);
        span = &self->payload->spans[self->span];
        n = span->size - self->at < size ? span->size - self->at : size;
        memcpy(to, span->data + self->at, n);
        to += n;
        size -= n;
        self->at += n;
        if (self->at == span->size) {
            self->span++;
            self->at = 0;
        }
    }
}

/* From this size on values would only evict others from the CPU caches. Writing
 * past the caches takes two thirds of the time, even if the values are read at
 * once. */
static void stream_all(const ps_payload_t *payload, uint8_t *to)
{
    for (size_t i = 0; i < payload->n_spans; i++) {
        const ps_bytes_t *span = &payload->spans[i];

        ps_stream_copy(to, span->data, span->size);
        to += span->size;
    }
    ps_rows_stream_end();
}

static size_t row_of(const ps_places_t *self, size_t i)
{
    size_t at = self->n_done + i;

    return self->rows == NULL ? self->first + at : self->rows[at];
}

/* Rows of one value, in one span: what sparse pulls are. */
#define SCATTER_SINGLES(name, type)                                                              \
    static void scatter_##name(const uint32_t *rows, size_t n, const uint8_t *from, uint8_t *to) \
    {                                                                                            \
        for (size_t i = 0; i < n; i++) {                                                         \
            memcpy(to + rows[i] * sizeof(type), from + i * sizeof(type), sizeof(type));          \
        }                                                                                        \
    }
SCATTER_SINGLES(u32, uint32_t)
SCATTER_SINGLES(u64, uint64_t)

/* True when it was done. */
static bool scatter_singles(const ps_places_t *self, const ps_payload_t *payload, size_t n_rows,
                            size_t value_size, uint8_t *to)
{
    const uint32_t *rows = self->rows + self->n_done;

    if (payload->n_spans != 1 || self->cols != NULL || self->row_width != 1) {
        return false;
    }
    if (value_size == sizeof(uint32_t)) {
        scatter_u32(rows, n_rows, payload->spans[0].data, to);
    } else {
        scatter_u64(rows, n_rows, payload->spans[0].data, to);
    }
    return true;
}

void ps_places_scatter(const ps_places_t *self, const ps_payload_t *payload, size_t n_rows,
                       size_t n_cols, size_t value_size, void *values)
{
    reader_t reader = {.payload = payload};
    size_t stride = self->row_width * value_size;
    uint8_t *base = values;

    if (self->rows == NULL && self->cols == NULL && n_cols == self->row_width) {
        base += row_of(self, 0) * stride;
        if (n_rows * stride >= PS_STREAM_FROM) {
            stream_all(payload, base);
        } else {
            read_bytes(&reader, base, n_rows * stride);
        }
        return;
    }
    if (self->rows != NULL && scatter_singles(self, payload, n_rows, value_size, base)) {
        return;
    }
    for (size_t i = 0; i < n_rows; i++) {
        uint8_t *row = base + row_of(self, i) * stride;

        if (self->cols == NULL) {
            read_bytes(&reader, row + self->col * value_size, n_cols * value_size);
            continue;
        }
        for (size_t j = 0; j < n_cols; j++) {
            read_bytes(&reader, row + self->cols[j] * value_size, value_size);
        }
    }
}
