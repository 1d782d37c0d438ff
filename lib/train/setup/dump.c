/* SPDX-License-Identifier: Apache-2.0 */
/* A table as text, a line for each row: "row col:value col:value ...". */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/value_text.h"
#include "client/requests/scan.h"
#include "client/requests/table.h"
#include "data/streams/file_out.h"
#include "train/setup/setup.h"

#define TEXT_BYTES 65536
#define WORD_BYTES (PS_NUMBER_SIZE + 24) /* a row's number; or " col:value" */

typedef struct dump {
    ps_type_t type;      /* of every value */
    size_t value_size;   /* bytes */
    bool sparse;         /* only what is not 0, and no empty rows */
    uint64_t row;        /* that is written */
    size_t n_in_row;     /* values of it so far */
    ps_file_out_t *file; /* owned */
    char *text;          /* owned; TEXT_BYTES */
    size_t n_text;
} dump_t;

static void dump_done(dump_t *self)
{
    ps_file_out_close(&self->file);
    ps_free(self->text);
}

/* ---- lines --------------------------------------------------------------- */

static psd_status_t flush_text(dump_t *self, psd_error_t *err)
{
    size_t n = self->n_text;

    self->n_text = 0;
    return n == 0 ? PSD_OK : ps_file_out_write(self->file, self->text, n, err);
}

static psd_status_t make_room(dump_t *self, psd_error_t *err)
{
    return TEXT_BYTES - self->n_text < WORD_BYTES ? flush_text(self, err) : PSD_OK;
}

static psd_status_t begin_line(dump_t *self, psd_error_t *err)
{
    psd_status_t rc = make_room(self, err);

    self->n_text += (size_t)snprintf(self->text + self->n_text, WORD_BYTES, "%" PRIu64, self->row);
    return rc;
}

/* Values of the columns in cols, or of those after the row's last one. */
static psd_status_t add_values(dump_t *self, const uint32_t *cols, const char *values, size_t n,
                               psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        uint32_t col = cols != NULL ? cols[i] : (uint32_t)(self->n_in_row + i);
        char number[PS_NUMBER_SIZE];

        ps_value_format(self->type, values + i * self->value_size, number);
        rc = make_room(self, err);
        self->n_text +=
            (size_t)snprintf(self->text + self->n_text, WORD_BYTES, " %" PRIu32 ":%s", col, number);
    }
    return rc;
}

static psd_status_t end_line(dump_t *self, psd_error_t *err)
{
    psd_status_t rc = make_room(self, err);

    self->text[self->n_text++] = '\n';
    return rc;
}

/* ---- rows ---------------------------------------------------------------- */

static psd_status_t take_row(void *arg, uint64_t row, psd_error_t *err)
{
    dump_t *self = arg;

    self->row = row;
    self->n_in_row = 0;
    return self->sparse ? PSD_OK : begin_line(self, err);
}

static psd_status_t take_values(void *arg, const uint32_t *cols, const void *values, size_t n,
                                psd_error_t *err)
{
    dump_t *self = arg;
    psd_status_t rc = PSD_OK;

    if (self->sparse && self->n_in_row == 0) {
        rc = begin_line(self, err);
    }
    if (rc == PSD_OK) {
        rc = add_values(self, cols, values, n, err);
    }
    self->n_in_row += n;
    return rc;
}

static psd_status_t take_end(void *arg, psd_error_t *err)
{
    dump_t *self = arg;

    return self->sparse && self->n_in_row == 0 ? PSD_OK : end_line(self, err);
}

static psd_status_t write_rows(dump_t *self, psd_table_t *table, uint32_t timeout_ms,
                               psd_error_t *err)
{
    const ps_scan_sink_t sink = {self, take_row, take_values, take_end};
    const ps_scan_args_t args = {.table = table, .sparse = self->sparse, .timeout_ms = timeout_ms};
    psd_status_t rc = ps_scan(&args, &sink, err);

    return rc == PSD_OK ? flush_text(self, err) : rc;
}

psd_status_t psd_train_dump(psd_train_t *self, uint32_t table, const char *path, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    PSD_AUTO(dump_done) dump_t dump = {.n_text = 0};
    psd_table_t *handle = psd_train_table_handle(self, table);
    psd_status_t rc = PSD_OK;

    if (handle == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "table is %" PRIu32 "; allowed: one of the "
                             "training's %" PRIu32 ", not while it runs",
                             table, self->n_tables);
    }
    dump.type = self->shapes[table].type;
    dump.value_size = self->shapes[table].value_size;
    dump.sparse = handle->spec.row_format != PS_ROW_DENSE;
    dump.text = ps_alloc_raw(TEXT_BYTES, 1);
    rc = dump.text != NULL ? ps_file_out_open(path, 0666, &dump.file, err)
                           : psd_error_set(err, PSD_NOMEM, "no memory for a dump");
    if (rc == PSD_OK) {
        rc = write_rows(&dump, handle, self->options.timeout_ms, err);
    }
    if (rc == PSD_OK) {
        rc = ps_file_out_commit(dump.file, err);
    }
    return rc == PSD_OK ? rc : psd_error_wrap(err, rc, "dump table \"%s\"", psd_table_name(handle));
}
