/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a text, and what of a table they name. */
#include "data/text/cells.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/value_text.h"

#define TEXT_BYTES 65536

psd_status_t ps_cells_init(ps_cells_t *self, psd_error_t *err)
{
    self->text = ps_alloc_raw(TEXT_BYTES, 1);
    self->cols = ps_alloc_raw(PS_PIECE_VALUES, sizeof *self->cols);
    self->values = ps_alloc_raw(PS_PIECE_VALUES, ps_type_size(self->type));
    if (self->text == NULL || self->cols == NULL || self->values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to read %s", self->path);
    }
    return PSD_OK;
}

void ps_cells_done(ps_cells_t *self)
{
    ps_free(self->text);
    ps_free(self->cols);
    ps_free(self->values);
    self->text = NULL;
    self->cols = NULL;
    self->values = NULL;
}

/* The next byte, which stays; EOF: there is none. */
static psd_status_t peek_byte(ps_cells_t *self, int *ret_byte, psd_error_t *err)
{
    if (self->at == self->filled) {
        size_t n = 0;
        psd_status_t rc = self->read(self->from, self->text, TEXT_BYTES, &n, err);

        if (rc != PSD_OK) {
            return rc;
        }
        self->at = 0;
        self->filled = n;
    }
    *ret_byte = self->at < self->filled ? (unsigned char)self->text[self->at] : EOF;
    return PSD_OK;
}

static psd_status_t next_byte(ps_cells_t *self, int *ret_byte, psd_error_t *err)
{
    psd_status_t rc = peek_byte(self, ret_byte, err);

    self->at += rc == PSD_OK && *ret_byte != EOF ? 1 : 0;
    return rc;
}

psd_status_t ps_cells_word(ps_cells_t *self, const char *separators, char ret_word[PS_WORD_SIZE],
                           int *ret_end, psd_error_t *err)
{
    size_t n = 0;

    for (;;) {
        int c = EOF;
        psd_status_t rc = next_byte(self, &c, err);

        if (rc != PSD_OK) {
            return rc;
        }
        if (c == EOF || c == '\n' || (c != '\0' && strchr(separators, c))) {
            if ((c == '\n' || c == EOF) && n > 0 && ret_word[n - 1] == '\r') {
                n--;
            }
            ret_word[n] = '\0';
            *ret_end = c;
            return PSD_OK;
        }
        if (c == '\0' || n + 1 >= PS_WORD_SIZE) {
            return psd_error_set(err, PSD_INVALID, "%s:%" PRIu64 ": %s", self->path, self->line,
                                 c == '\0' ? "a byte 0; the file is not text"
                                           : "a word of more than 62 bytes");
        }
        ret_word[n++] = (char)c;
    }
}

psd_status_t ps_cells_row(const ps_cells_t *self, const char *word, uint64_t *ret_row,
                          psd_error_t *err)
{
    if (!ps_text_u64(word, ret_row)) {
        return psd_error_set(err, PSD_INVALID, "%s:%" PRIu64 ": row is \"%s\"; allowed: a number",
                             self->path, self->line, word);
    }
    if (*ret_row > self->last_row) {
        return psd_error_set(err, PSD_RANGE,
                             "%s:%" PRIu64 ": row %" PRIu64 "; the last one is %" PRIu64,
                             self->path, self->line, *ret_row, self->last_row);
    }
    return PSD_OK;
}

psd_status_t ps_cells_col(const ps_cells_t *self, const char *word, uint32_t *ret_col,
                          psd_error_t *err)
{
    uint64_t col = 0;

    if (!ps_text_u64(word, &col)) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%" PRIu64 ": column is \"%s\"; allowed: a number", self->path,
                             self->line, word);
    }
    if (col >= self->n_cols) {
        return psd_error_set(err, PSD_RANGE,
                             "%s:%" PRIu64 ": column %" PRIu64 "; the last one is %" PRIu32,
                             self->path, self->line, col, self->n_cols - 1);
    }
    *ret_col = (uint32_t)col;
    return PSD_OK;
}

