/* SPDX-License-Identifier: Apache-2.0 */
/* ps_disk with the system's files. */
#include "storage/disk/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "storage/disk/disk_stream.h"

#define VECTORS_MAX 256 /* spans of one call of the system; it allows 1024 */
/* A large write starts writeback after every EARLY_BYTES bytes: the disk
 * works while the rest is copied, and a flush has less to do. */
#define EARLY_BYTES ((size_t)512 << 10)

struct ps_disk_file {
    int fd;
    char *path;               /* owned; for texts */
    ps_disk_stream_t *stream; /* owned; NULL: the file is written at once */
};

static psd_status_t fail(psd_error_t *err, const char *what, const char *path)
{
    bool full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
    psd_status_t status = full ? PSD_LIMIT : errno == ENOMEM ? PSD_NOMEM : PSD_IO;
    char reason[128];

    return psd_error_set(err, status, "cannot %s %s: %s", what, path,
                         strerror_r(errno, reason, sizeof reason));
}

bool ps_disk_is_link(const char *path)
{
    struct stat is = {0};

    return lstat(path, &is) == 0 && S_ISLNK(is.st_mode);
}

psd_status_t ps_disk_refuse_link(const char *path, psd_error_t *err)
{
    return psd_error_set(
        err, PSD_FOREIGN,
        "%s is a symbolic link, or is below one; psd follows none among its own files", path);
}

psd_status_t ps_disk_open_error(const char *path, psd_error_t *err)
{
    return errno == ELOOP ? ps_disk_refuse_link(path, err) : fail(err, "open", path);
}

int ps_disk_open_at(const char *path, int flags)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash == NULL ? path : slash + 1;
    size_t length = slash == NULL ? 0 : (size_t)(slash - path);
    PSD_AUTO(ps_free_at) char *dir = ps_alloc(length + 2, 1);
    int dir_fd = -1;
    int fd = -1;
    int number = 0;

    if (dir == NULL) {
        errno = ENOMEM;
        return -1;
    }
    memcpy(dir, length == 0 ? (slash == NULL ? "." : "/") : path, length == 0 ? 1 : length);
    dir_fd = open(dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir_fd < 0) {
        number = errno;
        errno = ps_disk_is_link(dir) ? ELOOP : number;
        return -1;
    }
    fd = openat(dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
    number = errno;
    (void)close(dir_fd);
    errno = number;
    return fd;
}

static void real_close(ps_disk_t *disk, ps_disk_file_t **file_p)
{
    ps_disk_file_t *file = *file_p;

    (void)disk;
    if (file != NULL) {
        ps_disk_stream_close(&file->stream);
        (void)close(file->fd); /* what counts was flushed */
        ps_free(file->path);
        ps_free(file);
        *file_p = NULL;
    }
}

