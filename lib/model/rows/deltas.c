/* SPDX-License-Identifier: Apache-2.0 */
/* A slice as a sequence of rows. */
#include "model/rows/deltas.h"

#include <assert.h>

size_t ps_columns_neighbours(ps_columns_t self, size_t n)
{
    size_t i = 1;

    if (self.list == NULL) {
        return n;
    }
    while (i < n && ps_columns_at(self, i) == ps_columns_at(self, i - 1) + 1) {
        i++;
    }
    return i;
}

size_t ps_columns_ascending(ps_columns_t self, size_t n)
{
    size_t i = 1;

    if (self.list == NULL) {
        return n;
    }
    while (i < n && ps_columns_at(self, i) > ps_columns_at(self, i - 1)) {
        i++;
    }
    return i;
}

ps_columns_t ps_slice_columns(const ps_slice_t *slice, const ps_payload_t *payload,
                              uint32_t all_first)
{
    switch (slice->cols) {
    case PS_COLS_LIST:
        return (ps_columns_t){.list = payload->index.data};
    case PS_COLS_RANGE:
        return (ps_columns_t){.first = slice->first_col};
    case PS_COLS_ALL:
    default:
        return (ps_columns_t){.first = all_first};
    }
}

ps_deltas_t ps_deltas_over(const ps_slice_t *slice, const ps_payload_t *payload, uint32_t all_first)
{
    return (ps_deltas_t){
        .slice = slice,
        .payload = payload,
        .all_first = all_first,
        .value_size = ps_type_size(slice->type),
    };
}

/* Skips n values. */
static void skip(ps_deltas_t *self, uint64_t n)
{
    uint64_t bytes = n * self->value_size;

    while (bytes > 0) {
        size_t left = 0;

        assert(self->span < self->payload->n_spans);
        left = self->payload->spans[self->span].size - self->at;
        if (bytes < left) {
            self->at += bytes;
            return;
        }
        bytes -= left;
        self->span++;
        self->at = 0;
    }
}

/* SPARSE: the row's columns come after all counts and earlier columns. */
static void begin_sparse(ps_deltas_t *self)
{
    const uint8_t *counts = self->payload->index.data;
    const uint8_t *columns = counts + 4 * self->slice->n_rows;

    self->n_left = ps_load_u32(counts + 4 * self->n_rows);
    self->columns.list = columns + 4 * self->n_entries;
    self->n_entries += self->n_left;
}

bool ps_deltas_next(ps_deltas_t *self)
{
    skip(self, self->n_left);
    self->n_left = 0;
    if (self->n_rows == self->slice->n_rows) {
        return false;
    }
    self->row = ps_slice_row(self->slice, self->payload, self->n_rows);
    if (self->slice->layout == PS_LAYOUT_SPARSE) {
        begin_sparse(self);
    } else {
        self->n_left = self->slice->n_cols;
        self->columns = ps_slice_columns(self->slice, self->payload, self->all_first);
    }
    self->n_rows++;
    return true;
}

size_t ps_deltas_take(ps_deltas_t *self, ps_columns_t *ret_columns, const uint8_t **ret_values)
{
    const ps_bytes_t *span = NULL;
    size_t n = 0;

    if (self->n_left == 0) {
        return 0;
    }
    assert(self->span < self->payload->n_spans);
    span = &self->payload->spans[self->span];
    while (self->at == span->size) {
        self->span++;
        self->at = 0;
        assert(self->span < self->payload->n_spans);
        span = &self->payload->spans[self->span];
    }
    n = (span->size - self->at) / self->value_size;
    n = n < self->n_left ? n : (size_t)self->n_left;
    assert(n > 0);
    *ret_columns = self->columns;
    *ret_values = span->data + self->at;
    self->columns = ps_columns_from(self->columns, n);
    self->n_left -= n;
    self->at += n * self->value_size;
    return n;
}
