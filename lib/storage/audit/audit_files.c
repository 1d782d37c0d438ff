/* SPDX-License-Identifier: Apache-2.0 */
/* Which files an audit has, and their lines. */
#include "storage/audit/audit_files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

#define PREFIX "audit."
#define SUFFIX ".jsonl"
#define DIGITS_MAX 19
#define PIECE_BYTES ((size_t)64 << 10)
#define PART_BYTES_MAX ((size_t)64 << 10) /* of a line; those that psd writes are shorter */

/* ---- names ---- */

void ps_audit_files_done(ps_audit_files_t *self)
{
    ps_free(self->older);
    *self = (ps_audit_files_t){0};
}

psd_status_t ps_audit_path(ps_buffer_t *to, const char *dir, uint64_t number, psd_error_t *err)
{
    return number == 0 ? ps_disk_path(to, err, dir, PS_AUDIT_FILE)
                       : ps_disk_path(to, err, dir, PREFIX "%" PRIu64 SUFFIX, number);
}

/* The number in the name of an older file. false: it is none. */
static bool read_number(const char *name, uint64_t *ret_number)
{
    char digits[DIGITS_MAX + 1] = "";
    size_t length = strlen(name);
    size_t around = sizeof PREFIX - 1 + sizeof SUFFIX - 1;

    if (length <= around || length - around > DIGITS_MAX ||
        strncmp(name, PREFIX, sizeof PREFIX - 1) != 0 ||
        strcmp(name + length - (sizeof SUFFIX - 1), SUFFIX) != 0) {
        return false;
    }
    memcpy(digits, name + sizeof PREFIX - 1, length - around);
    return ps_text_u64(digits, ret_number) && *ret_number > 0;
}

static psd_status_t take_name(void *context, const char *name, psd_error_t *err)
{
    ps_audit_files_t *self = context;
    uint64_t number = 0;
    uint64_t *more = NULL;

    if (strcmp(name, PS_AUDIT_FILE) == 0) {
        self->has_current = true;
    }
    if (!read_number(name, &number)) {
        return PSD_OK;
    }
    more = ps_alloc_resize(self->older, self->n_older + 1, sizeof *more);
    if (more == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the audit's files");
    }
    self->older = more;
    self->older[self->n_older++] = number;
    return PSD_OK;
}

static int compare(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a;
    const uint64_t right = *(const uint64_t *)b;

    return left < right ? -1 : left > right ? 1 : 0;
}

psd_status_t ps_audit_files_find(ps_disk_t *disk, const char *dir, ps_audit_files_t *ret,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_audit_files_done) ps_audit_files_t found = {0};
    psd_status_t rc = disk->list(disk, dir, take_name, &found, err);

    if (rc == PSD_OK) {
        if (found.n_older > 1) {
            qsort(found.older, found.n_older, sizeof *found.older, compare);
        }
        *ret = found; /* ownership moves */
        found = (ps_audit_files_t){0};
    }
    return rc;
}

/* ---- lines ---- */

void ps_audit_splitter_done(ps_audit_splitter_t *self)
{
    ps_buffer_done(&self->part);
}

psd_status_t ps_audit_split(ps_audit_splitter_t *self, ps_bytes_t piece, psd_error_t *err)
{
    const uint8_t *at = piece.data;
    size_t left = piece.size;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && left > 0) {
        const uint8_t *end = memchr(at, '\n', left);
        size_t n = end == NULL ? left : (size_t)(end - at);
        ps_bytes_t line = {.data = at, .size = n};

        if (end == NULL || self->part.size > 0) {
            if (self->part.size > PART_BYTES_MAX) {
                return psd_error_set(err, PSD_DAMAGED, "a line is too long");
            }
            if (!ps_buffer_append(&self->part, at, n)) {
                return psd_error_set(err, PSD_NOMEM, "no memory for a line of the audit");
            }
            line = (ps_bytes_t){.data = self->part.data, .size = self->part.size};
        }
        if (end != NULL) {
            rc = self->take(self->context, line, ++self->n_lines, err);
            self->part.size = 0;
            n++;
        }
        at += n;
        left -= n;
    }
    return rc;
}

psd_status_t ps_audit_read(ps_disk_t *disk, const char *path, ps_audit_take_t *take, void *context,
                           uint64_t *ret_rest, psd_error_t *err)
{
    PSD_AUTO(ps_audit_splitter_done)
    ps_audit_splitter_t splitter = {.take = take, .context = context};
    PSD_AUTO(ps_free_at) uint8_t *piece = ps_alloc(PIECE_BYTES, 1);
    ps_disk_file_t *file = NULL;
    uint64_t offset = 0;
    size_t n = 1;
    psd_status_t rc = piece == NULL ? psd_error_set(err, PSD_NOMEM, "no memory to read the audit")
                                    : disk->open(disk, path, PS_DISK_READ, &file, err);

    while (rc == PSD_OK && n > 0) {
        rc = disk->read(disk, file, offset, piece, PIECE_BYTES, &n, err);
        if (rc == PSD_OK) {
            rc = ps_audit_split(&splitter, (ps_bytes_t){.data = piece, .size = n}, err);
            offset += n;
        }
    }
    disk->close(disk, &file);
    if (rc == PSD_OK) {
        *ret_rest = splitter.part.size;
    }
    return rc;
}