static psd_status_t real_open(ps_disk_t *disk, const char *path, ps_disk_mode_t mode,
                              ps_disk_file_t **ret_file, psd_error_t *err)
{
    static const int flags[] = {[PS_DISK_READ] = O_RDONLY,
                                [PS_DISK_NEW] = O_RDWR | O_CREAT | O_TRUNC,
                                [PS_DISK_KEEP] = O_RDWR | O_CREAT,
                                [PS_DISK_STREAM] = O_RDWR | O_CREAT | O_TRUNC};
    ps_disk_file_t *file = ps_alloc(1, sizeof *file);

    (void)disk;
    if (file != NULL) {
        file->path = ps_strdup(path);
    }
    if (file == NULL || file->path == NULL) {
        ps_free(file);
        return psd_error_set(err, PSD_NOMEM, "no memory to open %s", path);
    }
    file->fd = ps_disk_open_at(path, flags[mode]);
    if (file->fd < 0) {
        psd_status_t rc = ps_disk_open_error(path, err);

        ps_free(file->path);
        ps_free(file);
        return rc;
    }
    if (mode == PS_DISK_READ) {
        (void)posix_fadvise(file->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    file->stream = mode == PS_DISK_STREAM ? ps_disk_stream_open(file->fd) : NULL;
    if (mode == PS_DISK_STREAM && file->stream == NULL) {
        real_close(disk, &file);
        return psd_error_set(err, PSD_NOMEM, "no memory to open %s", path);
    }
    *ret_file = file;
    return PSD_OK;
}

/* Takes `done` bytes off the front of n vectors; returns those that are left.
 */
static size_t drop_front(struct iovec *vectors, size_t n, size_t done)
{
    size_t i = 0;

    while (i < n && done >= vectors[i].iov_len) {
        done -= vectors[i].iov_len;
        i++;
    }
    memmove(vectors, vectors + i, (n - i) * sizeof *vectors);
    if (i < n) {
        vectors[0].iov_base = (char *)vectors[0].iov_base + done;
        vectors[0].iov_len -= done;
    }
    return n - i;
}

static psd_status_t write_vectors(ps_disk_file_t *file, uint64_t *offset, struct iovec *vectors,
                                  size_t n, psd_error_t *err)
{
    while (n > 0) {
        ssize_t done = pwritev(file->fd, vectors, (int)n, (off_t)*offset);

        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done == 0) {
            errno = ENOSPC; /* no byte was written, and errno is not set */
        }
        if (done <= 0) {
            return fail(err, "write", file->path);
        }
        *offset += (uint64_t)done;
        n = drop_front(vectors, n, (size_t)done);
    }
    return PSD_OK;
}

/* The next spans as vectors: not more than VECTORS_MAX of them and EARLY_BYTES
 * in all. *i_p and *at_p, the bytes of that span that are done, move on. */
static size_t take_spans(const ps_bytes_t *spans, size_t n_spans, size_t *i_p, size_t *at_p,
                         struct iovec vectors[VECTORS_MAX], size_t *ret_size)
{
    size_t size = 0;
    size_t n = 0;

    while (*i_p < n_spans && n < VECTORS_MAX && size < EARLY_BYTES) {
        const uint8_t *from = spans[*i_p].data;
        size_t left = spans[*i_p].size - *at_p;
        size_t part = left < EARLY_BYTES - size ? left : EARLY_BYTES - size;

        if (part > 0) {
            from += *at_p;
            memcpy(&vectors[n].iov_base, &from, sizeof from);
            vectors[n++].iov_len = part;
            size += part;
            *at_p += part;
        }
        if (part == left) {
            (*i_p)++;
            *at_p = 0;
        }
    }
    *ret_size = size;
    return n;
}

static psd_status_t add_to_stream(ps_disk_file_t *file, const ps_bytes_t *spans, size_t n_spans,
                                  psd_error_t *err)
{
    for (size_t i = 0; i < n_spans; i++) {
        errno = ps_disk_stream_add(file->stream, spans[i]);
        if (errno != 0) {
            return fail(err, "write", file->path);
        }
    }
    return PSD_OK;
}

static psd_status_t real_write(ps_disk_t *disk, ps_disk_file_t *file, uint64_t offset,
                               const ps_bytes_t *spans, size_t n_spans, psd_error_t *err)
{
    struct iovec vectors[VECTORS_MAX];
    psd_status_t rc = PSD_OK;
    size_t i = 0;
    size_t at = 0;

    (void)disk;
    if (file->stream != NULL) {
        return add_to_stream(file, spans, n_spans, err);
    }
    while (i < n_spans && rc == PSD_OK) {
        uint64_t begin = offset;
        size_t size = 0;
        size_t n = take_spans(spans, n_spans, &i, &at, vectors, &size);

        rc = write_vectors(file, &offset, vectors, n, err);
        if (rc == PSD_OK && size == EARLY_BYTES) {
            (void)sync_file_range(file->fd, (off_t)begin, (off_t)size, SYNC_FILE_RANGE_WRITE);
        }
    }
    return rc;
}

static psd_status_t real_read(ps_disk_t *disk, ps_disk_file_t *file, uint64_t offset,
                              uint8_t *ret_bytes, size_t size, size_t *ret_size, psd_error_t *err)
{
    size_t got = 0;

    (void)disk;
    while (got < size) {
        ssize_t n = pread(file->fd, ret_bytes + got, size - got, (off_t)(offset + got));

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fail(err, "read", file->path);
        }
        if (n == 0) {
            break;
        }
        got += (size_t)n;
    }
    *ret_size = got;
    return PSD_OK;
}

static void real_ahead(ps_disk_t *disk, ps_disk_file_t *file, uint64_t offset, uint64_t size)
{
    (void)disk;
    (void)posix_fadvise(file->fd, (off_t)offset, (off_t)size, POSIX_FADV_WILLNEED);
}

static psd_status_t real_size(ps_disk_t *disk, ps_disk_file_t *file, uint64_t *ret_bytes,
                              psd_error_t *err)
{
    struct stat status;

    (void)disk;
    if (fstat(file->fd, &status) != 0) {
        return fail(err, "measure", file->path);
    }
    *ret_bytes = (uint64_t)status.st_size;
    return PSD_OK;
}

static psd_status_t real_flush(ps_disk_t *disk, ps_disk_file_t *file, psd_error_t *err)
{
    (void)disk;
    if (file->stream != NULL) {
        errno = ps_disk_stream_finish(file->stream);
        if (errno != 0) {
            return fail(err, "write", file->path);
        }
    }
    return fdatasync(file->fd) == 0 ? PSD_OK : fail(err, "flush", file->path);
}

static psd_status_t real_truncate(ps_disk_t *disk, ps_disk_file_t *file, uint64_t size,
                                  psd_error_t *err)
{
    (void)disk;
    return ftruncate(file->fd, (off_t)size) == 0 ? PSD_OK : fail(err, "truncate", file->path);
}

static psd_status_t real_rename(ps_disk_t *disk, const char *from, const char *to, psd_error_t *err)
{
    (void)disk;
    return rename(from, to) == 0 ? PSD_OK : fail(err, "rename", from);
}

