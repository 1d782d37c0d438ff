/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are found by their key, handed out and taken in in insertion
 * order. */
#include <assert.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "model/rows/row_head.h"
#include "model/rows/rows_copy.h"

#define MIXED_HEAD 32   /* bytes in front of a row that may be sparse */
#define AHEAD 16        /* keys whose buckets are prefetched */
#define AHEAD_OF_ROWS 3 /* the index is sized for up to this multiple of the arrived rows */

/* ---- giving ---- */

static uint8_t *put(uint8_t *to, const uint8_t *from, size_t size)
{
    memcpy(to, from, size);
    return to + size;
}

/* Rows of a DENSE table are sent as they are stored. */
static ps_payload_t *give_dense(const ps_indexed_rows_t *self, uint64_t first, size_t max_bytes,
                                uint64_t *ret_n)
{
    const ps_slab_t *rows = &self->rows;
    uint64_t left = rows->n - first;
    uint64_t n = max_bytes / rows->item_size;
    ps_payload_t *piece = NULL;
    uint8_t *to = NULL;

    n = n < 1 ? 1 : n;
    n = n < left ? n : left;
    piece = ps_payload_room(0, 0, PS_PIECE_HEAD + n * rows->item_size, &to);
    if (piece == NULL) {
        return NULL;
    }
    to += PS_PIECE_HEAD;
    for (uint64_t i = 0; i < n;) {
        uint64_t run = 0;
        const uint8_t *from = ps_slab_run(rows, (uint32_t)(first + i), &run);

        run = run < n - i ? run : n - i;
        to = put(to, from, run * rows->item_size);
        i += run;
    }
    *ret_n = n;
    return piece;
}

static size_t mixed_bytes(const ps_indexed_rows_t *self, uint8_t *at)
{
    ps_row_head_t head = *ps_row_head_at(self, at);

    return MIXED_HEAD + (ps_row_head_is_dense(head)
                             ? ps_row_shape_bytes(&self->shape)
                             : ps_sparse_row_packed(&self->shape, ps_row_head_sparse(head)->n));
}

static uint8_t *put_mixed(const ps_indexed_rows_t *self, uint8_t *at, uint8_t *to)
{
    ps_row_head_t head = *ps_row_head_at(self, at);
    const ps_sparse_row_t *row = ps_row_head_is_dense(head) ? NULL : ps_row_head_sparse(head);

    assert(row == NULL || (row->n_pending == 0 && row->n_zeros == 0));
    ps_store_u64(to, ps_load_u64(at));
    ps_store_u64(to + 8, ps_indexed_row_version(self, at));
    ps_store_u32(to + 16, ps_row_head_flags(head));
    ps_store_u32(to + 20, row == NULL ? 0 : row->n);
    ps_store_u32(to + 24, row == NULL ? 0 : row->capacity);
    ps_store_u32(to + 28, 0);
    to += MIXED_HEAD;
    return row == NULL ? put(to, ps_row_head_target(head), ps_row_shape_bytes(&self->shape))
                       : ps_sparse_row_pack(row, &self->shape, to);
}

static ps_payload_t *give_mixed(const ps_indexed_rows_t *self, uint64_t first, size_t max_bytes,
                                uint64_t *ret_n)
{
    ps_payload_t *piece = NULL;
    size_t bytes = 0;
    uint64_t end = first;
    uint8_t *to = NULL;

    while (end < self->rows.n && (end == first || bytes < max_bytes)) {
        bytes += mixed_bytes(self, ps_slab_at(&self->rows, (uint32_t)end));
        end++;
    }
    piece = ps_payload_room(0, 0, PS_PIECE_HEAD + bytes, &to);
    if (piece == NULL) {
        return NULL;
    }
    to += PS_PIECE_HEAD;
    for (uint64_t i = first; i < end; i++) {
        to = put_mixed(self, ps_slab_at(&self->rows, (uint32_t)i), to);
    }
    *ret_n = end - first;
    return piece;
}

ps_payload_t *ps_indexed_rows_give(const ps_indexed_rows_t *self, uint64_t first, size_t max_bytes,
                                   uint64_t *ret_n)
{
    return ps_rows_are_mixed(self) ? give_mixed(self, first, max_bytes, ret_n)
                                   : give_dense(self, first, max_bytes, ret_n);
}

/* ---- taking ---- */

static psd_status_t no_memory(uint64_t n, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a piece of %" PRIu64 " rows", n);
}

/* Checks that n rows of at least row_bytes each fit the bytes, and reserves
 * memory for them. Also sizes the index for the rows that are left, because
 * growing it is most of the cost of a narrow row; but only in proportion to the
 * rows that have arrived.
 */
