/* SPDX-License-Identifier: Apache-2.0 */
/* Making, reading and removing the directory of a checkpoint. */
#include "storage/snapshot/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"

#define MANIFEST "manifest.json"
#define SUM_SIZE 23 /* "\nxxh3 0123456789abcdef\n" */
#define MANIFEST_MAX (UINT64_C(64) << 20)

psd_status_t ps_checkpoint_check_name(const char *name, psd_error_t *err)
{
    size_t size = strlen(name);
    bool is_good = size >= 1 && size <= PS_CHECKPOINT_NAME_MAX;

    for (size_t i = 0; is_good && i < size; i++) {
        char c = name[i];

        is_good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  (i > 0 && (c == '-' || c == '_' || c == '.'));
    }
    return is_good ? PSD_OK
                   : psd_error_set(err, PSD_INVALID,
                                   "the name of a checkpoint; allowed: 1..%d "
                                   "letters, digits, '-', '_', '.', the first "
                                   "one a letter or digit",
                                   PS_CHECKPOINT_NAME_MAX);
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a checkpoint");
}

/* Also one that cannot be read just now: its reader gets the reason. */
static bool exists(const char *path)
{
    struct stat is;

    return stat(path, &is) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

psd_status_t ps_checkpoint_path(const char *dir, const char *name, ps_buffer_t *ret,
                                psd_error_t *err)
{
    return ps_disk_path(ret, err, dir, "%s", name);
}

/* The directory of all checkpoints, which may be a link of the operator's. */
static psd_status_t all_of(const char *dir, ps_buffer_t *ret, psd_error_t *err)
{
    return ps_disk_path(ret, err, dir, ".");
}

/* ---- files of a directory ---- */

typedef struct names {
    char (*list)[256]; /* owned */
    size_t n;
    size_t capacity;
} names_t;

static void names_done(names_t *self)
{
    ps_free(self->list);
}

static psd_status_t take_name(void *context, const char *name, psd_error_t *err)
{
    names_t *self = context;

    if (!ps_grow(&self->list, &self->capacity, self->n + 1, sizeof *self->list)) {
        return no_memory(err);
    }
    (void)snprintf(self->list[self->n++], sizeof *self->list, "%s", name);
    return PSD_OK;
}

/* Removes all files of the directory. */
static psd_status_t empty(ps_disk_t *disk, const char *path, psd_error_t *err)
{
    PSD_AUTO(names_done) names_t names = {0};
    psd_status_t rc = disk->list(disk, path, take_name, &names, err);

    for (size_t i = 0; rc == PSD_OK && i < names.n; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t file = {0};

        rc = ps_disk_path(&file, err, path, "%s", names.list[i]);
        if (rc == PSD_OK) {
            rc = disk->remove(disk, (const char *)file.data, err);
        }
    }
    return rc == PSD_OK ? disk->flush_dir(disk, path, err) : rc;
}

psd_status_t ps_checkpoint_begin(ps_disk_t *disk, const char *dir, const char *name,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t manifest = {0};
    psd_status_t rc = ps_checkpoint_path(dir, name, &path, err);

    if (rc == PSD_OK) {
        rc = ps_disk_path(&manifest, err, (const char *)path.data, MANIFEST);
    }
    if (rc == PSD_OK && exists((const char *)manifest.data)) {
        return psd_error_set(err, PSD_CHECKPOINT_EXISTS, "checkpoint \"%s\" exists already", name);
    }
    if (rc == PSD_OK) {
        rc = disk->make_dir(disk, dir, err);
    }
    if (rc == PSD_OK) {
        rc = disk->make_dir(disk, (const char *)path.data, err);
    }
    return rc == PSD_OK ? empty(disk, (const char *)path.data, err) : rc;
}

psd_status_t ps_checkpoint_drop(ps_disk_t *disk, const char *dir, const char *name,
                                psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t manifest = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t all = {0};
    psd_status_t rc = ps_checkpoint_path(dir, name, &path, err);

    if (rc == PSD_OK) {
        rc = ps_disk_path(&manifest, err, (const char *)path.data, MANIFEST);
    }
    if (rc == PSD_OK) {
        rc = all_of(dir, &all, err);
    }
    if (rc == PSD_OK && !exists((const char *)path.data)) {
        return psd_error_set(err, PSD_NO_CHECKPOINT, "checkpoint \"%s\" does not exist", name);
    }
    if (rc == PSD_OK) { /* first: half of a checkpoint is none */
        rc = disk->remove(disk, (const char *)manifest.data, err);
    }
    if (rc == PSD_OK) {
        rc = disk->flush_dir(disk, (const char *)path.data, err);
    }
    if (rc == PSD_OK) {
        rc = empty(disk, (const char *)path.data, err);
    }
    if (rc == PSD_OK && rmdir((const char *)path.data) != 0) {
        rc = psd_error_set(err, PSD_IO, "remove %s: error %d", (const char *)path.data, errno);
    }
    return rc == PSD_OK ? disk->flush_dir(disk, (const char *)all.data, err) : rc;
}

/* ---- manifests ---- */

psd_status_t ps_checkpoint_write(ps_disk_t *disk, const char *dir, const char *name,
                                 const ps_doc_t *manifest, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t file = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    psd_status_t rc = ps_checkpoint_path(dir, name, &path, err);

    if (rc == PSD_OK) {
        rc = ps_disk_path(&file, err, (const char *)path.data, MANIFEST);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_doc_print(manifest, &text) ||
        !ps_buffer_print(&text, "\nxxh3 %016" PRIx64 "\n",
                         ps_hash_bytes(text.data, text.size, 0))) {
        return no_memory(err);
    }
    return ps_disk_make(disk, (const char *)path.data, (const char *)file.data,
                        (ps_bytes_t){text.data, text.size}, NULL, err);
}

static psd_status_t read_all(ps_disk_t *disk, const char *path, ps_buffer_t *ret, psd_error_t *err)
{
    ps_disk_file_t *file = NULL;
    uint64_t size = 0;
    size_t got = 0;
    psd_status_t rc = disk->open(disk, path, PS_DISK_READ, &file, err);

    if (rc == PSD_OK) {
        rc = disk->size(disk, file, &size, err);
    }
    if (rc == PSD_OK && size > MANIFEST_MAX) {
        rc = psd_error_set(err, PSD_DAMAGED, "%s has %" PRIu64 " bytes; allowed: %" PRIu64, path,
                           size, MANIFEST_MAX);
    }
    if (rc == PSD_OK && !ps_buffer_reserve(ret, (size_t)size + 1)) {
        rc = no_memory(err);
    }
    if (rc == PSD_OK) {
        rc = disk->read(disk, file, 0, ret->data, (size_t)size, &got, err);
        ret->size = got;
    }
    disk->close(disk, &file);
    return rc;
}

/* The text in front of the checksum. */
static psd_status_t check_sum(const char *path, const ps_buffer_t *text, ps_bytes_t *ret,
                              psd_error_t *err)
{
    char want[SUM_SIZE + 1];
    size_t size = text->size < SUM_SIZE ? 0 : text->size - SUM_SIZE;

    (void)snprintf(want, sizeof want, "\nxxh3 %016" PRIx64 "\n",
                   ps_hash_bytes(text->data, size, 0));
    if (text->size < SUM_SIZE || memcmp(text->data + size, want, SUM_SIZE) != 0) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: byte %zu: the checksum does not match the %zu bytes before it",
                             path, size, size);
    }
    *ret = (ps_bytes_t){text->data, size};
    return PSD_OK;
}

