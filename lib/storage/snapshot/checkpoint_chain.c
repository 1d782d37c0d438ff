/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests that build on each other, and the files that they need. */
#include "storage/snapshot/checkpoint_chain.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"

#define FILES_MAX 65536

struct ps_chain_link {
    ps_buffer_t path;   /* of its directory */
    ps_doc_t *manifest; /* owned */
    ps_map_t files;     /* by key_of; borrowed from manifest */
    uint64_t sum;
};

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a checkpoint");
}

static uint64_t key_of(uint64_t table, uint64_t partition)
{
    return table << 32 | partition;
}

void ps_chain_done(ps_chain_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_chain_link_t *link = &self->links[i];

        ps_buffer_done(&link->path);
        ps_doc_destroy(&link->manifest);
        ps_map_done(&link->files);
    }
    ps_free(self->links);
    *self = (ps_chain_t){.n = 0};
}

const ps_doc_t *ps_chain_manifest(const ps_chain_t *self)
{
    return self->links[0].manifest;
}

uint64_t ps_chain_sum(const ps_chain_t *self)
{
    return self->links[0].sum;
}

psd_status_t ps_chain_parent(const ps_doc_t *manifest, const char **ret_name, uint64_t *ret_sum,
                             psd_error_t *err)
{
    const ps_doc_t *since = NULL;
    psd_status_t rc = PSD_OK;

    *ret_name = "";
    if (!ps_doc_has(manifest, "since")) {
        return PSD_OK;
    }
    rc = ps_doc_get_object(manifest, "since", &since, err);
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(since, "name", PS_CHECKPOINT_NAME_MAX, ret_name, err);
    }
    if (rc == PSD_OK) {
        rc = ps_checkpoint_check_name(*ret_name, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(since, "sum", 0, UINT64_MAX, ret_sum, err);
    }
    return rc == PSD_OK ? PSD_OK : psd_error_wrap(err, PSD_DAMAGED, "a manifest");
}

/* ---- reading ---- */

static psd_status_t list_files(ps_chain_link_t *self, psd_error_t *err)
{
    const ps_doc_t *files = NULL;
    psd_status_t rc = ps_doc_get_array(self->manifest, "files", FILES_MAX, &files, err);

    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(files); i++) {
        const ps_doc_t *file = NULL;
        uint64_t table = 0;
        uint64_t partition = 0;

        rc = ps_doc_at_object(files, i, &file, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64(file, "table", 1, UINT32_MAX, &table, err);
        }
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64(file, "partition", 0, UINT32_MAX, &partition, err);
        }
        if (rc == PSD_OK && !ps_map_put(&self->files, key_of(table, partition), (void *)file)) {
            rc = no_memory(err);
        }
    }
    return rc;
}

/* One link more. */
static psd_status_t read_link(ps_chain_t *self, ps_disk_t *disk, const char *dir, const char *name,
                              psd_error_t *err)
{
    ps_chain_link_t *link = NULL;
    psd_status_t rc = PSD_OK;

    if (self->n == PS_CHAIN_MAX) {
        return psd_error_set(err, PSD_LIMIT,
                             "more than %d checkpoints that were made since "
                             "each other",
                             PS_CHAIN_MAX);
    }
    if (!ps_grow(&self->links, &self->capacity, self->n + 1, sizeof *self->links)) {
        return no_memory(err);
    }
    link = &self->links[self->n++];
    *link = (ps_chain_link_t){.manifest = NULL};
    rc = ps_checkpoint_path(dir, name, &link->path, err);
    if (rc == PSD_OK) {
        rc = ps_checkpoint_read(disk, dir, name, &link->manifest, &link->sum, err);
    }
    return rc == PSD_OK ? list_files(link, err) : rc;
}

psd_status_t ps_chain_read(ps_chain_t *self, ps_disk_t *disk, const char *dir, const char *name,
                           psd_error_t *err)
{
    const char *child = name;
    const char *parent = NULL;
    uint64_t sum = 0;
    psd_status_t rc = read_link(self, disk, dir, name, err);

    if (rc == PSD_OK) {
        rc = ps_chain_parent(self->links[0].manifest, &parent, &sum, err);
    }
    while (rc == PSD_OK && parent[0] != '\0') {
        rc = psd_error_wrap(err, read_link(self, disk, dir, parent, err),
                            "checkpoint \"%s\" was made since \"%s\"", child, parent);
        if (rc == PSD_OK && self->links[self->n - 1].sum != sum) {
            rc = psd_error_set(err, PSD_DAMAGED,
                               "checkpoint \"%s\" was made since another "
                               "\"%s\": the checksum of that manifest was "
                               "%016" PRIx64 ", and is %016" PRIx64,
                               child, parent, sum, self->links[self->n - 1].sum);
        }
        child = parent;
        if (rc == PSD_OK) {
            rc = ps_chain_parent(self->links[self->n - 1].manifest, &parent, &sum, err);
        }
    }
    return rc;
}

