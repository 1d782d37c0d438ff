/* SPDX-License-Identifier: Apache-2.0 */
/* csv files: `row,0,1,…` with whole rows, or `row,col,value`. */
#include "cli/reader_part.h"

#include <inttypes.h>
#include <string.h>

static psd_status_t
refuse_titles(const ps_reader_t *self, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "%s:1: titles not understood; allowed: row,col,value, "
                         "or row and the numbers of all columns, 0 to %" PRIu32,
                         self->path, self->view->cols - 1);
}

/* "row,0,1,…": the rest of the line, from column 1 on. */
static psd_status_t
read_numbers(ps_reader_t *self, int end, psd_error_t *err)
{
    char token[PS_TOKEN_SIZE];
    char wanted[PS_TOKEN_SIZE];
    uint64_t at = 1;

    for (; end == ','; at++) {
        psd_status_t rc = ps_reader_token(self, ",", token, &end, err);

        if (rc != PSD_OK) {
            return rc;
        }
        (void)snprintf(wanted, sizeof wanted, "%" PRIu64, at);
        if (strcmp(token, wanted) != 0) {
            return refuse_titles(self, err);
        }
    }
    return at == self->view->cols ? PSD_OK : refuse_titles(self, err);
}

static psd_status_t
read_titles(ps_reader_t *self, bool *ret_is_long, psd_error_t *err)
{
    char token[PS_TOKEN_SIZE];
    int end = 0;
    psd_status_t rc = ps_reader_token(self, ",", token, &end, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (strcmp(token, "row") != 0 || end != ',') {
        return refuse_titles(self, err);
    }
    rc = ps_reader_token(self, ",", token, &end, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_is_long = strcmp(token, "col") == 0;
    if (!*ret_is_long) {
        return strcmp(token, "0") == 0 ? read_numbers(self, end, err)
                                       : refuse_titles(self, err);
    }
    if (end == ',') {
        rc = ps_reader_token(self, ",", token, &end, err);
    }
    if (rc == PSD_OK && (strcmp(token, "value") != 0 || end == ',')) {
        return refuse_titles(self, err);
    }
    return rc;
}

static psd_status_t
refuse_count(const ps_reader_t *self, const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_SHAPE,
                         "%s:%" PRIu64 ": too %s values; behind the row come "
                         "%" PRIu32,
                         self->path, self->line, what, self->view->cols);
}

static psd_status_t
read_whole_row(ps_reader_t *self, const char *first, int *end, psd_error_t *err)
{
    char token[PS_TOKEN_SIZE];
    uint64_t row = 0;
    uint64_t col = 0;
    uint32_t first_col = 0;
    psd_status_t rc = ps_reader_row(self, first, &row, err);

    for (; rc == PSD_OK && *end == ','; col++) {
        if (col >= self->view->cols) {
            return refuse_count(self, "many", err);
        }
        rc = ps_reader_token(self, ",", token, end, err);
        if (rc == PSD_OK) {
            rc = ps_reader_value(self, row, (uint32_t)col, token, err);
        }
        if (rc == PSD_OK && self->n == PS_PIECE_VALUES) {
            rc = ps_reader_flush(self, row, first_col, false, err);
            first_col = (uint32_t)col + 1;
        }
    }
    if (rc == PSD_OK && col < self->view->cols) {
        return refuse_count(self, "few", err);
    }
    return rc != PSD_OK ? rc
                        : ps_reader_flush(self, row, first_col, false, err);
}

static psd_status_t
read_one_value(ps_reader_t *self, const char *first, int *end, psd_error_t *err)
{
    char token[PS_TOKEN_SIZE] = "";
    uint64_t row = 0;
    uint32_t col = 0;
    psd_status_t rc = ps_reader_row(self, first, &row, err);

    if (rc == PSD_OK && *end == ',') {
        rc = ps_reader_token(self, ",", token, end, err);
    }
    if (rc == PSD_OK) {
        rc = ps_reader_col(self, token, &col, err);
    }
    if (rc == PSD_OK && *end == ',') {
        rc = ps_reader_token(self, ",", token, end, err);
        if (rc == PSD_OK && *end == ',') {
            return psd_error_set(err, PSD_SHAPE,
                                 "%s:%" PRIu64 ": more than row,col,value",
                                 self->path, self->line);
        }
        if (rc == PSD_OK) {
            rc = ps_reader_value(self, row, col, token, err);
        }
    } else if (rc == PSD_OK) {
        return psd_error_set(err, PSD_SHAPE,
                             "%s:%" PRIu64 ": less than row,col,value",
                             self->path, self->line);
    }
    return rc != PSD_OK ? rc : ps_reader_flush(self, row, 0, true, err);
}

psd_status_t
ps_reader_csv(ps_reader_t *self, psd_error_t *err)
{
    char row[PS_TOKEN_SIZE] = "";
    bool is_long = false;
    int end = 0;
    psd_status_t rc = PSD_OK;

    self->line = 1;
    rc = read_titles(self, &is_long, err);
    for (self->line = 2; rc == PSD_OK && end != EOF; self->line++) {
        char token[PS_TOKEN_SIZE];

        rc = ps_reader_token(self, ",", token, &end, err);
        if (rc != PSD_OK || (token[0] == '\0' && end != ',')) {
            continue;
        }
        if (is_long) {
            /* Lines of one row stand together and count as one. */
            self->n_rows += strcmp(token, row) == 0 ? 0 : 1;
            memcpy(row, token, sizeof row);
            rc = read_one_value(self, token, &end, err);
        } else {
            rc = read_whole_row(self, token, &end, err);
            self->n_rows++;
        }
    }
    return rc;
}
