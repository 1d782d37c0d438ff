/* SPDX-License-Identifier: Apache-2.0 */
/* Rows into a reply: one block of keys, index and values, written once. */
#include "model/store.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "model/init.h"
#include "model/present_rows.h"

#define AHEAD 16 /* rows whose memory is asked for before it is used */
#define KEY_BYTES 8
#define COUNT_BYTES 4 /* of a sparse row */
#define COLUMN_BYTES 4
#define SCAN_VALUES 512 /* columns of a row looked at in one piece */

/* The block of a reply, and where its parts begin. */
typedef struct reply {
    uint8_t *block; /* owned until it goes into a payload */
    ps_bytes_t keys;
    ps_bytes_t index;
    ps_bytes_t values;
} reply_t;

static void
reply_done(reply_t *self)
{
    ps_free(self->block);
}

static bool
reply_init(reply_t *self, size_t keys, size_t index, size_t values)
{
    /* Keys are whole eights; the index may leave values odd by four. */
    size_t gap = index % 8;
    size_t size = 0;

    if (__builtin_add_overflow(keys, index + gap, &size) ||
        __builtin_add_overflow(size, values, &size)) {
        return false;
    }
    self->block = ps_alloc_raw(size, 1);
    if (self->block == NULL) {
        return false;
    }
    self->keys = (ps_bytes_t){self->block, keys};
    self->index = (ps_bytes_t){self->block + keys, index};
    self->values = (ps_bytes_t){self->block + keys + index + gap, values};
    return true;
}

static uint8_t *
writable(ps_bytes_t bytes)
{
    return (uint8_t *)(uintptr_t)bytes.data; /* they lie in our own block */
}

static ps_payload_t *
reply_finish(reply_t *self)
{
    ps_payload_t *payload = ps_payload_new(self->keys, self->index,
                                           self->values, self->block, ps_free);

    if (payload != NULL) {
        self->block = NULL;
    }
    return payload;
}

static psd_status_t
no_memory(uint64_t n_rows, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to read %" PRIu64 " rows",
                         n_rows);
}

/* Bytes that each row adds to a dense reply, and those that all share. */
static void
dense_costs(const ps_store_t *self,
            const ps_slice_t *want,
            size_t *ret_row,
            size_t *ret_shared)
{
    size_t key = want->rows == PS_ROWS_LIST ? KEY_BYTES : 0;

    *ret_row = key + (size_t)want->n_cols * self->shape.value_size;
    *ret_shared =
        want->cols == PS_COLS_LIST ? COLUMN_BYTES * (size_t)want->n_cols : 0;
}

/* At least one row, if there is any. */
static uint64_t
rows_that_fit(size_t max_bytes, size_t shared, size_t row, uint64_t n_rows)
{
    uint64_t n = 0;

    if (n_rows == 0) {
        return 0;
    }
    n = max_bytes > shared ? (max_bytes - shared) / row : 0;
    n = n > 0 ? n : 1;
    return n < n_rows ? n : n_rows;
}

/* Asks for the memory of the rows from `first` on. */
static void
prefetch_rows(const ps_store_t *self,
              const ps_slice_t *want,
              const ps_payload_t *rows,
              uint64_t first,
              uint64_t n_rows)
{
    uint64_t end = first + AHEAD < n_rows ? first + AHEAD : n_rows;

    for (uint64_t i = first; i < end; i++) {
        uint64_t row = ps_slice_row(want, rows, i);

        if (self->is_array) {
            ps_array_rows_prefetch(&self->array, row);
        } else {
            ps_row_index_prefetch(&self->indexed.index, row);
        }
    }
    for (uint64_t i = first; !self->is_array && i < end; i++) {
        ps_indexed_rows_prefetch(&self->indexed, ps_slice_row(want, rows, i));
    }
}

/* Whole neighbouring rows: one copy. */
static bool
is_one_copy(const ps_store_t *self, const ps_slice_t *want)
{
    return self->is_array && want->rows == PS_ROWS_RANGE &&
           want->cols != PS_COLS_LIST && want->n_cols == self->shape.width;
}

static void
read_dense(ps_store_t *self,
           const ps_slice_t *want,
           const ps_payload_t *rows,
           uint64_t n_rows,
           uint8_t *ret_values)
{
    ps_columns_t columns = ps_slice_columns(want, rows, self->shape.first_col);
    size_t row_bytes = (size_t)want->n_cols * self->shape.value_size;

    if (is_one_copy(self, want)) {
        ps_dense_row_t row = ps_array_rows_at(&self->array, want->first_row, 0,
                                              n_rows * want->n_cols);

        memcpy(ret_values, row.values, n_rows * row_bytes);
        return;
    }
    for (uint64_t i = 0; i < n_rows; i++) {
        if (i % AHEAD == 0) {
            prefetch_rows(self, want, rows, i, n_rows);
        }
        ps_store_read(self, ps_slice_row(want, rows, i), columns, want->n_cols,
                      ret_values + i * row_bytes);
    }
}