psd_status_t ps_cells_value(ps_cells_t *self, uint64_t row, uint32_t col, const char *word,
                            psd_error_t *err)
{
    char *value = self->values + self->n * ps_type_size(self->type);

    if (!ps_value_parse(self->type, word, value)) {
        return psd_error_set(err, PSD_TYPE,
                             "%s:%" PRIu64 ": row %" PRIu64 " column %" PRIu32
                             " is \"%s\"; allowed: a number of type %s",
                             self->path, self->line, row, col, word, ps_type_name(self->type));
    }
    if (!self->allow_nonfinite && !ps_value_is_finite(self->type, value)) {
        return psd_error_set(err, PSD_NOT_FINITE,
                             "%s:%" PRIu64 ": row %" PRIu64 " column %" PRIu32
                             " is \"%s\", which table \"%s\" does not allow",
                             self->path, self->line, row, col, word, self->name);
    }
    self->cols[self->n++] = col;
    return PSD_OK;
}

psd_status_t ps_cells_flush(ps_cells_t *self, uint64_t row, uint32_t first_col, bool has_cols,
                            psd_error_t *err)
{
    size_t n = self->n;

    self->n = 0;
    self->n_values += n;
    if (n == 0 || self->take == NULL) {
        return PSD_OK;
    }
    return self->take(self->arg, row, first_col, has_cols ? self->cols : NULL, self->values, n,
                      err);
}

/* One `col:value`; *last is the column before it, -1 for none. */
static psd_status_t read_pair(ps_cells_t *self, uint64_t row, char *word, int64_t *last,
                              psd_error_t *err)
{
    char *colon = strchr(word, ':');
    uint32_t col = 0;
    psd_status_t rc = PSD_OK;

    if (colon == NULL) {
        return psd_error_set(err, PSD_INVALID, "%s:%" PRIu64 ": \"%s\" is not COLUMN:VALUE",
                             self->path, self->line, word);
    }
    *colon = '\0';
    rc = ps_cells_col(self, word, &col, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if ((int64_t)col <= *last) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%" PRIu64 ": column %" PRIu32 " after column %" PRId64
                             "; columns of a row must ascend",
                             self->path, self->line, col, *last);
    }
    *last = col;
    rc = ps_cells_value(self, row, col, colon + 1, err);
    if (rc == PSD_OK && self->n == PS_PIECE_VALUES) {
        rc = ps_cells_flush(self, row, 0, true, err);
    }
    return rc;
}

/* The rest of a line, whose first word is read. */
static psd_status_t read_pairs(ps_cells_t *self, const char *first, int *end, psd_error_t *err)
{
    char word[PS_WORD_SIZE];
    uint64_t row = 0;
    int64_t last = -1;
    psd_status_t rc = ps_cells_row(self, first, &row, err);

    while (rc == PSD_OK && *end != '\n' && *end != EOF) {
        rc = ps_cells_word(self, " \t", word, end, err);
        if (rc == PSD_OK && word[0] != '\0') {
            rc = read_pair(self, row, word, &last, err);
        }
    }
    self->n_rows++;
    return rc != PSD_OK ? rc : ps_cells_flush(self, row, 0, true, err);
}

/* The first word of a line, after blanks; "" that ends with EOF or '\n' is an
 * empty line, and so is a comment. */
static psd_status_t first_word(ps_cells_t *self, char ret_word[PS_WORD_SIZE], int *ret_end,
                               psd_error_t *err)
{
    int c = 0;
    psd_status_t rc = PSD_OK;

    do {
        rc = peek_byte(self, &c, err);
        self->at += rc == PSD_OK && (c == ' ' || c == '\t') ? 1 : 0;
    } while (rc == PSD_OK && (c == ' ' || c == '\t'));
    if (rc != PSD_OK || c != '#') {
        return rc != PSD_OK ? rc : ps_cells_word(self, " \t", ret_word, ret_end, err);
    }
    while (rc == PSD_OK && c != '\n' && c != EOF) {
        rc = next_byte(self, &c, err);
    }
    ret_word[0] = '\0';
    *ret_end = c;
    return rc;
}

psd_status_t ps_cells_text(ps_cells_t *self, psd_error_t *err)
{
    int end = 0;
    psd_status_t rc = PSD_OK;

    for (self->line = 1; rc == PSD_OK && end != EOF; self->line++) {
        char word[PS_WORD_SIZE];

        rc = first_word(self, word, &end, err);
        if (rc == PSD_OK && word[0] != '\0') {
            rc = read_pairs(self, word, &end, err);
        }
    }
    return rc;
}
