/* SPDX-License-Identifier: Apache-2.0 */
/* Which format a file has. */
#include "cli/tables/file_format.h"

#include <string.h>
#include <strings.h>

/* Do the first n characters end so? */
static bool ends_in(const char *path, size_t n, const char *ending)
{
    size_t m = strlen(ending);

    return n >= m && strncasecmp(path + n - m, ending, m) == 0;
}

/* The path's length without .gz or .zst. */
static size_t plain_length(const char *path)
{
    size_t n = strlen(path);

    return n - (ends_in(path, n, ".gz") ? 3 : ends_in(path, n, ".zst") ? 4 : 0);
}

bool ps_file_format_is_packed(const char *path)
{
    return plain_length(path) < strlen(path);
}

ps_file_format_t ps_file_format_of(const char *path, const char *word)
{
    size_t n = plain_length(path);

    if (word != NULL) {
        return strcmp(word, "npy") == 0   ? PS_FILE_NPY
               : strcmp(word, "csv") == 0 ? PS_FILE_CSV
                                          : PS_FILE_TEXT;
    }
    return ends_in(path, n, ".npy")   ? PS_FILE_NPY
           : ends_in(path, n, ".csv") ? PS_FILE_CSV
                                      : PS_FILE_TEXT;
}

const char *ps_file_format_name(ps_file_format_t format)
{
    return format == PS_FILE_NPY ? "npy" : format == PS_FILE_CSV ? "csv" : "text";
}

psd_status_t ps_file_format_fits(ps_file_format_t format, const ps_view_t *view, psd_error_t *err)
{
    if (format == PS_FILE_NPY && (view->is_hash || view->is_sparse)) {
        return psd_error_set(
            err, PSD_UNSUPPORTED,
            "npy holds dense tables with range keys; table \"%s\" has %s; allowed: csv, text",
            view->name, view->is_hash ? "hash keys" : "sparse rows");
    }
    return PSD_OK;
}
