/* SPDX-License-Identifier: Apache-2.0 */
/* pscli pull: values of rows. */
#include "cli/tables/tables.h"

#include "base/alloc.h"
#include "cli/run/view.h"
#include "cli/tables/rows_out.h"
#include "cli/tables/rowset.h"
#include "cli/tables/trace_out.h"

#define COLS_MAX 1000000 /* columns that --cols may name one by one */

static psd_status_t pull(ps_cli_t *cli, const ps_view_t *view, const ps_rowset_t *rows,
                         const uint32_t *cols, size_t n_cols, psd_error_t *err)
{
    ps_rows_out_t out = {.file = cli->out.out,
                         .format = (ps_rows_format_t)cli->out.format,
                         .type = view->type,
                         .table = view->name,
                         .n_table_cols = view->cols,
                         .cols = cols,
                         .n_cols = n_cols,
                         .any_key = view->is_hash,
                         .big_as_text = cli->out.big_as_text,
                         .sparse = view->is_sparse && cols == NULL};
    ps_scan_sink_t sink = ps_rows_out_sink(&out);
    ps_scan_args_t args = {.table = view->table,
                           .spans = rows->all ? NULL : rows->spans,
                           .n_spans = rows->n_spans,
                           .cols = cols,
                           .n_cols = n_cols,
                           .sparse = out.sparse,
                           .timeout_ms = cli->timeout_ms,
                           .trace = view->trace};
    psd_status_t rc = ps_scan(&args, &sink, err);

    return rc != PSD_OK ? rc : ps_rows_out_finish(&out, err);
}

psd_status_t ps_cmd_pull(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(psd_trace_destroy) psd_trace_t *trace = NULL;
    PSD_AUTO(ps_view_done) ps_view_t view = {0};
    PSD_AUTO(ps_rowset_done) ps_rowset_t rows = {0};
    PSD_AUTO(ps_rowset_done) ps_rowset_t cols = {0};
    PSD_AUTO(ps_rowset_done) ps_rowset_t trial = {0};
    PSD_AUTO(ps_free_at) uint32_t *numbers = NULL;
    size_t n_numbers = 0;
    const char *name = NULL;
    const char *rows_text = ps_cli_word(cli, 1);
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    cli->only_reads = true;
    if (rc == PSD_OK) {
        /* Checks the words before it connects. */
        rc = ps_rowset_parse(&trial, rows_text, "ROWS", UINT64_MAX, err);
    }
    if (rc == PSD_OK) {
        rc = ps_view_open(cli, name, &view, err);
    }
    if (rc == PSD_OK) {
        rc = ps_rowset_parse(&rows, rows_text, "ROWS", view.last_row, err);
    }
    if (rc == PSD_OK) {
        rc = ps_rowset_parse(&cols, ps_args_text(&cli->args, "cols"), "--cols", view.cols - 1, err);
    }
    if (rc == PSD_OK) {
        rc = ps_rowset_u32(&cols, "--cols", COLS_MAX, &numbers, &n_numbers, err);
    }
    if (rc == PSD_OK) {
        rc = ps_trace_out_new(cli, &trace, err);
        view.trace = trace;
    }
    if (rc == PSD_OK) {
        rc = pull(cli, &view, &rows, numbers, n_numbers, err);
    }
    if (rc != PSD_OK) {
        (void)!ps_trace_out(cli, trace, name, NULL); /* it shows where it stood */
        return rc;
    }
    return ps_trace_out(cli, trace, name, err);
}
