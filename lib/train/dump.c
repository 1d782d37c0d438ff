/* SPDX-License-Identifier: Apache-2.0 */
/* A table as text, a line for each row: "row col:value col:value ...". */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/value_text.h"
#include "client/table.h"
#include "data/file_out.h"
#include "train/train_state.h"

#define GROUP_BYTES (UINT64_C(4) << 20) /* of values in one request */
#define ROWS_MAX 65536                  /* in one request */
#define TEXT_BYTES 65536
#define WORD_BYTES (PS_NUMBER_SIZE + 24) /* a row's number; or " col:value" */

typedef struct dump {
    psd_table_t *table; /* borrowed */
    ps_shape_t shape;   /* of it */
    uint32_t timeout_ms;
    bool sparse;          /* only what is not 0, and no empty rows */
    psd_call_t *call;     /* owned */
    psd_select_t *select; /* owned */
    void *values;         /* owned; GROUP_BYTES, or one value */
    ps_file_out_t *file;  /* owned */
    char *text;           /* owned; TEXT_BYTES */
    size_t n_text;
} dump_t;

static void
dump_done(dump_t *self)
{
    psd_call_destroy(&self->call);
    psd_select_destroy(&self->select);
    ps_free(self->values);
    ps_file_out_close(&self->file);
    ps_free(self->text);
}

/* ---- lines --------------------------------------------------------------- */

static psd_status_t
flush_text(dump_t *self, psd_error_t *err)
{
    size_t n = self->n_text;

    self->n_text = 0;
    return n == 0 ? PSD_OK : ps_file_out_write(self->file, self->text, n, err);
}

static psd_status_t
make_room(dump_t *self, psd_error_t *err)
{
    return TEXT_BYTES - self->n_text < WORD_BYTES ? flush_text(self, err)
                                                  : PSD_OK;
}

static psd_status_t
begin_line(dump_t *self, uint64_t row, psd_error_t *err)
{
    psd_status_t rc = make_room(self, err);

    self->n_text += (size_t)snprintf(self->text + self->n_text, WORD_BYTES,
                                     "%" PRIu64, row);
    return rc;
}

/* Values of the columns in cols, or of those from first on. */
static psd_status_t
add_values(dump_t *self,
           const uint32_t *cols,
           uint32_t first,
           const char *values,
           size_t n,
           psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        uint32_t col = cols != NULL ? cols[i] : first + (uint32_t)i;
        char number[PS_NUMBER_SIZE];

        ps_value_format(self->shape.type, values + i * self->shape.value_size,
                        number);
        rc = make_room(self, err);
        self->n_text += (size_t)snprintf(self->text + self->n_text, WORD_BYTES,
                                         " %" PRIu32 ":%s", col, number);
    }
    return rc;
}

static psd_status_t
end_line(dump_t *self, psd_error_t *err)
{
    psd_status_t rc = make_room(self, err);

    self->text[self->n_text++] = '\n';
    return rc;
}

/* ---- rows ---------------------------------------------------------------- */

static psd_status_t
pull(dump_t *self, size_t n_values, psd_error_t *err)
{
    psd_ticket_t ticket = 0;
    psd_status_t rc = psd_pull_start(self->table, self->select, self->values,
                                     n_values, self->call, &ticket, err);

    return rc == PSD_OK
               ? psd_wait(self->table->client, ticket, self->timeout_ms, err)
               : rc;
}

/* A row that is too wide for one request, in pieces. */
static psd_status_t
write_wide_row(dump_t *self, uint64_t row, psd_error_t *err)
{
    uint32_t n_piece = (uint32_t)(GROUP_BYTES / self->shape.value_size);
    psd_status_t rc = begin_line(self, row, err);

    psd_select_row_range(self->select, row, 1);
    for (uint32_t at = 0; rc == PSD_OK && at < self->shape.n_cols;) {
        uint32_t left = self->shape.n_cols - at;
        uint32_t n = left < n_piece ? left : n_piece;

        psd_select_col_range(self->select, at, n);
        rc = pull(self, n, err);
        if (rc == PSD_OK) {
            rc = add_values(self, NULL, at, self->values, n, err);
        }
        at += n;
    }
    return rc == PSD_OK ? end_line(self, err) : rc;
}

static psd_status_t
write_wide_rows(dump_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (uint64_t row = 0; rc == PSD_OK && row < self->shape.n_rows; row++) {
        rc = write_wide_row(self, row, err);
    }
    return rc;
}

/* n rows from `first` on, which fit into one request. */
static psd_status_t
write_group(dump_t *self, uint64_t first, uint64_t n, psd_error_t *err)
{
    uint32_t n_cols = self->shape.n_cols;
    const char *values = self->values;
    psd_status_t rc = PSD_OK;

    psd_select_row_range(self->select, first, n);
    psd_select_all_cols(self->select);
    rc = pull(self, (size_t)n * n_cols, err);
    for (uint64_t i = 0; rc == PSD_OK && i < n; i++) {
        rc = begin_line(self, first + i, err);
        if (rc == PSD_OK) {
            rc = add_values(self, NULL, 0, values, n_cols, err);
        }
        if (rc == PSD_OK) {
            rc = end_line(self, err);
        }
        values += n_cols * self->shape.value_size;
    }
    return rc;
}