static psd_status_t real_remove(ps_disk_t *disk, const char *path, psd_error_t *err)
{
    (void)disk;
    return unlink(path) == 0 || errno == ENOENT ? PSD_OK : fail(err, "remove", path);
}

/* A symbolic link could lead to a directory that is not psd's. -1: errno is ELOOP there. */
static int open_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int number = errno;

    if (fd < 0) {
        errno = ps_disk_is_link(dir) ? ELOOP : number;
    }
    return fd;
}

static psd_status_t real_list(ps_disk_t *disk, const char *dir, ps_disk_name_t *each, void *context,
                              psd_error_t *err)
{
    int fd = open_dir(dir);
    DIR *stream = NULL;
    psd_status_t rc = PSD_OK;

    (void)disk;
    if (fd < 0) {
        return ps_disk_open_error(dir, err);
    }
    stream = fdopendir(fd);
    if (stream == NULL) {
        rc = fail(err, "list", dir);
        (void)close(fd);
        return rc;
    }
    while (rc == PSD_OK) {
        struct dirent *entry = NULL;

        errno = 0;
        entry = readdir(stream);
        if (entry == NULL) {
            rc = errno == 0 ? PSD_OK : fail(err, "list", dir);
            break;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            rc = each(context, entry->d_name, err);
        }
    }
    (void)closedir(stream);
    return rc;
}

static psd_status_t real_flush_dir(ps_disk_t *disk, const char *dir, psd_error_t *err)
{
    int fd = open_dir(dir);
    psd_status_t rc = PSD_OK;

    (void)disk;
    if (fd < 0) {
        return ps_disk_open_error(dir, err);
    }
    if (fsync(fd) != 0) {
        rc = fail(err, "flush", dir);
    }
    (void)close(fd);
    return rc;
}

static psd_status_t real_make_dir(ps_disk_t *disk, const char *dir, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) char *parent = ps_strdup(dir);
    char *slash = NULL;

    if (parent == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to make %s", dir);
    }
    if (mkdir(dir, 0700) != 0) {
        return errno == EEXIST ? PSD_OK : fail(err, "make", dir);
    }
    /* The one above may be the operator's, who may have a link there: with "/." it is followed. */
    slash = strrchr(parent, '/');
    if (slash != NULL && slash[1] != '\0') {
        memcpy(slash + 1, ".", 2);
    }
    return real_flush_dir(disk, slash == NULL ? "." : parent, err);
}

static psd_status_t real_room(ps_disk_t *disk, const char *dir, uint64_t *ret_bytes,
                              psd_error_t *err)
{
    struct statvfs status;

    (void)disk;
    if (statvfs(dir, &status) != 0) {
        return fail(err, "measure", dir);
    }
    *ret_bytes = (uint64_t)status.f_bavail * status.f_frsize;
    return PSD_OK;
}

ps_disk_t *ps_disk_real(void)
{
    static ps_disk_t real = {
        .open = real_open,
        .close = real_close,
        .write = real_write,
        .read = real_read,
        .ahead = real_ahead,
        .size = real_size,
        .flush = real_flush,
        .truncate = real_truncate,
        .rename = real_rename,
        .remove = real_remove,
        .list = real_list,
        .flush_dir = real_flush_dir,
        .make_dir = real_make_dir,
        .room = real_room,
    };

    return &real;
}

psd_status_t ps_disk_path(ps_buffer_t *to, psd_error_t *err, const char *dir, const char *format,
                          ...)
{
    char name[128];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    to->size = 0;
    return ps_buffer_print(to, "%s/%s", dir, name)
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for a path");
}

static psd_status_t write_whole(ps_disk_t *disk, ps_disk_file_t *file, ps_bytes_t bytes,
                                psd_error_t *err)
{
    psd_status_t rc = disk->write(disk, file, 0, &bytes, 1, err);

    return rc == PSD_OK ? disk->flush(disk, file, err) : rc;
}

psd_status_t ps_disk_make(ps_disk_t *disk, const char *dir, const char *path, ps_bytes_t bytes,
                          ps_disk_file_t **ret_file, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t beside = {0};
    ps_disk_file_t *file = NULL;
    const char *from = NULL;
    psd_status_t rc = PSD_OK;

    if (!ps_buffer_print(&beside, "%s.tmp", path)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    from = (const char *)beside.data;
    rc = disk->open(disk, from, PS_DISK_NEW, &file, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = write_whole(disk, file, bytes, err);
    if (rc == PSD_OK) {
        rc = disk->rename(disk, from, path, err);
    }
    if (rc != PSD_OK) {
        /* A file that stays is never read, and is overwritten the next time. */
        (void)disk->remove(disk, from, NULL);
    } else {
        rc = disk->flush_dir(disk, dir, err);
    }
    if (rc == PSD_OK && ret_file != NULL) {
        *ret_file = file;
        return PSD_OK;
    }
    disk->close(disk, &file);
    return rc;
}
