/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as text. */
#include "cli/tables/rows_out.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "cli/output/json_text.h"
#include "cli/output/output.h"

#define SHOWN_MAX 8 /* values of a row in the narrow table */
#define CELL_WIDTH 12
#define KEY_WIDTH 20 /* of a row's key that may have all digits of 64 bits */

static uint64_t col_at(const ps_rows_out_t *self, uint64_t i)
{
    return self->cols == NULL ? i : self->cols[i];
}

static uint64_t n_selected(const ps_rows_out_t *self)
{
    return self->cols == NULL ? self->n_table_cols : self->n_cols;
}

/* Of the first column of a table. */
static int row_width(const ps_rows_out_t *self)
{
    return self->any_key ? KEY_WIDTH : CELL_WIDTH;
}

/* VALUE over the only column of a table, else C and its number. */
static void write_column_titles(const ps_rows_out_t *self, uint64_t n, uint64_t shown)
{
    char title[24];

    for (uint64_t i = 0; i < shown; i++) {
        (void)snprintf(title, sizeof title, "C%" PRIu64, col_at(self, i));
        ps_print(self->file, "  %-*s", i + 1 < n ? CELL_WIDTH : 0,
                 self->n_table_cols == 1 ? "VALUE" : title);
    }
}

static void write_titles(const ps_rows_out_t *self)
{
    bool is_table = self->format == PS_ROWS_TABLE || self->format == PS_ROWS_WIDE;
    uint64_t n = n_selected(self);
    uint64_t shown = self->format == PS_ROWS_TABLE && n > SHOWN_MAX ? SHOWN_MAX : n;
    char gap = self->format == PS_ROWS_CSV ? ',' : '\t';

    if (is_table && self->sparse) {
        ps_print(self->file, "%-*s  COL:VALUE\n", row_width(self), "ROW");
        return;
    }
    if (is_table) {
        ps_print(self->file, "%-*s", row_width(self), "ROW");
        write_column_titles(self, n, shown);
        ps_print(self->file, "%s\n", shown < n ? "  ..." : "");
        return;
    }
    if (self->sparse) {
        ps_print(self->file, "row%ccol%cvalue\n", gap, gap);
        return;
    }
    ps_print(self->file, "row");
    for (uint64_t i = 0; i < n; i++) {
        ps_print(self->file, "%c%" PRIu64, gap, col_at(self, i));
    }
    (void)putc('\n', self->file);
}

static void write_head(ps_rows_out_t *self)
{
    if (self->has_head) {
        return;
    }
    self->has_head = true;
    switch (self->format) {
    case PS_ROWS_JSON:
        ps_print(self->file, "{\"schema_version\":1,\"table\":");
        ps_json_write_text(self->file, self->table);
        ps_print(self->file, ",\"rows\":[");
        break;
    case PS_ROWS_TABLE:
    case PS_ROWS_WIDE:
    case PS_ROWS_CSV:
    case PS_ROWS_TSV:
        write_titles(self);
        break;
    case PS_ROWS_JSONL:
    case PS_ROWS_NAME:
    case PS_ROWS_TEXT:
    case PS_ROWS_RAW:
    default:
        break;
    }
}

static void write_cols_json(const ps_rows_out_t *self, const uint32_t *cols, size_t n)
{
    ps_print(self->file, ",\"cols\":[");
    for (size_t i = 0; i < n; i++) {
        ps_print(self->file, "%s%" PRIu32, i == 0 ? "" : ",", cols[i]);
    }
    (void)putc(']', self->file);
}

/* Writes what precedes a row's values; nothing yet where a line without
 * values would be wrong. */
static void write_row_start(const ps_rows_out_t *self)
{
    const char *quote = "";

    switch (self->format) {
    case PS_ROWS_JSON:
    case PS_ROWS_JSONL:
        quote = self->big_as_text && ps_json_is_big(self->row) ? "\"" : "";
        ps_print(self->file, "%s{%s\"row\":%s%" PRIu64 "%s",
                 self->format == PS_ROWS_JSON && self->n_rows > 0 ? "," : "",
                 self->format == PS_ROWS_JSONL ? "\"schema_version\":1," : "", quote, self->row,
                 quote);
        if (!self->sparse) {
            if (self->cols != NULL) {
                write_cols_json(self, self->cols, self->n_cols);
            }
            ps_print(self->file, ",\"values\":[");
        }
        break;
    case PS_ROWS_CSV:
    case PS_ROWS_TSV:
        if (!self->sparse) {
            ps_print(self->file, "%" PRIu64, self->row);
        }
        break;
    case PS_ROWS_NAME:
    case PS_ROWS_TEXT:
        ps_print(self->file, "%" PRIu64, self->row);
        break;
    case PS_ROWS_TABLE: /* with its first value, so that no blanks end a line */
    case PS_ROWS_WIDE:
    case PS_ROWS_RAW:
    default:
        break;
    }
}

static psd_status_t begin_row(void *arg, uint64_t row, psd_error_t *err)
{
    ps_rows_out_t *self = arg;

    (void)err;
    write_head(self);
    self->row = row;
    self->n_in_row = 0;
    if (!self->skip_empty) {
        write_row_start(self);
    }
    return PSD_OK;
}

