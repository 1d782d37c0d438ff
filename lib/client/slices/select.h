/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_select - the rows and columns of a call, checked
 *
 * What     The selection as the caller made it. ps_select_check checks it
 *          against a table; all later code trusts it.
 * Owner    Arrays are the caller's.
 */
#ifndef PS_CLIENT_SELECT_H
#define PS_CLIENT_SELECT_H

#include "model/tables/table.h"
#include "psd/rows.h"

typedef enum ps_select_rows {
    PS_SELECT_LIST = 0, /* rows[n_rows] */
    PS_SELECT_RANGE = 1 /* first_row and the next n_rows - 1 rows */
} ps_select_rows_t;

struct psd_select {
    ps_select_rows_t rows_are;
    bool all_rows;        /* RANGE over the whole table; its end is not known yet */
    const uint64_t *rows; /* borrowed */
    size_t n_rows;
    uint64_t first_row;
    ps_cols_kind_t cols_are;
    const uint32_t *cols; /* borrowed; LIST */
    size_t n_cols;        /* LIST, RANGE */
    uint32_t first_col;
    const uint32_t *counts; /* borrowed; not NULL: sparse */
    const uint32_t *sparse_cols;
    const uint32_t *lengths; /* borrowed; not NULL: leading columns of rows */
};

/* Row i of the selection; i < n_rows. */
static inline uint64_t ps_select_row(const psd_select_t *self, size_t i)
{
    return self->rows_are == PS_SELECT_LIST ? self->rows[i] : self->first_row + i;
}

/* The number of columns of a row of the selection; dense. */
size_t ps_select_width(const psd_select_t *self, const ps_table_spec_t *spec);

/*
 * Converts lengths to sparse rows; a selection without lengths does not change.
 *
 * ret_cols  out  the columns that the selection then borrows; the caller frees
 *                them
 * Errors: PSD_RANGE a length exceeds the table's columns; PSD_SHAPE the lengths
 * do not add up to n_values; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_select_spell(psd_select_t *self, const ps_table_spec_t *spec,
                                            size_t n_values, uint32_t **ret_cols, psd_error_t *err);
/*
 * Checks a selection against a table and makes it plain: "all rows" of a range
 * table become a range.
 *
 * Errors: PSD_RANGE a row or column that does not exist; PSD_SHAPE n_values
 * does not fit the selection; PSD_INVALID an array is missing, all rows of a
 * hash table (only psd_fetch can), a choice of columns for sparse rows.
 */
PSD_MUST_CHECK psd_status_t ps_select_check(const psd_select_t *self, const ps_table_spec_t *spec,
                                            size_t n_values, psd_select_t *ret_plain,
                                            psd_error_t *err);
/* Checks rows and columns only, for psd_fetch; all rows of a hash table pass
 * and stay all_rows. Errors: as above, without PSD_SHAPE. */
PSD_MUST_CHECK psd_status_t ps_select_check_places(const psd_select_t *self,
                                                   const ps_table_spec_t *spec,
                                                   psd_select_t *ret_plain, psd_error_t *err);
#endif
