/* SPDX-License-Identifier: Apache-2.0 */
/* pscli push: deltas from the command line or a file. */
#include "cli/tables/tables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/output/json_text.h"
#include "cli/tables/load.h"
#include "cli/tables/trace_out.h"
#include "cli/tables/writer.h"

typedef struct delta {
    uint64_t row;
    uint32_t col;
    char value[8]; /* of the table's type */
} delta_t;

typedef struct deltas {
    delta_t *items; /* owned */
    size_t n, capacity;
    bool whole_rows; /* every word gave all columns of its row */
} deltas_t;

static const ps_column_t PUSHED[] = {{"TABLE", "table", PS_UNIT_NONE, false},
                                     {"ROWS", "rows", PS_UNIT_NONE, false},
                                     {"ACK", "ack", PS_UNIT_NONE, false},
                                     {"DRY_RUN", "dry_run", PS_UNIT_NONE, true},
                                     {NULL, NULL, PS_UNIT_NONE, false}};

static void deltas_done(deltas_t *self)
{
    ps_free(self->items);
    *self = (deltas_t){0};
}

/* Cuts `ROW[:COL]=VALUES` apart. ret_values is borrowed from word. */
static psd_status_t read_word(const char *word, uint64_t *ret_row, uint64_t *ret_col,
                              bool *ret_has_col, const char **ret_values, psd_error_t *err)
{
    char place[48] = "";
    const char *equals = strchr(word, '=');
    size_t n = equals == NULL ? 0 : (size_t)(equals - word);
    char *colon = NULL;

    if (n > 0 && n < sizeof place) {
        memcpy(place, word, n);
    }
    colon = strchr(place, ':');
    if (colon != NULL) {
        *colon++ = '\0';
    }
    if (place[0] == '\0' || !ps_text_u64(place, ret_row) ||
        (colon != NULL && !ps_text_u64(colon, ret_col))) {
        return psd_error_set(err, PSD_USAGE,
                             "\"%.80s\" is not ROW=VALUE, ROW=V1,V2,... or ROW:COL=VALUE", word);
    }
    *ret_has_col = colon != NULL;
    *ret_values = equals + 1;
    return PSD_OK;
}

static psd_status_t check_place(const ps_view_t *view, uint64_t row, uint64_t col, psd_error_t *err)
{
    if (row > view->last_row) {
        return psd_error_set(err, PSD_RANGE,
                             "row %" PRIu64 " of table \"%s\"; the last one is "
                             "%" PRIu64,
                             row, view->name, view->last_row);
    }
    if (col >= view->cols) {
        return psd_error_set(err, PSD_RANGE,
                             "row %" PRIu64 " column %" PRIu64
                             " of table \"%s\"; the last one is %" PRIu32,
                             row, col, view->name, view->cols - 1);
    }
    return PSD_OK;
}

static psd_status_t add_value(deltas_t *self, const ps_view_t *view, uint64_t row, uint64_t col,
                              const char *text, size_t length, psd_error_t *err)
{
    char number[64] = "";
    delta_t *delta = NULL;
    psd_status_t rc = check_place(view, row, col, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_grow(&self->items, &self->capacity, self->n + 1, sizeof *self->items)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for deltas");
    }
    delta = &self->items[self->n];
    *delta = (delta_t){.row = row, .col = (uint32_t)col};
    if (length < sizeof number) {
        memcpy(number, text, length);
    }
    if (!ps_value_parse(view->type, number, delta->value)) {
        return psd_error_set(
            err, PSD_TYPE,
            "row %" PRIu64 " column %" PRIu64 " is \"%.*s\"; allowed: a number of type %s", row,
            col, (int)(length < 80 ? length : 80), text, ps_type_name(view->type));
    }
    self->n++;
    return PSD_OK;
}

static psd_status_t add_word(deltas_t *self, const ps_view_t *view, const char *word,
                             psd_error_t *err)
{
    uint64_t row = 0;
    uint64_t col = 0;
    uint64_t n = 0;
    bool has_col = false;
    const char *at = "";
    psd_status_t rc = read_word(word, &row, &col, &has_col, &at, err);

    for (bool more = true; rc == PSD_OK && more; n++) {
        size_t length = strcspn(at, ",");

        if (n >= view->cols || (has_col && n > 0)) {
            return psd_error_set(err, PSD_SHAPE,
                                 "row %" PRIu64 " is given more than %" PRIu32 " values", row,
                                 has_col ? 1 : view->cols);
        }
        rc = add_value(self, view, row, has_col ? col : n, at, length, err);
        more = at[length] == ',';
        at += length + 1;
    }
    if (rc == PSD_OK && !has_col && n != view->cols) {
        return psd_error_set(err, PSD_SHAPE,
                             "row %" PRIu64 " is given %" PRIu64
                             " values; table \"%s\" has %" PRIu32
                             " columns (ROW:COL=VALUE names one)",
                             row, n, view->name, view->cols);
    }
    self->whole_rows = self->whole_rows && !has_col;
    return rc;
}

static int compare_deltas(const void *a_p, const void *b_p)
{
    const delta_t *a = a_p;
    const delta_t *b = b_p;

    if (a->row != b->row) {
        return a->row < b->row ? -1 : 1;
    }
    return a->col == b->col ? 0 : a->col < b->col ? -1 : 1;
}

