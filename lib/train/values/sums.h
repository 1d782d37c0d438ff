/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_sums - deltas of one table, summed up by cell
 *
 * What     The sums of one trainer, or of all trainers. Cells are stored in
 *          slots of up to 64 adjacent cells of a row, with a bit for each cell
 *          that was added to. A small table has slots for all of its cells; for
 *          a large one slots are made when they are first touched, and found
 *          by hash.
 * Owner    ps_sums_init, ps_sums_done.
 * Threads  Confined to one at a time; there are no locks.
 */
#ifndef PS_TRAIN_SUMS_H
#define PS_TRAIN_SUMS_H

#include "train/values/shape.h"

#define PS_SUMS_WIDTH_MAX 64 /* cells of a slot; a bit each */

typedef struct ps_sums {
    ps_shape_t shape;
    uint32_t width;     /* cells of a slot, 1 .. 64 */
    uint64_t n_chunks;  /* slots of a row */
    bool direct;        /* slot = row * n_chunks + chunk */
    ps_number_t *cells; /* owned; width of each slot */
    uint64_t *masks;    /* owned; of each slot: which cells were touched */
    uint64_t *rows;     /* owned; of each slot, unless direct */
    uint32_t *chunks;   /* owned; the same */
    size_t capacity;    /* slots that there is room for */
    uint32_t *touched;  /* owned; slots in the order of their first touch: 0, 1,
                           2 …, unless direct */
    size_t n_touched;
    uint32_t *table; /* owned; slot + 1 by hash, unless direct */
    size_t n_table;  /* 0 or a power of two */
} ps_sums_t;

/* The deltas of one push: rows in ascending order, each once. */
typedef struct ps_sheaf {
    uint64_t *rows;   /* owned; n_rows */
    uint32_t *counts; /* owned; entries of each row */
    uint32_t *cols;   /* owned; of each entry, ascending in a row */
    void *values;     /* owned; of the table's type */
    size_t n_rows;
    size_t n_values;
    bool whole; /* all rows have all columns: cols says nothing */
} ps_sheaf_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_sums_init(ps_sums_t *self, const ps_shape_t *shape,
                                         psd_error_t *err);
void ps_sums_done(ps_sums_t *self);
/* Makes everything 0 and untouched again; keeps the memory. */
void ps_sums_clear(ps_sums_t *self);
/* The slot of a row's chunk, which may be made; false: no memory. Not of
 * direct ones. */
PSD_MUST_CHECK bool ps_sums_find_slot(ps_sums_t *self, uint64_t row, uint32_t chunk,
                                      size_t *ret_slot);

/* The slot of a row's chunk, if something in it was touched. */
bool ps_sums_look(const ps_sums_t *self, uint64_t row, uint32_t chunk, size_t *ret_slot);

/* The sums of adjacent cells of a row from `col` on, at most *n_p >= 1; *n_p
 * becomes their number. They count as touched from now on. Row and columns are
 * within the table. NULL: no memory. Valid until the next call. */
static inline ps_number_t *ps_sums_run(ps_sums_t *self, uint64_t row, uint32_t col, uint32_t *n_p)
{
    uint32_t chunk = self->n_chunks == 1 ? 0 : col / self->width;
    uint32_t in_slot = col - chunk * self->width;
    uint32_t n = self->width - in_slot;
    size_t slot = 0;

    if (self->direct) {
        slot = (size_t)(row * self->n_chunks + chunk);
    } else if (!ps_sums_find_slot(self, row, chunk, &slot)) {
        return NULL;
    }
    if (self->masks[slot] == 0) {
        self->touched[self->n_touched++] = (uint32_t)slot;
    }
    n = *n_p < n ? *n_p : n;
    self->masks[slot] |= UINT64_MAX >> (PS_SUMS_WIDTH_MAX - n) << in_slot;
    *n_p = n;
    return &self->cells[slot * self->width + in_slot];
}

/* The same of one cell. */
static inline ps_number_t *ps_sums_at(ps_sums_t *self, uint64_t row, uint32_t col)
{
    uint32_t n = 1;

    return ps_sums_run(self, row, col, &n);
}

/* Adds n values of the table's type to a row's cells from `col` on. False: no
 * memory; some may have been added. */
PSD_MUST_CHECK bool ps_sums_add(ps_sums_t *self, uint64_t row, uint32_t col, const void *values,
                                uint32_t n);
/* Adds the cells of one slot to those from `to` on. */
void ps_sums_add_slot(const ps_sums_t *self, size_t slot, bool is_float, ps_number_t *to);
/* Adds the sums of another one of the same shape. Errors: PSD_NOMEM: some of
 * them were added. */
PSD_MUST_CHECK psd_status_t ps_sums_merge(ps_sums_t *self, const ps_sums_t *other,
                                          psd_error_t *err);
/* Adds the sums of rows with row % n_parts == part to one, those of other rows
 * to another; both of the same shape. Errors: as ps_sums_merge. */
PSD_MUST_CHECK psd_status_t ps_sums_split(const ps_sums_t *self, uint64_t n_parts, uint64_t part,
                                          ps_sums_t *to, ps_sums_t *others, psd_error_t *err);
/* Makes a sheaf of all touched cells, rounded to the table's type. Errors:
 * PSD_RANGE the type cannot hold a sum; PSD_NOT_FINITE; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_sums_bind(const ps_sums_t *self, ps_sheaf_t *ret_sheaf,
                                         psd_error_t *err);
/* Each value becomes its negative; integers wrap around. */
void ps_sheaf_negate(ps_sheaf_t *self, ps_type_t type);
void ps_sheaf_done(ps_sheaf_t *self);
#endif
