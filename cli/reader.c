/* SPDX-License-Identifier: Apache-2.0 */
/* Words, rows, columns and values with their checks; text dumps. */
#include "cli/reader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/json_text.h"
#include "cli/reader_part.h"

void
ps_reader_done(ps_reader_t *self)
{
    ps_free(self->cols);
    ps_free(self->values);
    self->cols = NULL;
    self->values = NULL;
}

psd_status_t
ps_reader_token(ps_reader_t *self,
                const char *separators,
                char ret_token[PS_TOKEN_SIZE],
                int *ret_end,
                psd_error_t *err)
{
    size_t n = 0;

    for (;;) {
        int c = getc_unlocked(self->file);

        if (c == EOF && ferror(self->file)) {
            return psd_error_set(err, PSD_IO, "%s cannot be read: %s",
                                 self->path, strerror(errno));
        }
        if (c == EOF || c == '\n' || (c != '\0' && strchr(separators, c))) {
            if (c == '\n' && n > 0 && ret_token[n - 1] == '\r') {
                n--;
            }
            ret_token[n] = '\0';
            *ret_end = c;
            ps_progress_add(self->progress, n + 1);
            return PSD_OK;
        }
        if (c == '\0' || n + 1 >= PS_TOKEN_SIZE) {
            return psd_error_set(err, PSD_INVALID, "%s:%" PRIu64 ": %s",
                                 self->path, self->line,
                                 c == '\0' ? "a byte 0; the file is no text"
                                           : "a word of more than 62 bytes");
        }
        ret_token[n++] = (char)c;
    }
}

psd_status_t
ps_reader_row(const ps_reader_t *self,
              const char *token,
              uint64_t *ret_row,
              psd_error_t *err)
{
    if (!ps_text_u64(token, ret_row)) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%" PRIu64 ": row is \"%s\"; allowed: a number",
                             self->path, self->line, token);
    }
    if (*ret_row > self->view->last_row) {
        return psd_error_set(
            err, PSD_RANGE,
            "%s:%" PRIu64 ": row %" PRIu64 "; the last one is %" PRIu64,
            self->path, self->line, *ret_row, self->view->last_row);
    }
    return PSD_OK;
}

psd_status_t
ps_reader_col(const ps_reader_t *self,
              const char *token,
              uint32_t *ret_col,
              psd_error_t *err)
{
    uint64_t col = 0;

    if (!ps_text_u64(token, &col)) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%" PRIu64
                             ": column is \"%s\"; allowed: a number",
                             self->path, self->line, token);
    }
    if (col >= self->view->cols) {
        return psd_error_set(err, PSD_RANGE,
                             "%s:%" PRIu64 ": column %" PRIu64
                             "; the last one is %" PRIu32,
                             self->path, self->line, col, self->view->cols - 1);
    }
    *ret_col = (uint32_t)col;
    return PSD_OK;
}

static psd_status_t
make_piece(ps_reader_t *self, psd_error_t *err)
{
    self->cols = ps_alloc(PS_PIECE_VALUES, sizeof *self->cols);
    self->values = ps_alloc(PS_PIECE_VALUES, self->view->value_size);
    if (self->cols == NULL || self->values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to read %s",
                             self->path);
    }
    return PSD_OK;
}

psd_status_t
ps_reader_value(ps_reader_t *self,
                uint64_t row,
                uint32_t col,
                const char *token,
                psd_error_t *err)
{
    char *value = self->values + self->n * self->view->value_size;

    if (!ps_value_parse(self->view->type, token, value)) {
        return psd_error_set(err, PSD_TYPE,
                             "%s:%" PRIu64 ": row %" PRIu64 " column %" PRIu32
                             " is \"%s\"; allowed: a number of type %s",
                             self->path, self->line, row, col, token,
                             ps_type_name(self->view->type));
    }
    if (!self->view->allow_nonfinite &&
        !ps_value_is_finite(self->view->type, value)) {
        return psd_error_set(err, PSD_NOT_FINITE,
                             "%s:%" PRIu64 ": row %" PRIu64 " column %" PRIu32
                             " is \"%s\", which table \"%s\" does not allow",
                             self->path, self->line, row, col, token,
                             self->view->name);
    }
    self->cols[self->n++] = col;
    return PSD_OK;
}

