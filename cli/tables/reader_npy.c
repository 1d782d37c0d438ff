/* SPDX-License-Identifier: Apache-2.0 */
/* npy files. */
#include "cli/tables/reader_part.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/output/json_text.h"
#include "cli/tables/npy.h"

static psd_status_t read_head(ps_reader_t *self, psd_error_t *err)
{
    const ps_view_t *view = self->view;
    ps_type_t type = PS_TYPE_F32;
    uint64_t rows = 0;
    uint64_t cols = 0;
    psd_status_t rc = ps_npy_read_head(self->file, self->path, &type, &rows, &cols, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (type != view->type) {
        return psd_error_set(err, PSD_TYPE, "%s holds %s; table \"%s\" has %s", self->path,
                             ps_type_name(type), view->name, ps_type_name(view->type));
    }
    if (rows != view->rows || cols != view->cols) {
        return psd_error_set(err, PSD_SHAPE,
                             "%s has shape (%" PRIu64 ", %" PRIu64 "); table \"%s\" has (%" PRIu64
                             ", %" PRIu32 ")",
                             self->path, rows, cols, view->name, view->rows, view->cols);
    }
    return PSD_OK;
}

static psd_status_t check_finite(const ps_reader_t *self, uint64_t row, uint32_t first_col,
                                 psd_error_t *err)
{
    const ps_view_t *view = self->view;

    for (size_t i = 0; i < self->cells.n && !view->allow_nonfinite; i++) {
        if (!ps_value_is_finite(view->type, self->cells.values + i * view->value_size)) {
            return psd_error_set(err, PSD_NOT_FINITE,
                                 "%s: row %" PRIu64 " column %" PRIu64
                                 " is not finite, which table \"%s\" does not allow",
                                 self->path, row, first_col + (uint64_t)i, view->name);
        }
    }
    return PSD_OK;
}

static psd_status_t read_row(ps_reader_t *self, uint64_t row, psd_error_t *err)
{
    const ps_view_t *view = self->view;

    for (uint64_t col = 0; col < view->cols; col += PS_PIECE_VALUES) {
        uint64_t left = view->cols - col;
        size_t n = (size_t)(left < PS_PIECE_VALUES ? left : PS_PIECE_VALUES);
        psd_status_t rc = PSD_OK;

        self->cells.n = n;
        if (fread(self->cells.values, view->value_size, n, self->file) != n) {
            return psd_error_set(err, PSD_INVALID, "%s ends in row %" PRIu64 " of %" PRIu64,
                                 self->path, row, view->rows);
        }
        ps_progress_add(self->progress, n * view->value_size);
        rc = check_finite(self, row, (uint32_t)col, err);
        if (rc == PSD_OK) {
            rc = ps_cells_flush(&self->cells, row, (uint32_t)col, false, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
    }
    self->cells.n_rows++;
    return PSD_OK;
}

psd_status_t ps_reader_npy(ps_reader_t *self, psd_error_t *err)
{
    psd_status_t rc = read_head(self, err);

    for (uint64_t row = 0; rc == PSD_OK && row < self->view->rows; row++) {
        rc = read_row(self, row, err);
    }
    if (rc == PSD_OK && getc_unlocked(self->file) != EOF) {
        return psd_error_set(err, PSD_INVALID, "%s has data after its last row, %" PRIu64,
                             self->path, self->view->last_row);
    }
    return rc;
}