static psd_status_t
write_range(dump_t *self, psd_error_t *err)
{
    uint64_t row_bytes = self->shape.n_cols * self->shape.value_size;
    uint64_t n_group = ROWS_MAX;
    psd_status_t rc = PSD_OK;

    if (row_bytes > GROUP_BYTES) {
        return write_wide_rows(self, err);
    }
    if (n_group * row_bytes > GROUP_BYTES) {
        n_group = GROUP_BYTES / row_bytes;
    }
    for (uint64_t at = 0; rc == PSD_OK && at < self->shape.n_rows;
         at += n_group) {
        uint64_t left = self->shape.n_rows - at;

        rc = write_group(self, at, left < n_group ? left : n_group, err);
    }
    return rc;
}

/* Writes rows of a result; adds up what they take. */
static psd_status_t
write_result(dump_t *self,
             const psd_result_t *result,
             uint64_t *ret_last,
             uint64_t *ret_bytes,
             psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < psd_result_count(result); i++) {
        const uint32_t *cols = NULL;
        const void *values = NULL;
        size_t n = 0;

        psd_result_row(result, i, ret_last, &n, &values, &cols);
        *ret_bytes += n * (self->shape.value_size + sizeof *cols);
        if (self->sparse && n == 0) {
            continue;
        }
        rc = begin_line(self, *ret_last, err);
        if (rc == PSD_OK) {
            rc = add_values(self, cols, 0, values, n, err);
        }
        if (rc == PSD_OK) {
            rc = end_line(self, err);
        }
    }
    return rc;
}

/* Rows of which only the server knows which are there, or how long they are: in
 * groups that grow and shrink with what they take. */
static psd_status_t
write_present(dump_t *self, psd_error_t *err)
{
    uint64_t last_row =
        self->shape.n_rows > 0 ? self->shape.n_rows - 1 : UINT64_MAX;
    uint64_t first = 0;
    size_t n_group = 1;

    for (;;) {
        PSD_AUTO(psd_result_destroy) psd_result_t *result = NULL;
        uint64_t last = first;
        uint64_t bytes = 0;
        psd_status_t rc = PSD_OK;

        if (first == 0) {
            psd_select_all_rows(self->select);
        } else {
            psd_select_row_range(self->select, first, last_row - first + 1);
        }
        psd_select_all_cols(self->select);
        rc = psd_fetch(self->table, self->select, self->sparse, n_group,
                       self->call, &result, err);
        if (rc == PSD_OK) {
            rc = write_result(self, result, &last, &bytes, err);
        }
        if (rc != PSD_OK || psd_result_count(result) == 0 || last >= last_row) {
            return rc;
        }
        first = last + 1;
        if (bytes > 2 * GROUP_BYTES && n_group > 1) {
            n_group /= 2;
        } else if (bytes < GROUP_BYTES / 2 && n_group < ROWS_MAX) {
            n_group *= 2;
        }
    }
}

static psd_status_t
open_all(dump_t *self, const char *path, psd_error_t *err)
{
    self->call = psd_call_new();
    self->select = psd_select_new();
    self->values = ps_alloc_raw(GROUP_BYTES, 1);
    self->text = ps_alloc_raw(TEXT_BYTES, 1);
    if (self->call == NULL || self->select == NULL || self->values == NULL ||
        self->text == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a dump");
    }
    psd_call_set_timeout_ms(self->call, self->timeout_ms);
    return ps_file_out_open(path, &self->file, err);
}

psd_status_t
psd_train_dump(psd_train_t *self,
               uint32_t table,
               const char *path,
               psd_error_t *err)
{
    PSD_AUTO(dump_done) dump_t dump = {.n_text = 0};
    psd_status_t rc = PSD_OK;

    dump.table = psd_train_table_handle(self, table);
    if (dump.table == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "table is %" PRIu32 "; allowed: one of the "
                             "training's %" PRIu32 ", not while it runs",
                             table, self->n_tables);
    }
    dump.shape = self->shapes[table];
    dump.sparse = dump.table->spec.row_format != PS_ROW_DENSE;
    dump.timeout_ms = self->options.timeout_ms;
    rc = open_all(&dump, path, err);
    if (rc == PSD_OK) {
        rc = dump.sparse || dump.shape.n_rows == 0 ? write_present(&dump, err)
                                                   : write_range(&dump, err);
    }
    if (rc == PSD_OK) {
        rc = flush_text(&dump, err);
    }
    if (rc == PSD_OK) {
        rc = ps_file_out_commit(dump.file, err);
    }
    return rc == PSD_OK ? rc
                        : psd_error_wrap(err, rc, "dump table \"%s\"",
                                         psd_table_name(dump.table));
}
