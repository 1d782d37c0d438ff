/* SPDX-License-Identifier: Apache-2.0 */
/* Stretches of a file, by pread. */
#include "data/streams/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

#define STEP ((size_t)64 << 10)

static psd_status_t set_errno(const char *what, const char *path, psd_error_t *err)
{
    char reason[128];

    return psd_error_set(err, PSD_IO, "cannot %s %s: %s", what, path,
                         strerror_r(errno, reason, sizeof reason));
}

psd_status_t ps_dump_open(ps_dump_t *ret_dump, const char *path, psd_error_t *err)
{
    PSD_AUTO(ps_dump_done) ps_dump_t self = {.fd = -1, .end = UINT64_MAX};
    struct stat about;

    self.path = ps_strdup(path);
    if (self.path == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to open %s", path);
    }
    self.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (self.fd < 0 || fstat(self.fd, &about) != 0) {
        return set_errno("open", path, err);
    }
    if (!S_ISREG(about.st_mode)) {
        return psd_error_set(err, PSD_INVALID, "%s is not a regular file", path);
    }
    self.size = (uint64_t)about.st_size;
    *ret_dump = self;
    self = (ps_dump_t){.fd = -1};
    return PSD_OK;
}

void ps_dump_done(ps_dump_t *self)
{
    if (self->path != NULL && self->fd >= 0) {
        (void)close(self->fd); /* nothing was written */
    }
    ps_free(self->path);
    ps_free(self->data);
    *self = (ps_dump_t){.fd = -1};
}

void ps_dump_go(ps_dump_t *self, uint64_t offset, uint64_t end)
{
    self->at = 0;
    self->filled = 0;
    self->offset = offset;
    self->end = end;
}

static psd_status_t make_room(ps_dump_t *self, size_t size, psd_error_t *err)
{
    size_t capacity = size < STEP ? STEP : size;
    uint8_t *data = NULL;

    if (self->at > 0) {
        memmove(self->data, self->data + self->at, self->filled - self->at);
        self->filled -= self->at;
        self->at = 0;
    }
    if (self->capacity >= size) {
        return PSD_OK;
    }
    data = ps_alloc_resize(self->data, capacity, 1);
    if (data == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu bytes of %s", capacity, self->path);
    }
    self->data = data;
    self->capacity = capacity;
    return PSD_OK;
}

/* How many bytes may be read after those that are there. */
static size_t wanted(const ps_dump_t *self)
{
    uint64_t next = self->offset + (self->filled - self->at);
    uint64_t left = next < self->end ? self->end - next : 0;
    size_t room = self->capacity - self->filled;

    return left < room ? (size_t)left : room;
}

psd_status_t ps_dump_take(ps_dump_t *self, size_t size, const uint8_t **ret_bytes, psd_error_t *err)
{
    if (size == 0) { /* also where there is no memory yet */
        *ret_bytes = (const uint8_t *)"";
        return PSD_OK;
    }
    if (self->filled - self->at < size) {
        psd_status_t rc = PSD_OK;

        /* Before memory is asked for: is so much there? */
        if (self->offset > self->size || size > self->size - self->offset) {
            return psd_error_set(err, PSD_DAMAGED,
                                 "%s ends early: %zu bytes are needed from byte %" PRIu64
                                 " on, of %" PRIu64,
                                 self->path, size, self->offset, self->size);
        }
        rc = make_room(self, size, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    while (self->filled - self->at < size) {
        ssize_t n = pread(self->fd, self->data + self->filled, wanted(self),
                          (off_t)(self->offset + (self->filled - self->at)));

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? set_errno("read", self->path, err)
                         : psd_error_set(err, PSD_DAMAGED, "%s ends early", self->path);
        }
        self->filled += (size_t)n;
        self->n_read += (uint64_t)n;
    }
    *ret_bytes = self->data + self->at;
    self->at += size;
    self->offset += size;
    return PSD_OK;
}
