/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of rows, and pushing them. */
#include "cli/tables/writer.h"

#include <string.h>

#include "base/alloc.h"
#include "cli/tables/writer_delta.h"

#define BATCH_BYTES (1 << 20) /* of values, after which a batch is pushed */
#define BATCH_ROWS 65536
#define ROUNDS_MAX 8 /* reads of values that do not settle */

psd_status_t ps_writer_init(ps_writer_t *ret_writer, ps_cli_t *cli, const ps_view_t *view, bool set,
                            psd_error_t *err)
{
    if (set && strcmp(view->updater, "add") != 0 && strcmp(view->updater, "assign") != 0) {
        return psd_error_set(
            err, PSD_UNSUPPORTED,
            "table \"%s\" has updater %s, which cannot set values; allowed: add, assign",
            view->name, view->updater);
    }
    *ret_writer = (ps_writer_t){.cli = cli,
                                .view = view,
                                .set = set && strcmp(view->updater, "add") == 0,
                                .call = psd_call_new(),
                                .select = psd_select_new()};
    if (ret_writer->call == NULL || ret_writer->select == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a push");
    }
    psd_call_set_timeout_ms(ret_writer->call, cli->timeout_ms);
    psd_call_set_trace(ret_writer->call, view->trace);
    return PSD_OK;
}

void ps_writer_done(ps_writer_t *self)
{
    psd_call_destroy(&self->call);
    psd_select_destroy(&self->select);
    ps_free(self->rows);
    ps_free(self->counts);
    ps_free(self->cols);
    ps_free(self->values);
    ps_free(self->current);
    ps_free(self->deltas);
    *self = (ps_writer_t){0};
}

static void select_batch(ps_writer_t *self)
{
    bool is_range = self->rows[self->n_rows - 1] - self->rows[0] == self->n_rows - 1;

    if (self->dense && is_range && !self->view->is_hash) {
        psd_select_row_range(self->select, self->rows[0], self->n_rows);
    } else {
        psd_select_rows(self->select, self->rows, self->n_rows);
    }
    if (!self->dense) {
        psd_select_sparse(self->select, self->counts, self->cols);
    } else if (self->width == self->view->cols) {
        psd_select_all_cols(self->select);
    } else {
        psd_select_col_range(self->select, self->first_col, (uint32_t)self->width);
    }
}

static psd_status_t push_batch(ps_writer_t *self, const void *values, psd_error_t *err)
{
    psd_ticket_t ticket = 0;
    psd_status_t rc = PSD_OK;

    select_batch(self);
    rc = psd_push_start(self->view->table, self->select, values, self->n_values, self->call,
                        &ticket, err);
    return rc != PSD_OK ? rc : psd_wait(self->cli->client, ticket, self->cli->timeout_ms, err);
}

static psd_status_t pull_dense(ps_writer_t *self, psd_error_t *err)
{
    psd_ticket_t ticket = 0;
    psd_status_t rc = PSD_OK;

    select_batch(self);
    rc = psd_pull_start(self->view->table, self->select, self->current, self->n_values, self->call,
                        &ticket, err);
    return rc != PSD_OK ? rc : psd_wait(self->cli->client, ticket, self->cli->timeout_ms, err);
}

/* Takes row i's columns from the stored values (not zero). */
static void pick_row(ps_writer_t *self, size_t first, size_t n, const uint32_t *cols,
                     const char *values, size_t n_there)
{
    size_t size = self->view->value_size;
    size_t at = 0;

    for (size_t i = first; i < first + n; i++) {
        while (at < n_there && cols[at] < self->cols[i]) {
            at++;
        }
        if (at < n_there && cols[at] == self->cols[i]) {
            memcpy(self->current + i * size, values + at * size, size);
        }
    }
}

static psd_status_t pull_sparse(ps_writer_t *self, psd_error_t *err)
{
    PSD_AUTO(psd_result_destroy) psd_result_t *result = NULL;
    PSD_AUTO(psd_select_destroy) psd_select_t *select = psd_select_new();
    psd_status_t rc = PSD_OK;
    size_t at = 0;
    size_t first = 0;

    if (select == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a pull");
    }
    psd_select_rows(select, self->rows, self->n_rows);
    rc = psd_fetch(self->view->table, select, true, 0, self->call, &result, err);
    if (rc != PSD_OK) {
        return rc;
    }
    memset(self->current, 0, self->n_values * self->view->value_size);
    for (size_t i = 0; i < self->n_rows; i++) {
        uint64_t row = 0;
        size_t n = 0;
        const void *values = NULL;
        const uint32_t *cols = NULL;

        for (; at < psd_result_count(result); at++) {
            psd_result_row(result, at, &row, &n, &values, &cols);
            if (row >= self->rows[i]) {
                break;
            }
        }
        if (at < psd_result_count(result) && row == self->rows[i]) {
            pick_row(self, first, self->counts[i], cols, values, n);
        }
        first += self->counts[i];
    }
    return PSD_OK;
}

