/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/train/values: parameters and deltas in memory
 *
 * It is       What a block wants and its values, rows kept for later blocks,
 *             sums of deltas, and one push made of the sums of all trainers.
 * It uses     lib/data/feed/key_sort.h and its threads, lib/model for types,
 *             lib/base.
 * It ignores  Clients, the threads of a training, and its options.
 * Start at    cache.h, sums.h, kept.h, binder.h.
 */
/*
 * ps_cache - the parameters of one block: first which ones, then their values
 *
 * What     A load call-back names tables, rows and elements. Each is stored
 *          once; a table includes its rows, a row its elements. ps_cache_seal
 *          makes room for their values, and pulls fill it in.
 * Shape    values of a whole table: row by row; of rows: in the order of their
 *          numbers; of elements: rows with the same columns lie together, as
 *          groups that one pull fetches.
 * Owner    ps_cache_init, ps_cache_done.
 * Threads  The loader's until it is full; then all trainers read it, and write
 *          to values as the lock option allows.
 */
#ifndef PS_TRAIN_CACHE_H
#define PS_TRAIN_CACHE_H

#include "train/values/row_set.h"
#include "train/values/shape.h"
#include "train/values/sums.h"

typedef struct ps_element {
    uint64_t row;
    uint32_t col;
} ps_element_t;

/* Rows that need the same columns. */
typedef struct ps_element_group {
    size_t first_row; /* number in element_rows */
    size_t n_rows;
    size_t first_value; /* in element_values, and of its cols in elements */
    uint32_t n_cols;
} ps_element_group_t;

typedef struct ps_cache_table {
    ps_shape_t shape;
    bool whole;
    ps_row_set_t rows;
    size_t n_missing;    /* rows that are pulled; the first of `rows` */
    void *values;        /* owned; of all rows, or of `rows` */
    size_t values_bytes; /* that there is room for */

    ps_element_t *elements; /* owned; as asked; sealed: by group, row, col */
    size_t n_elements;
    size_t elements_capacity;
    ps_row_set_t element_rows; /* sealed: in the order of the groups */
    size_t *element_starts;    /* owned; first element of each such row */
    size_t starts_capacity;
    ps_element_group_t *groups; /* owned */
    size_t n_groups;
    size_t groups_capacity;
    void *element_values; /* owned */
    size_t element_bytes;
} ps_cache_table_t;

typedef struct ps_cache {
    ps_cache_table_t *tables; /* owned */
    size_t n_tables;
    uint64_t n_rows_asked; /* of this block, each time */
    uint64_t n_cells_asked;
    uint64_t pull; /* ps_kept_pull */
} ps_cache_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_cache_init(ps_cache_t *self, const ps_shape_t *shapes,
                                          size_t n_tables, psd_error_t *err);
void ps_cache_done(ps_cache_t *self);
/* Empties it; keeps the memory. */
void ps_cache_clear(ps_cache_t *self);

/* Add a parameter, checked against the shape. Errors: those of psd_loader_…. */
PSD_MUST_CHECK psd_status_t ps_cache_want_all(ps_cache_t *self, uint32_t table, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_cache_want_rows(ps_cache_t *self, uint32_t table,
                                               const uint64_t *rows, size_t n_rows,
                                               psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_cache_want_element(ps_cache_t *self, uint32_t table, uint64_t row,
                                                  uint32_t col, psd_error_t *err);
/* Makes room for the values. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_cache_seal(ps_cache_t *self, psd_error_t *err);

/* Adds sums of a table of the same shape to the values that are here. */
void ps_cache_add(const ps_cache_table_t *self, const ps_sums_t *sums);

/* Where the values of a whole row lie; NULL: they are not here. */
void *ps_cache_row(const ps_cache_table_t *self, uint64_t row);
/* Where one value lies; NULL: it is not here. */
void *ps_cache_value(const ps_cache_table_t *self, uint64_t row, uint32_t col);
#endif