static psd_status_t sort_deltas(deltas_t *self, psd_error_t *err)
{
    if (self->n == 0) {
        return PSD_OK;
    }
    qsort(self->items, self->n, sizeof *self->items, compare_deltas);
    for (size_t i = 1; i < self->n; i++) {
        if (compare_deltas(&self->items[i - 1], &self->items[i]) == 0) {
            return psd_error_set(err, PSD_USAGE,
                                 "row %" PRIu64 " column %" PRIu32
                                 " is given twice; give it once, or push "
                                 "twice if both deltas are meant",
                                 self->items[i].row, self->items[i].col);
        }
    }
    return PSD_OK;
}

/* Hands the sorted deltas to the writer, row by row. */
static psd_status_t write_deltas(const deltas_t *self, const ps_view_t *view, ps_writer_t *writer,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_free_at) uint32_t *cols = ps_alloc(self->n, sizeof *cols);
    PSD_AUTO(ps_free_at) char *values = ps_alloc(self->n, view->value_size);
    psd_status_t rc = PSD_OK;

    if (cols == NULL || values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for deltas");
    }
    for (size_t i = 0; rc == PSD_OK && i < self->n;) {
        uint64_t row = self->items[i].row;
        size_t n = 0;

        for (; i < self->n && self->items[i].row == row; i++, n++) {
            cols[n] = self->items[i].col;
            memcpy(values + n * view->value_size, self->items[i].value, view->value_size);
        }
        rc = ps_writer_cells(writer, row, 0, self->whole_rows ? NULL : cols, values, n, err);
    }
    return rc != PSD_OK ? rc : ps_writer_flush(writer, err);
}

static psd_status_t push_words(ps_cli_t *cli, const ps_view_t *view, bool dry_run,
                               uint64_t *ret_rows, psd_error_t *err)
{
    PSD_AUTO(deltas_done) deltas_t deltas = {.whole_rows = true};
    PSD_AUTO(ps_writer_done) ps_writer_t writer = {0};
    psd_status_t rc = PSD_OK;

    for (size_t i = 1; rc == PSD_OK && i < cli->args.n_words; i++) {
        rc = add_word(&deltas, view, ps_cli_word(cli, i), err);
    }
    if (rc == PSD_OK) {
        rc = sort_deltas(&deltas, err);
    }
    for (size_t i = 0; i < deltas.n; i++) {
        *ret_rows += i == 0 || deltas.items[i].row != deltas.items[i - 1].row ? 1 : 0;
    }
    if (rc != PSD_OK || dry_run) {
        return rc;
    }
    rc = ps_writer_init(&writer, cli, view, false, err);
    return rc != PSD_OK ? rc : write_deltas(&deltas, view, &writer, err);
}

static psd_status_t check_words(const ps_cli_t *cli, psd_error_t *err)
{
    bool has_file = ps_args_given(&cli->args, "from");
    psd_status_t rc = PSD_OK;

    if (has_file == (cli->args.n_words > 1)) {
        return psd_error_set(err, PSD_USAGE,
                             has_file ? "both ROW=VALUE and --from are given"
                                      : "\"push\" needs ROW=VALUE or --from FILE");
    }
    for (size_t i = 1; rc == PSD_OK && i < cli->args.n_words; i++) {
        uint64_t row = 0;
        uint64_t col = 0;
        bool has_col = false;
        const char *values = NULL;

        rc = read_word(ps_cli_word(cli, i), &row, &col, &has_col, &values, err);
    }
    return rc;
}

psd_status_t ps_cmd_push(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(psd_trace_destroy) psd_trace_t *trace = NULL;
    PSD_AUTO(ps_view_done) ps_view_t view = {0};
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    bool dry_run = ps_args_on(&cli->args, "dry-run");
    uint64_t rows = 0;
    uint64_t values = 0;
    const char *name = NULL;
    ps_load_args_t load = {.view = &view,
                           .path = ps_args_text(&cli->args, "from"),
                           .format = PS_FILE_TEXT,
                           .dry_run = dry_run,
                           .verb = "push"};
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK) {
        rc = check_words(cli, err);
    }
    if (rc == PSD_OK) {
        rc = ps_view_open(cli, name, &view, err);
    }
    if (rc == PSD_OK) {
        rc = dry_run ? PSD_OK : ps_trace_out_new(cli, &trace, err); /* that sends nothing */
        view.trace = trace;
    }
    if (rc == PSD_OK) {
        rc = load.path != NULL ? ps_load(cli, &load, &rows, &values, err)
                               : push_words(cli, &view, dry_run, &rows, err);
    }
    if (rc != PSD_OK) {
        (void)!ps_trace_out(cli, trace, name, NULL); /* it shows where it stood */
        return rc;
    }
    doc = json_pack("{s:s,s:I,s:s}", "table", name, "rows", (json_int_t)rows, "ack", view.ack);
    if (dry_run) {
        (void)json_object_set_new(doc, "dry_run", json_true());
    }
    ps_out_answer(&cli->out, doc, PUSHED, "%s %" PRIu64 " row%s to \"%s\" (ack %s)",
                  dry_run ? "would push" : "pushed", rows, rows == 1 ? "" : "s", name, view.ack);
    return ps_trace_out(cli, trace, name, err);
}