static psd_status_t reserve(ps_indexed_rows_t *self, uint64_t n, uint64_t left, size_t row_bytes,
                            size_t size, psd_error_t *err)
{
    uint64_t most = 0;

    if (n > size / row_bytes) {
        return psd_error_set(err, PSD_PROTO,
                             "a piece of %" PRIu64
                             " rows has %zu bytes for them; allowed: at least "
                             "%zu each",
                             n, size, row_bytes);
    }
    most = AHEAD_OF_ROWS * (self->rows.n + n);
    if (!ps_slab_reserve(&self->rows, n) ||
        !ps_row_index_reserve(&self->index, n + (left < most ? left : most))) {
        return no_memory(n, err);
    }
    return PSD_OK;
}

static psd_status_t check_key(const ps_indexed_rows_t *self, const ps_extent_t *extent,
                              uint64_t key, psd_error_t *err)
{
    if (!ps_extent_has_row(extent, key)) {
        return psd_error_set(err, PSD_PROTO,
                             "a piece has row %" PRIu64 ", which is not of this partition", key);
    }
    if (ps_row_index_find(&self->index, key) != PS_ROW_NONE) {
        return psd_error_set(err, PSD_PROTO, "a piece has row %" PRIu64 ", which is here", key);
    }
    return PSD_OK;
}

/* A new item, whose key was checked; there is room for it. */
static uint8_t *add_item(ps_indexed_rows_t *self, const uint8_t *from, size_t size)
{
    uint32_t number = 0;
    bool is_added = ps_slab_add(&self->rows, &number);
    uint8_t *at = NULL;

    assert(is_added);
    (void)is_added;
    at = ps_slab_at(&self->rows, number);
    memcpy(at, from, size);
    ps_row_index_add(&self->index, ps_load_u64(at), number);
    return at;
}

static psd_status_t take_dense(ps_indexed_rows_t *self, const ps_extent_t *extent, uint64_t n,
                               uint64_t left, ps_bytes_t rows, psd_error_t *err)
{
    size_t size = self->rows.item_size;
    psd_status_t rc = reserve(self, n, left, size, rows.size, err);

    if (rc == PSD_OK && rows.size != n * size) {
        return psd_error_set(
            err, PSD_PROTO, "a piece of %" PRIu64 " rows has %zu bytes for them; allowed: %" PRIu64,
            n, rows.size, n * size);
    }
    for (uint64_t i = 0; rc == PSD_OK && i < n; i++) {
        const uint8_t *from = rows.data + i * size;

        if (n - i > AHEAD) {
            ps_row_index_prefetch(&self->index, ps_row_hash(ps_load_u64(from + AHEAD * size)));
        }
        rc = check_key(self, extent, ps_load_u64(from), err);
        if (rc == PSD_OK) {
            (void)add_item(self, from, size);
        }
    }
    return rc;
}

/* The head of a row that may be sparse. */
typedef struct mixed {
    uint64_t key;
    uint64_t version;
    uint32_t flags;
    uint32_t n;        /* entries */
    uint32_t capacity; /* room for entries */
    uint32_t unused;   /* zero */
} mixed_t;

static mixed_t read_mixed(ps_cursor_t *cursor)
{
    mixed_t head;

    head.key = ps_cursor_u64(cursor);
    head.version = ps_cursor_u64(cursor);
    head.flags = ps_cursor_u32(cursor);
    head.n = ps_cursor_u32(cursor);
    head.capacity = ps_cursor_u32(cursor);
    head.unused = ps_cursor_u32(cursor);
    return head;
}

static psd_status_t check_mixed(const ps_indexed_rows_t *self, const mixed_t *head,
                                psd_error_t *err)
{
    bool is_dense = (head->flags & PS_HEAD_DENSE) != 0;
    bool is_auto = self->shape.spec->row_format == PS_ROW_AUTO;
    uint32_t room = ps_row_head_room(head->n);
    uint32_t most = is_dense ? 0 : room < self->shape.width ? room : self->shape.width;

    if (head->flags > (PS_HEAD_DENSE | PS_HEAD_ABSENT) || (is_dense && !is_auto) ||
        head->unused != 0 || (head->version != 0 && self->shape.version == NULL)) {
        return psd_error_set(err, PSD_PROTO,
                             "row %" PRIu64 " of a piece has flags %" PRIu32 ", version %" PRIu64
                             ", which no row of this table has",
                             head->key, head->flags, head->version);
    }
    if (head->n > head->capacity || head->capacity > most) {
        return psd_error_set(err, PSD_PROTO,
                             "row %" PRIu64 " of a piece has %" PRIu32
                             " entries and room for %" PRIu32 "; allowed: at most %" PRIu32,
                             head->key, head->n, head->capacity, most);
    }
    return PSD_OK;
}

