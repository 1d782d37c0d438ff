/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer in front of a file. */
#include "storage/disk/disk_stream.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

/* A write of that length keeps the disk busy without a second one queued. */
#define BUFFER_BYTES ((size_t)8 << 20)
#define ALIGN_BYTES ((size_t)4096) /* memory and places in a file, O_DIRECT */

struct ps_disk_stream {
    int fd;
    uint8_t *block;  /* owned; NULL until it is needed */
    uint8_t *bytes;  /* aligned, in block */
    size_t size;     /* bytes in it */
    uint64_t offset; /* of the first of them in the file */
    bool is_finished;
};

/* Past the system's memory, or through it. */
static void set_direct(int fd, bool is_direct)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0) {
        /* where it is refused, bytes go through it */
        (void)fcntl(fd, F_SETFL, is_direct ? flags | O_DIRECT : flags & ~O_DIRECT);
    }
}

/* Writes through the page cache what the file does not accept with O_DIRECT. */
static int write_all(int fd, const uint8_t *bytes, size_t size, uint64_t offset)
{
    bool is_plain = false;

    while (size > 0) {
        ssize_t n = pwrite(fd, bytes, size, (off_t)offset);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && (errno != EINVAL || is_plain)) {
            return errno;
        }
        if (n == 0) {
            return ENOSPC; /* no byte was written, and errno is not set */
        }
        if (n < 0 || (size_t)n < size) {
            set_direct(fd, false);
            is_plain = true;
        }
        n = n < 0 ? 0 : n;
        bytes += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

/* Writes the first of the buffer's bytes, which are a multiple of ALIGN_BYTES.
 */
static int write_direct(ps_disk_stream_t *self, size_t size)
{
    int error = 0;

    set_direct(self->fd, true);
    error = write_all(self->fd, self->bytes, size, self->offset);
    if (error == 0) {
        self->offset += size;
        self->size -= size;
        memmove(self->bytes, self->bytes + size, self->size);
    }
    return error;
}

/* false: no memory. */
static bool has_buffer(ps_disk_stream_t *self)
{
    size_t beyond = 0;

    if (self->block != NULL) {
        return true;
    }
    self->block = ps_alloc_raw(BUFFER_BYTES + ALIGN_BYTES, 1);
    if (self->block == NULL) {
        return false;
    }
    beyond = (uintptr_t)self->block % ALIGN_BYTES;
    self->bytes = self->block + (beyond == 0 ? 0 : ALIGN_BYTES - beyond);
    return true;
}

ps_disk_stream_t *ps_disk_stream_open(int fd)
{
    ps_disk_stream_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->fd = fd;
    }
    return self;
}

int ps_disk_stream_add(ps_disk_stream_t *self, ps_bytes_t bytes)
{
    int error = has_buffer(self) ? 0 : ENOMEM;

    assert(!self->is_finished);
    while (error == 0 && bytes.size > 0) {
        size_t room = BUFFER_BYTES - self->size;
        size_t part = bytes.size < room ? bytes.size : room;

        memcpy(self->bytes + self->size, bytes.data, part);
        self->size += part;
        bytes.data += part;
        bytes.size -= part;
        if (self->size == BUFFER_BYTES) {
            error = write_direct(self, BUFFER_BYTES);
        }
    }
    return error;
}

int ps_disk_stream_finish(ps_disk_stream_t *self)
{
    int error = 0;

    assert(!self->is_finished);
    self->is_finished = true;
    if (self->offset > 0 && self->size >= ALIGN_BYTES) {
        error = write_direct(self, self->size - self->size % ALIGN_BYTES);
    }
    if (error == 0 && self->size > 0) {
        set_direct(self->fd, false);
        error = write_all(self->fd, self->bytes, self->size, self->offset);
    }
    return error;
}

void ps_disk_stream_close(ps_disk_stream_t **self_p)
{
    ps_disk_stream_t *self = *self_p;

    if (self != NULL) {
        ps_free(self->block);
        ps_free(self);
        *self_p = NULL;
    }
}
