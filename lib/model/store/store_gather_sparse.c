/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers entries that are not zero into a reply: counts first, then copies. */
#include <assert.h>
#include <string.h>

#include "base/alloc.h"
#include "model/updaters/init.h"
#include "model/store/reply.h"

#define SCAN_VALUES 512 /* columns of a row looked at in one piece */

/* The destination of a row's entries; columns NULL: only count them. */
typedef struct entry_sink {
    uint8_t *columns;
    uint8_t *values;
    uint64_t n;
} entry_sink_t;

static void keep_entry(const ps_row_shape_t *shape, uint32_t col, const uint8_t *value,
                       entry_sink_t *sink)
{
    if (sink->columns != NULL) {
        ps_store_u32(sink->columns + PS_COLUMN_BYTES * sink->n, col);
        ps_values_copy(sink->values + sink->n * shape->value_size, value, 1, shape->value_size);
    }
    sink->n++;
}

/* Keeps the entries among n contiguous values. */
static void keep_entries(const ps_row_shape_t *shape, uint32_t first_col, const uint8_t *values,
                         uint32_t n, entry_sink_t *sink)
{
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *value = values + (size_t)i * shape->value_size;

        if (!ps_value_is_zero(shape->type, value)) {
            keep_entry(shape, first_col + i, value, sink);
        }
    }
}

/* Entries of a row that is not sparse: read in pieces, zeros left out. */
static void scan_entries(ps_store_t *self, uint64_t row, uint8_t *at, entry_sink_t *sink)
{
    const ps_row_shape_t *shape = &self->shape;
    _Alignas(8) uint8_t piece[SCAN_VALUES * 8];

    for (uint32_t col = 0; col < shape->width; col += SCAN_VALUES) {
        uint32_t left = shape->width - col;
        uint32_t n = left < SCAN_VALUES ? left : SCAN_VALUES;
        ps_columns_t columns = {.first = shape->first_col + col};

        ps_store_read(self, row, at, columns, n, piece);
        keep_entries(shape, columns.first, piece, n, sink);
    }
}

/* Adds the entries of a row that are not zero. */
static void take_entries(ps_store_t *self, uint64_t row, uint8_t *at, entry_sink_t *sink)
{
    const ps_row_shape_t *shape = &self->shape;
    ps_row_t found = {0};

    if (at != NULL) {
        found = ps_indexed_row_at(&self->indexed, at);
    }
    if (found.sparse != NULL) {
        bool is_kept = sink->columns != NULL;

        sink->n += ps_sparse_row_entries(
            found.sparse, shape, is_kept ? sink->columns + PS_COLUMN_BYTES * sink->n : NULL,
            is_kept ? sink->values + sink->n * shape->value_size : NULL);
        return;
    }
    if (at != NULL || self->is_array || !ps_init_is_zero(&self->spec.init)) {
        scan_entries(self, row, at, sink);
    }
}

/* The counts of the rows that fit. */
typedef struct counts {
    uint32_t *items; /* owned */
    size_t n;
    size_t capacity;
    uint64_t n_entries; /* their sum */
} counts_t;

static void counts_done(counts_t *self)
{
    ps_free(self->items);
}

static bool count_entries(ps_store_t *self, const ps_gather_t *gather, counts_t *ret)
{
    const ps_slice_t *want = &gather->want;
    size_t entry = PS_COLUMN_BYTES + self->shape.value_size;
    size_t max_bytes = gather->max_bytes;
    size_t used = 0;
    ps_store_walk_t walk;

    ps_store_walk_begin(&walk, self, want, gather->rows, want->n_rows, PS_NEED_VALUES);
    for (uint64_t i = 0; i < want->n_rows; i++) {
        entry_sink_t sink = {0};
        size_t row = PS_COUNT_BYTES + (gather->with_keys ? PS_KEY_BYTES : 0);

        take_entries(self, ps_slice_row(want, gather->rows, i), ps_store_walk_at(&walk, i), &sink);
        row += sink.n * entry;
        if (ret->n > 0 && (used > max_bytes || row > max_bytes - used)) {
            return true;
        }
        if (!ps_grow(&ret->items, &ret->capacity, ret->n + 1, sizeof *ret->items)) {
            return false;
        }
        ret->items[ret->n++] = (uint32_t)sink.n;
        ret->n_entries += sink.n;
        used += row;
    }
    return true;
}

psd_status_t ps_store_gather_sparse(ps_store_t *self, const ps_gather_t *gather,
                                    ps_slice_t *ret_slice, ps_payload_t **ret_payload,
                                    psd_error_t *err)
{
    PSD_AUTO(ps_reply_done) ps_reply_t reply = {0};
    PSD_AUTO(counts_done) counts_t counts = {0};
    const ps_slice_t *want = &gather->want;
    entry_sink_t sink = {0};
    size_t heads = 0;
    ps_store_walk_t walk;

    if (!count_entries(self, gather, &counts)) {
        return ps_reply_no_memory(want->n_rows, err);
    }
    heads = counts.n * PS_COUNT_BYTES;
    reply.keys_size = gather->with_keys ? counts.n * PS_KEY_BYTES : 0;
    reply.index_size = heads + counts.n_entries * PS_COLUMN_BYTES;
    reply.values_size = counts.n_entries * self->shape.value_size;
    if (!ps_reply_init(&reply, gather->room)) {
        return ps_reply_no_memory(counts.n, err);
    }
    if (reply.keys_size > 0) {
        memcpy(reply.keys, gather->rows->keys.data, reply.keys_size);
    }
    if (heads > 0) {
        memcpy(reply.index, counts.items, heads);
    }
    sink.columns = reply.index + heads;
    sink.values = reply.values;
    ps_store_walk_begin(&walk, self, want, gather->rows, counts.n, PS_NEED_VALUES);
    for (size_t i = 0; i < counts.n; i++) {
        take_entries(self, ps_slice_row(want, gather->rows, i), ps_store_walk_at(&walk, i), &sink);
    }
    assert(sink.n == counts.n_entries);
    *ret_slice = *want;
    ret_slice->n_rows = counts.n;
    ret_slice->n_values = counts.n_entries;
    *ret_payload = reply.payload;
    reply.payload = NULL;
    return PSD_OK;
}