static psd_status_t
gather_dense(ps_store_t *self,
             const ps_slice_t *want,
             const ps_payload_t *rows,
             size_t max_bytes,
             ps_slice_t *ret_slice,
             ps_payload_t **ret_payload,
             psd_error_t *err)
{
    PSD_AUTO(reply_done) reply_t reply = {0};
    size_t row_bytes = 0;
    size_t shared = 0;
    size_t values = 0;
    uint64_t n = 0;
    ps_payload_t *payload = NULL;

    dense_costs(self, want, &row_bytes, &shared);
    n = rows_that_fit(max_bytes, shared, row_bytes, want->n_rows);
    if (__builtin_mul_overflow(n, (size_t)want->n_cols * self->shape.value_size,
                               &values) ||
        !reply_init(&reply, want->rows == PS_ROWS_LIST ? n * KEY_BYTES : 0,
                    shared, values)) {
        return no_memory(n, err);
    }
    if (reply.keys.size > 0) {
        memcpy(writable(reply.keys), rows->keys.data, reply.keys.size);
    }
    if (shared > 0) {
        memcpy(writable(reply.index), rows->index.data, shared);
    }
    read_dense(self, want, rows, n, writable(reply.values));
    payload = reply_finish(&reply);
    if (payload == NULL) {
        return no_memory(n, err);
    }
    *ret_slice = *want;
    ret_slice->n_rows = n;
    ret_slice->n_values = n * want->n_cols;
    *ret_payload = payload;
    return PSD_OK;
}

/* Where the entries of a row go; columns NULL: they are only counted. */
typedef struct entry_sink {
    uint8_t *columns;
    uint8_t *values;
    uint64_t n;
} entry_sink_t;

/* Entries of a row that is not sparse: read in pieces, zeros left out. */
static void
scan_entries(ps_store_t *self, uint64_t row, entry_sink_t *sink)
{
    const ps_row_shape_t *shape = &self->shape;
    _Alignas(8) uint8_t piece[SCAN_VALUES * 8];

    for (uint32_t col = 0; col < shape->width;) {
        uint32_t left = shape->width - col;
        uint32_t n = left < SCAN_VALUES ? left : SCAN_VALUES;
        ps_columns_t columns = {.first = shape->first_col + col};

        ps_store_read(self, row, columns, n, piece);
        for (uint32_t i = 0; i < n; i++) {
            const uint8_t *value = piece + (size_t)i * shape->value_size;

            if (ps_value_is_zero(shape->type, value)) {
                continue;
            }
            if (sink->columns != NULL) {
                ps_store_u32(sink->columns + COLUMN_BYTES * sink->n,
                             columns.first + i);
                ps_values_copy(sink->values + sink->n * shape->value_size,
                               value, 1, shape->value_size);
            }
            sink->n++;
        }
        col += n;
    }
}

/* Adds the entries of a row that are not zero. */
static void
take_entries(ps_store_t *self, uint64_t row, entry_sink_t *sink)
{
    const ps_row_shape_t *shape = &self->shape;
    ps_row_t found = {0};
    bool is_found =
        !self->is_array && ps_indexed_rows_find(&self->indexed, row, &found);

    if (is_found && found.sparse != NULL) {
        bool is_kept = sink->columns != NULL;

        sink->n += ps_sparse_row_entries(
            found.sparse, shape,
            is_kept ? sink->columns + COLUMN_BYTES * sink->n : NULL,
            is_kept ? sink->values + sink->n * shape->value_size : NULL);
        return;
    }
    if ((is_found || self->is_array) || !ps_init_is_zero(&self->spec.init)) {
        scan_entries(self, row, sink);
    }
}

/* The counts of the rows that fit. */
typedef struct counts {
    uint32_t *items; /* owned */
    size_t n;
    size_t capacity;
    uint64_t n_entries; /* their sum */
} counts_t;

static void
counts_done(counts_t *self)
{
    ps_free(self->items);
}

static bool
count_entries(ps_store_t *self,
              const ps_slice_t *want,
              const ps_payload_t *rows,
              size_t max_bytes,
              counts_t *ret)
{
    size_t entry = COLUMN_BYTES + self->shape.value_size;
    size_t used = 0;

    for (uint64_t i = 0; i < want->n_rows; i++) {
        entry_sink_t sink = {0};
        size_t row = COUNT_BYTES;

        if (i % AHEAD == 0) {
            prefetch_rows(self, want, rows, i, want->n_rows);
        }
        take_entries(self, ps_slice_row(want, rows, i), &sink);
        row += sink.n * entry + (want->rows == PS_ROWS_LIST ? KEY_BYTES : 0);
        if (ret->n > 0 && (used > max_bytes || row > max_bytes - used)) {
            return true;
        }
        if (!ps_grow(&ret->items, &ret->capacity, ret->n + 1,
                     sizeof *ret->items)) {
            return false;
        }
        ret->items[ret->n++] = (uint32_t)sink.n;
        ret->n_entries += sink.n;
        used += row;
    }
    return true;
}

