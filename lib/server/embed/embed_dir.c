/* SPDX-License-Identifier: Apache-2.0 */
/* Makes, finds stale, removes. */
#include "server/embed/embed_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"

#define MARK ".psd-embed" /* a file that only these directories have */
#define RANDOM "XXXXXX"
#define TRIES 100 /* each fails when another process takes the new directory for a stale one */
#define DEPTH_MAX 8
#define HOST_SIZE 65
#define PREFIX_SIZE (HOST_SIZE + 16)

static const char *base_dir(void)
{
    const char *base = getenv("TMPDIR");

    return base == NULL || base[0] != '/' ? "/tmp" : base;
}

/* Locks of other hosts, which may share the base, are not seen here. */
static void prefix_of_host(char ret_prefix[PREFIX_SIZE])
{
    char host[HOST_SIZE] = "";

    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(ret_prefix, PREFIX_SIZE, "psd-embed-%s-", host);
}

/* ---- removing ---- */

static void empty(int dir_fd, int depth);

static void remove_entry(int dir_fd, const char *name, int depth)
{
    int fd = -1;

    if (unlinkat(dir_fd, name, 0) == 0 || depth == DEPTH_MAX) {
        return;
    }
    fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        empty(fd, depth + 1);
        (void)close(fd);
    }
    (void)unlinkat(dir_fd, name, AT_REMOVEDIR);
}

static void empty(int dir_fd, int depth)
{
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry = NULL;

    if (dir == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            (depth > 0 || strcmp(entry->d_name, MARK) != 0)) {
            remove_entry(dir_fd, entry->d_name, depth);
        }
    }
    (void)closedir(dir);
}

/* The mark goes last: until then the directory can be seen to be ours. A file may come
 * while the others go; none can come after the directory went. */
static void remove_whole(const char *path, int fd)
{
    for (int i = 0; i < TRIES; i++) {
        empty(fd, 0);
        (void)unlinkat(fd, MARK, 0);
        if (rmdir(path) == 0 || errno != ENOTEMPTY) {
            return;
        }
    }
}

/* ---- stale ones ---- */

/* Opens and locks a directory of this user. -1, and errno: EWOULDBLOCK it is in use. */
static int lock_dir(int base_fd, const char *name)
{
    int fd = openat(base_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat is = {0};
    int reason = EACCES;

    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &is) == 0 && is.st_uid == geteuid()) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
            return fd;
        }
        reason = errno;
    }
    (void)close(fd);
    errno = reason;
    return -1;
}

/* Nobody has it locked. One without the mark may be a directory that somebody named so. */
static void remove_stale(const char *base, const char *prefix, const char *name, int base_fd)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    int fd = -1;

    if (strncmp(name, prefix, strlen(prefix)) != 0 ||
        strlen(name) != strlen(prefix) + strlen(RANDOM) ||
        !ps_buffer_print(&path, "%s/%s", base, name)) {
        return;
    }
    fd = lock_dir(base_fd, name);
    if (fd >= 0) {
        if (faccessat(fd, MARK, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            remove_whole((const char *)path.data, fd);
        }
        (void)close(fd);
    }
}

static void remove_all_stale(const char *base, const char *prefix)
{
    DIR *dir = opendir(base);
    const struct dirent *entry = NULL;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        remove_stale(base, prefix, entry->d_name, dirfd(dir));
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
}

/* ---- making ---- */

/* It is there still, as what was locked, and has the mark now. */
static bool mark(int fd)
{
    struct stat is = {0};
    int mark_fd = -1;

    if (fstat(fd, &is) != 0 || is.st_nlink == 0) {
        errno = EWOULDBLOCK;
        return false;
    }
    mark_fd = openat(fd, MARK, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (mark_fd >= 0) {
        (void)close(mark_fd);
    }
    return mark_fd >= 0;
}

/* Makes one, and locks it. *ret_fd -1: another process has removed it meanwhile. */
static psd_status_t make_one(char *path, int *ret_fd, psd_error_t *err)
{
    int fd = -1;
    int reason = 0;

    *ret_fd = -1;
    if (mkdtemp(path) == NULL) {
        return psd_error_set(err, PSD_IO, "cannot make directory %s: %s", path, strerror(errno));
    }
    fd = lock_dir(AT_FDCWD, path);
    if (fd >= 0 && mark(fd)) {
        *ret_fd = fd;
        return PSD_OK;
    }
    reason = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    (void)rmdir(path);
    if (reason == EWOULDBLOCK || reason == ENOENT) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_IO, "cannot keep directory %s: %s", path, strerror(reason));
}

psd_status_t ps_embed_dir_make(ps_embed_dir_t *ret_dir, psd_error_t *err)
{
    const char *base = base_dir();
    char prefix[PREFIX_SIZE];
    int fd = -1;

    prefix_of_host(prefix);
    remove_all_stale(base, prefix);
    for (int i = 0; i < TRIES && fd < 0; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
        psd_status_t rc = PSD_OK;

        if (!ps_buffer_print(&path, "%s/%s" RANDOM, base, prefix)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a path");
        }
        rc = make_one((char *)path.data, &fd, err);
        if (rc != PSD_OK) {
            return rc;
        }
        if (fd >= 0) {
            *ret_dir = (ps_embed_dir_t){.path = (char *)path.data, .fd = fd};
            path = (ps_buffer_t){0}; /* the directory's now */
        }
    }
    if (fd < 0) {
        return psd_error_set(err, PSD_IO, "cannot keep a directory in %s: others remove it", base);
    }
    ret_dir->in_child = (ps_fork_item_t){.fd = &ret_dir->fd};
    ps_fork_add(&ret_dir->in_child);
    return PSD_OK;
}

void ps_embed_dir_empty(const ps_embed_dir_t *self)
{
    if (self->path != NULL && self->fd >= 0) {
        remove_whole(self->path, self->fd);
    }
}

void ps_embed_dir_remove(ps_embed_dir_t *self)
{
    if (self->path == NULL) {
        return;
    }
    ps_embed_dir_empty(self);
    ps_fork_remove(&self->in_child);
    if (self->fd >= 0) {
        (void)close(self->fd);
    }
    ps_free(self->path);
    *self = (ps_embed_dir_t){.path = NULL};
}
