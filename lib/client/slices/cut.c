/* SPDX-License-Identifier: Apache-2.0 */
/* A call becomes slices: runs of rows by runs of columns. */
#include "client/slices/cut.h"

#include <string.h>

#include "base/alloc.h"
#include "client/slices/cut_inner.h"

/* Makes room for one more in memory of the list's own. */
static bool grow(ps_cuts_t *self)
{
    ps_cut_t *items = self->items == &self->one ? NULL : self->items;

    if (!ps_grow(&items, &self->capacity, self->n + 1, sizeof *items)) {
        return false;
    }
    if (self->items == &self->one) {
        items[0] = self->one;
    }
    self->items = items;
    return true;
}

ps_cut_t *ps_cuts_add(ps_cuts_t *self)
{
    ps_cut_t *cut = NULL;

    if (self->n == 0 && self->items == NULL) {
        self->items = &self->one;
    } else if (!grow(self)) {
        return NULL;
    }
    cut = &self->items[self->n++];
    *cut = (ps_cut_t){.partition = 0};
    return cut;
}

void ps_cut_keys(const psd_select_t *select, const ps_row_run_t *run, size_t from, size_t n,
                 uint8_t *to)
{
    if (select->rows_are == PS_SELECT_LIST && run->order == NULL) {
        memcpy(to, select->rows + run->first + from, n * sizeof(uint64_t));
        return;
    }
    if (select->rows_are == PS_SELECT_LIST) {
        for (size_t i = 0; i < n; i++) {
            memcpy(to + i * sizeof(uint64_t), &select->rows[run->order[from + i]],
                   sizeof(uint64_t));
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t key = ps_select_row(select, ps_row_run_at(run, from + i));

        memcpy(to + i * sizeof key, &key, sizeof key);
    }
}

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

void ps_cuts_done(ps_cuts_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_payload_destroy(&self->items[i].payload);
        ps_places_done(&self->items[i].places);
    }
    if (self->items != &self->one) {
        ps_free(self->items);
    }
    *self = (ps_cuts_t){.n = 0};
}
