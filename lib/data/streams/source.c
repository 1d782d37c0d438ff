/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of one input: read from the system, then unpacked. */
#include "data/streams/source.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/alloc.h"

#define RAW_SIZE ((size_t)256 << 10)
#define GZIP_BITS (15 + 16) /* the greatest window, with gzip's head */
#define MAGIC_SIZE 4

typedef enum packing { PLAIN, GZIP, ZSTD } packing_t;

struct ps_source {
    char *path;
    int fd;
    bool is_file; /* has a size, and can seek */
    uint64_t size;
    uint64_t taken; /* bytes read from fd */
    packing_t packing;
    bool ended;       /* fd has no more */
    bool in_member;   /* a packed member has begun and not ended */
    bool has_member;  /* one has ended */
    uint8_t *raw;     /* RAW_SIZE */
    size_t at, n_raw; /* raw[at .. n_raw) is not used yet */
    z_stream gzip;
    bool has_gzip;
    ZSTD_DStream *zstd;
};

static psd_status_t set_errno(const ps_source_t *self, const char *what, psd_error_t *err)
{
    char reason[128];

    return psd_error_set(err, PSD_IO, "cannot %s %s: %s", what, self->path,
                         strerror_r(errno, reason, sizeof reason));
}

static psd_status_t set_damaged(const ps_source_t *self, const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_DAMAGED, "%s: its %s data %s", self->path,
                         self->packing == GZIP ? "gzip" : "zstd", what);
}

/* Reads up to `size` bytes of the file; 0 at its end. */
static psd_status_t read_fd(ps_source_t *self, void *bytes, size_t size, size_t *ret_size,
                            psd_error_t *err)
{
    ssize_t n = 0;

    do {
        n = read(self->fd, bytes, size);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return set_errno(self, "read", err);
    }
    self->taken += (uint64_t)n;
    self->ended = n == 0;
    *ret_size = (size_t)n;
    return PSD_OK;
}

/* Reads more after the bytes that are not used yet. */
static psd_status_t fill_raw(ps_source_t *self, psd_error_t *err)
{
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    memmove(self->raw, self->raw + self->at, self->n_raw - self->at);
    self->n_raw -= self->at;
    self->at = 0;
    rc = read_fd(self, self->raw + self->n_raw, RAW_SIZE - self->n_raw, &n, err);
    if (rc == PSD_OK) {
        self->n_raw += n;
    }
    return rc;
}

static bool has_bytes(const ps_source_t *self, size_t at, const char *bytes)
{
    size_t size = strlen(bytes);

    return self->n_raw >= at + size && memcmp(self->raw + at, bytes, size) == 0;
}

/* The name of a compression that cannot be read, so that the error does not
 * complain about bad lines. NULL: none is recognised. */
static const char *foreign_packing(const ps_source_t *self)
{
    if (has_bytes(self, 0, "\xfd\x37zX")) {
        return "xz";
    }
    if (has_bytes(self, 0, "BZh") && has_bytes(self, 4, "1AY&SY")) {
        return "bzip2";
    }
    return has_bytes(self, 0, "PK\x03\x04") ? "zip" : NULL;
}

