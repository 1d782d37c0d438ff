/* SPDX-License-Identifier: Apache-2.0 */
/* First values from a dump: read once to be checked, then once to be added. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/value_text.h"
#include "client/table.h"
#include "data/source.h"
#include "train/train_state.h"

#define BATCH 32768 /* values in a push */
#define TEXT_BYTES 65536
#define WORD_BYTES 64

typedef struct load {
    psd_table_t *table; /* borrowed */
    ps_shape_t shape;   /* of it */
    uint32_t timeout_ms;
    bool adds; /* else it is only checked */
    const char *path;
    ps_source_t *source;  /* owned */
    char *text;           /* owned; TEXT_BYTES */
    size_t at, filled;    /* text[at .. filled) is not read yet */
    uint64_t line;        /* from 1 */
    psd_call_t *call;     /* owned */
    psd_select_t *select; /* owned */
    uint64_t *rows;       /* owned; BATCH, ascending */
    uint32_t *counts;     /* owned; BATCH; of each row */
    uint32_t *cols;       /* owned; BATCH */
    char *values;         /* owned; BATCH, of the table's type */
    size_t n_rows, n_values;
} load_t;

static void
load_done(load_t *self)
{
    ps_source_close(&self->source);
    ps_free(self->text);
    psd_call_destroy(&self->call);
    psd_select_destroy(&self->select);
    ps_free(self->rows);
    ps_free(self->counts);
    ps_free(self->cols);
    ps_free(self->values);
}

/* ---- pushing ------------------------------------------------------------- */

static psd_status_t
flush(load_t *self, psd_error_t *err)
{
    psd_ticket_t ticket = 0;
    psd_status_t rc = PSD_OK;

    if (self->adds && self->n_values > 0) {
        psd_select_rows(self->select, self->rows, self->n_rows);
        psd_select_sparse(self->select, self->counts, self->cols);
        rc = psd_push_start(self->table, self->select, self->values,
                            self->n_values, self->call, &ticket, err);
        if (rc == PSD_OK) {
            rc = psd_wait(self->table->client, ticket, self->timeout_ms, err);
        }
    }
    self->n_rows = 0;
    self->n_values = 0;
    return rc;
}

/* A value has been put behind the others. Rows of one push ascend. */
static psd_status_t
add_entry(load_t *self,
          uint64_t row,
          uint32_t col,
          const char *value,
          psd_error_t *err)
{
    size_t size = self->shape.value_size;
    bool is_new = self->n_rows == 0 || self->rows[self->n_rows - 1] != row;
    psd_status_t rc = PSD_OK;

    if (self->n_values == BATCH ||
        (self->n_rows > 0 &&
         (row < self->rows[self->n_rows - 1] ||
          (!is_new && col <= self->cols[self->n_values - 1])))) {
        rc = flush(self, err);
        is_new = true;
    }
    if (is_new) {
        self->rows[self->n_rows] = row;
        self->counts[self->n_rows++] = 0;
    }
    self->counts[self->n_rows - 1]++;
    self->cols[self->n_values] = col;
    memcpy(self->values + self->n_values * size, value, size);
    self->n_values++;
    return rc;
}

/* ---- reading ------------------------------------------------------------- */

static psd_status_t
refuse(const load_t *self, psd_status_t rc, const char *what, psd_error_t *err)
{
    return psd_error_set(err, rc, "%s:%" PRIu64 ": %s", self->path, self->line,
                         what);
}

/* The next byte; -1: there is none. */
static psd_status_t
next_byte(load_t *self, int *ret_byte, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->at == self->filled) {
        self->at = 0;
        rc = ps_source_read(self->source, self->text, TEXT_BYTES, &self->filled,
                            err);
        if (rc != PSD_OK) {
            self->filled = 0;
            return rc;
        }
    }
    *ret_byte =
        self->at < self->filled ? (unsigned char)self->text[self->at++] : -1;
    return PSD_OK;
}

/* The next word of the line, "" when there is none; *ret_end is what stands
 * behind it: a blank, the line's end, or -1. */
static psd_status_t
next_word(load_t *self,
          char ret_word[WORD_BYTES],
          int *ret_end,
          psd_error_t *err)
{
    size_t n = 0;

    for (;;) {
        int byte = 0;
        psd_status_t rc = next_byte(self, &byte, err);

        if (rc != PSD_OK) {
            return rc;
        }
        if (byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n' ||
            byte < 0) {
            if (n > 0 || byte == '\n' || byte < 0) {
                ret_word[n] = '\0';
                *ret_end = byte;
                return PSD_OK;
            }
            continue;
        }
        if (byte == '\0' || n + 1 == WORD_BYTES) {
            return refuse(self, PSD_INVALID,
                          byte == '\0' ? "a byte 0; the file is no text"
                                       : "a word of more than 62 bytes",
                          err);
        }
        ret_word[n++] = (char)byte;
    }
}

