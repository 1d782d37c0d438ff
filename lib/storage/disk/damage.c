/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged files: noted, and put aside. */
#include "storage/disk/damage.h"

#include "base/alloc.h"

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to note damage");
}

static void free_all(char **texts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ps_free(texts[i]);
    }
    ps_free(texts);
}

void ps_damage_done(ps_damage_t *self)
{
    free_all(self->texts, self->n_texts);
    free_all(self->aside, self->n_aside);
    ps_free(self->lost);
    *self = (ps_damage_t){0};
}

static bool add(char ***texts, size_t *n, size_t *capacity, const char *text)
{
    char *copy = ps_strdup(text);

    if (copy == NULL || !ps_grow(texts, capacity, *n + 1, sizeof **texts)) {
        ps_free(copy);
        return false;
    }
    (*texts)[(*n)++] = copy;
    return true;
}

psd_status_t ps_damage_pass(ps_damage_t *self, psd_status_t rc, const char *aside, psd_error_t *err)
{
    const char *why = err == NULL ? "" : psd_error_text(err);

    if (rc != PSD_DAMAGED || self == NULL) {
        return rc;
    }
    if (!add(&self->texts, &self->n_texts, &self->texts_capacity, why) ||
        (aside != NULL && !add(&self->aside, &self->n_aside, &self->aside_capacity, aside))) {
        return no_memory(err);
    }
    if (err != NULL) {
        psd_error_clear(err);
    }
    return PSD_OK;
}

psd_status_t ps_damage_rename(ps_disk_t *disk, const char *path, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t to = {0};
    ps_disk_file_t *file = NULL;
    psd_status_t rc = PSD_OK;

    if (!ps_buffer_print(&to, "%s.damaged", path)) {
        return no_memory(err);
    }
    rc = disk->open(disk, path, PS_DISK_READ, &file, NULL);
    if (rc != PSD_OK) {
        return rc == PSD_NOMEM ? no_memory(err) : PSD_OK;
    }
    disk->close(disk, &file);
    return disk->rename(disk, path, (const char *)to.data, err);
}

psd_status_t ps_damage_put_aside(ps_damage_t *self, ps_disk_t *disk, const char *dir,
                                 psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < self->n_aside; i++) {
        rc = ps_damage_rename(disk, self->aside[i], err);
    }
    if (rc == PSD_OK && self->n_aside > 0) {
        rc = disk->flush_dir(disk, dir, err);
    }
    if (rc == PSD_OK) {
        free_all(self->aside, self->n_aside);
        self->aside = NULL;
        self->n_aside = 0;
        self->aside_capacity = 0;
    }
    return rc;
}