/* ---- what is needed ---- */

/* The line of a partition. NULL: it has none. */
static const ps_doc_t *line_of(const ps_chain_link_t *self, uint64_t key)
{
    return ps_map_get(&self->files, key);
}

/* How many links a partition's files are in, this one being the newest. */
static psd_status_t depth(const ps_chain_t *self, uint64_t key, size_t *ret, psd_error_t *err)
{
    uint64_t since = 0;

    for (size_t i = 0; i < self->n; i++) {
        const ps_doc_t *line = line_of(&self->links[i], key);
        uint64_t version = 0;
        psd_status_t rc = PSD_OK;

        if (line == NULL) {
            break;
        }
        rc = ps_doc_get_u64(line, "version", 0, UINT64_MAX, &version, err);
        if (rc == PSD_OK && i > 0 && version != since) {
            break;
        }
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64_or(line, "since", 0, UINT64_MAX, 0, &since, err);
        }
        if (rc != PSD_OK || since == 0) {
            *ret = i + 1;
            return rc;
        }
    }
    return psd_error_set(err, PSD_DAMAGED,
                         "partition %" PRIu64 " of table %" PRIu64
                         ": no file of the earlier checkpoints ends at version "
                         "%" PRIu64 " of its rows",
                         key & UINT32_MAX, key >> 32, since);
}

static psd_status_t add_line(const ps_doc_t *line, size_t link, ps_doc_t *to, psd_error_t *err)
{
    static const char *const KEYS[] = {"table", "partition", "lsn", "sum", "bytes"};
    ps_doc_t *item = to == NULL ? NULL : ps_doc_append_object(to);
    psd_status_t rc = item == NULL || !ps_doc_set_u64(item, "dir", link) ? no_memory(err) : PSD_OK;

    for (size_t k = 0; rc == PSD_OK && k < sizeof KEYS / sizeof KEYS[0]; k++) {
        uint64_t value = 0;

        rc = ps_doc_get_u64(line, KEYS[k], 0, UINT64_MAX, &value, err);
        if (rc == PSD_OK && !ps_doc_set_u64(item, KEYS[k], value)) {
            rc = no_memory(err);
        }
    }
    return rc;
}

static psd_status_t add_partition(const ps_chain_t *self, uint64_t key, ps_doc_t *files,
                                  psd_error_t *err)
{
    size_t n = 0;
    psd_status_t rc = depth(self, key, &n, err);

    while (rc == PSD_OK && n > 0) {
        n--;
        rc = add_line(line_of(&self->links[n], key), n, files, err);
    }
    return rc;
}

psd_status_t ps_chain_files(const ps_chain_t *self, uint64_t table, ps_doc_t *to, psd_error_t *err)
{
    ps_doc_t *dirs = ps_doc_add_array(to, "dirs");
    ps_doc_t *files = dirs == NULL ? NULL : ps_doc_add_array(to, "files");
    const ps_doc_t *lines = NULL;
    psd_status_t rc =
        files == NULL ? no_memory(err)
                      : ps_doc_get_array(self->links[0].manifest, "files", FILES_MAX, &lines, err);

    for (size_t i = 0; rc == PSD_OK && i < self->n; i++) {
        if (!ps_doc_append_text(dirs, (const char *)self->links[i].path.data)) {
            rc = no_memory(err);
        }
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(lines); i++) {
        const ps_doc_t *line = NULL;
        uint64_t of = 0;
        uint64_t partition = 0;

        rc = ps_doc_at_object(lines, i, &line, err);
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64(line, "table", 1, UINT32_MAX, &of, err);
        }
        if (rc == PSD_OK) {
            rc = ps_doc_get_u64(line, "partition", 0, UINT32_MAX, &partition, err);
        }
        if (rc == PSD_OK && (table == 0 || of == table)) {
            rc = add_partition(self, key_of(of, partition), files, err);
        }
    }
    return rc;
}

psd_status_t ps_chain_since(const ps_chain_t *self, uint64_t table, uint64_t n_partitions,
                            ps_doc_t *to, psd_error_t *err)
{
    static const char *const KEYS[] = {"version", "lsn", "lsn_epoch"};
    ps_doc_t *since = to == NULL ? NULL : ps_doc_add_array(to, "since");
    psd_status_t rc = since == NULL ? no_memory(err) : PSD_OK;

    for (uint64_t i = 0; rc == PSD_OK && i < n_partitions; i++) {
        const ps_doc_t *line = line_of(&self->links[0], key_of(table, i));

        for (size_t k = 0; rc == PSD_OK && k < sizeof KEYS / sizeof KEYS[0]; k++) {
            uint64_t value = 0;

            if (line != NULL) {
                rc = ps_doc_get_u64_or(line, KEYS[k], 0, UINT64_MAX, 0, &value, err);
            }
            if (rc == PSD_OK && !ps_doc_append_u64(since, value)) {
                rc = no_memory(err);
            }
        }
    }
    return rc;
}
