/* SPDX-License-Identifier: Apache-2.0 */
/* ps_load - a file of rows, checked from end to end and then pushed */
#ifndef PS_CLI_LOAD_H
#define PS_CLI_LOAD_H

#include "cli/tables/file_format.h"

typedef struct ps_load_args {
    const ps_view_t *view;
    const char *path; /* "-": stdin */
    ps_file_format_t format;
    bool set;         /* values become these; else they are deltas */
    bool dry_run;     /* only check */
    const char *verb; /* for words: "import", "push" */
} ps_load_args_t;

/* Errors: as ps_reader_read; PSD_IO; PSD_UNSUPPORTED; PSD_PARTIAL when some
 * rows were pushed before something failed, saying how many. */
PSD_MUST_CHECK psd_status_t ps_load(ps_cli_t *cli, const ps_load_args_t *args, uint64_t *ret_rows,
                                    uint64_t *ret_values, psd_error_t *err);
#endif
