/* SPDX-License-Identifier: Apache-2.0 */
/* Names, a line each, between a line with the version and one with the XXH3-64
 * of all before it. */
#include "storage/log/inventory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/map.h"
#include "storage/log/log_dir.h"

#define FIRST_LINE "psd inventory 1\n"
#define LAST_LINE "xxh3 %016" PRIx64 "\n"
#define LAST_SIZE (sizeof "xxh3 0123456789abcdef\n" - 1)
#define FILE_MAX (UINT64_C(64) << 20)

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for an inventory");
}

static psd_status_t path_of(const ps_inventory_t *self, ps_buffer_t *to, psd_error_t *err)
{
    return ps_disk_path(to, err, self->dir, PS_INVENTORY_NAME);
}

void ps_inventory_done(ps_inventory_t *self)
{
    ps_buffer_done(&self->written);
}

/* Segments are numbered, and their log knows the numbers. */
static bool is_listed(const char *name)
{
    return ps_log_dir_fills(name) && strncmp(name, "log-", 4) != 0;
}

/* ---- reading ---- */

static psd_status_t read_bytes(ps_inventory_t *self, const char *path, psd_error_t *err)
{
    ps_disk_t *disk = self->disk;
    ps_disk_file_t *file = NULL;
    uint64_t size = 0;
    psd_status_t rc = disk->open(disk, path, PS_DISK_READ, &file, err);

    if (rc == PSD_OK) {
        rc = disk->size(disk, file, &size, err);
    }
    if (rc == PSD_OK && size > FILE_MAX) {
        rc = psd_error_set(err, PSD_DAMAGED,
                           "%s: byte %" PRIu64 ": the file is longer; allowed: %" PRIu64 " bytes",
                           path, FILE_MAX, FILE_MAX);
    }
    if (rc == PSD_OK && !ps_buffer_reserve(&self->written, (size_t)size + 1)) {
        rc = no_memory(err);
    }
    if (rc == PSD_OK) {
        rc = disk->read(disk, file, 0, self->written.data, (size_t)size, &self->written.size, err);
    }
    disk->close(disk, &file);
    return rc;
}

/* Nothing in the file is trusted before its checksum fits. */
static psd_status_t check_bytes(const ps_inventory_t *self, const char *path, psd_error_t *err)
{
    const char *text = (const char *)self->written.data;
    size_t size = self->written.size;
    char last[LAST_SIZE + 1] = "";

    if (size >= LAST_SIZE) {
        (void)snprintf(last, sizeof last, LAST_LINE, ps_hash_bytes(text, size - LAST_SIZE, 0));
    }
    if (size < LAST_SIZE || memcmp(text + size - LAST_SIZE, last, LAST_SIZE) != 0) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: byte 0: the checksum of its %zu bytes is "
                             "wrong",
                             path, size);
    }
    return size - LAST_SIZE >= sizeof FIRST_LINE - 1 &&
                   memcmp(text, FIRST_LINE, sizeof FIRST_LINE - 1) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_FOREIGN,
                               "%s is of another version; this psd understands "
                               "1",
                               path);
}

static psd_status_t take_name(void *context, const char *name, psd_error_t *err)
{
    return ps_map_put(context, ps_hash_bytes(name, strlen(name), 0), context) ? PSD_OK
                                                                              : no_memory(err);
}

static bool has(const ps_map_t *names, const char *name)
{
    return ps_map_get(names, ps_hash_bytes(name, strlen(name), 0)) != NULL;
}

/* Lines between the first one and the last; the text is changed. */
static psd_status_t walk(char *text, const ps_map_t *there, ps_inventory_each_t *each,
                         void *context, psd_error_t *err)
{
    char *rest = NULL;
    psd_status_t rc = PSD_OK;

    for (char *name = strtok_r(text, "\n", &rest); name != NULL && rc == PSD_OK;
         name = strtok_r(NULL, "\n", &rest)) {
        if (!has(there, name)) {
            rc = each(context, name, err);
        }
    }
    return rc;
}

