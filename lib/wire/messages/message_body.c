/* SPDX-License-Identifier: Apache-2.0 */
/* The body that must follow the fields of a message, to the byte: keys, index
 * and values, in the header's frame or in frames of their own. */
#include "wire/messages/message_body.h"

#include <inttypes.h>

#include "base/cursor.h"

#define ROUTE_SIZE_MIN 26         /* a ps_route entry with both texts empty */
#define ROUTE_SIZE_MAX (26 + 510) /* … and with both as long as they can be */
#define VALUE_SIZE_MIN 4          /* of the narrowest type */

/* Bytes that the three parts need. */
typedef struct need {
    uint64_t keys;
    uint64_t index;
    uint64_t values;
} need_t;

bool ps_slice_sizes(const ps_slice_t *slice, uint64_t *ret_keys, uint64_t *ret_index,
                    uint64_t *ret_values)
{
    bool sparse = slice->layout == PS_LAYOUT_SPARSE;
    uint64_t width = ps_type_size(slice->type);
    uint64_t n_index = 0; /* u32 numbers in the index */
    uint64_t n_dense = 0; /* values of a dense slice */
    need_t need = {0};

    if (width == 0) {
        return false;
    }
    if (sparse) {
        if (slice->cols != PS_COLS_ALL || slice->n_cols != 0 ||
            __builtin_add_overflow(slice->n_rows, slice->n_values, &n_index)) {
            return false;
        }
    } else {
        n_index = slice->cols == PS_COLS_LIST ? slice->n_cols : 0;
        if (__builtin_mul_overflow(slice->n_rows, (uint64_t)slice->n_cols, &n_dense)) {
            return false;
        }
        if (slice->n_values != 0 && slice->n_values != n_dense) {
            return false;
        }
    }
    if (slice->rows == PS_ROWS_CACHED) {
        need.keys = PS_KEYS_HASH_SIZE;
    }
    if ((slice->rows == PS_ROWS_LIST &&
         __builtin_mul_overflow(slice->n_rows, sizeof(uint64_t), &need.keys)) ||
        __builtin_mul_overflow(n_index, sizeof(uint32_t), &need.index) ||
        __builtin_mul_overflow(slice->n_values, width, &need.values)) {
        return false;
    }
    *ret_keys = need.keys;
    *ret_index = need.index;
    *ret_values = need.values;
    return true;
}

/* Frames that a message of this kind may have. */
static size_t most_frames(ps_kind_t kind)
{
    switch (kind) {
    case PS_KIND_PUSH:
    case PS_KIND_PULL:
    case PS_KIND_VALUES:
        return PS_FRAMES_MAX;
    case PS_KIND_MOVED:
    case PS_KIND_CHUNK:
    case PS_KIND_APPEND:
    case PS_KIND_ROWS:
    case PS_KIND_BUNDLE:
    case PS_KIND_ROWS_ON:
        return 2;
    case PS_KIND_HELLO:
    case PS_KIND_WELCOME:
    case PS_KIND_MARK:
    case PS_KIND_PROBE:
    case PS_KIND_ACK:
    case PS_KIND_REFUSED:
    case PS_KIND_PARKED:
    case PS_KIND_BYE:
    case PS_KIND_PEER:
    case PS_KIND_APPENDED:
    case PS_KIND_TAKEN:
    case PS_KIND_MEET:
    case PS_KIND_RELAYED:
    case PS_KIND_WANT:
        return 1;
    }
    return 1;
}

static psd_status_t check_frames(const ps_message_t *self, const ps_bytes_t *frames,
                                 size_t n_frames, ps_bytes_t rest, psd_error_t *err)
{
    const char *kind = ps_kind_name(self->kind);
    bool coded = (self->flags & PS_FLAG_CODED) != 0;
    size_t most = coded ? 2 : most_frames(self->kind);

    if (n_frames > most) {
        return psd_error_set(err, PSD_PROTO, "%s has %zu frames; allowed: 1%s", kind, n_frames,
                             most > 1 ? "..2" : "");
    }
    if (rest.size > 0 && (n_frames > 1 || most == 1)) {
        return psd_error_set(err, PSD_PROTO, "%s header is %zu bytes; its fields need %zu", kind,
                             frames[0].size, frames[0].size - rest.size);
    }
    return PSD_OK;
}

