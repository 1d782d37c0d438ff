/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of rows: their heads, and which layout they are of. */
#include "model/store/store_copy.h"

#include <inttypes.h>

#include "model/rows/rows_copy.h"
#include "model/store/store_impl.h"

enum { LAYOUT_ARRAY = 1, LAYOUT_DENSE = 2, LAYOUT_MIXED = 3 };

static uint64_t layout_of(const ps_store_t *self)
{
    if (self->is_array) {
        return LAYOUT_ARRAY;
    }
    return ps_rows_are_mixed(&self->indexed) ? LAYOUT_MIXED : LAYOUT_DENSE;
}

/* The number of rows to hand out now. */
static uint64_t n_places(const ps_store_t *self)
{
    return self->is_array ? self->array.n_rows : self->indexed.rows.n;
}

psd_status_t ps_store_hand_out(const ps_store_t *self, ps_store_cursor_t *cursor, size_t max_bytes,
                               ps_payload_t **ret_piece, bool *ret_done, psd_error_t *err)
{
    uint64_t n = 0;
    uint8_t head[PS_PIECE_HEAD];
    ps_payload_t *piece = self->is_array
                              ? ps_array_rows_give(&self->array, cursor->next, max_bytes, &n)
                              : ps_indexed_rows_give(&self->indexed, cursor->next, max_bytes, &n);

    if (piece == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a piece of rows");
    }
    ps_store_u64(head, layout_of(self));
    ps_store_u64(head + 8, cursor->next);
    ps_store_u64(head + 16, n);
    ps_store_u64(head + 24, n_places(self) - cursor->next - n);
    memcpy((uint8_t *)(piece + 1), head, sizeof head); /* its own block */
    cursor->next += n;
    *ret_piece = piece;
    *ret_done = cursor->next == n_places(self);
    return PSD_OK;
}

uint64_t ps_store_n_taken(const ps_store_t *self)
{
    return self->is_array ? self->n_taken : self->indexed.rows.n;
}

bool ps_store_place_of(const ps_store_t *self, uint64_t row, uint64_t *ret_place)
{
    uint64_t place = row - self->array.first_row; /* wraps for rows before it */

    if (!self->is_array || place >= self->array.n_rows) {
        return false;
    }
    *ret_place = place;
    return true;
}

static psd_status_t check_head(const ps_store_t *self, uint64_t layout, uint64_t first, uint64_t n,
                               uint64_t left, psd_error_t *err)
{
    uint64_t here = ps_store_n_taken(self);
    uint64_t most = self->is_array ? self->array.n_rows : PS_SLAB_MAX;

    if (layout != layout_of(self)) {
        return psd_error_set(err, PSD_PROTO,
                             "a piece of rows has layout %" PRIu64 "; this partition's is %" PRIu64,
                             layout, layout_of(self));
    }
    if (first != here) {
        return psd_error_set(err, PSD_PROTO,
                             "a piece begins at row %" PRIu64 "; the next one here is %" PRIu64,
                             first, here);
    }
    if (n > most - here || left > most - here - n) {
        return psd_error_set(err, PSD_PROTO,
                             "a piece has %" PRIu64 " rows, and %" PRIu64
                             " are left; allowed: at most %" PRIu64,
                             n, left, most - here);
    }
    return PSD_OK;
}

psd_status_t ps_store_take_in(ps_store_t *self, ps_bytes_t piece, psd_error_t *err)
{
    ps_cursor_t cursor = ps_cursor_over(piece);
    uint64_t layout = ps_cursor_u64(&cursor);
    uint64_t first = ps_cursor_u64(&cursor);
    uint64_t n = ps_cursor_u64(&cursor);
    uint64_t left = ps_cursor_u64(&cursor);
    psd_status_t rc = PSD_OK;

    if (cursor.failed) {
        return psd_error_set(err, PSD_PROTO, "a piece of rows has %zu bytes; its head takes %d",
                             piece.size, PS_PIECE_HEAD);
    }
    rc = check_head(self, layout, first, n, left, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (!self->is_array) {
        return ps_indexed_rows_take(&self->indexed, &self->extent, n, left, cursor.rest, err);
    }
    rc = ps_array_rows_take(&self->array, first, n, cursor.rest, err);
    if (rc == PSD_OK) {
        self->n_taken += n;
    }
    return rc;
}

uint64_t ps_store_piece_growth(const ps_store_t *self, size_t bytes)
{
    return self->is_array ? 0 : bytes;
}

bool ps_store_piece_is_last(ps_bytes_t piece)
{
    return piece.size >= PS_PIECE_HEAD && ps_load_u64(piece.data + 24) == 0;
}

void ps_store_set_partial(ps_store_t *self, bool is_partial)
{
    self->is_partial = is_partial;
}

bool ps_store_is_partial(const ps_store_t *self)
{
    return self->is_partial;
}