/* One value in every format but JSON; col is the table's. */
static void write_value(const ps_rows_out_t *self, uint64_t col, const void *value)
{
    char text[PS_NUMBER_SIZE];
    char gap = self->format == PS_ROWS_CSV ? ',' : '\t';
    bool is_last = self->n_in_row + 1 == n_selected(self);

    ps_value_format(self->type, value, text);
    switch (self->format) {
    case PS_ROWS_TABLE:
    case PS_ROWS_WIDE:
        if (self->n_in_row == 0) {
            ps_print(self->file, "%-*" PRIu64, row_width(self), self->row);
        }
        if (self->format == PS_ROWS_TABLE && self->n_in_row >= SHOWN_MAX) {
            ps_print(self->file, "%s", self->n_in_row == SHOWN_MAX ? "  ..." : "");
        } else if (self->sparse) {
            ps_print(self->file, "  %" PRIu64 ":%s", col, text);
        } else {
            ps_print(self->file, "  %-*s", is_last ? 0 : CELL_WIDTH, text);
        }
        break;
    case PS_ROWS_CSV:
    case PS_ROWS_TSV:
        if (self->sparse) {
            ps_print(self->file, "%" PRIu64 "%c%" PRIu64 "%c%s\n", self->row, gap, col, gap, text);
        } else {
            ps_print(self->file, "%c%s", gap, text);
        }
        break;
    case PS_ROWS_TEXT:
        ps_print(self->file, " %" PRIu64 ":%s", col, text);
        break;
    case PS_ROWS_JSON:
    case PS_ROWS_JSONL:
    case PS_ROWS_NAME:
    case PS_ROWS_RAW:
    default:
        break;
    }
}

static void write_value_json(const ps_rows_out_t *self, const void *value)
{
    int64_t number = 0;

    if (self->big_as_text && self->type == PS_TYPE_I64) {
        memcpy(&number, value, sizeof number);
    }
    if (ps_json_is_big(number < 0 ? -(uint64_t)number : (uint64_t)number)) {
        ps_print(self->file, "\"%" PRId64 "\"", number);
    } else {
        ps_value_write_json(self->file, self->type, value);
    }
}

static void write_values_json(const ps_rows_out_t *self, const uint32_t *cols, const char *values,
                              size_t n)
{
    size_t size = ps_type_size(self->type);

    if (self->sparse) {
        write_cols_json(self, cols, n);
        ps_print(self->file, ",\"values\":[");
    }
    for (size_t i = 0; i < n; i++) {
        if (self->n_in_row + i > 0) {
            (void)putc(',', self->file);
        }
        write_value_json(self, values + i * size);
    }
}

static psd_status_t check_file(const ps_rows_out_t *self, psd_error_t *err)
{
    return !ferror(self->file)
               ? PSD_OK
               : psd_error_set(err, PSD_IO, "cannot be written: %s", strerror(errno));
}

static psd_status_t add_values(void *arg, const uint32_t *cols, const void *values, size_t n,
                               psd_error_t *err)
{
    ps_rows_out_t *self = arg;
    size_t size = ps_type_size(self->type);

    if (self->skip_empty && self->n_in_row == 0) {
        write_row_start(self);
    }
    if (self->format == PS_ROWS_JSON || self->format == PS_ROWS_JSONL) {
        write_values_json(self, cols, values, n);
    } else if (self->format == PS_ROWS_RAW) {
        (void)fwrite(values, size, n, self->file);
    } else {
        for (size_t i = 0; i < n; i++) {
            write_value(self, cols != NULL ? cols[i] : col_at(self, self->n_in_row),
                        (const char *)values + i * size);
            self->n_in_row++;
        }
        self->n_in_row -= n;
    }
    self->n_in_row += n;
    self->n_values += n;
    return check_file(self, err);
}

static psd_status_t end_row(void *arg, psd_error_t *err)
{
    ps_rows_out_t *self = arg;
    bool is_line = !(self->sparse && (self->format == PS_ROWS_CSV || self->format == PS_ROWS_TSV));

    if (self->skip_empty && self->n_in_row == 0) {
        return PSD_OK;
    }
    self->n_rows++;
    if (self->format == PS_ROWS_JSON || self->format == PS_ROWS_JSONL) {
        if (self->sparse && self->n_in_row == 0) {
            ps_print(self->file, ",\"cols\":[],\"values\":[");
        }
        ps_print(self->file, self->format == PS_ROWS_JSON ? "]}" : "]}\n");
    } else if (self->format != PS_ROWS_RAW && is_line) {
        if (self->format <= PS_ROWS_WIDE && self->n_in_row == 0) {
            ps_print(self->file, "%" PRIu64, self->row);
        }
        (void)putc('\n', self->file);
    }
    return check_file(self, err);
}

ps_scan_sink_t ps_rows_out_sink(ps_rows_out_t *self)
{
    return (ps_scan_sink_t){.self = self, .row = begin_row, .values = add_values, .end = end_row};
}

psd_status_t ps_rows_out_finish(ps_rows_out_t *self, psd_error_t *err)
{
    write_head(self);
    if (self->format == PS_ROWS_JSON) {
        ps_print(self->file, "]}\n");
    }
    return check_file(self, err);
}
