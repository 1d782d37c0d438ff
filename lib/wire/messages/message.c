/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes and decodes the fields in the header frame; both are generated from
 * the lists of message.h. message_check.c checks the fields' values,
 * message_body.c the body after them. */
#include "wire/messages/message.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/cursor.h"
#include "wire/messages/message_body.h"
#include "wire/messages/message_check.h"
#include "wire/messages/utf8.h"

#define SIZE_u8 1
#define SIZE_u16 2
#define SIZE_u32 4
#define SIZE_u64 8
#define SIZE_id PS_ID_SIZE
#define SIZE_text (2 + PS_TEXT_MAX)
#define FIELD_SIZE(type, name) +SIZE_##type
#define FITS(NAME, name, number)                                                \
    static_assert(PS_HEAD_SIZE PS_##NAME##_FIELDS(FIELD_SIZE) <= PS_HEADER_MAX, \
                  #NAME " does not fit into a header");
PS_MESSAGE_MAP(FITS)
#undef FITS
static_assert(PS_HEAD_SIZE PS_VALUES_FIELDS(FIELD_SIZE)
                      PS_TIMES_FIELDS(FIELD_SIZE) <= PS_HEADER_MAX,
              "VALUES with times does not fit into a header");

const char *ps_kind_name(ps_kind_t kind)
{
#define NAME_OF(NAME, name, number) \
    case PS_KIND_##NAME:            \
        return #NAME;
    switch (kind) {
        PS_MESSAGE_MAP(NAME_OF)
    default:
        return "?";
    }
#undef NAME_OF
}

/* ---- slice ------------------------------------------------------------- */

/* The kinds that carry a slice. */
#define SLICE_MAP(X) \
    X(PUSH, push)    \
    X(PULL, pull)    \
    X(VALUES, values)

#define ENUM_rows ps_rows_kind_t
#define ENUM_layout ps_layout_t
#define ENUM_cols ps_cols_kind_t
#define ENUM_type ps_type_t
#define ENUM_n_rows uint64_t
#define ENUM_first_row uint64_t
#define ENUM_first_col uint32_t
#define ENUM_n_cols uint32_t
#define ENUM_n_values uint64_t
#define WIRE_u8 uint8_t
#define WIRE_u32 uint32_t
#define WIRE_u64 uint64_t
#define TO_SLICE(type, name) slice->name = (ENUM_##name)from->name;
#define FROM_SLICE(type, name) to->name = (WIRE_##type)slice->name;
#define SLICE_COPIERS(NAME, name)                                            \
    static void get_##name(const ps_msg_##name##_t *from, ps_slice_t *slice) \
    {                                                                        \
        PS_SLICE_FIELDS(TO_SLICE)                                            \
    }                                                                        \
    static void set_##name(ps_msg_##name##_t *to, const ps_slice_t *slice)   \
    {                                                                        \
        PS_SLICE_FIELDS(FROM_SLICE)                                          \
    }
SLICE_MAP(SLICE_COPIERS)

void ps_message_slice(const ps_message_t *self, ps_slice_t *ret_slice)
{
    if (self->kind == PS_KIND_PUSH) {
        get_push(&self->push, ret_slice);
    } else if (self->kind == PS_KIND_PULL) {
        get_pull(&self->pull, ret_slice);
    } else {
        assert(self->kind == PS_KIND_VALUES);
        get_values(&self->values, ret_slice);
    }
}

void ps_message_set_slice(ps_message_t *self, const ps_slice_t *slice)
{
    if (self->kind == PS_KIND_PUSH) {
        set_push(&self->push, slice);
    } else if (self->kind == PS_KIND_PULL) {
        set_pull(&self->pull, slice);
    } else {
        assert(self->kind == PS_KIND_VALUES);
        set_values(&self->values, slice);
    }
}

/* ---- encode ------------------------------------------------------------ */

#define NUMBER_MAP(X) \
    X(u8, uint8_t)    \
    X(u16, uint16_t)  \
    X(u32, uint32_t)  \
    X(u64, uint64_t)

/* Each writer returns the end of what it wrote. */
#define NUMBER_WRITER(name, type)                               \
    static uint8_t *write_##name(uint8_t *to, const type *from) \
    {                                                           \
        ps_store_##name(to, *from);                             \
        return to + sizeof *from;                               \
    }
NUMBER_MAP(NUMBER_WRITER)

static uint8_t *write_id(uint8_t *to, const ps_id_t *from)
{
    memcpy(to, from->bytes, PS_ID_SIZE);
    return to + PS_ID_SIZE;
}

/* Texts contain names and paths of any origin, and may be cut within a
 * character. The receiver would refuse the whole message for that, so bytes
 * that are not UTF-8 become '?' here. */
static uint8_t *write_text(uint8_t *to, const char (*from)[PS_TEXT_MAX + 1])
{
    const uint8_t *text = (const uint8_t *)*from;
    size_t size = strnlen(*from, PS_TEXT_MAX);
    size_t at = 0;

    ps_store_u16(to, (uint16_t)size);
    to += sizeof(uint16_t);
    while (at < size) {
        size_t length = ps_utf8_character(text + at, size - at);

        if (length == 0) {
            to[at++] = '?';
        } else {
            memcpy(to + at, text + at, length);
            at += length;
        }
    }
    return to + size;
}

#define WRITE(type, name) to = write_##type(to, &from->name);
#define WRITER(NAME, name, number)                                                    \
    static uint8_t *write_##name##_fields(uint8_t *to, const ps_msg_##name##_t *from) \
    {                                                                                 \
        PS_##NAME##_FIELDS(WRITE) return to;                                          \
    }
PS_MESSAGE_MAP(WRITER)

static uint8_t *write_times(uint8_t *to, const ps_times_t *from)
{
    PS_TIMES_FIELDS(WRITE) return to;
}

size_t ps_message_encode(const ps_message_t *self, uint8_t ret_header[PS_HEADER_MAX])
{
    uint8_t *end = ret_header + PS_HEAD_SIZE;

    ps_store_u32(ret_header, PS_SIGNATURE);
    ps_store_u16(ret_header + 4, PS_VERSION);
    ps_store_u8(ret_header + 6, (uint8_t)self->kind);
    ps_store_u8(ret_header + 7, self->flags);
#define ENCODE(NAME, name, number)                     \
    case PS_KIND_##NAME:                               \
        end = write_##name##_fields(end, &self->name); \
        break;
    switch (self->kind) {
        PS_MESSAGE_MAP(ENCODE)
    default:
        assert(false); /* callers encode known kinds only */
    }
#undef ENCODE
    if (ps_message_has_times(self)) {
        end = write_times(end, &self->times);
    }
    return (size_t)(end - ret_header);
}

/* ---- decode ------------------------------------------------------------ */

/* Reads field after field; the first one that is wrong ends it. */
typedef struct reader {
    ps_cursor_t cursor;
    const char *kind;   /* its name, for errors */
    size_t header_size; /* bytes of the first frame, for errors */
    psd_status_t rc;
    psd_error_t *err;
} reader_t;

static void check_not_cut(reader_t *self, const char *field)
{
    if (self->rc == PSD_OK && self->cursor.failed) {
        self->rc = psd_error_set(self->err, PSD_PROTO, "%s.%s is cut off; the header is %zu bytes",
                                 self->kind, field, self->header_size);
    }
}

#define NUMBER_READER(name, type)                                         \
    static void read_##name(reader_t *self, const char *field, type *ret) \
    {                                                                     \
        *ret = ps_cursor_##name(&self->cursor);                           \
        check_not_cut(self, field);                                       \
    }
NUMBER_MAP(NUMBER_READER)

static void read_id(reader_t *self, const char *field, ps_id_t *ret)
{
    ps_cursor_copy(&self->cursor, ret->bytes, PS_ID_SIZE);
    check_not_cut(self, field);
}

static void read_text(reader_t *self, const char *field, char (*ret)[PS_TEXT_MAX + 1])
{
    size_t size = ps_cursor_u16(&self->cursor);
    ps_bytes_t text = {NULL, 0};

    if (self->rc == PSD_OK && size > PS_TEXT_MAX) {
        self->rc = psd_error_set(self->err, PSD_PROTO, "%s.%s is %zu bytes; allowed: 0..%d",
                                 self->kind, field, size, PS_TEXT_MAX);
    }
    if (self->rc == PSD_OK) {
        text = ps_cursor_take(&self->cursor, size);
        check_not_cut(self, field);
    }
    if (self->rc != PSD_OK || text.size == 0) {
        return;
    }
    if (memchr(text.data, '\0', text.size) != NULL) {
        self->rc = psd_error_set(self->err, PSD_PROTO, "%s.%s holds a 0 byte", self->kind, field);
    } else if (!ps_utf8_is_text(text.data, text.size)) {
        self->rc = psd_error_set(self->err, PSD_PROTO, "%s.%s is not UTF-8", self->kind, field);
    } else {
        memcpy(*ret, text.data, text.size);
    }
}

/* The size of a kind without texts is constant: one check, then all fields are
 * read unchecked. A text makes its kind too long for this fast path; such
 * messages are rare. */
#define FAST_u8 SIZE_u8
#define FAST_u16 SIZE_u16
#define FAST_u32 SIZE_u32
#define FAST_u64 SIZE_u64
#define FAST_id SIZE_id
#define FAST_text (SIZE_MAX / 2)
#define FAST_SIZE(type, name) +FAST_##type

#define NUMBER_TAKER(name, type)                                    \
    static const uint8_t *take_##name(const uint8_t *at, type *ret) \
    {                                                               \
        *ret = ps_load_##name(at);                                  \
        return at + sizeof *ret;                                    \
    }
NUMBER_MAP(NUMBER_TAKER)

static const uint8_t *take_id(const uint8_t *at, ps_id_t *ret)
{
    memcpy(ret->bytes, at, PS_ID_SIZE);
    return at + PS_ID_SIZE;
}

static const uint8_t *take_text(const uint8_t *at, char (*ret)[PS_TEXT_MAX + 1])
{
    (void)ret;
    assert(false); /* FAST_text says so */
    return at;
}

#define TAKE(type, name) at = take_##type(at, &ret->name);
#define READ(type, name) read_##type(self, #name, &ret->name);
#define READER(NAME, name, number)                                           \
    static void read_##name##_fields(reader_t *self, ps_msg_##name##_t *ret) \
    {                                                                        \
        const size_t size = 0 PS_##NAME##_FIELDS(FAST_SIZE);                 \
        ps_bytes_t *rest = &self->cursor.rest;                               \
                                                                             \
        if (rest->size >= size) {                                            \
            const uint8_t *at = rest->data;                                  \
                                                                             \
            PS_##NAME##_FIELDS(TAKE) rest->data = at;                        \
            rest->size -= size;                                              \
        } else {                                                             \
            memset(ret, 0, sizeof *ret); /* texts end in '\0' by this */     \
            PS_##NAME##_FIELDS(READ)                                         \
        }                                                                    \
    }
PS_MESSAGE_MAP(READER)

static void read_times(reader_t *self, ps_times_t *ret)
{
    PS_TIMES_FIELDS(READ)
}

static psd_status_t read_head(reader_t *self, ps_message_t *ret_message)
{
    ps_bytes_t head = ps_cursor_take(&self->cursor, PS_HEAD_SIZE);
    uint32_t signature = 0;
    uint16_t version = 0;

    if (head.size == 0) {
        return psd_error_set(self->err, PSD_PROTO, "header is %zu bytes; its head needs %d",
                             self->header_size, PS_HEAD_SIZE);
    }
    signature = ps_load_u32(head.data);
    version = ps_load_u16(head.data + 4);
    ret_message->kind = (ps_kind_t)ps_load_u8(head.data + 6);
    ret_message->flags = ps_load_u8(head.data + 7);
    if (signature != PS_SIGNATURE) {
        return psd_error_set(self->err, PSD_PROTO,
                             "signature is 0x%08" PRIx32 "; allowed: 0x%08" PRIx32, signature,
                             PS_SIGNATURE);
    }
    if (version < PS_VERSION_MIN || version > PS_VERSION) {
        return psd_error_set(self->err, PSD_VERSION, "version is %u; allowed: %d..%d",
                             (unsigned)version, PS_VERSION_MIN, PS_VERSION);
    }
    return PSD_OK;
}

static psd_status_t read_fields(reader_t *self, ps_message_t *ret_message)
{
#define DECODE(NAME, name, number)                      \
    case PS_KIND_##NAME:                                \
        read_##name##_fields(self, &ret_message->name); \
        break;
    self->kind = ps_kind_name(ret_message->kind);
    switch (ret_message->kind) {
        PS_MESSAGE_MAP(DECODE)
    default:
        return psd_error_set(self->err, PSD_PROTO, "kind is %u; allowed: %d..%d and %d..%d",
                             (unsigned)ret_message->kind, PS_KIND_HELLO, PS_KIND_BYE, PS_KIND_PEER,
                             PS_KIND_ROWS_ON);
    }
#undef DECODE
    if (self->rc == PSD_OK && ps_message_has_times(ret_message)) {
        read_times(self, &ret_message->times);
    }
    return self->rc;
}

psd_status_t ps_message_decode(const ps_bytes_t *frames, size_t n_frames, ps_message_t *ret_message,
                               ps_body_t *ret_body, psd_error_t *err)
{
    ps_message_t message;
    ps_body_t body = {0};
    reader_t reader = {.rc = PSD_OK, .err = err};
    psd_status_t rc = PSD_OK;

    if (n_frames < 1 || n_frames > PS_FRAMES_MAX) {
        return psd_error_set(err, PSD_PROTO, "message has %zu frames; allowed: 1..%d", n_frames,
                             PS_FRAMES_MAX);
    }
    reader.cursor = ps_cursor_over(frames[0]);
    reader.header_size = frames[0].size;
    rc = read_head(&reader, &message);
    if (rc == PSD_OK) {
        rc = read_fields(&reader, &message);
    }
    if (rc == PSD_OK) {
        rc = ps_message_check(&message, err);
    }
    if (rc == PSD_OK) {
        rc = ps_message_body(&message, frames, n_frames, reader.cursor.rest, &body, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_message = message;
    *ret_body = body;
    return PSD_OK;
}
