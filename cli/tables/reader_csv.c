/* SPDX-License-Identifier: Apache-2.0 */
/* csv files: `row,0,1,…` with whole rows, or `row,col,value`. */
#include "cli/tables/reader_part.h"

#include <inttypes.h>
#include <string.h>

static psd_status_t refuse_titles(const ps_cells_t *self, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "%s:1: header line not understood; allowed: row,col,value, or row and the "
                         "numbers of all columns, 0 to %" PRIu32,
                         self->path, self->n_cols - 1);
}

/* "row,0,1,…": the rest of the line, from column 1 on. */
static psd_status_t read_numbers(ps_cells_t *self, int end, psd_error_t *err)
{
    char word[PS_WORD_SIZE];
    char wanted[PS_WORD_SIZE];
    uint64_t at = 1;

    for (; end == ','; at++) {
        psd_status_t rc = ps_cells_word(self, ",", word, &end, err);

        if (rc != PSD_OK) {
            return rc;
        }
        (void)snprintf(wanted, sizeof wanted, "%" PRIu64, at);
        if (strcmp(word, wanted) != 0) {
            return refuse_titles(self, err);
        }
    }
    return at == self->n_cols ? PSD_OK : refuse_titles(self, err);
}

static psd_status_t read_titles(ps_cells_t *self, bool *ret_is_long, psd_error_t *err)
{
    char word[PS_WORD_SIZE];
    int end = 0;
    psd_status_t rc = ps_cells_word(self, ",", word, &end, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (strcmp(word, "row") != 0 || end != ',') {
        return refuse_titles(self, err);
    }
    rc = ps_cells_word(self, ",", word, &end, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_is_long = strcmp(word, "col") == 0;
    if (!*ret_is_long) {
        return strcmp(word, "0") == 0 ? read_numbers(self, end, err) : refuse_titles(self, err);
    }
    if (end == ',') {
        rc = ps_cells_word(self, ",", word, &end, err);
    }
    if (rc == PSD_OK && (strcmp(word, "value") != 0 || end == ',')) {
        return refuse_titles(self, err);
    }
    return rc;
}

static psd_status_t refuse_count(const ps_cells_t *self, const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_SHAPE,
                         "%s:%" PRIu64 ": too %s values; allowed after the row: %" PRIu32,
                         self->path, self->line, what, self->n_cols);
}

static psd_status_t read_whole_row(ps_cells_t *self, const char *first, int *end, psd_error_t *err)
{
    char word[PS_WORD_SIZE];
    uint64_t row = 0;
    uint64_t col = 0;
    uint32_t first_col = 0;
    psd_status_t rc = ps_cells_row(self, first, &row, err);

    for (; rc == PSD_OK && *end == ','; col++) {
        if (col >= self->n_cols) {
            return refuse_count(self, "many", err);
        }
        rc = ps_cells_word(self, ",", word, end, err);
        if (rc == PSD_OK) {
            rc = ps_cells_value(self, row, (uint32_t)col, word, err);
        }
        if (rc == PSD_OK && self->n == PS_PIECE_VALUES) {
            rc = ps_cells_flush(self, row, first_col, false, err);
            first_col = (uint32_t)col + 1;
        }
    }
    if (rc == PSD_OK && col < self->n_cols) {
        return refuse_count(self, "few", err);
    }
    return rc != PSD_OK ? rc : ps_cells_flush(self, row, first_col, false, err);
}

static psd_status_t read_one_value(ps_cells_t *self, const char *first, int *end, psd_error_t *err)
{
    char word[PS_WORD_SIZE] = "";
    uint64_t row = 0;
    uint32_t col = 0;
    psd_status_t rc = ps_cells_row(self, first, &row, err);

    if (rc == PSD_OK && *end == ',') {
        rc = ps_cells_word(self, ",", word, end, err);
    }
    if (rc == PSD_OK) {
        rc = ps_cells_col(self, word, &col, err);
    }
    if (rc == PSD_OK && *end == ',') {
        rc = ps_cells_word(self, ",", word, end, err);
        if (rc == PSD_OK && *end == ',') {
            return psd_error_set(err, PSD_SHAPE, "%s:%" PRIu64 ": more than row,col,value",
                                 self->path, self->line);
        }
        if (rc == PSD_OK) {
            rc = ps_cells_value(self, row, col, word, err);
        }
    } else if (rc == PSD_OK) {
        return psd_error_set(err, PSD_SHAPE, "%s:%" PRIu64 ": less than row,col,value", self->path,
                             self->line);
    }
    return rc != PSD_OK ? rc : ps_cells_flush(self, row, 0, true, err);
}

psd_status_t ps_reader_csv(ps_cells_t *self, psd_error_t *err)
{
    char row[PS_WORD_SIZE] = "";
    bool is_long = false;
    int end = 0;
    psd_status_t rc = PSD_OK;

    self->line = 1;
    rc = read_titles(self, &is_long, err);
    for (self->line = 2; rc == PSD_OK && end != EOF; self->line++) {
        char word[PS_WORD_SIZE];

        rc = ps_cells_word(self, ",", word, &end, err);
        if (rc != PSD_OK || (word[0] == '\0' && end != ',')) {
            continue;
        }
        if (is_long) {
            /* Lines of one row stand together and count as one. */
            self->n_rows += strcmp(word, row) == 0 ? 0 : 1;
            memcpy(row, word, sizeof row);
            rc = read_one_value(self, word, &end, err);
        } else {
            rc = read_whole_row(self, word, &end, err);
            self->n_rows++;
        }
    }
    return rc;
}
