/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a file twice: to check it, then to push it. */
#include "cli/tables/load.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "cli/run/progress.h"
#include "cli/tables/reader.h"
#include "cli/tables/writer.h"

#define COPY_BYTES 65536

static void close_file(FILE **file_p)
{
    if (*file_p != NULL) {
        (void)fclose(*file_p);
        *file_p = NULL;
    }
}

/* stdin cannot be read twice: a copy on disk, without a name, can. */
static psd_status_t copy_stdin(FILE *to, psd_error_t *err)
{
    char buffer[COPY_BYTES];
    size_t n = 0;

    while ((n = fread(buffer, 1, sizeof buffer, stdin)) > 0) {
        if (fwrite(buffer, 1, n, to) != n) {
            break;
        }
    }
    if (ferror(stdin) || ferror(to) || fflush(to) != 0) {
        return psd_error_set(err, PSD_IO, "stdin cannot be buffered: %s", strerror(errno));
    }
    rewind(to);
    return PSD_OK;
}

static psd_status_t open_file(const char *path, FILE **ret_file, uint64_t *ret_size,
                              psd_error_t *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? tmpfile() : fopen(path, "re");
    struct stat info = {0};
    psd_status_t rc = PSD_OK;

    if (file == NULL) {
        return psd_error_set(err, PSD_IO, "%s cannot be read: %s", path, strerror(errno));
    }
    rc = is_stdin ? copy_stdin(file, err) : PSD_OK;
    if (rc == PSD_OK && (fstat(fileno(file), &info) != 0 || S_ISDIR(info.st_mode))) {
        rc = psd_error_set(err, PSD_IO, "%s is not a file", path);
    }
    if (rc == PSD_OK && !S_ISREG(info.st_mode)) {
        rc = psd_error_set(err, PSD_INVALID, "%s cannot be read twice; \"-\" reads a pipe", path);
    }
    if (rc != PSD_OK) {
        close_file(&file);
        return rc;
    }
    *ret_file = file;
    *ret_size = (uint64_t)info.st_size;
    return PSD_OK;
}

/* One pass over the file; writer NULL: only check. */
static psd_status_t read_once(ps_cli_t *cli, const ps_load_args_t *args, FILE *file, uint64_t size,
                              ps_writer_t *writer, uint64_t *ret_rows, uint64_t *ret_values,
                              psd_error_t *err)
{
    PSD_AUTO(ps_progress_done) ps_progress_t progress = {0};
    PSD_AUTO(ps_source_close) ps_source_t *source = NULL;
    PSD_AUTO(ps_reader_done)
    ps_reader_t reader = {.file = file,
                          .path = strcmp(args->path, "-") == 0 ? "stdin" : args->path,
                          .view = args->view,
                          .take = writer == NULL ? NULL : ps_writer_cells,
                          .arg = writer,
                          .progress = &progress};
    psd_status_t rc = PSD_OK;

    if (args->format != PS_FILE_NPY) {
        rc = ps_source_open_fd(fileno(file), reader.path, &source, err);
        reader.source = source;
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_progress_init(&progress, &cli->out, writer == NULL ? "check" : args->verb, size);
    rc = ps_reader_read(&reader, args->format, err);
    if (rc == PSD_OK && writer != NULL) {
        rc = ps_writer_flush(writer, err);
    }
    *ret_rows = reader.cells.n_rows;
    *ret_values = reader.cells.n_values;
    return rc;
}

psd_status_t ps_load(ps_cli_t *cli, const ps_load_args_t *args, uint64_t *ret_rows,
                     uint64_t *ret_values, psd_error_t *err)
{
    PSD_AUTO(close_file) FILE *file = NULL;
    PSD_AUTO(ps_writer_done) ps_writer_t writer = {0};
    uint64_t size = 0;
    psd_status_t rc = ps_file_format_fits(args->format, args->view, err);

    if (rc == PSD_OK) {
        rc = ps_writer_init(&writer, cli, args->view, args->set, err);
    }
    if (rc == PSD_OK) {
        rc = open_file(args->path, &file, &size, err);
    }
    if (rc == PSD_OK) {
        rc = read_once(cli, args, file, size, NULL, ret_rows, ret_values, err);
    }
    if (rc != PSD_OK || args->dry_run) {
        return rc;
    }
    rewind(file);
    rc = read_once(cli, args, file, size, &writer, ret_rows, ret_values, err);
    if (rc != PSD_OK && writer.rows_done > 0) {
        return psd_error_wrap(err, PSD_PARTIAL, "%s stopped after %" PRIu64 " rows", args->verb,
                              writer.rows_done);
    }
    return rc;
}
