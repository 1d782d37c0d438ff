/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_deltas - walks a slice row by row, whatever its layout
 *
 * What     For every row: its key, its columns, and its values in pieces. Each
 *          piece lies in one span, so a row that crosses spans comes in several
 *          pieces.
 * Owner    Borrows slice and payload.
 */
#ifndef PS_MODEL_DELTAS_H
#define PS_MODEL_DELTAS_H

#include "base/cursor.h"
#include "base/slice.h"

/* Columns by list (u32, wire bytes) or, when list is NULL, first, first + 1 …
 */
typedef struct ps_columns {
    const uint8_t *list;
    uint32_t first;
} ps_columns_t;

static inline uint32_t ps_columns_at(ps_columns_t self, size_t i)
{
    return self.list != NULL ? ps_load_u32(self.list + 4 * i) : self.first + (uint32_t)i;
}

/* The columns from the i-th on. */
static inline ps_columns_t ps_columns_from(ps_columns_t self, size_t i)
{
    if (self.list != NULL) {
        self.list += 4 * i;
    } else {
        self.first += (uint32_t)i;
    }
    return self;
}

/* The number of leading columns, of n, that are neighbours: c, c + 1, c + 2 …;
 * n > 0. */
size_t ps_columns_neighbours(ps_columns_t self, size_t n);
/* The number of leading columns, of n, that ascend strictly; n > 0. */
size_t ps_columns_ascending(ps_columns_t self, size_t n);

typedef struct ps_deltas {
    const ps_slice_t *slice;
    const ps_payload_t *payload;
    uint32_t all_first;   /* the partition's first column */
    uint64_t row;         /* key of the current row */
    ps_columns_t columns; /* of its values that are not taken yet */
    uint64_t n_left;      /* its values that are not taken yet */
    uint64_t n_rows;      /* rows begun */
    uint64_t n_entries;   /* SPARSE: entries of the rows begun */
    size_t value_size;
    size_t span; /* where the next value lies */
    size_t at;   /* bytes into that span */
} ps_deltas_t;

/* all_first: the partition's first column, the first of cols ALL. */
ps_deltas_t ps_deltas_over(const ps_slice_t *slice, const ps_payload_t *payload,
                           uint32_t all_first);
/* Goes to the next row and skips the rest of this one; false at the end. */
bool ps_deltas_next(ps_deltas_t *self);
/* Takes the row's next contiguous values. Returns their number, 0 when the row
 * is done. *ret_columns are their columns. */
size_t ps_deltas_take(ps_deltas_t *self, ps_columns_t *ret_columns, const uint8_t **ret_values);

/* True when every row of a checked slice carries all `width` columns of the
 * partition, in order. */
static inline bool ps_slice_is_whole(const ps_slice_t *slice, uint32_t width)
{
    return slice->layout == PS_LAYOUT_DENSE && slice->cols != PS_COLS_LIST &&
           slice->n_cols == width;
}

/* Columns that a DENSE slice selects. all_first: the partition's first. */
ps_columns_t ps_slice_columns(const ps_slice_t *slice, const ps_payload_t *payload,
                              uint32_t all_first);
#endif
