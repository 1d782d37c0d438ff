/* SPDX-License-Identifier: Apache-2.0 */
/* Which reader a file has. */
#include "cli/tables/reader_part.h"

#include <errno.h>
#include <string.h>

void ps_reader_done(ps_reader_t *self)
{
    ps_cells_done(&self->cells);
}

static psd_status_t read_source(ps_reader_t *self, void *ret_bytes, size_t size, size_t *ret_size,
                                psd_error_t *err)
{
    psd_status_t rc = ps_source_read(self->source, ret_bytes, size, ret_size, err);
    uint64_t taken = ps_source_taken(self->source);

    ps_progress_add(self->progress, taken - self->taken);
    self->taken = taken;
    return rc;
}

static psd_status_t read_file(void *from, void *ret_bytes, size_t size, size_t *ret_size,
                              psd_error_t *err)
{
    ps_reader_t *self = from;

    if (self->source != NULL) {
        return read_source(self, ret_bytes, size, ret_size, err);
    }
    *ret_size = fread(ret_bytes, 1, size, self->file);
    ps_progress_add(self->progress, *ret_size);
    return !ferror(self->file)
               ? PSD_OK
               : psd_error_set(err, PSD_IO, "%s cannot be read: %s", self->path, strerror(errno));
}

psd_status_t ps_reader_read(ps_reader_t *self, ps_file_format_t format, psd_error_t *err)
{
    const ps_view_t *view = self->view;
    psd_status_t rc = PSD_OK;

    self->cells = (ps_cells_t){.path = self->path,
                               .name = view->name,
                               .type = view->type,
                               .last_row = view->last_row,
                               .n_cols = view->cols,
                               .allow_nonfinite = view->allow_nonfinite,
                               .read = read_file,
                               .from = self,
                               .take = self->take,
                               .arg = self->arg};
    rc = ps_cells_init(&self->cells, err);
    if (rc != PSD_OK) {
        return rc;
    }
    switch (format) {
    case PS_FILE_NPY:
        return ps_reader_npy(self, err);
    case PS_FILE_CSV:
        return ps_reader_csv(&self->cells, err);
    case PS_FILE_TEXT:
    default:
        return ps_cells_text(&self->cells, err);
    }
}
