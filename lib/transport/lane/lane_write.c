/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a message into the ring, as far as there is room. Small bodies are in
 * their record. Large values of a request are copied into the arena in pieces.
 * Each piece is announced at once, so that the server reads the first while we
 * copy the second. Values that are in the arena already are only announced.
 * Large values of an answer are in the room of the request, or go through the
 * ring in pieces.
 */
#include <assert.h>
#include <string.h>

#include "model/updaters/finite.h"
#include "transport/lane/lane.h"
#include "transport/lane/lane_record.h"

#define SMALL_VALUES 4096      /* bytes that are not worth a block */
#define PIECE_BYTES (64 << 10) /* of values that are copied to the arena */
#define RING_SHARE 8           /* a record takes at most this part of a ring */
#define WARM_BYTES (16 << 10)  /* that are copied before they are looked at */
#define WHOLE_SPAN UINT32_MAX  /* values in place need no pieces */

/* How the values go. */
enum how {
    HOW_UNDECIDED = 0,
    HOW_PLAIN,  /* everything in one small record */
    HOW_INLINE, /* in the records, in pieces if large; also without values */
    HOW_COPIED, /* in a block of the arena */
    HOW_PLACED, /* where they lie in the arena: filled by the caller, or room */
};

/* Bytes of a record may be as many as this. */
static uint64_t most_inline(const ps_lane_t *self)
{
    return self->out.size / RING_SHARE;
}

/* A coded body and a bundle are sent as keys are: who takes them apart needs a copy that cannot
 * change meanwhile. */
static bool is_one_part(const ps_lane_item_t *item)
{
    return ps_message_is_one_part(item->message);
}

static uint64_t values_size(const ps_lane_item_t *item)
{
    const ps_payload_t *payload = item->payload;

    if (payload == NULL || is_one_part(item)) {
        return 0;
    }
    return ps_payload_size(payload) - payload->keys.size - payload->index.size;
}

/* Keys and index, or what goes in their place. */
static uint64_t parts_size(const ps_lane_item_t *item)
{
    const ps_payload_t *payload = item->payload;

    if (payload == NULL) {
        return 0;
    }
    return is_one_part(item) ? ps_payload_size(payload) : payload->keys.size + payload->index.size;
}

static uint8_t *append(uint8_t *to, ps_bytes_t bytes)
{
    if (bytes.size > 0) {
        memcpy(to, bytes.data, bytes.size);
    }
    return to + bytes.size;
}

/* What of `bytes`, which begin at *at_p, is within [from, from + n). */
static uint8_t *append_part(uint8_t *to, ps_bytes_t bytes, uint64_t *at_p, uint64_t from,
                            uint64_t n)
{
    uint64_t begin = *at_p > from ? *at_p : from;
    uint64_t end = *at_p + bytes.size < from + n ? *at_p + bytes.size : from + n;

    if (begin < end) {
        bytes.data += begin - *at_p;
        *at_p += bytes.size;
        bytes.size = (size_t)(end - begin);
        return append(to, bytes);
    }
    *at_p += bytes.size;
    return to;
}

/* n bytes of the parts from `from` on. */
static uint8_t *append_parts(uint8_t *to, const ps_lane_item_t *item, uint64_t from, uint64_t n)
{
    const ps_payload_t *payload = item->payload;
    uint64_t at = 0;

    if (n == 0) {
        return to;
    }
    to = append_part(to, payload->keys, &at, from, n);
    to = append_part(to, payload->index, &at, from, n);
    for (size_t i = 0; is_one_part(item) && i < payload->n_spans; i++) {
        to = append_part(to, payload->spans[i], &at, from, n);
    }
    return to;
}

static void commit(ps_lane_t *self, uint64_t size)
{
    ps_ring_commit(&self->out, ps_record_room(size));
    self->wrote = true;
}

/* ---- how --------------------------------------------------------------- */

/* All values are in the arena, and may be announced by their place. */
static bool is_placed(const ps_lane_t *self, const ps_payload_t *payload)
{
    uint64_t at = 0;

    /* A server's answer lies in one room; what a client sent is not its own. */
    if (self->serves && (payload->n_spans != 1 || payload->shared)) {
        return false;
    }
    for (size_t i = 0; i < payload->n_spans; i++) {
        if (!ps_lane_share_holds(self->share, payload->spans[i], &at)) {
            return false;
        }
    }
    return true;
}

static ps_lane_written_t decide_values(ps_lane_t *self, ps_lane_item_t *item, uint64_t size)
{
    ps_lane_reclaim(self);
    item->checks = item->message->kind == PS_KIND_PUSH && !is_one_part(item) &&
                   size > SMALL_VALUES && self->n_bodies > 0;
    if (size > 0 && is_placed(self, item->payload)) {
        item->how = HOW_PLACED;
        return PS_LANE_WRITTEN;
    }
    item->how = HOW_INLINE;
    if (self->serves || size <= SMALL_VALUES || size > self->share->sizes.arena_bytes / 2) {
        return PS_LANE_WRITTEN;
    }
    if (ps_arena_take(&self->share->free, size, &item->block_at)) {
        item->block_size = size;
        item->how = HOW_COPIED;
    } else if (self->n_bodies > 0) {
        item->how = HOW_UNDECIDED;
        return PS_LANE_LATER; /* these will be free, whatever else is not */
    }
    return PS_LANE_WRITTEN;
}

