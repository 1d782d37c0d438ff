/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_sparse_row - column -> value and state, as arrays sorted by column
 *
 * What     One block per row. Pushes come in two steps: `add` makes an entry
 *          for every column that a delta will need, and may fail; `apply` then
 *          cannot. Between the two, a row is *pending* and keeps its zero
 *          entries; afterwards they are dropped.
 * Shape    header, capacity values, capacity of each state, capacity columns
 * Units    columns are the table's
 */
#ifndef PS_MODEL_SPARSE_ROW_H
#define PS_MODEL_SPARSE_ROW_H

#include "model/rows/deltas.h"
#include "model/rows/row_shape.h"

typedef struct ps_sparse_row {
    uint32_t n;         /* entries */
    uint32_t capacity;  /* room for entries */
    uint32_t n_pending; /* pushes with room reserved, not applied yet */
    uint32_t n_zeros;   /* entries whose value and state are all zero */
    uint8_t data[];     /* see Shape */
} ps_sparse_row_t;

/* Bytes of a row with room for `capacity` entries. */
size_t ps_sparse_row_bytes(const ps_row_shape_t *shape, uint32_t capacity);
/* A copy of `old` (NULL: an empty row) with room for `capacity` entries, at
 * least old->n; the caller frees both. NULL: no memory. */
PSD_MUST_CHECK ps_sparse_row_t *ps_sparse_row_new(const ps_row_shape_t *shape,
                                                  const ps_sparse_row_t *old, uint32_t capacity);

/* Shrinks the row to room for `capacity` entries, at least its n. Its block may
 * move.
 */
void ps_sparse_row_shrink(ps_sparse_row_t **self_p, const ps_row_shape_t *shape, uint32_t capacity);

/* The number of deltas, of n, that are not zero and whose columns have no
 * entry. The columns ascend strictly. */
uint32_t ps_sparse_row_missing(const ps_sparse_row_t *self, const ps_row_shape_t *shape,
                               ps_columns_t columns, const uint8_t *deltas, size_t n);
/* Adds zero entries for these `missing` columns; the row must have room for
 * them. */
void ps_sparse_row_add(ps_sparse_row_t *self, const ps_row_shape_t *shape, ps_columns_t columns,
                       const uint8_t *deltas, size_t n, uint32_t missing);
/* Runs the updater over n deltas, any order of columns. Columns without an
 * entry have a delta of zero, which no updater turns into another value. */
void ps_sparse_row_apply(ps_sparse_row_t *self, const ps_row_shape_t *shape, ps_columns_t columns,
                         const uint8_t *deltas, size_t n);
/* Drops entries whose value and state are all zero. */
void ps_sparse_row_drop_zeros(ps_sparse_row_t *self, const ps_row_shape_t *shape);

/* The entries of a row, columns ascending; the values may be changed. */
typedef struct ps_sparse_view {
    const uint32_t *columns;
    uint8_t *values;
    uint32_t n;
} ps_sparse_view_t;
ps_sparse_view_t ps_sparse_row_view(ps_sparse_row_t *self, const ps_row_shape_t *shape);
/* The first entry whose column is `col` or greater; view->n at the end. */
uint32_t ps_sparse_view_seek(const ps_sparse_view_t *self, uint32_t col);
/* Counts the zero entries after values were changed through a view. */
void ps_sparse_row_recount(ps_sparse_row_t *self, const ps_row_shape_t *shape);

/* Writes the values of n columns, zero where there is no entry. */
void ps_sparse_row_read(const ps_sparse_row_t *self, const ps_row_shape_t *shape,
                        ps_columns_t columns, size_t n, uint8_t *ret_values);
/* Writes the entries into a dense row whose values and state are zero. */
void ps_sparse_row_spread(const ps_sparse_row_t *self, const ps_row_shape_t *shape,
                          const ps_dense_row_t *row);
/* Bytes of n packed entries: n values, n of each state, n columns. */
size_t ps_sparse_row_packed(const ps_row_shape_t *shape, uint32_t n);
/* Packs all entries, ps_sparse_row_packed bytes; returns the end. */
uint8_t *ps_sparse_row_pack(const ps_sparse_row_t *self, const ps_row_shape_t *shape, uint8_t *to);
/* Unpacks n entries of ps_sparse_row_packed bytes into an empty row that has
 * room for them. false: columns do not ascend or are not the partition's, or an
 * entry is all zero; the caller then frees the row. */
PSD_MUST_CHECK bool ps_sparse_row_unpack(ps_sparse_row_t *self, const ps_row_shape_t *shape,
                                         const uint8_t *from, uint32_t n);
/* Returns the number of entries whose value is not zero; writes their columns
 * and values when ret_columns is not NULL. */
uint32_t ps_sparse_row_entries(const ps_sparse_row_t *self, const ps_row_shape_t *shape,
                               uint8_t *ret_columns, uint8_t *ret_values);
#endif