/* The only part of a one-part message: after the header or in frame 1. */
static ps_bytes_t single_part(const ps_bytes_t *frames, size_t n_frames, ps_bytes_t rest)
{
    return n_frames > 1 ? frames[1] : rest;
}

static psd_status_t moved_body(const ps_message_t *self, ps_bytes_t part, psd_error_t *err)
{
    uint64_t n = self->moved.n_routes; /* u32: the products fit */

    if (part.size < n * ROUTE_SIZE_MIN || part.size > n * ROUTE_SIZE_MAX) {
        return psd_error_set(err, PSD_PROTO,
                             "MOVED keys are %zu bytes; %" PRIu64 " routes need %" PRIu64
                             "..%" PRIu64,
                             part.size, n, n * ROUTE_SIZE_MIN, n * ROUTE_SIZE_MAX);
    }
    return PSD_OK;
}

static psd_status_t chunk_body(const ps_message_t *self, ps_bytes_t part, psd_error_t *err)
{
    uint64_t end = 0;

    if (part.size == 0 || part.size % VALUE_SIZE_MIN != 0) {
        return psd_error_set(err, PSD_PROTO,
                             "CHUNK values are %zu bytes; allowed: whole "
                             "values, at least one",
                             part.size);
    }
    if (__builtin_add_overflow(self->chunk.offset, part.size, &end)) {
        return psd_error_set(err, PSD_PROTO,
                             "CHUNK.offset is %" PRIu64 "; %zu bytes after it cannot be counted",
                             self->chunk.offset, part.size);
    }
    return PSD_OK;
}

/* Each record has a head at least, and all of them whole words. */
static psd_status_t append_body(const ps_message_t *self, ps_bytes_t part, psd_error_t *err)
{
    uint64_t least = self->append.n_records * (uint64_t)PS_RECORD_HEAD;

    if (part.size % PS_RECORD_ALIGN == 0 && part.size >= least &&
        (part.size == 0) == (least == 0)) {
        return PSD_OK;
    }
    return psd_error_set(
        err, PSD_PROTO,
        "APPEND values are %zu bytes; %" PRIu32 " records need %s%" PRIu64 ", in words of %d",
        part.size, self->append.n_records, least == 0 ? "" : "at least ", least, PS_RECORD_ALIGN);
}

/* A part of a state or a piece, which does not go beyond its end. */
static psd_status_t rows_body(const ps_message_t *self, ps_bytes_t part, psd_error_t *err)
{
    uint64_t most = self->rows.size - self->rows.offset; /* 1 and up */

    if (part.size >= 1 && part.size <= most) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_PROTO,
                         "ROWS values are %zu bytes; allowed: 1..%" PRIu64 " as size is %" PRIu64
                         " and offset %" PRIu64,
                         part.size, most, self->rows.size, self->rows.offset);
}

/* Lists of contributors and spans, and what the spans say; wire/records/bundle.h reads it. */
static psd_status_t bundle_body(const ps_message_t *self, ps_bytes_t part, psd_error_t *err)
{
    size_t least = (size_t)self->bundle.n_from * PS_BUNDLE_FROM +
                   (size_t)self->bundle.n_spans * PS_BUNDLE_SPAN;

    if (part.size >= least) {
        return PSD_OK;
    }
    return psd_error_set(
        err, PSD_PROTO, "BUNDLE values are %zu bytes; %u contributors and %u spans need %zu",
        part.size, (unsigned)self->bundle.n_from, (unsigned)self->bundle.n_spans, least);
}

/* Whole values, if any. */
static psd_status_t rows_on_body(const ps_message_t *self, ps_bytes_t part, psd_error_t *err)
{
    if ((part.size > 0) == (self->rows_on.has != 0) && part.size % VALUE_SIZE_MIN == 0) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_PROTO, "ROWS_ON values are %zu bytes; allowed: %s as has is %u",
                         part.size, self->rows_on.has != 0 ? "whole values, at least one" : "0",
                         (unsigned)self->rows_on.has);
}

/* Cuts the parts out of the bytes after the header. If the bytes are too few,
 * parts stay too short; bytes left over are in the values. */
