/* SPDX-License-Identifier: Apache-2.0 */
/* Initial values from a dump: one pass checks the file, a second adds them. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "client/requests/table.h"
#include "data/streams/source.h"
#include "data/text/cells.h"
#include "train/setup/setup.h"

#define BATCH PS_PIECE_VALUES /* values in a push */

typedef struct load {
    psd_table_t *table; /* borrowed */
    size_t value_size;  /* bytes */
    uint32_t timeout_ms;
    const char *path;
    psd_call_t *call;     /* owned */
    psd_select_t *select; /* owned */
    uint64_t *rows;       /* owned; BATCH, ascending */
    uint32_t *counts;     /* owned; BATCH; of each row */
    uint32_t *cols;       /* owned; BATCH */
    char *values;         /* owned; BATCH, of the table's type */
    size_t n_rows, n_values;
} load_t;

static void load_done(load_t *self)
{
    psd_call_destroy(&self->call);
    psd_select_destroy(&self->select);
    ps_free(self->rows);
    ps_free(self->counts);
    ps_free(self->cols);
    ps_free(self->values);
}

/* ---- pushing ------------------------------------------------------------- */

static psd_status_t flush(load_t *self, psd_error_t *err)
{
    psd_ticket_t ticket = 0;
    psd_status_t rc = PSD_OK;

    if (self->n_values > 0) {
        psd_select_rows(self->select, self->rows, self->n_rows);
        psd_select_sparse(self->select, self->counts, self->cols);
        rc = psd_push_start(self->table, self->select, self->values, self->n_values, self->call,
                            &ticket, err);
        if (rc == PSD_OK) {
            rc = psd_wait(self->table->client, ticket, self->timeout_ms, err);
        }
    }
    self->n_rows = 0;
    self->n_values = 0;
    return rc;
}

/* Appends values of a row, at most as many as a batch holds. The rows of one
 * push ascend, each once. */
static psd_status_t add_cells(void *arg, uint64_t row, uint32_t first_col, const uint32_t *cols,
                              const void *values, size_t n, psd_error_t *err)
{
    load_t *self = arg;

    (void)first_col; /* text has columns */
    if (self->n_values + n > BATCH || (self->n_rows > 0 && row <= self->rows[self->n_rows - 1])) {
        psd_status_t rc = flush(self, err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    self->rows[self->n_rows] = row;
    self->counts[self->n_rows++] = (uint32_t)n;
    memcpy(self->cols + self->n_values, cols, n * sizeof *cols);
    memcpy(self->values + self->n_values * self->value_size, values, n * self->value_size);
    self->n_values += n;
    return PSD_OK;
}

/* ---- reading ------------------------------------------------------------- */

static psd_status_t read_source(void *from, void *ret_bytes, size_t size, size_t *ret_size,
                                psd_error_t *err)
{
    return ps_source_read(from, ret_bytes, size, ret_size, err);
}

/* The whole file, once. */
static psd_status_t read_file(load_t *self, ps_cells_take_t *take, psd_error_t *err)
{
    const ps_table_spec_t *spec = &self->table->spec;
    PSD_AUTO(ps_source_close) ps_source_t *source = NULL;
    PSD_AUTO(ps_cells_done) ps_cells_t cells = {.n = 0};
    psd_status_t rc = ps_source_open(self->path, &source, err);

    if (rc != PSD_OK) {
        return rc;
    }
    cells = (ps_cells_t){.path = self->path,
                         .name = psd_table_name(self->table),
                         .type = spec->type,
                         .last_row = spec->n_rows == 0 ? UINT64_MAX : spec->n_rows - 1,
                         .n_cols = spec->n_cols,
                         .allow_nonfinite = spec->allow_nonfinite,
                         .read = read_source,
                         .from = source,
                         .take = take,
                         .arg = self};
    rc = ps_cells_init(&cells, err);
    if (rc == PSD_OK) {
        rc = ps_cells_text(&cells, err);
    }
    return rc == PSD_OK ? flush(self, err) : rc;
}

/* ---- loading ------------------------------------------------------------- */

static psd_status_t make_room(load_t *self, psd_error_t *err)
{
    self->call = psd_call_new();
    self->select = psd_select_new();
    self->rows = ps_alloc_raw(BATCH, sizeof *self->rows);
    self->counts = ps_alloc_raw(BATCH, sizeof *self->counts);
    self->cols = ps_alloc_raw(BATCH, sizeof *self->cols);
    self->values = ps_alloc_raw(BATCH, self->value_size);
    if (self->call == NULL || self->select == NULL || self->rows == NULL || self->counts == NULL ||
        self->cols == NULL || self->values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to load a dump");
    }
    psd_call_set_timeout_ms(self->call, self->timeout_ms);
    return PSD_OK;
}

static psd_status_t check(const psd_train_t *self, uint32_t table, const char *path,
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
    return ps_first_check(self, table, true, err);
}

/* A pipe cannot be read a second time. */
static psd_status_t check_file(const char *path, psd_error_t *err)
{
    struct stat about;

    /* What cannot be looked at cannot be opened either, which says why. */
    if (stat(path, &about) != 0 || S_ISREG(about.st_mode)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "%s is not a regular file; allowed: one that can be read twice", path);
}

psd_status_t psd_train_load(psd_train_t *self, uint32_t table, const char *path, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    PSD_AUTO(load_done) load_t load = {.path = path};
    bool adds = false;
    psd_status_t rc = check(self, table, path, err);

    if (rc != PSD_OK || self->worker != 0) {
        return rc;
    }
    load.table = self->tables[table];
    load.value_size = self->shapes[table].value_size;
    load.timeout_ms = self->options.timeout_ms;
    rc = check_file(path, err);
    if (rc == PSD_OK) {
        rc = make_room(&load, err);
    }
    if (rc == PSD_OK) {
        rc = read_file(&load, NULL, err);
    }
    if (rc == PSD_OK) {
        rc = ps_first_begin(self, table, &adds, err);
    }
    if (rc == PSD_OK && adds) {
        rc = read_file(&load, add_cells, err);
        if (rc != PSD_OK) {
            self->first[table].partly = true;
        }
    }
    return rc == PSD_OK ? rc
                        : psd_error_wrap(err, rc, "load table \"%s\"", psd_table_name(load.table));
}
