/* SPDX-License-Identifier: Apache-2.0 */
/* A table's spec as a file: a head with a checksum, then the words of the
 * control messages. */
#include "storage/snapshot/table_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/text.h"
#include "protocol/facts/table_doc.h"

#define MAGIC UINT32_C(0x62547370) /* "psTb" */
#define VERSION 1
#define HEAD ((size_t)48)
#define AT_SUM 40 /* of the 40 bytes before and all after the head */
#define FILE_MAX (HEAD + PS_DOC_BYTES_MAX)

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a table's file");
}

static psd_status_t path_of(ps_buffer_t *to, const ps_table_dir_t *dir, uint32_t table,
                            psd_error_t *err)
{
    return ps_disk_path(to, err, dir->dir, "table-%" PRIu32 ".spec", table);
}

static uint64_t sum_of(ps_bytes_t file)
{
    const ps_bytes_t spans[] = {{file.data, AT_SUM}, {file.data + HEAD, file.size - HEAD}};

    return ps_hash_spans(spans, 2);
}

/* ---- writing ---- */

psd_status_t ps_table_file_write(const ps_table_dir_t *dir, uint32_t table,
                                 const ps_table_spec_t *spec, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t file = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    psd_status_t rc = path_of(&path, dir, table, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (doc == NULL || !ps_table_spec_to_doc(spec, doc) || !ps_doc_print(doc, &text) ||
        !ps_buffer_u32(&file, MAGIC) || !ps_buffer_u32(&file, VERSION) ||
        !ps_buffer_u32(&file, table) || !ps_buffer_u32(&file, dir->n_shards) ||
        !ps_buffer_append(&file, dir->cluster.bytes, PS_ID_SIZE) ||
        !ps_buffer_u64(&file, text.size) || !ps_buffer_u64(&file, 0) ||
        !ps_buffer_append(&file, text.data, text.size)) {
        return no_memory(err);
    }
    ps_store_u64(file.data + AT_SUM, sum_of((ps_bytes_t){file.data, file.size}));
    return ps_disk_make(dir->disk, dir->dir, (const char *)path.data,
                        (ps_bytes_t){file.data, file.size}, NULL, err);
}

psd_status_t ps_table_file_remove(const ps_table_dir_t *dir, uint32_t table, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = path_of(&path, dir, table, err);

    if (rc == PSD_OK) {
        rc = dir->disk->remove(dir->disk, (const char *)path.data, err);
    }
    return rc == PSD_OK ? dir->disk->flush_dir(dir->disk, dir->dir, err) : rc;
}

/* ---- reading ---- */

typedef struct listing {
    uint32_t *tables; /* owned; each with its place in `stale` */
    bool *stale;      /* owned */
    size_t n;
    size_t tables_capacity;
    size_t stale_capacity;
} listing_t;

/* Only names that we would write are ours. */
static bool parse_name(const char *name, uint32_t *ret_table, bool *ret_is_stale)
{
    char digits[16];
    char again[48];
    uint64_t table = 0;
    size_t length = 0;

    if (strncmp(name, "table-", 6) != 0) {
        return false;
    }
    length = strspn(name + 6, "0123456789");
    if (length == 0 || length >= sizeof digits) {
        return false;
    }
    memcpy(digits, name + 6, length);
    digits[length] = '\0';
    if (!ps_text_u64(digits, &table) || table > UINT32_MAX) {
        return false;
    }
    *ret_table = (uint32_t)table;
    *ret_is_stale = strcmp(name + 6 + length, ".spec.tmp") == 0;
    (void)snprintf(again, sizeof again, "table-%" PRIu64 ".spec%s", table,
                   *ret_is_stale ? ".tmp" : "");
    return strcmp(name, again) == 0;
}

bool ps_table_file_parse(const char *name, uint32_t *ret_table)
{
    bool is_stale = false;

    return parse_name(name, ret_table, &is_stale) && !is_stale;
}

static psd_status_t take_name(void *context, const char *name, psd_error_t *err)
{
    listing_t *self = context;
    uint32_t table = 0;
    bool is_stale = false;

    if (!parse_name(name, &table, &is_stale)) {
        return PSD_OK;
    }
    if (!ps_grow(&self->tables, &self->tables_capacity, self->n + 1, sizeof *self->tables) ||
        !ps_grow(&self->stale, &self->stale_capacity, self->n + 1, sizeof *self->stale)) {
        return no_memory(err);
    }
    self->tables[self->n] = table;
    self->stale[self->n++] = is_stale;
    return PSD_OK;
}

static psd_status_t read_all(const ps_table_dir_t *dir, const char *path, ps_buffer_t *ret,
                             psd_error_t *err)
{
    ps_disk_file_t *file = NULL;
    uint64_t size = 0;
    size_t got = 0;
    psd_status_t rc = dir->disk->open(dir->disk, path, PS_DISK_READ, &file, err);

    if (rc == PSD_OK) {
        rc = dir->disk->size(dir->disk, file, &size, err);
    }
    if (rc == PSD_OK && (size < HEAD || size > FILE_MAX)) {
        rc = psd_error_set(err, PSD_DAMAGED,
                           "%s: byte %" PRIu64 ": the file ends; allowed: %zu .. %zu bytes", path,
                           size, HEAD, FILE_MAX);
    }
    if (rc == PSD_OK && !ps_buffer_reserve(ret, (size_t)size)) {
        rc = no_memory(err);
    }
    if (rc == PSD_OK) {
        rc = dir->disk->read(dir->disk, file, 0, ret->data, (size_t)size, &got, err);
        ret->size = got;
    }
    if (rc == PSD_OK && got != size) {
        rc =
            psd_error_set(err, PSD_DAMAGED, "%s: byte %zu: the file ends; it has %" PRIu64 " bytes",
                          path, got, size);
    }
    dir->disk->close(dir->disk, &file);
    return rc;
}

static psd_status_t check_head(const ps_table_dir_t *dir, uint32_t table, ps_bytes_t file,
                               const char *path, psd_error_t *err)
{
    char mine[PS_ID_TEXT_SIZE];
    char theirs[PS_ID_TEXT_SIZE];
    ps_id_t cluster;

    if (ps_load_u32(file.data) != MAGIC || ps_load_u64(file.data + AT_SUM) != sum_of(file) ||
        ps_load_u64(file.data + 32) != file.size - HEAD || ps_load_u32(file.data + 8) != table) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: byte 0: magic, number, size or checksum of the %zu bytes does "
                             "not match table %" PRIu32,
                             path, file.size, table);
    }
    if (ps_load_u32(file.data + 4) != VERSION) {
        return psd_error_set(err, PSD_FOREIGN,
                             "%s is of version %" PRIu32 "; this psd understands %d", path,
                             ps_load_u32(file.data + 4), VERSION);
    }
    memcpy(cluster.bytes, file.data + 16, PS_ID_SIZE);
    if (!ps_id_equal(&cluster, &dir->cluster)) {
        ps_id_format(&cluster, theirs);
        ps_id_format(&dir->cluster, mine);
        return psd_error_set(err, PSD_FOREIGN, "%s is of cluster %s; this is %s", path, theirs,
                             mine);
    }
    if (ps_load_u32(file.data + 12) != dir->n_shards) {
        return psd_error_set(
            err, PSD_FOREIGN,
            "%s was written by a node with %" PRIu32 " shards; this one has %" PRIu32
            ": start it with shards: %" PRIu32 ", or without its logs",
            path, ps_load_u32(file.data + 12), dir->n_shards, ps_load_u32(file.data + 12));
    }
    return PSD_OK;
}