static ps_body_t split_inline(ps_bytes_t rest, const need_t *need)
{
    ps_cursor_t cursor = ps_cursor_over(rest);
    uint64_t keys = need->keys < rest.size ? need->keys : rest.size;
    uint64_t left = rest.size - keys;
    uint64_t index = need->index < left ? need->index : left;
    ps_body_t body = {0};

    body.keys = ps_cursor_take(&cursor, (size_t)keys);
    body.index = ps_cursor_take(&cursor, (size_t)index);
    body.values = cursor.rest;
    return body;
}

static ps_body_t split_frames(const ps_bytes_t *frames, size_t n_frames)
{
    ps_body_t body = {0};

    body.keys = frames[1];
    if (n_frames > 2) {
        body.index = frames[2];
    }
    if (n_frames > 3) {
        body.values = frames[3];
    }
    return body;
}

/* With MORE the values here are a first piece: some, but not all. */
static psd_status_t check_first_piece(const ps_message_t *self, const ps_slice_t *slice,
                                      const need_t *need, size_t size, psd_error_t *err)
{
    size_t width = ps_type_size(slice->type);

    if (size > 0 && size % width == 0 && size < need->values) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_PROTO,
                         "%s values are %zu bytes; allowed with MORE: whole "
                         "values of %zu bytes, fewer than all %" PRIu64 " bytes",
                         ps_kind_name(self->kind), size, width, need->values);
}

static psd_status_t check_parts(const ps_message_t *self, const ps_slice_t *slice,
                                const need_t *need, const ps_body_t *body, psd_error_t *err)
{
    const char *kind = ps_kind_name(self->kind);

    if (body->keys.size != need->keys && need->keys == 0) {
        return psd_error_set(err, PSD_PROTO, "%s keys are %zu bytes; allowed: 0 as rows is %s",
                             kind, body->keys.size,
                             slice->rows == PS_ROWS_ASKED ? "ASKED" : "RANGE");
    }
    if (body->keys.size != need->keys && slice->rows == PS_ROWS_CACHED) {
        return psd_error_set(err, PSD_PROTO, "%s keys are %zu bytes; a hash of them has %d", kind,
                             body->keys.size, PS_KEYS_HASH_SIZE);
    }
    if (body->keys.size != need->keys) {
        return psd_error_set(err, PSD_PROTO,
                             "%s keys are %zu bytes; %" PRIu64 " rows need %" PRIu64, kind,
                             body->keys.size, slice->n_rows, need->keys);
    }
    if (body->index.size != need->index) {
        return psd_error_set(err, PSD_PROTO, "%s index is %zu bytes; the slice needs %" PRIu64,
                             kind, body->index.size, need->index);
    }
    if ((self->flags & PS_FLAG_MORE) != 0) {
        return check_first_piece(self, slice, need, body->values.size, err);
    }
    if (body->values.size != need->values) {
        return psd_error_set(err, PSD_PROTO,
                             "%s values are %zu bytes; %" PRIu64 " values need %" PRIu64, kind,
                             body->values.size, slice->n_values, need->values);
    }
    return PSD_OK;
}

/* Fewer than 2^62 counts of 32 bits: the sum cannot overflow. */
static psd_status_t check_counts(const ps_message_t *self, const ps_slice_t *slice,
                                 ps_bytes_t index, psd_error_t *err)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < slice->n_rows; i++) {
        sum += ps_load_u32(index.data + sizeof(uint32_t) * i);
    }
    if (sum != slice->n_values) {
        return psd_error_set(err, PSD_PROTO,
                             "%s counts add up to %" PRIu64 "; n_values is %" PRIu64,
                             ps_kind_name(self->kind), sum, slice->n_values);
    }
    return PSD_OK;
}

/* A PULL, or a PUSH with an op, has no values: only keys and columns. The
 * number of values that it asks for may overflow: a range may name every
 * possible row. */
static bool asking_sizes(const ps_slice_t *slice, need_t *ret_need)
{
    ps_slice_t asked = *slice;

    if (asked.rows == PS_ROWS_RANGE || asked.rows == PS_ROWS_CACHED) {
        asked.n_rows = 1;
    }
    if (asked.layout == PS_LAYOUT_SPARSE) {
        asked.layout = PS_LAYOUT_DENSE; /* a request has no counts yet */
    }
    return ps_slice_sizes(&asked, &ret_need->keys, &ret_need->index, &ret_need->values);
}

