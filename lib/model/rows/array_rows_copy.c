/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of an array, handed out and taken in block by block. A block that reads
 * as first values is not sent. */
#include <inttypes.h>

#include "base/alloc.h"
#include "model/rows/rows_copy.h"

#define BLOCK_VALUES (UINT64_C(1) << PS_ARRAY_BLOCK_SHIFT)
#define BITS_STEP 64 /* the bits of a piece fill whole u64s */
/* A block that is not sent costs the walk time too. It counts as a fraction of
 * its bytes: one fraction if it was read through, another if not. */
#define SEEN_DEN 8
#define SKIPPED_DEN 1024

/* The values of a piece that lie in one block. */
typedef struct part {
    uint64_t first;     /* value of the array */
    uint64_t n;         /* values */
    uint64_t first_row; /* of the rows that begin in it, from 0 */
    uint64_t n_rows;
} part_t;

/* The part of [first, end) in that block; they meet. */
static part_t part_of(const ps_array_rows_t *self, uint64_t block, uint64_t first, uint64_t end)
{
    uint64_t width = self->shape.width;
    uint64_t from = block << PS_ARRAY_BLOCK_SHIFT;
    uint64_t to = from + BLOCK_VALUES;
    part_t part;

    from = from < first ? first : from;
    to = to > end ? end : to;
    part.first = from;
    part.n = to - from;
    part.first_row = (from + width - 1) / width;
    part.n_rows = (to + width - 1) / width - part.first_row;
    return part;
}

static bool has_versions(const ps_array_rows_t *self)
{
    return self->versions.data != NULL;
}

static uint64_t part_bytes(const ps_array_rows_t *self, const part_t *part)
{
    uint64_t values = part->n * self->shape.value_size * (1 + self->shape.n_states);

    return values + (has_versions(self) ? part->n_rows * sizeof(uint64_t) : 0);
}

/* Array k of the part: 0 the values, then the states. */
static uint8_t *array_at(const ps_array_rows_t *self, const part_t *part, uint32_t k)
{
    size_t size = self->shape.value_size;
    uint8_t *from =
        k == 0 ? self->values.data : self->state.data + (k - 1) * self->state_stride * size;

    return from + part->first * size;
}

static bool is_zero(const uint8_t *data, size_t size)
{
    static const uint8_t zeros[1024];

    for (; size >= sizeof zeros; size -= sizeof zeros, data += sizeof zeros) {
        if (memcmp(data, zeros, sizeof zeros) != 0) {
            return false;
        }
    }
    return size == 0 || memcmp(data, zeros, size) == 0;
}

/* The part reads as first values, in rows that never changed. */
static bool is_blank(const ps_array_rows_t *self, const part_t *part)
{
    uint64_t block = part->first >> PS_ARRAY_BLOCK_SHIFT;

    if (self->filled.data != NULL) { /* every row that changed was filled */
        return !ps_array_rows_is_filled(self, block);
    }
    for (uint32_t k = 0; k <= self->shape.n_states; k++) {
        if (!is_zero(array_at(self, part, k), part->n * self->shape.value_size)) {
            return false;
        }
    }
    return !has_versions(self) || is_zero(self->versions.data + part->first_row * sizeof(uint64_t),
                                          part->n_rows * sizeof(uint64_t));
}

static bool bit_at(const uint8_t *bits, uint64_t i)
{
    return (bits[i / 8] >> (i % 8) & 1) != 0;
}

static uint64_t block_of(uint64_t value)
{
    return value >> PS_ARRAY_BLOCK_SHIFT;
}

/* Bytes of the bits for the blocks of [first, end), which is not empty. */
static uint64_t bits_bytes(uint64_t first, uint64_t end)
{
    uint64_t n = block_of(end - 1) - block_of(first) + 1;

    return (n + BITS_STEP - 1) / BITS_STEP * (BITS_STEP / 8);
}

/* The bytes that a part of a block counts as in a piece. */
static uint64_t cost_of(const ps_array_rows_t *self, const part_t *part, bool blank)
{
    uint64_t bytes = part_bytes(self, part);

    if (!blank) {
        return bytes;
    }
    return bytes / (self->filled.data == NULL ? SEEN_DEN : SKIPPED_DEN) + 1;
}

/* Looks at blocks from `first` on until the piece is large enough: sets the
 * bits of the blocks to send. *ret_n: values looked at, at least one row. */
static bool look(const ps_array_rows_t *self, uint64_t first, size_t max_bytes, ps_buffer_t *bits,
                 uint64_t *ret_n)
{
    uint64_t width = self->shape.width;
    uint64_t value_bytes = (uint64_t)self->shape.value_size * (1 + self->shape.n_states);
    uint64_t most = max_bytes / value_bytes + 1; /* of a block at once */
    uint64_t end = self->n_rows * width;
    uint64_t cost = 0;
    uint64_t at = first;

    while (at < end && (cost < max_bytes || at - first < width)) {
        part_t part = part_of(self, block_of(at), at, end - at < most ? end : at + most);
        uint64_t i = block_of(at) - block_of(first);
        bool blank = is_blank(self, &part);

        if (i / 8 >= bits->size && !ps_buffer_u64(bits, 0)) {
            return false;
        }
        if (!blank) {
            bits->data[i / 8] |= (uint8_t)(1U << (i % 8));
        }
        cost += cost_of(self, &part, blank);
        at += part.n;
    }
    *ret_n = at - first;
    return true;
}