psd_status_t
ps_reader_flush(ps_reader_t *self,
                uint64_t row,
                uint32_t first_col,
                bool has_cols,
                psd_error_t *err)
{
    size_t n = self->n;

    self->n = 0;
    self->n_values += n;
    return n == 0 ? PSD_OK
                  : self->cells(self->arg, row, first_col,
                                has_cols ? self->cols : NULL, self->values, n,
                                err);
}

/* One `col:value`; *last is the column before it, -1 for none. */
static psd_status_t
read_pair(ps_reader_t *self,
          uint64_t row,
          char *token,
          int64_t *last,
          psd_error_t *err)
{
    char *colon = strchr(token, ':');
    uint32_t col = 0;
    psd_status_t rc = PSD_OK;

    if (colon == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%" PRIu64 ": \"%s\" is no COLUMN:VALUE",
                             self->path, self->line, token);
    }
    *colon = '\0';
    rc = ps_reader_col(self, token, &col, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if ((int64_t)col <= *last) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%" PRIu64 ": column %" PRIu32
                             " behind column %" PRId64
                             "; the columns of a row ascend",
                             self->path, self->line, col, *last);
    }
    *last = col;
    rc = ps_reader_value(self, row, col, colon + 1, err);
    if (rc == PSD_OK && self->n == PS_PIECE_VALUES) {
        rc = ps_reader_flush(self, row, 0, true, err);
    }
    return rc;
}

/* The rest of a line, whose first word is read. */
static psd_status_t
read_pairs(ps_reader_t *self, const char *first, int end, psd_error_t *err)
{
    char token[PS_TOKEN_SIZE];
    uint64_t row = 0;
    int64_t last = -1;
    psd_status_t rc = ps_reader_row(self, first, &row, err);

    while (rc == PSD_OK && end != '\n' && end != EOF) {
        rc = ps_reader_token(self, " \t", token, &end, err);
        if (rc == PSD_OK && token[0] != '\0') {
            rc = read_pair(self, row, token, &last, err);
        }
    }
    self->n_rows++;
    return rc != PSD_OK ? rc : ps_reader_flush(self, row, 0, true, err);
}

static void
skip_line(ps_reader_t *self)
{
    int c = 0;

    do {
        c = getc_unlocked(self->file);
    } while (c != EOF && c != '\n');
}

psd_status_t
ps_reader_text(ps_reader_t *self, psd_error_t *err)
{
    for (self->line = 1;; self->line++) {
        char token[PS_TOKEN_SIZE];
        int end = getc_unlocked(self->file);
        psd_status_t rc = PSD_OK;

        if (end == '#') {
            skip_line(self);
            continue;
        }
        (void)ungetc(end, self->file);
        do {
            rc = ps_reader_token(self, " \t", token, &end, err);
        } while (rc == PSD_OK && token[0] == '\0' && end != '\n' && end != EOF);
        if (rc == PSD_OK && token[0] != '\0') {
            rc = read_pairs(self, token, end, err);
            end = rc == PSD_OK && feof(self->file) ? EOF : '\n';
        }
        if (rc != PSD_OK || end == EOF) {
            return rc;
        }
    }
}

psd_status_t
ps_reader_read(ps_reader_t *self, ps_file_format_t format, psd_error_t *err)
{
    psd_status_t rc = make_piece(self, err);

    if (rc != PSD_OK) {
        return rc;
    }
    switch (format) {
    case PS_FILE_NPY:
        return ps_reader_npy(self, err);
    case PS_FILE_CSV:
        return ps_reader_csv(self, err);
    case PS_FILE_TEXT:
    default:
        return ps_reader_text(self, err);
    }
}
