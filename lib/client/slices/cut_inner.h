/* SPDX-License-Identifier: Apache-2.0 */
/* Private to ps_cut: the selected rows and columns of one partition. */
#ifndef PS_CLIENT_CUT_INNER_H
#define PS_CLIENT_CUT_INNER_H

#include "client/slices/cut.h"

/* The caller's rows that one row slice of the table holds. */
typedef struct ps_row_run {
    uint32_t row_slice;
    size_t first;          /* contiguous: of the caller's rows */
    size_t n;              /* > 0 */
    const uint32_t *order; /* borrowed: the caller's rows, when they are not
                              contiguous; else NULL */
} ps_row_run_t;

/* Not to be copied: mostly `one` is its only item. */
typedef struct ps_row_runs {
    ps_row_run_t *items; /* &one, or owned */
    size_t n;
    size_t capacity; /* of what is owned */
    ps_row_run_t one;
    uint32_t *order; /* owned; what runs borrow */
} ps_row_runs_t;

/* The selected columns that one column slice of the table holds. */
typedef struct ps_col_run {
    uint32_t col_slice;
    ps_cols_kind_t kind;
    uint32_t first_col; /* of the table; RANGE */
    uint32_t n_cols;    /* > 0 */
    size_t at;          /* the first of them in the caller's row */
    uint32_t *places;   /* owned: values of the caller's row, when they are not
                           contiguous; else NULL */
} ps_col_run_t;

PSD_MUST_CHECK psd_status_t ps_row_runs_make(const ps_table_spec_t *spec,
                                             const psd_select_t *select, ps_row_runs_t *ret_runs,
                                             psd_error_t *err);
void ps_row_runs_done(ps_row_runs_t *self);
/* n_cols is 0 when the slice has none of the columns. */
PSD_MUST_CHECK psd_status_t ps_col_run_make(const ps_table_spec_t *spec, const psd_select_t *select,
                                            uint32_t col_slice, ps_col_run_t *ret_run,
                                            psd_error_t *err);
void ps_col_run_done(ps_col_run_t *self);

/* The index of row i of a run among the caller's rows. */
static inline size_t ps_row_run_at(const ps_row_run_t *self, size_t i)
{
    return self->order == NULL ? self->first + i : self->order[i];
}

/* The keys of rows [from, from + n) of a run, written to `to`. */
void ps_cut_keys(const psd_select_t *select, const ps_row_run_t *run, size_t from, size_t n,
                 uint8_t *to);
/* The slices of sparse rows. */
PSD_MUST_CHECK psd_status_t ps_cut_sparse(const ps_cut_args_t *args, const ps_row_runs_t *runs,
                                          ps_cuts_t *cuts, psd_error_t *err);
/* The slices of one run of rows and one of columns. */
PSD_MUST_CHECK psd_status_t ps_cut_dense(const ps_cut_args_t *args, const ps_row_run_t *rows,
                                         const ps_col_run_t *cols, ps_cuts_t *cuts,
                                         psd_error_t *err);
#endif