static psd_status_t slice_sizes(const ps_message_t *self, const ps_slice_t *slice, need_t *ret_need,
                                psd_error_t *err)
{
    bool asks = self->kind == PS_KIND_PULL || (self->kind == PS_KIND_PUSH && self->push.op != 0);

    if (asks ? !asking_sizes(slice, ret_need)
             : !ps_slice_sizes(slice, &ret_need->keys, &ret_need->index, &ret_need->values)) {
        return psd_error_set(err, PSD_PROTO,
                             "%s.n_rows is %" PRIu64 " and n_values %" PRIu64
                             "; their bytes cannot be counted",
                             ps_kind_name(self->kind), slice->n_rows, slice->n_values);
    }
    return PSD_OK;
}

static psd_status_t slice_body(const ps_message_t *self, const ps_bytes_t *frames, size_t n_frames,
                               ps_bytes_t rest, ps_body_t *ret_body, psd_error_t *err)
{
    ps_slice_t slice = {0};
    need_t need = {0};
    psd_status_t rc = PSD_OK;

    ps_message_slice(self, &slice);
    rc = slice_sizes(self, &slice, &need, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_body = n_frames == 1 ? split_inline(rest, &need) : split_frames(frames, n_frames);
    rc = check_parts(self, &slice, &need, ret_body, err);
    if (rc == PSD_OK) {
        rc = ps_message_check_index(self, ret_body->index, err);
    }
    return rc;
}

psd_status_t ps_message_sizes(const ps_message_t *self, uint64_t *ret_keys, uint64_t *ret_index,
                              uint64_t *ret_values, psd_error_t *err)
{
    ps_slice_t slice = {0};
    need_t need = {0};
    psd_status_t rc = PSD_OK;

    ps_message_slice(self, &slice);
    rc = slice_sizes(self, &slice, &need, err);
    if (rc == PSD_OK) {
        *ret_keys = need.keys;
        *ret_index = need.index;
        *ret_values = need.values;
    }
    return rc;
}

psd_status_t ps_message_check_index(const ps_message_t *self, ps_bytes_t index, psd_error_t *err)
{
    ps_slice_t slice = {0};

    ps_message_slice(self, &slice);
    if (self->kind == PS_KIND_PULL || slice.layout != PS_LAYOUT_SPARSE) {
        return PSD_OK;
    }
    return check_counts(self, &slice, index, err);
}

psd_status_t ps_message_body(const ps_message_t *self, const ps_bytes_t *frames, size_t n_frames,
                             ps_bytes_t rest, ps_body_t *ret_body, psd_error_t *err)
{
    psd_status_t rc = check_frames(self, frames, n_frames, rest, err);
    ps_body_t body = {0};

    if (rc != PSD_OK) {
        return rc;
    }
    if (self->kind == PS_KIND_MOVED) {
        body.keys = single_part(frames, n_frames, rest);
        rc = moved_body(self, body.keys, err);
    } else if (self->kind == PS_KIND_CHUNK) {
        body.values = single_part(frames, n_frames, rest);
        rc = chunk_body(self, body.values, err);
    } else if (self->kind == PS_KIND_APPEND) {
        body.values = single_part(frames, n_frames, rest);
        rc = append_body(self, body.values, err);
    } else if (self->kind == PS_KIND_ROWS) {
        body.values = single_part(frames, n_frames, rest);
        rc = rows_body(self, body.values, err);
    } else if (self->kind == PS_KIND_BUNDLE) {
        body.values = single_part(frames, n_frames, rest);
        rc = bundle_body(self, body.values, err);
    } else if (self->kind == PS_KIND_ROWS_ON) {
        body.values = single_part(frames, n_frames, rest);
        rc = rows_on_body(self, body.values, err);
    } else if ((self->flags & PS_FLAG_CODED) != 0) {
        body.values = single_part(frames, n_frames, rest);
    } else if (most_frames(self->kind) == PS_FRAMES_MAX) {
        rc = slice_body(self, frames, n_frames, rest, &body, err);
    }
    if (rc == PSD_OK) {
        *ret_body = body;
    }
    return rc;
}