/* Bytes of the blocks of [first, end) that are sent. */
static uint64_t blocks_bytes(const ps_array_rows_t *self, const uint8_t *bits, uint64_t first,
                             uint64_t end)
{
    uint64_t bytes = 0;

    for (uint64_t b = block_of(first); b <= block_of(end - 1); b++) {
        part_t part = part_of(self, b, first, end);

        bytes += bit_at(bits, b - block_of(first)) ? part_bytes(self, &part) : 0;
    }
    return bytes;
}

static uint8_t *put(uint8_t *to, const uint8_t *from, size_t size)
{
    memcpy(to, from, size);
    return to + size;
}

static uint8_t *put_part(const ps_array_rows_t *self, const part_t *part, uint8_t *to)
{
    if (has_versions(self)) {
        to = put(to, self->versions.data + part->first_row * sizeof(uint64_t),
                 part->n_rows * sizeof(uint64_t));
    }
    for (uint32_t k = 0; k <= self->shape.n_states; k++) {
        to = put(to, array_at(self, part, k), part->n * self->shape.value_size);
    }
    return to;
}

/* Clears the bits of blocks after the last whole row. */
static void clear_bits(const ps_buffer_t *bits, uint64_t n)
{
    for (; n < bits->size * 8; n++) {
        bits->data[n / 8] &= (uint8_t) ~(1U << (n % 8));
    }
}

ps_payload_t *ps_array_rows_give(const ps_array_rows_t *self, uint64_t first, size_t max_bytes,
                                 uint64_t *ret_n)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bits = {0};
    ps_payload_t *piece = NULL;
    uint64_t width = self->shape.width;
    uint64_t from = first * width;
    uint64_t n_bits = 0;
    uint64_t n = 0;
    uint8_t *to = NULL;

    if (first == self->n_rows) {
        *ret_n = 0;
        return ps_payload_room(0, 0, PS_PIECE_HEAD, &to);
    }
    if (!look(self, from, max_bytes, &bits, &n)) {
        return NULL;
    }
    n -= n % width;
    n_bits = bits_bytes(from, from + n);
    clear_bits(&bits, block_of(from + n - 1) - block_of(from) + 1);
    piece = ps_payload_room(
        0, 0, PS_PIECE_HEAD + n_bits + blocks_bytes(self, bits.data, from, from + n), &to);
    if (piece == NULL) {
        return NULL;
    }
    to = put(to + PS_PIECE_HEAD, bits.data, n_bits);
    for (uint64_t b = block_of(from); b <= block_of(from + n - 1); b++) {
        part_t part = part_of(self, b, from, from + n);

        if (bit_at(bits.data, b - block_of(from))) {
            to = put_part(self, &part, to);
        }
    }
    *ret_n = n / width;
    return piece;
}

/* ---- taking ---- */

static void take_part(ps_array_rows_t *self, const part_t *part, const uint8_t *from)
{
    size_t size = part->n * self->shape.value_size;

    if (self->filled.data != NULL) {
        ps_array_rows_fill_around(self, part->first, part->n);
    }
    if (has_versions(self)) {
        size_t bytes = part->n_rows * sizeof(uint64_t);

        memcpy(self->versions.data + part->first_row * sizeof(uint64_t), from, bytes);
        from += bytes;
    }
    for (uint32_t k = 0; k <= self->shape.n_states; k++) {
        memcpy(array_at(self, part, k), from, size);
        from += size;
    }
}

/* Bits after the blocks' bits must be zero, so that a piece has only one
 * form. */
static bool ends_in_zeros(ps_bytes_t bits, uint64_t n)
{
    for (; n < bits.size * 8; n++) {
        if (bit_at(bits.data, n)) {
            return false;
        }
    }
    return true;
}

/* Takes the blocks of [first, end) whose bits are set. */
static void take_blocks(ps_array_rows_t *self, const uint8_t *bits, uint64_t first, uint64_t end,
                        ps_cursor_t *cursor)
{
    for (uint64_t b = block_of(first); b <= block_of(end - 1); b++) {
        part_t part = part_of(self, b, first, end);
        ps_bytes_t bytes = {NULL, 0};

        if (!bit_at(bits, b - block_of(first))) {
            continue;
        }
        bytes = ps_cursor_take(cursor, part_bytes(self, &part));
        if (cursor->failed) {
            return;
        }
        take_part(self, &part, bytes.data);
    }
}

psd_status_t ps_array_rows_take(ps_array_rows_t *self, uint64_t first, uint64_t n, ps_bytes_t rows,
                                psd_error_t *err)
{
    ps_cursor_t cursor = ps_cursor_over(rows);
    uint64_t width = self->shape.width;
    uint64_t from = first * width;
    uint64_t end = (first + n) * width;

    if (n > 0) {
        ps_bytes_t bits = ps_cursor_take(&cursor, bits_bytes(from, end));
        uint64_t n_blocks = block_of(end - 1) - block_of(from) + 1;

        if (!cursor.failed && !ends_in_zeros(bits, n_blocks)) {
            return psd_error_set(
                err, PSD_PROTO, "a piece of rows names blocks past its last one, which is %" PRIu64,
                n_blocks - 1);
        }
        if (!cursor.failed) {
            take_blocks(self, bits.data, from, end, &cursor);
        }
    }
    if (!ps_cursor_is_done(&cursor)) {
        return psd_error_set(
            err, PSD_PROTO,
            "a piece of %" PRIu64
            " rows has %zu bytes for them, which do not match the blocks that it names",
            n, rows.size);
    }
    return PSD_OK;
}
