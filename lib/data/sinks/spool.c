/* SPDX-License-Identifier: Apache-2.0 */
#include "data/sinks/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"

#define PIECE ((size_t)256 << 10)

static psd_status_t set_errno(const ps_spool_t *self, const char *what, psd_error_t *err)
{
    char reason[128];

    return psd_error_set(err, PSD_IO, "cannot %s what waits for %s: %s", what, self->path,
                         strerror_r(errno, reason, sizeof reason));
}

psd_status_t ps_spool_open(ps_spool_t *ret_spool, const char *path, psd_error_t *err)
{
    ps_spool_t self = {.fd = -1, .path = path};
    char copy[PATH_MAX];

    (void)snprintf(copy, sizeof copy, "%s", path);
    self.fd = open(dirname(copy), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (self.fd < 0) {
        (void)snprintf(copy, sizeof copy, "/tmp/psd.XXXXXX");
        self.fd = mkostemp(copy, O_CLOEXEC);
        if (self.fd >= 0) {
            (void)unlink(copy);
        }
    }
    if (self.fd < 0) {
        return set_errno(&self, "keep", err);
    }
    *ret_spool = self;
    return PSD_OK;
}

void ps_spool_done(ps_spool_t *self)
{
    if (self->fd >= 0) {
        (void)close(self->fd); /* it goes with it */
    }
    *self = (ps_spool_t){.fd = -1};
}

psd_status_t ps_spool_write(ps_spool_t *self, const void *bytes, size_t size, psd_error_t *err)
{
    const uint8_t *at = bytes;

    while (size > 0) {
        ssize_t n = write(self->fd, at, size);

        if (n < 0 && errno != EINTR) {
            return set_errno(self, "keep", err);
        }
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return PSD_OK;
}

psd_status_t ps_spool_copy(ps_spool_t *self, ps_file_out_t *to, psd_error_t *err)
{
    uint8_t *piece = ps_alloc_raw(PIECE, 1);
    ssize_t n = -1;
    psd_status_t rc = PSD_OK;

    if (piece == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to write %s", self->path);
    }
    if (lseek(self->fd, 0, SEEK_SET) != 0) {
        rc = set_errno(self, "read", err);
    }
    while (rc == PSD_OK && n != 0) {
        n = read(self->fd, piece, PIECE);
        if (n > 0) {
            rc = ps_file_out_write(to, piece, (size_t)n, err);
        } else if (n < 0 && errno != EINTR) {
            rc = set_errno(self, "read", err);
        }
    }
    ps_free(piece);
    return rc;
}