psd_status_t ps_inventory_check(ps_inventory_t *self, ps_inventory_each_t *each, void *context,
                                psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t names = {0};
    PSD_AUTO(ps_map_done) ps_map_t there = {0};
    size_t front = sizeof FIRST_LINE - 1;
    psd_status_t rc = path_of(self, &path, err);

    self->written.size = 0;
    if (rc == PSD_OK) {
        rc = self->disk->list(self->disk, self->dir, take_name, &there, err);
    }
    if (rc != PSD_OK || !has(&there, PS_INVENTORY_NAME)) {
        return rc;
    }
    rc = read_bytes(self, (const char *)path.data, err);
    if (rc == PSD_OK) {
        rc = check_bytes(self, (const char *)path.data, err);
    }
    if (rc == PSD_OK && (!ps_buffer_append(&names, self->written.data + front,
                                           self->written.size - front - LAST_SIZE) ||
                         !ps_buffer_append(&names, "", 1))) {
        rc = no_memory(err);
    }
    if (rc != PSD_OK) {
        self->written.size = 0;
        return rc;
    }
    return walk((char *)names.data, &there, each, context, err);
}

/* ---- writing ---- */

typedef struct listing {
    ps_inventory_goes_t *goes;
    const void *context;
    ps_buffer_t text;
} listing_t;

static psd_status_t add_name(void *context, const char *name, psd_error_t *err)
{
    listing_t *self = context;

    if (!is_listed(name) || self->goes(self->context, name)) {
        return PSD_OK;
    }
    return ps_buffer_append(&self->text, name, strlen(name)) &&
                   ps_buffer_append(&self->text, "\n", 1)
               ? PSD_OK
               : no_memory(err);
}

static bool is_written(const ps_inventory_t *self, const ps_buffer_t *text)
{
    return self->written.size == text->size &&
           memcmp(self->written.data, text->data, text->size) == 0;
}

/* There is no room for a new inventory, and the old one is not valid any more:
 * files are removed to make room. */
static psd_status_t go_without(ps_inventory_t *self, const char *path, psd_error_t *err)
{
    psd_status_t rc = self->disk->remove(self->disk, path, err);

    return rc == PSD_OK ? self->disk->flush_dir(self->disk, self->dir, err) : rc;
}

/* Takes the text. */
static psd_status_t write_text(ps_inventory_t *self, ps_buffer_t *text, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = path_of(self, &path, err);
    const char *name = (const char *)path.data;

    if (rc != PSD_OK) {
        return rc;
    }
    self->written.size = 0; /* it may be either, if this fails */
    rc = ps_disk_make(self->disk, self->dir, name, (ps_bytes_t){text->data, text->size}, NULL, err);
    if (rc == PSD_OK) {
        ps_buffer_done(&self->written);
        self->written = *text;
        *text = (ps_buffer_t){0};
    }
    if (rc == PSD_LIMIT) {
        if (err != NULL) {
            psd_error_clear(err);
        }
        rc = go_without(self, name, err);
    }
    return rc;
}

psd_status_t ps_inventory_write(ps_inventory_t *self, ps_inventory_goes_t *goes,
                                const void *context, psd_error_t *err)
{
    listing_t listing = {.goes = goes, .context = context};
    psd_status_t rc = PSD_OK;

    if (!ps_buffer_print(&listing.text, FIRST_LINE)) {
        rc = no_memory(err);
    }
    if (rc == PSD_OK) {
        rc = self->disk->list(self->disk, self->dir, add_name, &listing, err);
    }
    if (rc == PSD_OK && !ps_buffer_print(&listing.text, LAST_LINE,
                                         ps_hash_bytes(listing.text.data, listing.text.size, 0))) {
        rc = no_memory(err);
    }
    if (rc == PSD_OK && !is_written(self, &listing.text)) {
        rc = write_text(self, &listing.text, err);
    }
    ps_buffer_done(&listing.text);
    return rc;
}
