/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes that become a file: packed, written beside, flushed, renamed. */
#include "data/streams/file_out.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/alloc.h"
#include "transport/threads/fork.h"

#define PACKED_SIZE ((size_t)256 << 10)
#define GZIP_BITS (15 + 16) /* the greatest window, with gzip's head */
#define ENDING_SIZE 10      /* of ".01234567" and its '\0' */
#define NAME_TRIES 100
#define GZIP_MEMORY 8 /* zlib's default */

struct ps_file_out {
    char path[PATH_MAX];
    char beside[PATH_MAX + ENDING_SIZE]; /* "": there is nothing to take away */
    int fd;
    unsigned n_forks; /* before it was opened */
    uint64_t n_bytes;
    bool is_stdout;
    bool keeps_others;
    uint8_t *packed; /* PACKED_SIZE; NULL: plain */
    z_stream gzip;
    bool has_gzip;
    ZSTD_CStream *zstd;
};

static psd_status_t set_errno(const ps_file_out_t *self, psd_error_t *err)
{
    char reason[128];

    return psd_error_set(err, PSD_IO, "cannot write %s: %s", self->path,
                         strerror_r(errno, reason, sizeof reason));
}

static bool ends_with(const char *path, const char *ending)
{
    size_t size = strlen(path);
    size_t n = strlen(ending);

    return size > n && strcasecmp(path + size - n, ending) == 0;
}

/* NULL: none but gzip and zstd. */
static const char *foreign_ending(const char *path)
{
    static const char *const endings[] = {".xz", ".bz2", ".zip", ".lz4"};

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        if (ends_with(path, endings[i])) {
            return endings[i];
        }
    }
    return NULL;
}

static psd_status_t open_packing(ps_file_out_t *self, psd_error_t *err)
{
    if (ends_with(self->path, ".gz")) {
        self->has_gzip = deflateInit2(&self->gzip, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_BITS,
                                      GZIP_MEMORY, Z_DEFAULT_STRATEGY) == Z_OK;
    } else if (ends_with(self->path, ".zst")) {
        self->zstd = ZSTD_createCStream();
    } else {
        return PSD_OK;
    }
    self->packed = ps_alloc_raw(PACKED_SIZE, 1);
    return self->packed != NULL && (self->has_gzip || self->zstd != NULL)
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory to pack %s", self->path);
}