static ps_lane_written_t decide(ps_lane_t *self, ps_lane_item_t *item)
{
    uint64_t size = parts_size(item) + values_size(item);

    if (!self->serves && !ps_lane_reserve_body(self)) {
        return PS_LANE_NO_MEMORY;
    }
    if (!item->asked_room) {
        ps_lane_offer_room(self, item);
        item->asked_room = true;
    }
    if (item->room_size == 0 && size <= PS_INLINE_MAX) {
        item->how = HOW_PLAIN;
        return PS_LANE_WRITTEN;
    }
    return decide_values(self, item, values_size(item));
}

/* ---- records ----------------------------------------------------------- */

static ps_lane_written_t write_plain(ps_lane_t *self, const ps_lane_item_t *item)
{
    uint64_t body = parts_size(item) + values_size(item);
    uint8_t *record = ps_ring_reserve(&self->out, PS_LANE_RECORD_HEAD + PS_HEADER_MAX + body);
    const ps_payload_t *payload = item->payload;
    uint8_t *at = NULL;
    size_t header = 0;
    uint64_t word = 0;

    if (record == NULL) {
        return PS_LANE_LATER;
    }
    header = ps_message_encode(item->message, record + PS_LANE_RECORD_HEAD);
    at = record + PS_LANE_RECORD_HEAD + header;
    if (payload != NULL) {
        at = append(at, payload->keys);
        at = append(at, payload->index);
        for (size_t i = 0; i < payload->n_spans; i++) {
            at = append(at, payload->spans[i]);
        }
    }
    word = ps_record_word((uint32_t)(at - record), (uint16_t)header, PS_LANE_RECORD_INLINE);
    memcpy(record, &word, sizeof word);
    commit(self, (uint64_t)(at - record));
    return PS_LANE_WRITTEN;
}

/* Keys and index, until the rest of them fits beside the header. */
static ps_lane_written_t write_parts(ps_lane_t *self, ps_lane_item_t *item)
{
    uint64_t most = most_inline(self);

    while (parts_size(item) - item->parts_sent > most) {
        uint8_t *record = ps_ring_reserve(&self->out, PS_LANE_RECORD_HEAD + most);
        uint64_t word =
            ps_record_word((uint32_t)(PS_LANE_RECORD_HEAD + most), 0, PS_LANE_RECORD_PART);

        if (record == NULL) {
            return PS_LANE_LATER;
        }
        (void)append_parts(record + PS_LANE_RECORD_HEAD, item, item->parts_sent, most);
        memcpy(record, &word, sizeof word);
        commit(self, PS_LANE_RECORD_HEAD + most);
        item->parts_sent += most;
    }
    return PS_LANE_WRITTEN;
}

/* The next piece of the values. */
static ps_bytes_t next_piece(const ps_lane_t *self, const ps_lane_item_t *item)
{
    uint32_t most = WHOLE_SPAN;

    if (values_size(item) == 0) {
        return (ps_bytes_t){.data = NULL, .size = 0};
    }
    if (item->how == HOW_INLINE) {
        most = (uint32_t)most_inline(self);
    } else if (item->how == HOW_COPIED) {
        most = PIECE_BYTES;
    }
    return ps_piece_at(item->payload, item->sent, most);
}

/* Whether the values from `at` on are finite, copied to `to` unless that is
 * NULL: a little at a time, so that they are warm for the second. */
static bool copy_and_check(uint8_t *to, ps_bytes_t values, ps_type_t type)
{
    size_t step = 0;
    bool is_finite = true;

    for (size_t at = 0; at < values.size; at += step) {
        step = values.size - at < WARM_BYTES ? values.size - at : WARM_BYTES;
        if (to != NULL) {
            memcpy(to + at, values.data + at, step);
        }
        is_finite = is_finite && ps_finite_all(type, values.data + at, step / ps_type_size(type));
    }
    return is_finite;
}

/* Puts the piece where the other end finds it. */
static void place_piece(ps_lane_t *self, const ps_lane_item_t *item, ps_bytes_t piece,
                        ps_record_head_t *head)
{
    ps_type_t type = (ps_type_t)item->message->push.type;
    uint8_t *to = NULL;

    head->values_at = PS_LANE_RECORD_INLINE_VALUES;
    if (item->how == HOW_COPIED) {
        head->values_at = item->block_at + item->sent;
        to = self->share->arena + head->values_at;
    } else if (item->how == HOW_PLACED) {
        (void)ps_lane_share_holds(self->share, piece, &head->values_at);
    }
    if (item->checks) {
        head->flags = copy_and_check(to, piece, type) ? PS_LANE_RECORD_FINITE : 0;
    } else if (to != NULL) {
        (void)append(to, piece);
    }
}

