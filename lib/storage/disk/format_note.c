/* SPDX-License-Identifier: Apache-2.0 */
/* One line in a file of its own. */
#include "storage/disk/format_note.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "wire/messages/formats.h"

#define NOTE "format"
#define LINE "psd data format "
#define LINE_MAX_SIZE 64 /* with a number of 20 digits and the line's end */

typedef struct contents {
    bool has_note;
    bool is_used; /* by a psd */
} contents_t;

static psd_status_t look_at(void *context, const char *name, psd_error_t *err)
{
    contents_t *contents = context;

    (void)err;
    contents->has_note = contents->has_note || strcmp(name, NOTE) == 0;
    contents->is_used = contents->is_used || strcmp(name, "registry.db") == 0 ||
                        strcmp(name, "member.json") == 0 ||
                        strncmp(name, "log-", strlen("log-")) == 0;
    return PSD_OK;
}

static psd_status_t refuse(const char *dir, uint64_t found, uint64_t format, psd_error_t *err)
{
    return psd_error_set(err, PSD_FOREIGN,
                         "%s has data format %" PRIu64 ", and this psd reads and writes %" PRIu64
                         "; start the psd that wrote it, or use another directory and move the "
                         "tables with pscli table export and import",
                         dir, found, format);
}

static psd_status_t make_note(ps_disk_t *disk, const char *dir, const char *path, uint64_t format,
                              psd_error_t *err)
{
    char line[LINE_MAX_SIZE];
    int size = snprintf(line, sizeof line, LINE "%" PRIu64 "\n", format);

    return ps_disk_make(disk, dir, path,
                        (ps_bytes_t){.data = (const uint8_t *)line, .size = (size_t)size}, NULL,
                        err);
}

/* The number of the line; a file that is longer than a line is none. */
static psd_status_t read_note(ps_disk_t *disk, const char *path, uint64_t *ret_format,
                              psd_error_t *err)
{
    uint8_t bytes[LINE_MAX_SIZE] = {0};
    char *line = (char *)bytes;
    size_t size = 0;
    ps_disk_file_t *file = NULL;
    psd_status_t rc = disk->open(disk, path, PS_DISK_READ, &file, err);

    if (rc == PSD_OK) {
        rc = disk->read(disk, file, 0, bytes, sizeof bytes - 1, &size, err);
        disk->close(disk, &file);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (size > strlen(LINE) && line[size - 1] == '\n' && memcmp(line, LINE, strlen(LINE)) == 0) {
        line[size - 1] = '\0';
        if (ps_text_u64(line + strlen(LINE), ret_format)) {
            return PSD_OK;
        }
    }
    return psd_error_set(
        err, PSD_DAMAGED,
        "%s: byte 0: not a line \"" LINE "N\"; restore it from a backup of the directory", path);
}

psd_status_t ps_format_note_settle(ps_disk_t *disk, const char *dir, uint64_t format,
                                   psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    contents_t contents = {0};
    uint64_t found = 1;
    bool is_older = false;
    psd_status_t rc = disk->list(disk, dir, look_at, &contents, err);

    if (rc == PSD_OK) {
        rc = ps_disk_path(&path, err, dir, NOTE);
    }
    if (rc == PSD_OK && contents.has_note) {
        rc = read_note(disk, (const char *)path.data, &found, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    is_older = format == PS_DISK_FORMAT && found < format && found >= PS_DISK_FORMAT_MIN;
    if (found != format && !is_older && (contents.has_note || contents.is_used)) {
        return refuse(dir, found, format, err);
    }
    return contents.has_note && !is_older
               ? PSD_OK
               : make_note(disk, dir, (const char *)path.data, format, err);
}