/* Makes a file in the same directory, under an unused name. */
static psd_status_t open_beside(ps_file_out_t *self, mode_t mode, psd_error_t *err)
{
    for (int i = 0; i < NAME_TRIES; i++) {
        uint32_t random = 0;

        if (getrandom(&random, sizeof random, 0) != sizeof random) {
            return set_errno(self, err);
        }
        (void)snprintf(self->beside, sizeof self->beside, "%s.%08x", self->path, (unsigned)random);
        self->fd = open(self->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
        if (self->fd >= 0) {
            return PSD_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    self->beside[0] = '\0';
    return set_errno(self, err);
}

bool ps_file_out_names_stdout(const char *path)
{
    struct stat there;
    struct stat out;

    return strcmp(path, "-") == 0 || (stat(path, &there) == 0 && fstat(STDOUT_FILENO, &out) == 0 &&
                                      there.st_dev == out.st_dev && there.st_ino == out.st_ino);
}

/* A file that is there is replaced, where it really lies and with the rights
 * that it has; what is no file (a pipe, a device) is written to. */
static psd_status_t open_fd(ps_file_out_t *self, mode_t mode, psd_error_t *err)
{
    struct stat about;
    char target[PATH_MAX];
    psd_status_t rc = PSD_OK;

    self->is_stdout = ps_file_out_names_stdout(self->path);
    if (self->is_stdout) {
        self->fd = dup(STDOUT_FILENO);
        return self->fd >= 0 ? PSD_OK : set_errno(self, err);
    }
    if (stat(self->path, &about) != 0) {
        return errno == ENOENT ? open_beside(self, mode, err) : set_errno(self, err);
    }
    if (S_ISDIR(about.st_mode)) {
        return psd_error_set(err, PSD_INVALID, "%s is a directory", self->path);
    }
    if (!S_ISREG(about.st_mode)) {
        self->fd = open(self->path, O_WRONLY | O_CLOEXEC);
        return self->fd >= 0 ? PSD_OK : set_errno(self, err);
    }
    if (realpath(self->path, target) == NULL) {
        return set_errno(self, err);
    }
    if (strlen(target) + ENDING_SIZE > PATH_MAX) {
        return psd_error_set(err, PSD_INVALID, "%s is a path of %zu bytes", target, strlen(target));
    }
    memcpy(self->path, target, strlen(target) + 1);
    rc = open_beside(self, 0600, err);
    if (rc == PSD_OK) {
        (void)fchmod(self->fd, about.st_mode & mode);
    }
    return rc;
}

psd_status_t ps_file_out_open(const char *path, mode_t mode, ps_file_out_t **ret_file,
                              psd_error_t *err)
{
    PSD_AUTO(ps_file_out_close) ps_file_out_t *self = NULL;
    const char *foreign = foreign_ending(path);
    size_t size = strlen(path);
    psd_status_t rc = PSD_OK;

    if (foreign != NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "%s ends with %s, which is not written; allowed: "
                             ".gz, .zst, or nothing for plain",
                             path, foreign);
    }
    if (size + ENDING_SIZE > PATH_MAX) {
        return psd_error_set(err, PSD_INVALID, "a path of %zu bytes; the system takes %d", size,
                             PATH_MAX - ENDING_SIZE);
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to write %s", path);
    }
    self->fd = -1;
    self->n_forks = ps_fork_count();
    memcpy(self->path, path, size + 1);
    rc = open_packing(self, err); /* by this name, not by what it links to */
    if (rc == PSD_OK) {
        rc = open_fd(self, mode, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_file = self;
    self = NULL;
    return PSD_OK;
}

void ps_file_out_close(ps_file_out_t **self_p)
{
    ps_file_out_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    if (self->has_gzip) {
        (void)deflateEnd(&self->gzip);
    }
    (void)ZSTD_freeCStream(self->zstd); /* takes NULL */
    if (self->fd >= 0) {
        (void)close(self->fd); /* committed, or not wanted */
    }
    if (self->beside[0] != '\0' && !ps_fork_is_since(self->n_forks)) {
        (void)unlink(self->beside); /* a child's parent may be writing it */
    }
    ps_free(self->packed);
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t write_fd(ps_file_out_t *self, const uint8_t *bytes, size_t size,
                             psd_error_t *err)
{
    while (size > 0) {
        ssize_t n = write(self->fd, bytes, size);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return set_errno(self, err);
        }
        bytes += n;
        size -= (size_t)n;
        self->n_bytes += (uint64_t)n;
    }
    return PSD_OK;
}

static psd_status_t pack_gzip(ps_file_out_t *self, const uint8_t *bytes, size_t size, bool last,
                              psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    do {
        uInt piece = size > UINT32_MAX ? UINT32_MAX : (uInt)size;

        self->gzip.next_in = (z_const Bytef *)(uintptr_t)bytes;
        self->gzip.avail_in = piece;
        bytes += piece;
        size -= piece;
        do {
            self->gzip.next_out = self->packed;
            self->gzip.avail_out = PACKED_SIZE;
            (void)deflate(&self->gzip, last && size == 0 ? Z_FINISH : Z_NO_FLUSH);
            rc = write_fd(self, self->packed, PACKED_SIZE - self->gzip.avail_out, err);
        } while (rc == PSD_OK && self->gzip.avail_out == 0);
    } while (rc == PSD_OK && size > 0);
    return rc;
}

static psd_status_t pack_zstd(ps_file_out_t *self, const uint8_t *bytes, size_t size, bool last,
                              psd_error_t *err)
{
    ZSTD_inBuffer in = {bytes, size, 0};
    size_t left = 0; /* not 0: there is more to write */
    psd_status_t rc = PSD_OK;

    do {
        ZSTD_outBuffer out = {self->packed, PACKED_SIZE, 0};

        left = ZSTD_compressStream2(self->zstd, &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
        if (ZSTD_isError(left)) {
            return psd_error_set(err, PSD_NOMEM, "cannot pack %s: %s", self->path,
                                 ZSTD_getErrorName(left));
        }
        rc = write_fd(self, self->packed, out.pos, err);
    } while (rc == PSD_OK && (last ? left > 0 : in.pos < in.size));
    return rc;
}

static psd_status_t put(ps_file_out_t *self, const uint8_t *bytes, size_t size, bool last,
                        psd_error_t *err)
{
    if (self->has_gzip) {
        return pack_gzip(self, bytes, size, last, err);
    }
    return self->zstd != NULL ? pack_zstd(self, bytes, size, last, err)
                              : write_fd(self, bytes, size, err);
}

psd_status_t ps_file_out_write(ps_file_out_t *self, const void *bytes, size_t size,
                               psd_error_t *err)
{
    return put(self, bytes, size, false, err);
}

void ps_file_out_keep_others(ps_file_out_t *self)
{
    self->keeps_others = true;
}

/* By a second link where the file system cannot rename so. */
static bool rename_beside(const ps_file_out_t *self)
{
    if (!self->keeps_others) {
        return rename(self->beside, self->path) == 0;
    }
    if (renameat2(AT_FDCWD, self->beside, AT_FDCWD, self->path, RENAME_NOREPLACE) == 0) {
        return true;
    }
    return errno == EINVAL && link(self->beside, self->path) == 0 && unlink(self->beside) == 0;
}

static psd_status_t put_in_place(ps_file_out_t *self, bool flushed, psd_error_t *err)
{
    static const uint8_t nothing[1] = {0};
    psd_status_t rc = put(self, nothing, 0, true, err);

    if (rc != PSD_OK || self->beside[0] == '\0') {
        return rc;
    }
    if ((flushed && fsync(self->fd) != 0) || !rename_beside(self)) {
        return set_errno(self, err);
    }
    self->beside[0] = '\0';
    if (flushed) {
        ps_file_out_flush_name(self->path);
    }
    return PSD_OK;
}

psd_status_t ps_file_out_commit(ps_file_out_t *self, psd_error_t *err)
{
    return put_in_place(self, true, err);
}

psd_status_t ps_file_out_place(ps_file_out_t *self, psd_error_t *err)
{
    return put_in_place(self, false, err);
}

const char *ps_file_out_path(const ps_file_out_t *self)
{
    return self->path;
}

bool ps_file_out_is_stdout(const ps_file_out_t *self)
{
    return self->is_stdout;
}

uint64_t ps_file_out_bytes(const ps_file_out_t *self)
{
    return self->n_bytes;
}

const char *ps_file_out_beside(const ps_file_out_t *self)
{
    return self->beside;
}

void ps_file_out_flush_name(const char *path)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    int fd = -1;

    memcpy(directory, path, n);
    memcpy(directory + n, ".", sizeof ".");
    fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}
