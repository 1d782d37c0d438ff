/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes bodies. Compares every size with the size that the message requires
 * before it allocates. Parts that need no decoding stay where they arrived. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "wire/filters/filter_inner.h"
#include "wire/filters/keys.h"
#include "wire/messages/message_body.h"

/* The owner of a plain payload: its source, and the decoded parts. */
typedef struct owner {
    ps_payload_t *source; /* held */
    uint8_t *room;        /* owned */
} owner_t;

static void release_owner(void *pointer)
{
    owner_t *owner = pointer;

    ps_payload_destroy(&owner->source);
    ps_free(owner->room);
    ps_free(owner);
}

/* A coded body that is being read. */
typedef struct reading {
    ps_coder_t *coder;
    ps_slice_t slice;
    ps_coded_head_t head;
    uint64_t need[PS_N_PARTS];    /* bytes of the plain parts */
    ps_bytes_t coded[PS_N_PARTS]; /* as they came */
    ps_bytes_t plain[PS_N_PARTS];
    psd_error_t *err;
} reading_t;

/* ---- sizes -------------------------------------------------------------- */

/* Cuts the parts out. */
static psd_status_t split(reading_t *self, ps_bytes_t body)
{
    ps_cursor_t cursor = ps_cursor_over(body);
    uint64_t size = 0;
    psd_status_t rc = ps_coded_head_read(body, &self->head, self->err);

    if (rc == PSD_OK) {
        rc = ps_coded_head_size(&self->head, &size, self->err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (size != body.size) {
        return psd_error_set(self->err, PSD_PROTO,
                             "coded body is %zu bytes; its head says %" PRIu64, body.size, size);
    }
    (void)ps_cursor_take(&cursor, PS_CODED_HEAD);
    for (size_t i = 0; i < PS_N_PARTS; i++) {
        self->coded[i] = ps_cursor_take(&cursor, (size_t)self->head.sizes[i]);
    }
    while (cursor.rest.size > 0) {
        if (ps_cursor_u8(&cursor) != 0) {
            return psd_error_set(self->err, PSD_PROTO, "coded body is not padded with zeros");
        }
    }
    return PSD_OK;
}

static bool is_packed(const reading_t *self, size_t part)
{
    return (self->head.packed & 1U << part) != 0;
}

/* Whether the part is written otherwise than it lies in memory. */
static bool is_written(const reading_t *self, size_t part)
{
    return (part == PS_PART_KEYS && self->head.keys_as == PS_KEYS_DELTA &&
            self->slice.rows == PS_ROWS_LIST) ||
           (part == PS_PART_VALUES && self->need[part] > 0 &&
            self->head.values_as != PS_VALUES_RAW);
}

/* Whether an unpacked part of `size` bytes fits the message. */
static bool can_be(const reading_t *self, size_t part, uint64_t size)
{
    uint64_t values = 0;

    if (!is_written(self, part)) {
        return size == self->need[part];
    }
    if (part == PS_PART_KEYS) {
        return size <= SIZE_MAX && ps_keys_delta_can_hold((size_t)size, self->slice.n_rows);
    }
    return ps_quant_size(self->head.values_as, self->slice.type, self->slice.n_values, &values) &&
           size == values;
}

static psd_status_t check_part(const reading_t *self, size_t part)
{
    uint64_t size = self->coded[part].size;
    psd_status_t rc = PSD_OK;

    if (is_packed(self, part)) {
        rc = ps_pack_plain_size(self->coded[part], &size, self->err);
    }
    if (rc == PSD_OK && !can_be(self, part, size)) {
        rc = psd_error_set(self->err, PSD_PROTO,
                           "%" PRIu64 " bytes; the slice needs %" PRIu64 ", written as it says",
                           size, self->need[part]);
    }
    return rc == PSD_OK ? PSD_OK : psd_error_wrap(self->err, rc, "coded %s", PS_PART_NAMES[part]);
}

/* The sizes of all parts, before a byte is made room for. */
static psd_status_t check_sizes(reading_t *self, const ps_message_t *message, uint64_t limit_bytes)
{
    uint64_t total = 0;
    psd_status_t rc =
        ps_message_sizes(message, &self->need[PS_PART_KEYS], &self->need[PS_PART_INDEX],
                         &self->need[PS_PART_VALUES], self->err);

    for (size_t i = 0; rc == PSD_OK && i < PS_N_PARTS; i++) {
        if (__builtin_add_overflow(total, self->need[i], &total) || total > limit_bytes) {
            rc = psd_error_set(self->err, PSD_LIMIT,
                               "coded %s of %" PRIu64 " bytes; a body may have %" PRIu64,
                               PS_PART_NAMES[i], self->need[i], limit_bytes);
        } else {
            rc = check_part(self, i);
        }
    }
    if (rc == PSD_OK && !ps_quant_takes(self->head.values_as, self->slice.type)) {
        rc = psd_error_set(self->err, PSD_PROTO, "coded body's values_as is %d; allowed for %s: 0",
                           (int)self->head.values_as, ps_type_name(self->slice.type));
    }
    return rc;
}

/* ---- parts -------------------------------------------------------------- */

/* Decodes a part that is not packed, or was unpacked. */
static psd_status_t read_written(const reading_t *self, size_t part, ps_bytes_t from, uint8_t *to)
{
    return part == PS_PART_KEYS ? ps_keys_delta_decode(from, self->slice.n_rows, to, self->err)
                                : ps_quant_decode(self->head.values_as, self->slice.type, from,
                                                  self->slice.n_values, to, self->err);
}

static psd_status_t read_part(const reading_t *self, size_t part, uint8_t *to)
{
    ps_coder_t *coder = self->coder;
    ps_buffer_t *between = &coder->parts[part];
    ps_bytes_t from = self->coded[part];
    uint64_t size = 0;
    psd_status_t rc = PSD_OK;

    if (!is_packed(self, part)) {
        return read_written(self, part, from, to);
    }
    rc = ps_pack_plain_size(from, &size, self->err); /* checked: it can be */
    if (rc == PSD_OK && !is_written(self, part)) {
        return ps_unpack(coder->packer, self->head.pack, from, to, (size_t)size, self->err);
    }
    if (rc == PSD_OK && !ps_buffer_reserve(between, (size_t)size)) {
        rc = psd_error_set(self->err, PSD_NOMEM, "no memory to unpack");
    }
    if (rc == PSD_OK) {
        rc =
            ps_unpack(coder->packer, self->head.pack, from, between->data, (size_t)size, self->err);
    }
    if (rc == PSD_OK) {
        rc = read_written(self, part, (ps_bytes_t){between->data, (size_t)size}, to);
    }
    return rc;
}

/* Decodes the parts that need it into fresh memory; the rest stays in the
 * source. */
static psd_status_t read_parts(reading_t *self, bool borrow, uint8_t **ret_room)
{
    size_t size = 0;
    uint8_t *at = NULL;

    for (size_t i = 0; i < PS_N_PARTS; i++) {
        bool fresh = !borrow || is_packed(self, i) || is_written(self, i);

        size += fresh ? (size_t)self->need[i] : 0; /* within the limit */
    }
    *ret_room = at = ps_alloc_raw(size, 1);
    if (at == NULL) {
        return psd_error_set(self->err, PSD_NOMEM, "no memory for a body");
    }
    for (size_t i = 0; i < PS_N_PARTS; i++) {
        size_t need = (size_t)self->need[i];
        psd_status_t rc = PSD_OK;

        if (is_packed(self, i) || is_written(self, i)) {
            rc = read_part(self, i, at);
        } else if (borrow || need == 0) {
            self->plain[i] = self->coded[i];
            continue;
        } else {
            memcpy(at, self->coded[i].data, need);
        }
        if (rc != PSD_OK) {
            return psd_error_wrap(self->err, rc, "coded %s", PS_PART_NAMES[i]);
        }
        self->plain[i] = (ps_bytes_t){at, need};
        at += need;
    }
    return PSD_OK;
}

/* The plain payload, which takes the room. */
static ps_payload_t *make_plain(const reading_t *self, ps_payload_t *source, uint8_t **room_p)
{
    owner_t *owner = ps_alloc(1, sizeof *owner);
    ps_payload_t *plain = NULL;

    if (owner == NULL) {
        return NULL;
    }
    plain = ps_payload_new(self->plain[PS_PART_KEYS], self->plain[PS_PART_INDEX],
                           self->plain[PS_PART_VALUES], owner, release_owner);
    if (plain == NULL) {
        ps_free(owner);
        return NULL;
    }
    owner->source = source == NULL ? NULL : ps_payload_keep(source);
    owner->room = *room_p;
    *room_p = NULL;
    return plain;
}

static psd_status_t decode(reading_t *self, const ps_message_t *message, ps_payload_t *payload,
                           uint64_t limit_bytes, ps_payload_t **ret_plain)
{
    PSD_AUTO(ps_free_at) uint8_t *room = NULL;
    ps_bytes_t body = {NULL, 0};
    bool borrow = false;
    psd_status_t rc = ps_coder_join(payload, &self->coder->whole, &body, self->err);

    if (rc == PSD_OK) {
        rc = split(self, body);
    }
    if (rc == PSD_OK) {
        rc = check_sizes(self, message, limit_bytes);
    }
    if (rc == PSD_OK) {
        borrow = body.data != self->coder->whole.data;
        rc = read_parts(self, borrow, &room);
    }
    if (rc == PSD_OK) {
        rc = ps_message_check_index(message, self->plain[PS_PART_INDEX], self->err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (self->need[0] + self->need[1] + self->need[2] == 0) {
        *ret_plain = NULL;
        return PSD_OK;
    }
    *ret_plain = make_plain(self, borrow ? payload : NULL, &room);
    return *ret_plain != NULL ? PSD_OK
                              : psd_error_set(self->err, PSD_NOMEM, "no memory for a body");
}

psd_status_t ps_coder_decode(ps_coder_t *self, ps_message_t *message, ps_payload_t *payload,
                             uint64_t limit_bytes, ps_filter_t *ret_filter,
                             ps_payload_t **ret_plain, psd_error_t *err)
{
    reading_t reading = {.coder = self, .err = err};
    psd_status_t rc = PSD_OK;

    assert((message->flags & PS_FLAG_CODED) != 0);
    ps_message_slice(message, &reading.slice);
    rc = decode(&reading, message, payload, limit_bytes, ret_plain);
    ps_coder_tidy(self);
    if (rc != PSD_OK) {
        return rc;
    }
    message->flags &= (uint8_t)~PS_FLAG_CODED;
    *ret_filter = (ps_filter_t){
        .delta = reading.head.keys_as == PS_KEYS_DELTA,
        .pack = reading.head.pack,
        .values_as = reading.head.values_as,
    };
    return PSD_OK;
}