psd_status_t ps_checkpoint_read(ps_disk_t *disk, const char *dir, const char *name,
                                ps_doc_t **ret_manifest, uint64_t *ret_sum, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    ps_bytes_t json = {NULL, 0};
    uint64_t format = 0;
    psd_status_t rc = ps_disk_path(&path, err, dir, "%s/" MANIFEST, name);

    if (rc == PSD_OK && !exists((const char *)path.data)) {
        return psd_error_set(err, PSD_NO_CHECKPOINT, "checkpoint \"%s\" does not exist", name);
    }
    if (rc == PSD_OK) {
        rc = read_all(disk, (const char *)path.data, &text, err);
    }
    if (rc == PSD_OK) {
        rc = check_sum((const char *)path.data, &text, &json, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_parse(json, &doc, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "format", 1, UINT64_MAX, &format, err);
    }
    if (rc == PSD_OK && format != PS_CHECKPOINT_FORMAT) {
        rc = psd_error_set(err, PSD_FOREIGN,
                           "%s is of format %" PRIu64 ", of another build of psd; allowed: %d",
                           (const char *)path.data, format, PS_CHECKPOINT_FORMAT);
    }
    if (rc == PSD_OK) {
        *ret_manifest = doc;
        doc = NULL;
        if (ret_sum != NULL) {
            *ret_sum = ps_hash_bytes(json.data, json.size, 0);
        }
    }
    return rc;
}

psd_status_t ps_checkpoint_list(ps_disk_t *disk, const char *dir, ps_disk_name_t *each,
                                void *context, psd_error_t *err)
{
    PSD_AUTO(names_done) names_t names = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t all = {0};
    psd_status_t rc = PSD_OK;

    if (!exists(dir)) {
        return PSD_OK;
    }
    rc = all_of(dir, &all, err);
    if (rc == PSD_OK) {
        rc = disk->list(disk, (const char *)all.data, take_name, &names, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < names.n; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};

        if (ps_checkpoint_check_name(names.list[i], NULL) != PSD_OK) {
            continue;
        }
        rc = ps_disk_path(&path, err, dir, "%s/.", names.list[i]);
        if (rc == PSD_OK && exists((const char *)path.data)) {
            rc = each(context, names.list[i], err);
        }
    }
    return rc;
}
