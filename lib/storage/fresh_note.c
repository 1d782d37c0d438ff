/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is there while logs are new. */
#include "storage/fresh_note.h"

#include <string.h>

#include "base/alloc.h"

#define NOTE "logs-new"

typedef struct name_search {
    const char *name;
    bool found;
} name_search_t;

static psd_status_t
look_at(void *context, const char *name, psd_error_t *err)
{
    name_search_t *search = context;

    (void)err;
    search->found = search->found || strcmp(name, search->name) == 0;
    return PSD_OK;
}

static psd_status_t
has_name(ps_disk_t *disk,
         const char *dir,
         const char *name,
         bool *ret_has,
         psd_error_t *err)
{
    name_search_t search = {.name = name};
    psd_status_t rc = disk->list(disk, dir, look_at, &search, err);

    if (rc == PSD_OK) {
        *ret_has = search.found;
    }
    return rc;
}

/* An earlier start had opened the log. */
static psd_status_t
has_log(ps_disk_t *disk,
        const char *dir,
        uint32_t shard,
        bool *ret_has,
        psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = ps_disk_path(&path, err, dir, "log-%u", shard);

    if (rc == PSD_OK) {
        rc = disk->make_dir(disk, (const char *)path.data, err);
    }
    return rc == PSD_OK ? has_name(disk, (const char *)path.data, "log-flushed",
                                   ret_has, err)
                        : rc;
}

psd_status_t
ps_fresh_note_settle(ps_disk_t *disk,
                     const char *dir,
                     uint32_t n_shards,
                     bool *ret_is_fresh,
                     psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    bool is_fresh = false;
    bool is_there = true;
    psd_status_t rc = has_name(disk, dir, NOTE, &is_fresh, err);

    for (uint32_t i = 0; rc == PSD_OK && is_there && i < n_shards; i++) {
        rc = has_log(disk, dir, i, &is_there, err);
    }
    if (rc == PSD_OK && !is_there && !is_fresh) {
        rc = ps_disk_path(&path, err, dir, NOTE);
        if (rc == PSD_OK) {
            rc = ps_disk_make(disk, dir, (const char *)path.data,
                              (ps_bytes_t){NULL, 0}, NULL, err);
        }
    }
    if (rc == PSD_OK) {
        *ret_is_fresh = is_fresh || !is_there;
    }
    return rc;
}

psd_status_t
ps_fresh_note_remove(ps_disk_t *disk, const char *dir, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = ps_disk_path(&path, err, dir, NOTE);

    if (rc == PSD_OK) {
        rc = disk->remove(disk, (const char *)path.data, err);
    }
    return rc == PSD_OK ? disk->flush_dir(disk, dir, err) : rc;
}