/* Looks at the first bytes, which stay in raw. */
static psd_status_t find_packing(ps_source_t *self, psd_error_t *err)
{
    static const uint8_t gzip[2] = {0x1f, 0x8b};
    static const uint8_t zstd[4] = {0x28, 0xb5, 0x2f, 0xfd};
    const char *foreign = NULL;

    while (self->n_raw < MAGIC_SIZE && !self->ended) {
        psd_status_t rc = fill_raw(self, err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    foreign = foreign_packing(self);
    if (foreign != NULL) {
        return psd_error_set(err, PSD_INVALID, "%s is packed by %s; allowed: plain, gzip, zstd",
                             self->path, foreign);
    }
    if (self->n_raw >= sizeof gzip && memcmp(self->raw, gzip, sizeof gzip) == 0) {
        self->packing = GZIP;
        self->has_gzip = inflateInit2(&self->gzip, GZIP_BITS) == Z_OK;
    } else if (self->n_raw >= sizeof zstd && memcmp(self->raw, zstd, sizeof zstd) == 0) {
        self->packing = ZSTD;
        self->zstd = ZSTD_createDStream();
    } else {
        return PSD_OK;
    }
    return self->has_gzip || self->zstd != NULL
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory to unpack %s", self->path);
}

static psd_status_t look_at(ps_source_t *self, psd_error_t *err)
{
    struct stat about;

    if (self->fd < 0 || fstat(self->fd, &about) != 0) {
        return set_errno(self, "open", err);
    }
    if (S_ISDIR(about.st_mode)) {
        return psd_error_set(err, PSD_INVALID, "%s is a directory", self->path);
    }
    self->is_file = S_ISREG(about.st_mode) && strcmp(self->path, "-") != 0;
    self->size = self->is_file ? (uint64_t)about.st_size : 0;
    return PSD_OK;
}

/* Of a descriptor, which is taken; negative: errno says why it is none. */
static psd_status_t open_taken(int fd, const char *path, ps_source_t **ret_source, psd_error_t *err)
{
    int error = errno;
    PSD_AUTO(ps_source_close) ps_source_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self == NULL && fd >= 0) {
        (void)close(fd); /* nothing was written */
    }
    if (self != NULL) {
        self->fd = fd;
        self->path = ps_strdup(path);
        self->raw = ps_alloc_raw(RAW_SIZE, 1);
    }
    if (self == NULL || self->path == NULL || self->raw == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to open %s", path);
    }
    errno = error;
    rc = look_at(self, err);
    if (rc == PSD_OK) {
        rc = find_packing(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_source = self;
    self = NULL;
    return PSD_OK;
}

psd_status_t ps_source_open(const char *path, ps_source_t **ret_source, psd_error_t *err)
{
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);

    return open_taken(fd, path, ret_source, err);
}

psd_status_t ps_source_open_fd(int fd, const char *name, ps_source_t **ret_source, psd_error_t *err)
{
    int own = lseek(fd, 0, SEEK_SET) == 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;

    return open_taken(own, name, ret_source, err);
}

void ps_source_close(ps_source_t **self_p)
{
    ps_source_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    if (self->has_gzip) {
        (void)inflateEnd(&self->gzip);
    }
    (void)ZSTD_freeDStream(self->zstd); /* takes NULL */
    if (self->fd >= 0) {
        (void)close(self->fd); /* nothing was written */
    }
    ps_free(self->raw);
    ps_free(self->path);
    ps_free(self);
    *self_p = NULL;
}

/* ---- unpacking: from raw, as much as is there, into `out` ---- */

static psd_status_t unpack_gzip(ps_source_t *self, uint8_t *out, size_t size, size_t *ret_size,
                                psd_error_t *err)
{
    uInt room = size > UINT32_MAX ? UINT32_MAX : (uInt)size;
    int rc = Z_OK;

    if (!self->in_member && inflateReset(&self->gzip) != Z_OK) {
        return set_damaged(self, "cannot be read", err);
    }
    self->in_member = true;
    self->gzip.next_in = self->raw + self->at;
    self->gzip.avail_in = (uInt)(self->n_raw - self->at);
    self->gzip.next_out = out;
    self->gzip.avail_out = room;
    rc = inflate(&self->gzip, Z_NO_FLUSH);
    self->at = self->n_raw - self->gzip.avail_in;
    *ret_size = room - self->gzip.avail_out;
    if (rc == Z_MEM_ERROR) {
        return psd_error_set(err, PSD_NOMEM, "no memory to unpack %s", self->path);
    }
    if (rc == Z_STREAM_END) {
        self->in_member = false;
        self->has_member = true;
        return PSD_OK;
    }
    return rc == Z_OK || rc == Z_BUF_ERROR ? PSD_OK : set_damaged(self, "is broken", err);
}

static psd_status_t unpack_zstd(ps_source_t *self, uint8_t *out, size_t size, size_t *ret_size,
                                psd_error_t *err)
{
    ZSTD_inBuffer in = {self->raw, self->n_raw, self->at};
    ZSTD_outBuffer to = {out, size, 0};
    size_t rc = ZSTD_decompressStream(self->zstd, &to, &in);

    self->at = in.pos;
    *ret_size = to.pos;
    self->in_member = rc != 0;
    return ZSTD_isError(rc) == 0 ? PSD_OK : set_damaged(self, "is broken", err);
}

/* Zeros after a gzip member, as on tapes, are no data. */
static bool skip_padding(ps_source_t *self)
{
    size_t before = self->at;

    while (self->packing == GZIP && self->has_member && !self->in_member &&
           self->at < self->n_raw && self->raw[self->at] == 0) {
        self->at++;
    }
    return self->at > before;
}

static psd_status_t read_packed(ps_source_t *self, uint8_t *out, size_t size, size_t *ret_size,
                                psd_error_t *err)
{
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    while (n == 0 && rc == PSD_OK) {
        bool at_end = self->at == self->n_raw;

        if (at_end && !self->ended) {
            rc = fill_raw(self, err);
            continue;
        }
        if (at_end && !self->in_member) {
            break;
        }
        if (skip_padding(self)) {
            continue;
        }
        rc = self->packing == GZIP ? unpack_gzip(self, out, size, &n, err)
                                   : unpack_zstd(self, out, size, &n, err);
        if (rc == PSD_OK && n == 0 && at_end && self->in_member) {
            return set_damaged(self, "ends early", err);
        }
    }
    *ret_size = n;
    return rc;
}

static psd_status_t read_plain(ps_source_t *self, uint8_t *out, size_t size, size_t *ret_size,
                               psd_error_t *err)
{
    size_t n = self->n_raw - self->at;

    if (n == 0) {
        return read_fd(self, out, size, ret_size, err);
    }
    n = n < size ? n : size;
    memcpy(out, self->raw + self->at, n);
    self->at += n;
    *ret_size = n;
    return PSD_OK;
}

psd_status_t ps_source_read(ps_source_t *self, void *ret_bytes, size_t size, size_t *ret_size,
                            psd_error_t *err)
{
    return self->packing == PLAIN ? read_plain(self, ret_bytes, size, ret_size, err)
                                  : read_packed(self, ret_bytes, size, ret_size, err);
}

bool ps_source_can_seek(const ps_source_t *self)
{
    return self->is_file && self->packing == PLAIN;
}

psd_status_t ps_source_seek(ps_source_t *self, uint64_t offset, psd_error_t *err)
{
    if (lseek(self->fd, (off_t)offset, SEEK_SET) < 0) {
        return set_errno(self, "seek in", err);
    }
    self->at = 0;
    self->n_raw = 0;
    self->taken = 0;
    self->ended = false;
    return PSD_OK;
}

uint64_t ps_source_size(const ps_source_t *self)
{
    return self->size;
}

uint64_t ps_source_taken(const ps_source_t *self)
{
    return self->taken;
}

const char *ps_source_path(const ps_source_t *self)
{
    return self->path;
}
