/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_cells - rows, columns and values out of a text, checked against a table
 *
 * What     ps_cells_text reads "row col:value col:value …", columns ascending;
 *          lines that begin with `#` and empty ones are skipped. The other
 *          functions are for texts of another shape. Memory is bounded: long
 *          rows come in pieces, whatever the length of a line.
 * Owner    the caller owns the struct; zeroed and filled in it may be used
 * Threads  confined to one thread
 * Errors   with file and line: PSD_INVALID, PSD_RANGE, PSD_TYPE,
 *          PSD_NOT_FINITE; what `read` and `take` return; PSD_NOMEM
 */
#ifndef PS_DATA_CELLS_H
#define PS_DATA_CELLS_H

#include <stdio.h> /* EOF */

#include "base/slice.h"

#define PS_WORD_SIZE 64       /* longest number or pair, with '\0' */
#define PS_PIECE_VALUES 65536 /* of a row that are handed on at once */

/* More of the file; *ret_size 0 is its end. */
typedef psd_status_t ps_cells_read_t(void *from, void *ret_bytes, size_t size, size_t *ret_size,
                                     psd_error_t *err);
/* Values of one row: of the n columns in cols (ascending), or, when cols is
 * NULL, of those from first_col on. Borrowed until it returns. */
typedef psd_status_t ps_cells_take_t(void *arg, uint64_t row, uint32_t first_col,
                                     const uint32_t *cols, const void *values, size_t n,
                                     psd_error_t *err);

typedef struct ps_cells {
    const char *path; /* for errors; borrowed */
    /* the table */
    const char *name;     /* for errors; borrowed */
    ps_type_t type;       /* of every value */
    uint64_t last_row;    /* the greatest key that a row can have */
    uint32_t n_cols;      /* of every row */
    bool allow_nonfinite; /* NaN and infinite values are good */
    ps_cells_read_t *read;
    void *from;            /* for read */
    ps_cells_take_t *take; /* NULL: the text is only checked */
    void *arg;             /* for take */
    uint64_t line;         /* being read, from 1 */
    uint64_t n_rows;       /* lines or rows so far */
    uint64_t n_values;     /* so far */
    char *text;            /* owned; of the file */
    size_t at, filled;     /* text[at .. filled) is not read yet */
    uint32_t *cols;        /* owned; of the piece */
    char *values;          /* owned; of the piece */
    size_t n;              /* in the piece */
} ps_cells_t;

/* Makes room, when all above `line` is filled in. */
PSD_MUST_CHECK psd_status_t ps_cells_init(ps_cells_t *self, psd_error_t *err);
/* Frees what it owns; fits PSD_AUTO. */
void ps_cells_done(ps_cells_t *self);
/* The whole file, from where it stands to its end. */
PSD_MUST_CHECK psd_status_t ps_cells_text(ps_cells_t *self, psd_error_t *err);

/* Reads a word up to one of the separators, a line's end or the file's; gives
 * what ended it ('\n' at a line's end, EOF at the file's). A '\r' in front of
 * a line's end belongs to it. Errors: PSD_INVALID a word that is too long, a
 * byte 0. */
PSD_MUST_CHECK psd_status_t ps_cells_word(ps_cells_t *self, const char *separators,
                                          char ret_word[PS_WORD_SIZE], int *ret_end,
                                          psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_cells_row(const ps_cells_t *self, const char *word,
                                         uint64_t *ret_row, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_cells_col(const ps_cells_t *self, const char *word,
                                         uint32_t *ret_col, psd_error_t *err);
/* Appends a value to the piece. */
PSD_MUST_CHECK psd_status_t ps_cells_value(ps_cells_t *self, uint64_t row, uint32_t col,
                                           const char *word, psd_error_t *err);
/* Hands the piece on, with the columns in self->cols when has_cols. */
PSD_MUST_CHECK psd_status_t ps_cells_flush(ps_cells_t *self, uint64_t row, uint32_t first_col,
                                           bool has_cols, psd_error_t *err);
#endif