/* One "col:value"; *last is the column before it, -1: none. */
static psd_status_t
read_pair(
    load_t *self, uint64_t row, char *word, int64_t *last, psd_error_t *err)
{
    char *colon = strchr(word, ':');
    uint64_t col = 0;
    _Alignas(8) char value[8];

    if (colon == NULL) {
        return refuse(self, PSD_INVALID, "a word that is no COLUMN:VALUE", err);
    }
    *colon = '\0';
    if (!ps_text_u64(word, &col) || col >= self->shape.n_cols ||
        (int64_t)col <= *last) {
        return psd_error_set(
            err, PSD_RANGE,
            "%s:%" PRIu64 ": column is \"%s\"; allowed: 0..%" PRIu32
            ", ascending",
            self->path, self->line, word, self->shape.n_cols - 1);
    }
    if (!ps_value_parse(self->shape.type, colon + 1, value) ||
        (!self->table->spec.allow_nonfinite &&
         !ps_value_is_finite(self->shape.type, value))) {
        return psd_error_set(err, PSD_TYPE,
                             "%s:%" PRIu64 ": row %" PRIu64 " column %" PRIu64
                             " is \"%s\"; allowed: a number of type %s",
                             self->path, self->line, row, col, colon + 1,
                             psd_table_type(self->table));
    }
    *last = (int64_t)col;
    return add_entry(self, row, (uint32_t)col, value, err);
}

/* A line whose first word has been read. */
static psd_status_t
read_row(load_t *self, char *word, int *end, psd_error_t *err)
{
    int64_t last = -1;
    uint64_t row = 0;
    psd_status_t rc = PSD_OK;

    if (!ps_text_u64(word, &row) || !ps_shape_has_row(&self->shape, row)) {
        return psd_error_set(err, PSD_RANGE,
                             "%s:%" PRIu64 ": row is \"%s\"; allowed: a number"
                             " that a row of table \"%s\" has",
                             self->path, self->line, word,
                             psd_table_name(self->table));
    }
    while (rc == PSD_OK && *end != '\n' && *end >= 0) {
        rc = next_word(self, word, end, err);
        if (rc == PSD_OK && word[0] != '\0') {
            rc = read_pair(self, row, word, &last, err);
        }
    }
    return rc;
}

static psd_status_t
skip_line(load_t *self, int *end, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && *end != '\n' && *end >= 0) {
        rc = next_byte(self, end, err);
    }
    return rc;
}

/* The whole file, once. */
static psd_status_t
read_file(load_t *self, bool adds, psd_error_t *err)
{
    char word[WORD_BYTES];
    int end = 0;
    psd_status_t rc = ps_source_open(self->path, &self->source, err);

    self->adds = adds;
    self->at = 0;
    self->filled = 0;
    for (self->line = 1; rc == PSD_OK && end >= 0; self->line++) {
        rc = next_word(self, word, &end, err);
        if (rc == PSD_OK && word[0] == '#') {
            rc = skip_line(self, &end, err);
        } else if (rc == PSD_OK && word[0] != '\0') {
            rc = read_row(self, word, &end, err);
        }
    }
    ps_source_close(&self->source);
    return rc == PSD_OK ? flush(self, err) : rc;
}

/* ---- loading ------------------------------------------------------------- */

static psd_status_t
make_room(load_t *self, psd_error_t *err)
{
    self->text = ps_alloc_raw(TEXT_BYTES, 1);
    self->call = psd_call_new();
    self->select = psd_select_new();
    self->rows = ps_alloc_raw(BATCH, sizeof *self->rows);
    self->counts = ps_alloc_raw(BATCH, sizeof *self->counts);
    self->cols = ps_alloc_raw(BATCH, sizeof *self->cols);
    self->values = ps_alloc_raw(BATCH, self->shape.value_size);
    if (self->text == NULL || self->call == NULL || self->select == NULL ||
        self->rows == NULL || self->counts == NULL || self->cols == NULL ||
        self->values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to load a dump");
    }
    psd_call_set_timeout_ms(self->call, self->timeout_ms);
    return PSD_OK;
}

static psd_status_t
check(const psd_train_t *self,
      uint32_t table,
      const char *path,
      psd_error_t *err)
{
    if (self->phase != PS_TRAIN_CONFIG || table >= self->n_tables) {
        return psd_error_set(err, PSD_INVALID,
                             "table is %" PRIu32 "; allowed: one of the "
                             "training's %" PRIu32 ", between "
                             "psd_train_config_begin and _end",
                             table, self->n_tables);
    }
    if (strcmp(path, "-") == 0) {
        return psd_error_set(err, PSD_INVALID,
                             "path is \"-\"; allowed: a file, which is read "
                             "twice");
    }
    return PSD_OK;
}

/* A pipe has nothing left for the second time. */
static psd_status_t
check_file(const char *path, psd_error_t *err)
{
    struct stat about;

    /* What cannot be looked at cannot be opened either, which says why. */
    if (stat(path, &about) != 0 || S_ISREG(about.st_mode)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "%s is no regular file; allowed: one that can be "
                         "read twice",
                         path);
}

psd_status_t
psd_train_load(psd_train_t *self,
               uint32_t table,
               const char *path,
               psd_error_t *err)
{
    PSD_AUTO(load_done) load_t load = {.path = path};
    bool adds = false;
    psd_status_t rc = check(self, table, path, err);

    if (rc != PSD_OK || self->worker != 0) {
        return rc;
    }
    load.table = self->tables[table];
    load.shape = self->shapes[table];
    load.timeout_ms = self->options.timeout_ms;
    rc = check_file(path, err);
    if (rc == PSD_OK) {
        rc = make_room(&load, err);
    }
    if (rc == PSD_OK) {
        rc = read_file(&load, false, err);
    }
    if (rc == PSD_OK) {
        rc = ps_first_begin(self, table, &adds, err);
    }
    if (rc == PSD_OK && adds) {
        rc = read_file(&load, true, err);
        if (rc != PSD_OK) {
            self->first[table].partly = true;
        }
    }
    return rc == PSD_OK ? rc
                        : psd_error_wrap(err, rc, "load table \"%s\"",
                                         psd_table_name(load.table));
}
