/* SPDX-License-Identifier: Apache-2.0 */
/* pscli cluster backup, restore: the registry as a file, and out of one. */
#include "cli/cluster/cluster.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "cli/output/new_file.h"
#include "data/streams/source.h"
#include "storage/registry/registry_backup.h"

#define REGISTRY_BYTES_MAX (UINT64_C(4) << 30)
#define READ_BYTES ((size_t)1 << 16)

static const ps_column_t BACKED_UP[] = {{"FILE", "file", PS_UNIT_NONE, false},
                                        {"BYTES", "bytes", PS_UNIT_BYTES, false},
                                        {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t RESTORED[] = {{"DATA_DIR", "data_dir", PS_UNIT_NONE, false},
                                       {"BYTES", "bytes", PS_UNIT_BYTES, false},
                                       {NULL, NULL, PS_UNIT_NONE, false}};

static psd_status_t no_utf8(const char *option, const char *path, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID, "%s is \"%s\", which is not UTF-8", option, path);
}

/* ---- backup ---- */

/* Appends the piece. */
static psd_status_t take_piece(const json_t *reply, ps_buffer_t *bytes, psd_error_t *err)
{
    uint64_t size = ps_json_u64(reply, "size");
    size_t before = bytes->size;
    psd_status_t rc = PSD_OK;

    if (size > REGISTRY_BYTES_MAX || ps_json_u64(reply, "offset") != before) {
        return psd_error_set(err, PSD_PROTO,
                             "a piece from %" PRIu64 " on, of %" PRIu64
                             " bytes; byte %zu was requested",
                             ps_json_u64(reply, "offset"), size, before);
    }
    rc = ps_hex_read(bytes, ps_json_text(reply, "bytes"), err);
    if (rc != PSD_OK) {
        return rc;
    }
    return bytes->size > before && bytes->size <= size
               ? PSD_OK
               : psd_error_set(err, PSD_PROTO, "a piece of %zu bytes at %zu of %" PRIu64,
                               bytes->size - before, before, size);
}

static psd_status_t fetch(ps_cli_t *cli, ps_buffer_t *bytes, psd_error_t *err)
{
    uint64_t number = 0;
    uint64_t size = 1;

    while (bytes->size < size) {
        PSD_AUTO(ps_json_unref) json_t *reply = NULL;
        PSD_AUTO(ps_json_unref)
        json_t *request = json_pack("{s:s}", "op", "cluster_backup");
        psd_status_t rc = PSD_OK;

        if (number != 0) { /* the first request has none: it starts a backup */
            (void)json_object_set_new(request, "number", json_integer((json_int_t)number));
            (void)json_object_set_new(request, "offset", json_integer((json_int_t)bytes->size));
        }
        rc = ps_cli_ask(cli, request, &reply, err);
        if (rc == PSD_OK) {
            rc = take_piece(reply, bytes, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
        number = ps_json_u64(reply, "number");
        size = ps_json_u64(reply, "size");
    }
    return ps_registry_backup_check((ps_bytes_t){bytes->data, bytes->size}, err);
}

static psd_status_t write_file(const char *path, const ps_buffer_t *bytes, uint64_t *ret_bytes,
                               bool *ret_is_stdout, psd_error_t *err)
{
    PSD_AUTO(ps_new_file_done) ps_new_file_t file = {0};
    /* It contains the secrets of the nodes. */
    psd_status_t rc = ps_new_file_open(&file, path, 0600, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_file_out_keep_others(file.out);
    *ret_is_stdout = ps_file_out_is_stdout(file.out);
    (void)fwrite(bytes->data, 1, bytes->size, file.file);
    return ps_new_file_commit(&file, ret_bytes, err);
}

/* An older backup may be the only good one. Pipes and devices may be written
 * to. */
static psd_status_t check_is_new(const char *path, psd_error_t *err)
{
    struct stat there = {0};

    if (ps_file_out_names_stdout(path) || lstat(path, &there) != 0 ||
        !(S_ISREG(there.st_mode) || S_ISLNK(there.st_mode))) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_USAGE,
                         "--to is \"%s\", which exists already; allowed: a new file (a backup "
                         "never overwrites a file)",
                         path);
}

psd_status_t ps_cmd_cluster_backup(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    const char *path = ps_args_text(&cli->args, "to");
    uint64_t n_bytes = 0;
    bool is_stdout = false;
    psd_status_t rc = PSD_OK;

    if (path == NULL) {
        return psd_error_set(err, PSD_USAGE, "\"cluster backup\" needs --to FILE");
    }
    rc = check_is_new(path, err);
    if (rc == PSD_OK) {
        rc = fetch(cli, &bytes, err);
    }
    if (rc == PSD_OK) {
        rc = write_file(path, &bytes, &n_bytes, &is_stdout, err);
    }
    if (rc != PSD_OK || is_stdout) {
        return rc; /* standard output is the file */
    }
    doc = json_pack("{s:s,s:I}", "file", path, "bytes", (json_int_t)n_bytes);
    if (doc == NULL) {
        return no_utf8("--to", path, err);
    }
    ps_out_object(&cli->out, doc, BACKED_UP);
    return PSD_OK;
}

/* ---- restore ---- */

static psd_status_t read_file(const char *path, ps_buffer_t *bytes, psd_error_t *err)
{
    PSD_AUTO(ps_source_close) ps_source_t *source = NULL;
    size_t n = 1;
    psd_status_t rc = ps_source_open(path, &source, err);

    while (rc == PSD_OK && n > 0) {
        if (bytes->size > REGISTRY_BYTES_MAX) {
            return psd_error_set(err, PSD_LIMIT,
                                 "%s is larger than a registry may be, %" PRIu64 " bytes", path,
                                 REGISTRY_BYTES_MAX);
        }
        if (!ps_buffer_reserve(bytes, READ_BYTES)) {
            return psd_error_set(err, PSD_NOMEM, "no memory to read %s", path);
        }
        rc = ps_source_read(source, bytes->data + bytes->size, READ_BYTES, &n, err);
        bytes->size += rc == PSD_OK ? n : 0;
    }
    return rc;
}

psd_status_t ps_cmd_cluster_restore(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    const char *path = ps_args_text(&cli->args, "from");
    const char *dir = ps_args_text(&cli->args, "data-dir");
    psd_status_t rc = PSD_OK;

    if (path == NULL || dir == NULL) {
        return psd_error_set(err, PSD_USAGE,
                             "\"cluster restore\" needs --from FILE and "
                             "--data-dir DIR");
    }
    rc = read_file(path, &bytes, err);
    if (rc == PSD_OK) {
        rc = ps_registry_restore(dir, (ps_bytes_t){bytes.data, bytes.size},
                                 (uint64_t)time(NULL) * 1000, err);
        rc = psd_error_wrap(err, rc, "%s", path);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    doc = json_pack("{s:s,s:I}", "data_dir", dir, "bytes", (json_int_t)bytes.size);
    if (doc == NULL) {
        return no_utf8("--data-dir", dir, err);
    }
    ps_out_object(&cli->out, doc, RESTORED);
    return PSD_OK;
}
