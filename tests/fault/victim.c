/* SPDX-License-Identifier: Apache-2.0 */
/* Picks a file whose damage is to be noticed. */
#include "victim.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "storage/log/inventory.h"
#include "storage/log/segment.h"
#include "storage/snapshot/snapshot_file.h"
#include "support/check.h"

static bool read_bytes(const char *path, uint8_t **ret_bytes, size_t *ret_size)
{
    struct stat info;
    FILE *file = fopen(path, "re");

    CHECK(file != NULL && fstat(fileno(file), &info) == 0);
    *ret_size = (size_t)info.st_size;
    *ret_bytes = malloc(*ret_size + 1);
    CHECK(*ret_bytes != NULL && fread(*ret_bytes, 1, *ret_size, file) == *ret_size);
    (void)fclose(file);
    return true;
}

/* ---- what counts ---- */

static bool is_newer(const ps_snapshot_id_t *id, const char *name)
{
    ps_snapshot_id_t other;

    return ps_snapshot_parse(name, &other) && other.table == id->table &&
           other.partition == id->partition &&
           (other.life > id->life || (other.life == id->life && other.lsn > id->lsn));
}

/* Some record of the segment, wherever it lies and whatever is damaged in front
 * of it, says that the snapshot's life is over. */
static bool ends_life(const char *path, const ps_snapshot_id_t *id)
{
    uint8_t *bytes = NULL;
    size_t size = 0;
    size_t record_size = 0;
    ps_record_t record;
    ps_body_t body;
    bool found = false;

    if (!read_bytes(path, &bytes, &size)) {
        return false;
    }
    for (size_t at = PS_SEGMENT_HEAD; at < size && !found; at += PS_RECORD_ALIGN) {
        const ps_bytes_t rest = {bytes + at, size - at};

        found = ps_record_claims(rest) > 0 &&
                ps_record_read(rest, &record_size, &record, &body, NULL) == PSD_OK &&
                record.table == id->table && record.partition == id->partition &&
                ((record.kind == PS_RECORD_ANEW && record.seq > id->life) ||
                 (record.kind == PS_RECORD_LEAVE && record.seq >= id->life));
    }
    free(bytes);
    return found;
}

static void join(char ret[PATH_MAX], const char *dir, const char *name)
{
    (void)snprintf(ret, PATH_MAX, "%.3500s/%s", dir, name);
}

/* Nobody reads a snapshot beside such a file. */
static bool outdates(const char *dir, const char *name, const ps_snapshot_id_t *id)
{
    char path[PATH_MAX];
    uint64_t number = 0;

    join(path, dir, name);
    return is_newer(id, name) || (ps_segment_parse(name, &number) && ends_life(path, id));
}

static bool counts(const char *dir, const char *name)
{
    ps_snapshot_id_t id;
    const struct dirent *entry = NULL;
    DIR *list = ps_snapshot_parse(name, &id) ? opendir(dir) : NULL;
    bool good = true;

    while (list != NULL && good && (entry = readdir(list)) != NULL) {
        good = !outdates(dir, entry->d_name, &id);
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return good;
}

/* ---- the inventory ---- */

static psd_status_t ignore(void *context, const char *name, psd_error_t *err)
{
    (void)context;
    (void)name;
    (void)err;
    return PSD_OK;
}

/* One that is damaged misses nothing. */
static bool is_sound(const char *dir)
{
    ps_inventory_t inventory = {.disk = ps_disk_real(), .dir = dir};
    psd_status_t rc = ps_inventory_check(&inventory, ignore, NULL, NULL);

    ps_inventory_done(&inventory);
    return rc != PSD_DAMAGED;
}

static bool is_listed(const char *dir, const char *name)
{
    char path[PATH_MAX];
    char line[NAME_MAX + 2];
    FILE *file = NULL;
    bool found = false;

    join(path, dir, PS_INVENTORY_NAME);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        found = found || strcmp(line, name) == 0;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found && is_sound(dir);
}

/* ---- the victim ---- */

bool victim_find(victim_t *self, const char *dir, const char *kind, ps_rng_t *rng)
{
    const struct dirent *entry = NULL;
    DIR *list = opendir(dir);
    uint64_t n = 0;

    *self = (victim_t){.size = 0};
    while (list != NULL && (entry = readdir(list)) != NULL) {
        if (strncmp(entry->d_name, kind, strlen(kind)) == 0 &&
            strstr(entry->d_name, ".tmp") == NULL && strstr(entry->d_name, ".damaged") == NULL &&
            counts(dir, entry->d_name) && ps_rng_below(rng, ++n) == 0) {
            (void)snprintf(self->name, sizeof self->name, "%s", entry->d_name);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    if (n == 0) {
        return true;
    }
    join(self->path, dir, self->name);
    self->is_listed = is_listed(dir, self->name);
    return read_bytes(self->path, &self->bytes, &self->size);
}

void victim_done(victim_t *self)
{
    free(self->bytes);
    *self = (victim_t){.size = 0};
}

bool victim_write(const victim_t *self, size_t size)
{
    FILE *file = fopen(self->path, "we");

    CHECK(file != NULL && fwrite(self->bytes, 1, size, file) == size);
    CHECK(fclose(file) == 0);
    return true;
}
