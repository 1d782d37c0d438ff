/* SPDX-License-Identifier: Apache-2.0 */
/* pscli table export: a table's values as a file. */
#include "cli/tables/tables.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "cli/output/new_file.h"
#include "cli/run/progress.h"
#include "cli/tables/file_format.h"
#include "cli/tables/npy.h"
#include "cli/tables/rows_out.h"

static const ps_column_t EXPORTED[] = {
    {"TABLE", "table", PS_UNIT_NONE, false},   {"FILE", "file", PS_UNIT_NONE, false},
    {"FORMAT", "format", PS_UNIT_NONE, false}, {"ROWS", "rows", PS_UNIT_NONE, false},
    {"VALUES", "values", PS_UNIT_NONE, false}, {"BYTES", "bytes", PS_UNIT_BYTES, false},
    {NULL, NULL, PS_UNIT_NONE, false}};

static ps_rows_format_t rows_format(ps_file_format_t format)
{
    return format == PS_FILE_NPY ? PS_ROWS_RAW : format == PS_FILE_CSV ? PS_ROWS_CSV : PS_ROWS_TEXT;
}

static psd_status_t check_path(const char *path, ps_file_format_t format, psd_error_t *err)
{
    if (path == NULL) {
        return psd_error_set(err, PSD_USAGE, "\"table export\" needs --to FILE");
    }
    if (format == PS_FILE_NPY && ps_file_format_is_packed(path)) {
        return psd_error_set(err, PSD_USAGE,
                             "--to is \"%s\", but npy cannot be compressed, as numpy.load would "
                             "not read it; allowed: NAME.npy",
                             path);
    }
    return PSD_OK;
}

static psd_status_t write_rows(ps_cli_t *cli, const ps_view_t *view, ps_file_format_t format,
                               ps_rows_out_t *out, psd_error_t *err)
{
    PSD_AUTO(ps_progress_done) ps_progress_t progress = {0};
    char words[128];
    ps_scan_sink_t sink = ps_rows_out_sink(out);
    ps_scan_args_t args = {.table = view->table,
                           .sparse = view->is_sparse,
                           .timeout_ms = cli->timeout_ms,
                           .told = ps_progress_told,
                           .arg = &progress};
    bool is_known = !view->is_hash && !view->is_sparse;
    psd_status_t rc = PSD_OK;

    (void)snprintf(words, sizeof words, "export \"%s\"", view->name);
    ps_progress_init(&progress, &cli->out, words,
                     is_known ? view->rows * view->cols * view->value_size : 0);
    if (format == PS_FILE_NPY) {
        rc = ps_npy_write_head(out->file, view->type, view->rows, view->cols, err);
    }
    if (rc == PSD_OK) {
        rc = ps_scan(&args, &sink, err);
    }
    return rc != PSD_OK ? rc : ps_rows_out_finish(out, err);
}

static psd_status_t show_result(const ps_cli_t *cli, const ps_rows_out_t *out,
                                ps_file_format_t format, const char *path, uint64_t bytes,
                                psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *doc = json_pack("{s:s,s:s,s:s,s:I,s:I,s:I}", "table", out->table, "file", path,
                            "format", ps_file_format_name(format), "rows", (json_int_t)out->n_rows,
                            "values", (json_int_t)out->n_values, "bytes", (json_int_t)bytes);

    if (doc == NULL) {
        return psd_error_set(err, PSD_INVALID, "--to is \"%s\", which is not UTF-8", path);
    }
    ps_out_object(&cli->out, doc, EXPORTED);
    return PSD_OK;
}

psd_status_t ps_cmd_table_export(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_view_done) ps_view_t view = {0};
    PSD_AUTO(ps_new_file_done) ps_new_file_t file = {0};
    const char *path = ps_args_text(&cli->args, "to");
    const char *name = NULL;
    ps_file_format_t format = PS_FILE_TEXT;
    uint64_t bytes = 0;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK && path != NULL) {
        format = ps_file_format_of(path, ps_args_text(&cli->args, "format"));
    }
    if (rc == PSD_OK) {
        rc = check_path(path, format, err);
    }
    if (rc == PSD_OK) {
        rc = ps_view_open(cli, name, &view, err);
    }
    if (rc == PSD_OK) {
        rc = ps_file_format_fits(format, &view, err);
    }
    if (rc == PSD_OK) {
        rc = ps_new_file_open(&file, path, 0666, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_rows_out_t out = {.file = file.file,
                         .format = rows_format(format),
                         .type = view.type,
                         .table = view.name,
                         .n_table_cols = view.cols,
                         .sparse = view.is_sparse,
                         .skip_empty = view.is_sparse};

    rc = write_rows(cli, &view, format, &out, err);
    if (rc == PSD_OK) {
        rc = ps_new_file_commit(&file, &bytes, err);
    } else if (file.rc != PSD_OK) {
        rc = ps_new_file_check(&file, err);
    }
    if (rc != PSD_OK || ps_file_out_is_stdout(file.out)) {
        return rc; /* standard output is the file */
    }
    return show_result(cli, &out, format, path, bytes, err);
}
