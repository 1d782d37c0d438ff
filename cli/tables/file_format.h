/* SPDX-License-Identifier: Apache-2.0 */
/* ps_file_format - npy, csv or text dump: the format of a file, and the
 * tables that it fits */
#ifndef PS_CLI_FILE_FORMAT_H
#define PS_CLI_FILE_FORMAT_H

#include "cli/run/view.h"

typedef enum ps_file_format { PS_FILE_TEXT = 0, PS_FILE_CSV, PS_FILE_NPY } ps_file_format_t;

/* By the word of --format, or NULL: by the path's ending before .gz or .zst. */
ps_file_format_t ps_file_format_of(const char *path, const char *word);
/* Does the path say that the file is packed? */
bool ps_file_format_is_packed(const char *path);
const char *ps_file_format_name(ps_file_format_t format);
/* Errors: PSD_UNSUPPORTED naming the format that fits the table. */
PSD_MUST_CHECK psd_status_t ps_file_format_fits(ps_file_format_t format, const ps_view_t *view,
                                                psd_error_t *err);
#endif
