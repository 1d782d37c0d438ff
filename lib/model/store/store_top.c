/* SPDX-License-Identifier: Apache-2.0 */
/* The largest values: a min-heap; a larger value replaces the least one on
 * top. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/updaters/ops_loops.h"
#include "model/store/reply.h"
#include "model/rows/row_pieces.h"
#include "model/store/store_ops.h"

typedef struct cell {
    uint64_t order; /* ps_value_order */
    uint64_t row;
    uint32_t col;
    uint8_t value[8];
} cell_t;

typedef struct top {
    const ps_row_shape_t *shape;
    ps_columns_t columns;
    size_t n_cols;
    cell_t *cells; /* owned */
    size_t n;
    size_t capacity;
    size_t limit;
    bool has_failed; /* no memory */
} top_t;

static void top_done(top_t *self)
{
    ps_free(self->cells);
}

/* Negative when a comes before b: it is larger, or equal and named first. */
static int compare(const void *left, const void *right)
{
    const cell_t *a = left;
    const cell_t *b = right;

    if (a->order != b->order) {
        return a->order > b->order ? -1 : 1;
    }
    if (a->row != b->row) {
        return a->row < b->row ? -1 : 1;
    }
    return a->col < b->col ? -1 : a->col > b->col;
}

static void sift_down(cell_t *heap, size_t n, size_t at)
{
    cell_t cell = heap[at];

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < n && compare(&heap[child + 1], &heap[child]) > 0) {
            child++;
        }
        if (child >= n || compare(&heap[child], &cell) <= 0) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = cell;
}

static void offer(top_t *self, const cell_t *cell)
{
    if (self->n == self->limit) {
        if (compare(cell, &self->cells[0]) < 0) {
            self->cells[0] = *cell;
            sift_down(self->cells, self->n, 0);
        }
        return;
    }
    if (!ps_grow(&self->cells, &self->capacity, self->n + 1, sizeof *self->cells)) {
        self->has_failed = true;
        return;
    }
    self->cells[self->n++] = *cell;
    for (size_t i = self->n / 2; self->n == self->limit && i > 0; i--) {
        sift_down(self->cells, self->n, i - 1);
    }
}

static void take_piece(void *context, uint64_t row, ps_columns_t columns, uint8_t *values, size_t n)
{
    top_t *self = context;
    size_t size = self->shape->value_size;

    for (size_t i = 0; i < n && !self->has_failed; i++) {
        cell_t cell = {.order = ps_value_order(self->shape->type, values + i * size),
                       .row = row,
                       .col = ps_columns_at(columns, i)};

        if (cell.order == 0 || (self->n == self->limit && cell.order < self->cells[0].order)) {
            continue;
        }
        memcpy(cell.value, values + i * size, size);
        offer(self, &cell);
    }
}

static void take_row(void *context, uint64_t key, const ps_row_t *row)
{
    top_t *self = context;

    ps_row_pieces(self->shape, key, row, self->columns, self->n_cols, take_piece, self);
}

static void write_reply(const top_t *self, const ps_reply_t *reply)
{
    size_t size = self->shape->value_size;
    uint8_t *columns = reply->index + PS_COUNT_BYTES * self->n;

    for (size_t i = 0; i < self->n; i++) {
        const cell_t *cell = &self->cells[i];

        ps_store_u64(reply->keys + PS_KEY_BYTES * i, cell->row);
        ps_store_u32(reply->index + PS_COUNT_BYTES * i, 1);
        ps_store_u32(columns + PS_COLUMN_BYTES * i, cell->col);
        memcpy(reply->values + size * i, cell->value, size);
    }
}

psd_status_t ps_store_top(ps_store_t *self, const ps_slice_t *want, const ps_payload_t *rows,
                          uint64_t n, uint64_t max_values, ps_slice_t *ret_slice,
                          ps_payload_t **ret_payload, uint64_t *ret_done, psd_error_t *err)
{
    PSD_AUTO(ps_reply_done) ps_reply_t reply = {0};
    PSD_AUTO(top_done)
    top_t top = {
        .shape = &self->shape,
        .columns = ps_slice_columns(want, rows, self->shape.first_col),
        .n_cols = want->n_cols,
        .limit = n < PS_TOP_MAX ? (size_t)n : PS_TOP_MAX,
    };
    uint64_t n_done = 0;
    psd_status_t rc = PSD_OK;

    if (top.limit > 0) {
        rc = ps_store_visit(self, want, rows, max_values, take_row, &top, &n_done, err);
    } else {
        n_done = want->n_rows;
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (top.n > 0) {
        qsort(top.cells, top.n, sizeof *top.cells, compare);
    }
    reply.keys_size = top.n * PS_KEY_BYTES;
    reply.index_size = top.n * (PS_COUNT_BYTES + PS_COLUMN_BYTES);
    reply.values_size = top.n * self->shape.value_size;
    if (top.has_failed || !ps_reply_init(&reply, (ps_room_t){NULL, 0})) {
        return ps_reply_no_memory(want->n_rows, err);
    }
    write_reply(&top, &reply);
    *ret_slice = (ps_slice_t){.rows = PS_ROWS_LIST,
                              .layout = PS_LAYOUT_SPARSE,
                              .type = self->spec.type,
                              .n_rows = top.n,
                              .n_values = top.n};
    *ret_payload = reply.payload;
    reply.payload = NULL;
    *ret_done = n_done;
    return PSD_OK;
}