static psd_status_t
gather_sparse(ps_store_t *self,
              const ps_slice_t *want,
              const ps_payload_t *rows,
              size_t max_bytes,
              ps_slice_t *ret_slice,
              ps_payload_t **ret_payload,
              psd_error_t *err)
{
    PSD_AUTO(reply_done) reply_t reply = {0};
    PSD_AUTO(counts_done) counts_t counts = {0};
    entry_sink_t sink = {0};
    size_t heads = 0;
    ps_payload_t *payload = NULL;

    if (!count_entries(self, want, rows, max_bytes, &counts)) {
        return no_memory(want->n_rows, err);
    }
    heads = counts.n * COUNT_BYTES;
    if (!reply_init(&reply,
                    want->rows == PS_ROWS_LIST ? counts.n * KEY_BYTES : 0,
                    heads + counts.n_entries * COLUMN_BYTES,
                    counts.n_entries * self->shape.value_size)) {
        return no_memory(counts.n, err);
    }
    if (reply.keys.size > 0) {
        memcpy(writable(reply.keys), rows->keys.data, reply.keys.size);
    }
    if (counts.n > 0) {
        memcpy(writable(reply.index), counts.items, heads);
    }
    sink.columns = writable(reply.index) + heads;
    sink.values = writable(reply.values);
    for (size_t i = 0; i < counts.n; i++) {
        take_entries(self, ps_slice_row(want, rows, i), &sink);
    }
    assert(sink.n == counts.n_entries);
    payload = reply_finish(&reply);
    if (payload == NULL) {
        return no_memory(counts.n, err);
    }
    *ret_slice = *want;
    ret_slice->n_rows = counts.n;
    ret_slice->n_values = counts.n_entries;
    *ret_payload = payload;
    return PSD_OK;
}

static psd_status_t
gather_named(ps_store_t *self,
             const ps_slice_t *want,
             const ps_payload_t *rows,
             size_t max_bytes,
             ps_slice_t *ret_slice,
             ps_payload_t **ret_payload,
             psd_error_t *err)
{
    ps_slice_t named = *want;

    named.type = self->spec.type;
    if (want->layout == PS_LAYOUT_SPARSE) {
        named.cols = PS_COLS_ALL;
        named.first_col = 0;
        named.n_cols = 0;
        return gather_sparse(self, &named, rows, max_bytes, ret_slice,
                             ret_payload, err);
    }
    return gather_dense(self, &named, rows, max_bytes, ret_slice, ret_payload,
                        err);
}

/* The most rows that can fit, so that no more keys than that are sorted. */
static size_t
present_limit(const ps_store_t *self, const ps_slice_t *want, size_t max_bytes)
{
    size_t row = KEY_BYTES + COUNT_BYTES;
    size_t shared = 0;

    if (want->layout == PS_LAYOUT_DENSE) {
        dense_costs(self, want, &row, &shared);
    }
    return rows_that_fit(max_bytes, shared, row, SIZE_MAX);
}

/* A range of a scattered store: first the keys, then as if they were named. */
static psd_status_t
gather_present(ps_store_t *self,
               const ps_slice_t *want,
               const ps_payload_t *rows,
               size_t max_bytes,
               ps_slice_t *ret_slice,
               ps_payload_t **ret_payload,
               uint64_t *ret_done,
               psd_error_t *err)
{
    PSD_AUTO(ps_present_rows_done) ps_present_rows_t present = {0};
    ps_slice_t named = *want;
    ps_payload_t names = {.index = rows->index};
    ps_slice_t got = {0};
    psd_status_t rc = PSD_OK;

    named.rows = PS_ROWS_LIST;
    named.first_row = 0;
    if (!ps_present_rows_find(self, want->first_row, want->n_rows,
                              present_limit(self, &named, max_bytes),
                              &present)) {
        return no_memory(want->n_rows, err);
    }
    named.n_rows = present.n;
    names.keys =
        (ps_bytes_t){(const uint8_t *)present.keys, present.n * KEY_BYTES};
    rc = gather_named(self, &named, &names, max_bytes, &got, ret_payload, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_slice = got;
    *ret_done = want->n_rows;
    if (present.is_cut || got.n_rows < present.n) {
        *ret_done = present.keys[got.n_rows - 1] - want->first_row + 1;
    }
    return PSD_OK;
}

psd_status_t
ps_store_gather(ps_store_t *self,
                const ps_slice_t *want,
                const ps_payload_t *rows,
                size_t max_bytes,
                ps_slice_t *ret_slice,
                ps_payload_t **ret_payload,
                uint64_t *ret_done,
                psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (want->rows == PS_ROWS_RANGE && want->n_rows > 0 &&
        ps_store_is_scattered(self)) {
        return gather_present(self, want, rows, max_bytes, ret_slice,
                              ret_payload, ret_done, err);
    }
    rc = gather_named(self, want, rows, max_bytes, ret_slice, ret_payload, err);
    if (rc == PSD_OK) {
        *ret_done = ret_slice->n_rows;
    }
    return rc;
}