/* The row after its head; *ret_head then points to it. */
static psd_status_t take_dense_row(ps_indexed_rows_t *self, const mixed_t *head,
                                   ps_cursor_t *cursor, ps_row_head_t *ret_head, psd_error_t *err)
{
    size_t size = ps_row_shape_bytes(&self->shape);
    ps_bytes_t bytes = ps_cursor_take(cursor, size);
    uint32_t number = 0;

    if (cursor->failed) {
        return psd_error_set(err, PSD_PROTO, "a piece ends inside row %" PRIu64, head->key);
    }
    if (!ps_slab_add(&self->dense, &number)) {
        return no_memory(1, err);
    }
    *ret_head = ps_slab_at(&self->dense, number);
    memcpy(*ret_head, bytes.data, size);
    return PSD_OK;
}

static psd_status_t take_sparse_row(ps_indexed_rows_t *self, const mixed_t *head,
                                    ps_cursor_t *cursor, ps_row_head_t *ret_head, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) ps_sparse_row_t *row = NULL;
    size_t size = ps_sparse_row_packed(&self->shape, head->n);
    ps_bytes_t bytes = ps_cursor_take(cursor, size);

    if (cursor->failed) {
        return psd_error_set(err, PSD_PROTO, "a piece ends inside row %" PRIu64, head->key);
    }
    row = ps_sparse_row_new(&self->shape, NULL, head->capacity);
    if (row == NULL) {
        return no_memory(1, err);
    }
    if (!ps_sparse_row_unpack(row, &self->shape, bytes.data, head->n)) {
        return psd_error_set(err, PSD_PROTO,
                             "row %" PRIu64
                             " of a piece has an entry that is zero, or columns that do not "
                             "ascend within the partition's",
                             head->key);
    }
    self->sparse_bytes += ps_sparse_row_bytes(&self->shape, row->capacity);
    self->sparse_entries += row->n;
    *ret_head = (void *)row;
    row = NULL;
    return PSD_OK;
}

static psd_status_t take_mixed_row(ps_indexed_rows_t *self, const ps_extent_t *extent,
                                   ps_cursor_t *cursor, psd_error_t *err)
{
    mixed_t head = read_mixed(cursor);
    ps_row_head_t row = NULL;
    uint8_t key[sizeof head.key];
    uint8_t *at = NULL;
    psd_status_t rc = check_key(self, extent, head.key, err);

    if (rc == PSD_OK) {
        rc = check_mixed(self, &head, err);
    }
    if (rc == PSD_OK) {
        rc = (head.flags & PS_HEAD_DENSE) != 0 ? take_dense_row(self, &head, cursor, &row, err)
                                               : take_sparse_row(self, &head, cursor, &row, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_store_u64(key, head.key);
    at = add_item(self, key, sizeof key);
    *ps_row_head_at(self, at) = row + head.flags;
    if (self->shape.version != NULL) {
        ps_store_u64(at + PS_ROW_VERSION_AT, head.version);
    }
    self->n_absent += (head.flags & PS_HEAD_ABSENT) != 0 ? 1 : 0;
    return PSD_OK;
}

static psd_status_t take_mixed(ps_indexed_rows_t *self, const ps_extent_t *extent, uint64_t n,
                               uint64_t left, ps_bytes_t rows, psd_error_t *err)
{
    ps_cursor_t cursor = ps_cursor_over(rows);
    psd_status_t rc = reserve(self, n, left, MIXED_HEAD, rows.size, err);

    for (uint64_t i = 0; rc == PSD_OK && i < n; i++) {
        rc = take_mixed_row(self, extent, &cursor, err);
    }
    if (rc == PSD_OK && !ps_cursor_is_done(&cursor)) {
        rc = psd_error_set(err, PSD_PROTO,
                           "a piece of %" PRIu64 " rows has %zu bytes after the last one", n,
                           cursor.rest.size);
    }
    return rc;
}

psd_status_t ps_indexed_rows_take(ps_indexed_rows_t *self, const ps_extent_t *extent, uint64_t n,
                                  uint64_t left, ps_bytes_t rows, psd_error_t *err)
{
    return ps_rows_are_mixed(self) ? take_mixed(self, extent, n, left, rows, err)
                                   : take_dense(self, extent, n, left, rows, err);
}
