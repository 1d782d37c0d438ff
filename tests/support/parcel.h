/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parcel - a data message as its frames, each in a heap block of exact size
 *
 * What     Exact sizes let AddressSanitizer see a read one byte past a frame.
 * Owner    The parcel owns its frames (parcel_done).
 */
#ifndef PS_TESTS_PARCEL_H
#define PS_TESTS_PARCEL_H

#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/messages/message.h"

typedef struct parcel {
    ps_bytes_t frames[PS_FRAMES_MAX + 1]; /* one more than is allowed */
    size_t n_frames;
} parcel_t;

static inline void parcel_done(parcel_t *self)
{
    for (size_t i = 0; i < self->n_frames; i++) {
        uint8_t *block = NULL;

        memcpy(&block, &self->frames[i].data, sizeof block);
        ps_free(block);
    }
    memset(self, 0, sizeof *self);
}

/* Adds a frame of two pieces. */
static inline void parcel_add2(parcel_t *self, ps_bytes_t a, ps_bytes_t b)
{
    uint8_t *block = ps_alloc_raw(a.size + b.size, 1);

    assert(block != NULL && self->n_frames <= PS_FRAMES_MAX);
    if (a.size > 0) {
        memcpy(block, a.data, a.size);
    }
    if (b.size > 0) {
        memcpy(block + a.size, b.data, b.size);
    }
    self->frames[self->n_frames++] = (ps_bytes_t){.data = block, .size = a.size + b.size};
}

static inline void parcel_add(parcel_t *self, ps_bytes_t frame)
{
    parcel_add2(self, frame, (ps_bytes_t){0});
}

/* The message in one frame (n_frames 1), or with the body in frames of its
 * own: header, keys, index, values (MOVED, and messages with one part: with
 * n_frames 2, header and the part). */
static inline void parcel_pack(parcel_t *ret, const ps_message_t *message, const ps_body_t *body,
                               size_t n_frames)
{
    uint8_t header[PS_HEADER_MAX];
    ps_bytes_t head = {header, ps_message_encode(message, header)};

    memset(ret, 0, sizeof *ret);
    if (n_frames == 1) {
        uint8_t *whole = ps_alloc_raw(body->keys.size + body->index.size + body->values.size, 1);
        uint8_t *at = whole;

        assert(whole != NULL);
        for (size_t i = 0; i < 3; i++) {
            ps_bytes_t part = i == 0 ? body->keys : i == 1 ? body->index : body->values;

            if (part.size > 0) {
                memcpy(at, part.data, part.size);
                at += part.size;
            }
        }
        parcel_add2(ret, head, (ps_bytes_t){whole, (size_t)(at - whole)});
        ps_free(whole);
        return;
    }
    parcel_add(ret, head);
    if (ps_message_is_one_part(message) && n_frames == 2) {
        parcel_add(ret, body->values);
        return;
    }
    parcel_add(ret, body->keys);
    if (n_frames > 2) {
        parcel_add(ret, body->index);
    }
    if (n_frames > 3) {
        parcel_add(ret, body->values);
    }
}

static inline bool parcel_same_bytes(ps_bytes_t a, ps_bytes_t b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static inline bool parcel_same_body(const ps_body_t *a, const ps_body_t *b)
{
    return parcel_same_bytes(a->keys, b->keys) && parcel_same_bytes(a->index, b->index) &&
           parcel_same_bytes(a->values, b->values);
}

/* Equal on the wire. */
static inline bool parcel_same_message(const ps_message_t *a, const ps_message_t *b)
{
    uint8_t left[PS_HEADER_MAX];
    uint8_t right[PS_HEADER_MAX];
    size_t size = ps_message_encode(a, left);

    return ps_message_encode(b, right) == size && memcmp(left, right, size) == 0;
}
#endif
