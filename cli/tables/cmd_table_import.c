/* SPDX-License-Identifier: Apache-2.0 */
/* pscli table import: a table's values from a file. */
#include "cli/tables/tables.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "cli/tables/load.h"

static const ps_column_t IMPORTED[] = {
    {"TABLE", "table", PS_UNIT_NONE, false},   {"FILE", "file", PS_UNIT_NONE, false},
    {"FORMAT", "format", PS_UNIT_NONE, false}, {"DRY_RUN", "dry_run", PS_UNIT_NONE, false},
    {"ROWS", "rows", PS_UNIT_NONE, false},     {"VALUES", "values", PS_UNIT_NONE, false},
    {NULL, NULL, PS_UNIT_NONE, false}};

static psd_status_t show_result(const ps_cli_t *cli, const ps_load_args_t *args, uint64_t rows,
                                uint64_t values, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *doc = json_pack("{s:s,s:s,s:s,s:I,s:I}", "table", args->view->name, "file", args->path,
                            "format", ps_file_format_name(args->format), "rows", (json_int_t)rows,
                            "values", (json_int_t)values);

    if (doc == NULL) {
        return psd_error_set(err, PSD_INVALID, "--from is not UTF-8");
    }
    if (args->dry_run) {
        (void)json_object_set_new(doc, "dry_run", json_true());
        ps_say(&cli->out, "would set %" PRIu64 " values of table \"%s\"", values, args->view->name);
    }
    ps_out_object(&cli->out, doc, IMPORTED);
    return PSD_OK;
}

psd_status_t ps_cmd_table_import(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_view_done) ps_view_t view = {0};
    const char *name = NULL;
    uint64_t rows = 0;
    uint64_t values = 0;
    ps_load_args_t args = {.view = &view,
                           .path = ps_args_text(&cli->args, "from"),
                           .set = true,
                           .dry_run = ps_args_on(&cli->args, "dry-run"),
                           .verb = "import"};
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (args.path == NULL) {
        return psd_error_set(err, PSD_USAGE, "\"table import\" needs --from FILE");
    }
    args.format = ps_file_format_of(args.path, ps_args_text(&cli->args, "format"));
    rc = ps_view_open(cli, name, &view, err);
    if (rc == PSD_OK) {
        rc = ps_load(cli, &args, &rows, &values, err);
    }
    return rc != PSD_OK ? rc : show_result(cli, &args, rows, values, err);
}
