/* SPDX-License-Identifier: Apache-2.0 */
/* A call becomes slices: runs of rows by runs of columns. */
#include "client/slices/cut.h"

#include "base/alloc.h"
#include "client/slices/cut_inner.h"

static psd_status_t cut_col_slice(const ps_cut_args_t *args, const ps_row_runs_t *rows,
                                  uint32_t col_slice, ps_cuts_t *cuts, psd_error_t *err)
{
    PSD_AUTO(ps_col_run_done) ps_col_run_t cols = {.n_cols = 0};
    psd_status_t rc = ps_col_run_make(args->spec, args->select, col_slice, &cols, err);

    if (rc != PSD_OK || cols.n_cols == 0) {
        return rc;
    }
    for (size_t i = 0; rc == PSD_OK && i < rows->n; i++) {
        rc = ps_cut_dense(args, &rows->items[i], &cols, cuts, err);
    }
    return rc;
}

static psd_status_t cut_large(const ps_cut_args_t *args, ps_cuts_t *cuts, psd_error_t *err)
{
    PSD_AUTO(ps_row_runs_done) ps_row_runs_t runs = {.n = 0};
    psd_status_t rc = ps_row_runs_make(args->spec, args->select, &runs, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (args->select->counts != NULL) {
        return ps_cut_sparse(args, &runs, cuts, err);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < args->spec->n_col_slices; i++) {
        rc = cut_col_slice(args, &runs, i, cuts, err);
    }
    return rc;
}

psd_status_t ps_cut(const ps_cut_args_t *args, ps_cuts_t *cuts, psd_error_t *err)
{
    if (args->select->n_rows == 0) {
        return PSD_OK;
    }
    return ps_cut_is_small(args) ? ps_cut_small(args, cuts, err) : cut_large(args, cuts, err);
}
