/* SPDX-License-Identifier: Apache-2.0 */
/* ps_file_format - npy, csv or text dump: of what a file is, and for what
 * tables it serves */
#ifndef PS_CLI_FILE_FORMAT_H
#define PS_CLI_FILE_FORMAT_H

#include "cli/output/view.h"

typedef enum ps_file_format { PS_FILE_TEXT = 0, PS_FILE_CSV, PS_FILE_NPY } ps_file_format_t;

/* By the word of --format, or NULL: by the path's ending, in front of .gz or
 * .zst. */
ps_file_format_t ps_file_format_of(const char *path, const char *word);
/* Does the path say that the file is packed? */
bool ps_file_format_is_packed(const char *path);
const char *ps_file_format_name(ps_file_format_t format);
/* Errors: PSD_UNSUPPORTED naming what serves the table instead. */
PSD_MUST_CHECK psd_status_t ps_file_format_fits(ps_file_format_t format, const ps_view_t *view,
                                                psd_error_t *err);
#endif
