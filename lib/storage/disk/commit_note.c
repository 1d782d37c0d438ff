/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen bytes in a file. */
#include "storage/disk/commit_note.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "storage/disk/disk.h"

#define NOTE_SIZE 16

static psd_status_t read_note(int fd, const char *path, uint64_t *ret_n, psd_error_t *err)
{
    uint8_t bytes[NOTE_SIZE + 1]; /* one more: it is not longer */
    ssize_t size = pread(fd, bytes, sizeof bytes, 0);
    char reason[128];

    if (size < 0) {
        return psd_error_set(err, PSD_IO, "cannot read %s: %s", path,
                             strerror_r(errno, reason, sizeof reason));
    }
    *ret_n = 0;
    if (size == 0) {
        return PSD_OK;
    }
    if (size != NOTE_SIZE || ps_load_u64(bytes + 8) != ps_hash_bytes(bytes, 8, 0)) {
        return psd_error_set(
            err, PSD_DAMAGED,
            "%s is damaged at byte 0; if registry.db is known to be whole, remove %s", path, path);
    }
    *ret_n = ps_load_u64(bytes);
    return PSD_OK;
}

psd_status_t ps_commit_note_open(ps_commit_note_t *ret_note, const char *dir, uint64_t *ret_n,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = PSD_OK;

    ret_note->fd = -1;
    if (!ps_buffer_print(&path, "%s/registry.commits", dir)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    ret_note->fd = ps_disk_open_at((const char *)path.data, O_RDWR | O_CREAT);
    if (ret_note->fd < 0) {
        return ps_disk_open_error((const char *)path.data, err);
    }
    rc = read_note(ret_note->fd, (const char *)path.data, ret_n, err);
    if (rc != PSD_OK) {
        ps_commit_note_close(ret_note);
    }
    return rc;
}

void ps_commit_note_write(const ps_commit_note_t *self, uint64_t n)
{
    uint8_t bytes[NOTE_SIZE];
    ssize_t size = 0;

    ps_store_u64(bytes, n);
    ps_store_u64(bytes + 8, ps_hash_bytes(bytes, 8, 0));
    size = pwrite(self->fd, bytes, sizeof bytes, 0);
    (void)size;
}

void ps_commit_note_close(ps_commit_note_t *self)
{
    if (self->fd >= 0) {
        (void)close(self->fd);
        self->fd = -1;
    }
}
