/* SPDX-License-Identifier: Apache-2.0 */
/* A call becomes slices: runs of rows by runs of columns. A few whole rows of
 * one partition take a path of their own, for a million calls a second. */
#include "client/slices/cut.h"

#include <string.h>

#include "base/alloc.h"
#include "client/slices/cut_inner.h"
#include "model/tables/partition.h"

#define SMALL_BYTES 1024 /* of keys and values */

/* ---- the list of slices, and the keys of one ---- */

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

/* ---- a few whole rows in one partition ---- */

/* The result of cut_small is the same as that of ps_cut_dense. */
static bool is_small(const ps_cut_args_t *args)
{
    const ps_table_spec_t *spec = args->spec;
    const psd_select_t *select = args->select;
    size_t row = sizeof(uint64_t) + spec->n_cols * ps_type_size(spec->type);

    return select->rows_are == PS_SELECT_LIST && select->counts == NULL &&
           select->cols_are == PS_COLS_ALL && spec->n_col_slices == 1 &&
           (select->n_rows == 1 || spec->n_partitions == 1) &&
           select->n_rows <= SMALL_BYTES / row && !args->sparse_answer &&
           select->n_rows * row <= args->limit_bytes;
}

static psd_status_t cut_small(const ps_cut_args_t *args, ps_cuts_t *cuts, psd_error_t *err)
{
    const ps_table_spec_t *spec = args->spec;
    const psd_select_t *select = args->select;
    size_t n_values = args->values == NULL ? 0 : select->n_rows * (size_t)spec->n_cols;
    size_t keys_size = select->n_rows * sizeof(uint64_t);
    size_t values_size = n_values * ps_type_size(spec->type);
    ps_cut_t *cut = ps_cuts_add(cuts);
    uint8_t *bytes = NULL;

    if (cut != NULL) {
        cut->payload = ps_payload_room(keys_size, 0, values_size, &bytes);
    }
    if (cut == NULL || cut->payload == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a slice");
    }
    memcpy(bytes, select->rows, keys_size);
    if (values_size > 0) {
        memcpy(bytes + keys_size, args->values, values_size);
    }
    if (spec->n_partitions > 1) {
        cut->partition = ps_row_slice_of(spec, select->rows[0]);
    }
    cut->slice = (ps_slice_t){.rows = PS_ROWS_LIST,
                              .layout = PS_LAYOUT_DENSE,
                              .cols = PS_COLS_ALL,
                              .type = spec->type,
                              .n_rows = select->n_rows,
                              .n_cols = spec->n_cols,
                              .n_values = n_values};
    cut->places.row_width = spec->n_cols;
    return PSD_OK;
}

/* ---- any other call ---- */

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
    return is_small(args) ? cut_small(args, cuts, err) : cut_large(args, cuts, err);
}
