/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room cli/tables: commands about rows and samples
 *
 * It is       Tables and their rows: made, shown, pushed, compared, exported,
 *             imported. Files of samples.
 * It uses     run, output, lib/client, lib/data, lib/base.
 * It ignores  Jobs and nodes.
 * Start at    cmd_table.c; reader.h and writer.h for imports, rows_out.h for
 *             exports.
 */
#ifndef PS_CLI_TABLES_H
#define PS_CLI_TABLES_H

#include "cli/run/cli.h"

psd_status_t ps_cmd_table_create(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_table_list(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_table_inspect(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_table_drop(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_table_ack(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_table_set(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_table_diff(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_table_export(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_table_import(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_push(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_pull(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_data_convert(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_data_show(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_data_detect(ps_cli_t *cli, psd_error_t *err);
#endif
