/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is there while logs are new. */
#include "storage/log/fresh_note.h"

#include <string.h>

#include "base/alloc.h"
#include "storage/log/inventory.h"
#include "storage/log/log_dir.h"
#include "storage/log/segment.h"

#define NOTE "logs-new"

typedef struct name_search {
    const char *name;
    bool found;
} name_search_t;

static psd_status_t look_at(void *context, const char *name, psd_error_t *err)
{
    name_search_t *search = context;

    (void)err;
    search->found = search->found || strcmp(name, search->name) == 0;
    return PSD_OK;
}

static psd_status_t has_name(ps_disk_t *disk, const char *dir, const char *name, bool *ret_has,
                             psd_error_t *err)
{
    name_search_t search = {.name = name};
    psd_status_t rc = disk->list(disk, dir, look_at, &search, err);

    if (rc == PSD_OK) {
        *ret_has = search.found;
    }
    return rc;
}

/* The directory of a log, and what is in it. */
static psd_status_t look_at_log(ps_disk_t *disk, const char *dir, uint32_t shard,
                                ps_buffer_t *ret_path, ps_log_dir_t *ret_log, psd_error_t *err)
{
    psd_status_t rc = ps_disk_path(ret_path, err, dir, "log-%u", shard);

    return rc == PSD_OK ? ps_log_dir_look(disk, (const char *)ret_path->data, ret_log, err) : rc;
}

void ps_fresh_note_done(ps_fresh_note_t *self)
{
    ps_free(self->is_new);
    *self = (ps_fresh_note_t){0};
}

static psd_status_t make_note(ps_fresh_note_t *self, ps_disk_t *disk, const char *dir,
                              psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = ps_disk_path(&path, err, dir, NOTE);

    if (rc == PSD_OK) {
        self->is_fresh = true;
        self->is_made = true;
        rc = ps_disk_make(disk, dir, (const char *)path.data, (ps_bytes_t){NULL, 0}, NULL, err);
    }
    return rc;
}

psd_status_t ps_fresh_note_settle(ps_disk_t *disk, const char *dir, uint32_t n_shards,
                                  ps_fresh_note_t *ret_note, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    bool any_new = false;
    psd_status_t rc = has_name(disk, dir, NOTE, &ret_note->is_fresh, err);

    ret_note->n_shards = n_shards;
    ret_note->is_new = ps_alloc(n_shards, sizeof *ret_note->is_new);
    if (rc == PSD_OK && ret_note->is_new == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for %u logs", n_shards);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < n_shards; i++) {
        ps_log_dir_t log = {0};

        rc = look_at_log(disk, dir, i, &path, &log, err);
        ret_note->is_new[i] = !ps_log_dir_is_used(&log);
        any_new = any_new || ret_note->is_new[i];
    }
    return rc == PSD_OK && any_new && !ret_note->is_fresh ? make_note(ret_note, disk, dir, err)
                                                          : rc;
}

psd_status_t ps_fresh_note_remove(ps_fresh_note_t *self, ps_disk_t *disk, const char *dir,
                                  psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = ps_disk_path(&path, err, dir, NOTE);

    self->is_made = false; /* from here on the logs are the node's */
    if (rc == PSD_OK) {
        rc = disk->remove(disk, (const char *)path.data, err);
    }
    return rc == PSD_OK ? disk->flush_dir(disk, dir, err) : rc;
}

/* What opening it has made. ret_is_empty: nothing else is there. */
static psd_status_t empty_log(ps_disk_t *disk, const char *dir, uint32_t shard, bool *ret_is_empty,
                              psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t log_dir = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_log_dir_t log = {0};
    psd_status_t rc = look_at_log(disk, dir, shard, &log_dir, &log, err);
    const char *in = (const char *)log_dir.data;

    *ret_is_empty = !log.is_filled;
    if (rc != PSD_OK || log.is_filled || !log.is_opened) {
        return rc;
    }
    rc = ps_disk_path(&path, err, in, PS_INVENTORY_NAME);
    if (rc == PSD_OK) {
        rc = disk->remove(disk, (const char *)path.data, err);
    }
    if (rc == PSD_OK) {
        rc = ps_disk_path(&path, err, in, PS_FLUSHED_NAME);
    }
    if (rc == PSD_OK) {
        rc = disk->remove(disk, (const char *)path.data, err);
    }
    return rc == PSD_OK ? disk->flush_dir(disk, in, err) : rc;
}

psd_status_t ps_fresh_note_take_back(ps_fresh_note_t *self, ps_disk_t *disk, const char *dir,
                                     psd_error_t *err)
{
    bool is_empty = true;
    psd_status_t rc = PSD_OK;

    if (!self->is_made) {
        return PSD_OK;
    }
    for (uint32_t i = 0; rc == PSD_OK && is_empty && i < self->n_shards; i++) {
        if (self->is_new[i]) {
            rc = empty_log(disk, dir, i, &is_empty, err);
        }
    }
    return rc == PSD_OK && is_empty ? ps_fresh_note_remove(self, disk, dir, err) : rc;
}