/* Pushes differences until the values are those of the batch. */
static psd_status_t settle(ps_writer_t *self, psd_error_t *err)
{
    size_t bytes = self->n_values * self->view->value_size;

    ps_free(self->current);
    ps_free(self->deltas);
    self->current = ps_alloc(bytes, 1);
    self->deltas = ps_alloc(bytes, 1);
    if (self->current == NULL || self->deltas == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for differences");
    }
    for (int round = 0; round < ROUNDS_MAX; round++) {
        bool all_zero = false;
        psd_status_t rc = self->dense ? pull_dense(self, err) : pull_sparse(self, err);

        if (rc != PSD_OK || memcmp(self->current, self->values, bytes) == 0) {
            return rc;
        }
        all_zero = ps_writer_delta(self->view->type, self->values, self->current, self->n_values,
                                   self->deltas);
        rc = push_batch(self, self->deltas, err);
        if (rc != PSD_OK || all_zero) {
            return rc;
        }
    }
    return psd_error_set(err, PSD_FAILED,
                         "the values keep changing; another client seems to push to table \"%s\"",
                         self->view->name);
}

psd_status_t ps_writer_flush(ps_writer_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->n_rows == 0) {
        return PSD_OK;
    }
    rc = self->set ? settle(self, err) : push_batch(self, self->values, err);
    self->rows_done += rc == PSD_OK ? self->n_rows : 0;
    self->n_rows = 0;
    self->n_values = 0;
    return rc;
}

/* Do the values continue the batch's last row? */
static bool continues(const ps_writer_t *self, uint64_t row, const uint32_t *cols)
{
    return self->n_rows > 0 && !self->dense && cols != NULL &&
           row == self->rows[self->n_rows - 1] && cols[0] > self->cols[self->n_values - 1] &&
           self->n_values * self->view->value_size < BATCH_BYTES;
}

/* Can the values join the batch as a new row? */
static bool fits(const ps_writer_t *self, uint64_t row, uint32_t first_col, bool dense, size_t n)
{
    if (self->n_rows == 0) {
        return true;
    }
    return self->n_values * self->view->value_size < BATCH_BYTES && self->n_rows < BATCH_ROWS &&
           row > self->rows[self->n_rows - 1] && dense == self->dense &&
           (!dense || (first_col == self->first_col && n == self->width));
}

static bool make_room(ps_writer_t *self, size_t n)
{
    return ps_grow(&self->rows, &self->rows_capacity, self->n_rows + 1, sizeof *self->rows) &&
           ps_grow(&self->counts, &self->counts_capacity, self->n_rows + 1, sizeof *self->counts) &&
           ps_grow(&self->cols, &self->cols_capacity, self->n_values + n, sizeof *self->cols) &&
           ps_grow(&self->values, &self->values_capacity, self->n_values + n,
                   self->view->value_size);
}

psd_status_t ps_writer_cells(void *arg, uint64_t row, uint32_t first_col, const uint32_t *cols,
                             const void *values, size_t n, psd_error_t *err)
{
    ps_writer_t *self = arg;
    size_t size = self->view->value_size;

    bool goes_on = continues(self, row, cols);

    if (!goes_on && !fits(self, row, first_col, cols == NULL, n)) {
        psd_status_t rc = ps_writer_flush(self, err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    if (!make_room(self, n)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a batch");
    }
    self->dense = cols == NULL;
    self->first_col = first_col;
    self->width = n;
    if (goes_on) {
        self->counts[self->n_rows - 1] += (uint32_t)n;
    } else {
        self->rows[self->n_rows] = row;
        self->counts[self->n_rows++] = (uint32_t)n;
    }
    if (cols != NULL) {
        memcpy(self->cols + self->n_values, cols, n * sizeof *cols);
    }
    memcpy(self->values + self->n_values * size, values, n * size);
    self->n_values += n;
    return PSD_OK;
}