/* The words of a MESSAGE's head, the first one last. */
static void write_head(uint8_t *record, const ps_record_head_t *head)
{
    const uint64_t words[PS_LANE_RECORD_WORDS] = {
        ps_record_word(head->size, head->header_size, PS_LANE_RECORD_MESSAGE) |
            ps_record_flags(head->flags),
        head->keys_size,
        head->index_size,
        head->parts_size,
        head->values_at,
        head->values_size,
        head->room_at,
        head->room_size};

    memcpy(record, words, sizeof words);
}

/* One record of message with the piece of values that is next. */
static ps_lane_written_t write_record(ps_lane_t *self, ps_lane_item_t *item,
                                      const ps_message_t *message, ps_bytes_t piece)
{
    bool is_first = message->kind != PS_KIND_CHUNK;
    uint64_t rest = is_first ? parts_size(item) - item->parts_sent : 0;
    uint64_t need = PS_LANE_RECORD_FULL_HEAD + PS_HEADER_MAX + rest +
                    (item->how == HOW_INLINE ? piece.size : 0);
    uint8_t *record = ps_ring_reserve(&self->out, need);
    uint8_t *at = NULL;
    ps_record_head_t head = {.values_size = piece.size};

    if (record == NULL) {
        return PS_LANE_LATER;
    }
    place_piece(self, item, piece, &head);
    head.header_size = (uint16_t)ps_message_encode(message, record + PS_LANE_RECORD_FULL_HEAD);
    at = record + PS_LANE_RECORD_FULL_HEAD + head.header_size;
    if (is_first && item->payload != NULL) {
        head.index_size = is_one_part(item) ? 0 : item->payload->index.size;
        head.keys_size = parts_size(item) - head.index_size;
        head.parts_size = item->parts_sent;
        at = append_parts(at, item, item->parts_sent, rest);
    }
    if (is_first) {
        head.room_at = item->room_at;
        head.room_size = item->room_size;
    }
    if (item->how == HOW_INLINE) {
        at = append(at, piece);
    }
    head.size = (uint32_t)(at - record);
    write_head(record, &head);
    commit(self, head.size);
    item->sent += piece.size;
    item->started = true;
    return PS_LANE_WRITTEN;
}

static ps_lane_written_t write_first(ps_lane_t *self, ps_lane_item_t *item)
{
    ps_message_t first = *item->message;
    ps_bytes_t piece = next_piece(self, item);
    ps_lane_written_t rc = PS_LANE_WRITTEN;

    if (piece.size < values_size(item)) {
        assert(first.kind == PS_KIND_PUSH || first.kind == PS_KIND_VALUES);
        first.flags |= PS_FLAG_MORE;
    }
    rc = write_record(self, item, &first, piece);
    if (rc == PS_LANE_WRITTEN && item->sent < values_size(item)) {
        ps_lane_nudge(self); /* it wakes while we copy on */
    }
    return rc;
}

static ps_lane_written_t write_chunks(ps_lane_t *self, ps_lane_item_t *item)
{
    ps_lane_written_t rc = PS_LANE_WRITTEN;
    uint64_t size = values_size(item);
    ps_message_t message = {.kind = PS_KIND_CHUNK};

    if (item->sent >= size) {
        return PS_LANE_WRITTEN;
    }
    message.chunk.request = item->message->kind == PS_KIND_PUSH ? item->message->push.request
                                                                : item->message->values.request;
    while (rc == PS_LANE_WRITTEN && item->sent < size) {
        message.chunk.offset = item->sent;
        rc = write_record(self, item, &message, next_piece(self, item));
    }
    return rc;
}

/* The block, or the payload that lies in the arena, is used until the server
 * has passed what was written just now. */
static void remember_body(ps_lane_t *self, const ps_lane_item_t *item)
{
    size_t at = self->first_body + self->n_bodies;

    if (self->serves || (item->how != HOW_COPIED && item->how != HOW_PLACED)) {
        return;
    }
    self->bodies[at & (self->bodies_capacity - 1)] = (ps_lane_body_t){
        .end = self->out.at,
        .at = item->block_at,
        .size = item->block_size,
        .values = item->sent,
        .payload = item->how == HOW_PLACED ? ps_payload_keep(item->payload) : NULL};
    self->n_bodies++;
}

ps_lane_written_t ps_lane_write(ps_lane_t *self, ps_lane_item_t *item)
{
    ps_lane_written_t rc = PS_LANE_WRITTEN;

    if (item->how == HOW_UNDECIDED) {
        rc = decide(self, item);
    }
    if (rc == PS_LANE_WRITTEN && item->how == HOW_PLAIN) {
        return write_plain(self, item);
    }
    if (rc == PS_LANE_WRITTEN) {
        rc = write_parts(self, item);
    }
    if (rc == PS_LANE_WRITTEN && !item->started) {
        rc = write_first(self, item);
    }
    if (rc == PS_LANE_WRITTEN) {
        rc = write_chunks(self, item);
    }
    if (rc == PS_LANE_WRITTEN) {
        remember_body(self, item);
    }
    return rc;
}
