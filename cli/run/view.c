/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a table and reads what it is made of. */
#include "cli/run/view.h"

#include <string.h>

void ps_view_done(ps_view_t *self)
{
    psd_table_close(&self->table);
    json_decref(self->doc);
    *self = (ps_view_t){0};
}

psd_status_t ps_view_open(ps_cli_t *cli, const char *name, ps_view_t *ret_view, psd_error_t *err)
{
    ps_view_t view = {0};
    psd_status_t rc = ps_cli_request(cli, "table_inspect", "name", name, &view.doc, err);

    if (rc == PSD_OK) {
        rc = psd_table_open(cli->client, name, &view.table, err);
    }
    if (rc == PSD_OK && !ps_type_parse(psd_table_type(view.table), &view.type)) {
        rc = psd_error_set(err, PSD_UNSUPPORTED,
                           "table \"%s\" has type %s; this pscli supports i32, i64, f32, f64", name,
                           psd_table_type(view.table));
    }
    if (rc != PSD_OK) {
        ps_view_done(&view);
        return rc;
    }
    view.name = psd_table_name(view.table);
    view.value_size = psd_table_value_size(view.table);
    view.rows = psd_table_rows(view.table);
    view.cols = psd_table_cols(view.table);
    view.is_hash = view.rows == 0;
    view.last_row = view.is_hash ? UINT64_MAX : view.rows - 1;
    view.is_sparse = strcmp(ps_json_text(view.doc, "table.row_format"), "dense") != 0;
    view.allow_nonfinite = json_is_true(ps_json_at(view.doc, "table.allow_nonfinite"));
    view.updater = ps_json_text(view.doc, "table.updater.name");
    view.ack = ps_json_text(view.doc, "table.ack");
    *ret_view = view;
    return PSD_OK;
}