static psd_status_t read_spec(const ps_table_dir_t *dir, uint32_t table, const char *name,
                              ps_table_spec_t *ret, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t file = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    psd_status_t rc = read_all(dir, name, &file, err);

    if (rc == PSD_OK) {
        rc = check_head(dir, table, (ps_bytes_t){file.data, file.size}, name, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_doc_parse((ps_bytes_t){file.data + HEAD, file.size - HEAD}, &doc, err);
    if (rc == PSD_OK) {
        rc = ps_table_spec_from_doc(doc, ret, err);
    }
    return rc == PSD_OK || rc == PSD_NOMEM ? rc : psd_error_wrap(err, PSD_DAMAGED, "%s", name);
}

static psd_status_t read_one(const ps_table_dir_t *dir, uint32_t table, ps_table_file_each_t *each,
                             ps_table_file_damaged_t *damaged, void *context, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_table_spec_t spec;
    const char *name = NULL;
    psd_status_t rc = path_of(&path, dir, table, err);

    if (rc != PSD_OK) {
        return rc;
    }
    name = (const char *)path.data;
    rc = read_spec(dir, table, name, &spec, err);
    if (rc == PSD_DAMAGED && damaged != NULL) {
        return damaged(context, table, name, err);
    }
    if (rc == PSD_OK) {
        rc = each(context, table, &spec, err);
        ps_table_spec_done(&spec);
    }
    return rc;
}

static psd_status_t remove_stale(const ps_table_dir_t *dir, uint32_t table, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = path_of(&path, dir, table, err);

    if (rc == PSD_OK && !ps_buffer_print(&path, ".tmp")) {
        rc = no_memory(err);
    }
    return rc == PSD_OK ? dir->disk->remove(dir->disk, (const char *)path.data, err) : rc;
}

psd_status_t ps_table_file_list(const ps_table_dir_t *dir, ps_table_file_each_t *each,
                                ps_table_file_damaged_t *damaged, void *context, psd_error_t *err)
{
    listing_t found = {0};
    psd_status_t rc = dir->disk->list(dir->disk, dir->dir, take_name, &found, err);

    for (size_t i = 0; rc == PSD_OK && i < found.n; i++) {
        rc = found.stale[i] ? remove_stale(dir, found.tables[i], err)
                            : read_one(dir, found.tables[i], each, damaged, context, err);
    }
    ps_free(found.tables);
    ps_free(found.stale);
    return rc;
}
