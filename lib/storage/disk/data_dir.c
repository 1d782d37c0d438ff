/* SPDX-License-Identifier: Apache-2.0 */
/* The data directory: made when it is missing, held by one process at a time.
 */
#include "storage/disk/data_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "storage/disk/disk.h"

#define PID_TEXT_SIZE 32
#define LOCK_NAME "lock"

static psd_status_t fail(psd_error_t *err, const char *what, const char *path)
{
    char reason[128];

    return psd_error_set(err, PSD_IO, "cannot %s %s: %s", what, path,
                         strerror_r(errno, reason, sizeof reason));
}

/* Flushes the directory that holds path, so that path's name stays. */
static psd_status_t flush_parent(const char *path, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) char *parent = ps_strdup(path);
    char *slash = NULL;
    int fd = -1;
    bool flushed = false;

    if (parent == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    slash = strrchr(parent, '/');
    if (slash != NULL) {
        slash[slash == parent ? 1 : 0] = '\0';
    }
    fd = open(slash == NULL ? "." : parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        /* We may write below a directory that we may not read. */
        return errno == EACCES ? PSD_OK : fail(err, "open", parent);
    }
    flushed = fsync(fd) == 0;
    if (!flushed) {
        (void)fail(err, "flush", parent);
    }
    (void)close(fd);
    return flushed ? PSD_OK : PSD_IO;
}

static psd_status_t make_one(const char *path, psd_error_t *err)
{
    if (mkdir(path, 0700) == 0) {
        return flush_parent(path, err);
    }
    return errno == EEXIST ? PSD_OK : fail(err, "make", path);
}

static psd_status_t make_all(const char *dir, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) char *path = ps_strdup(dir);
    size_t length = strlen(dir);

    if (path == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    while (length > 1 && path[length - 1] == '/') {
        path[--length] = '\0';
    }
    for (size_t i = 1; i < length; i++) {
        if (path[i] == '/' && path[i - 1] != '/') {
            path[i] = '\0';
            /* A directory that cannot be made here may exist nevertheless; the
             * last one decides. */
            (void)make_one(path, NULL);
            path[i] = '/';
        }
    }
    return make_one(path, err);
}

/* Names the process that holds the lock; the file may be empty for a moment. */
static psd_status_t held_by(int fd, const char *dir, psd_error_t *err)
{
    char pid[PID_TEXT_SIZE] = "";
    ssize_t size = pread(fd, pid, sizeof pid - 1, 0);

    pid[size > 0 ? size : 0] = '\0';
    pid[strspn(pid, "0123456789")] = '\0';
    return psd_error_set(err, PSD_HELD, "%s is held by another psd with pid %s", dir,
                         pid[0] == '\0' ? "unknown" : pid);
}

static psd_status_t write_pid(int fd, const char *path, psd_error_t *err)
{
    char pid[PID_TEXT_SIZE];
    int length = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());

    if (ftruncate(fd, 0) != 0 || pwrite(fd, pid, (size_t)length, 0) != (ssize_t)length) {
        return fail(err, "write", path);
    }
    return PSD_OK;
}

static psd_status_t lock_file(int dir_fd, const char *dir, const char *path, int *ret_fd,
                              psd_error_t *err)
{
    int fd = openat(dir_fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    psd_status_t rc = PSD_OK;

    if (fd < 0) {
        return ps_disk_open_error(path, err);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        rc = errno == EWOULDBLOCK ? held_by(fd, dir, err) : fail(err, "lock", path);
    }
    if (rc == PSD_OK) {
        rc = write_pid(fd, path, err);
    }
    if (rc != PSD_OK) {
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    return PSD_OK;
}

/* ---- whose directory it is ---- */

static psd_status_t check_owner(int fd, const char *dir, psd_error_t *err)
{
    struct stat is = {0};

    if (fstat(fd, &is) != 0) {
        return fail(err, "look at", dir);
    }
    if (is.st_uid != geteuid()) {
        return psd_error_set(err, PSD_FOREIGN,
                             "%s belongs to user %lu, and psd runs as user "
                             "%lu; allowed: a directory of its own user",
                             dir, (unsigned long)is.st_uid, (unsigned long)geteuid());
    }
    if ((is.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return psd_error_set(err, PSD_FOREIGN,
                             "%s may be written by others (mode %04o); run \"chmod go-w %s\", or "
                             "name a directory in it",
                             dir, (unsigned)(is.st_mode & 07777), dir);
    }
    return PSD_OK;
}

/* Names that psd alone makes. */
static bool marks_ours(const char *name)
{
    static const char *const OURS[] = {LOCK_NAME, "registry.db", "member.json",
                                       "log-0",   "restore",     "format"};

    for (size_t i = 0; i < sizeof OURS / sizeof OURS[0]; i++) {
        if (strcmp(OURS[i], name) == 0) {
            return true;
        }
    }
    return strncmp(name, "registry.", strlen("registry.")) == 0;
}

/* What file systems put into an empty directory, and hidden files. */
static bool is_passed_over(const char *name)
{
    return name[0] == '.' || strcmp(name, "lost+found") == 0;
}

/* A directory that is not empty and has no files of a psd was named by
 * mistake. */
static psd_status_t check_names(int fd, const char *dir, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) char *foreign = NULL;
    int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry = NULL;
    bool is_ours = false;
    bool no_memory = false;

    if (stream == NULL) {
        psd_status_t rc = fail(err, "list", dir);

        (void)(copy < 0 ? 0 : close(copy));
        return rc;
    }
    while (!is_ours && (entry = readdir(stream)) != NULL) {
        is_ours = marks_ours(entry->d_name);
        if (foreign == NULL && !is_passed_over(entry->d_name)) {
            foreign = ps_strdup(entry->d_name);
            no_memory = foreign == NULL;
        }
    }
    (void)closedir(stream);
    if (no_memory) {
        return psd_error_set(err, PSD_NOMEM, "no memory to list %s", dir);
    }
    return is_ours || foreign == NULL
               ? PSD_OK
               : psd_error_set(err, PSD_FOREIGN,
                               "%s holds \"%s\" and no files of psd; allowed: an empty or new "
                               "directory, or one of a psd",
                               dir, foreign);
}

/* Opens the directory itself, so that what is checked is what is used. */
static psd_status_t open_dir(const char *dir, int *ret_fd, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) char *path = ps_strdup(dir);
    size_t length = strlen(dir);
    psd_status_t rc = PSD_OK;
    int fd = -1;

    if (path == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    while (length > 1 && path[length - 1] == '/') {
        path[--length] = '\0'; /* a link followed by a slash is resolved */
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return ps_disk_is_link(path) ? ps_disk_refuse_link(path, err) : fail(err, "open", path);
    }
    rc = check_owner(fd, path, err);
    if (rc == PSD_OK) {
        rc = check_names(fd, path, err);
    }
    if (rc != PSD_OK) {
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    return PSD_OK;
}

psd_status_t ps_data_dir_lock(const char *dir, int *ret_fd, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    psd_status_t rc = PSD_OK;
    int dir_fd = -1;

    if (dir == NULL || dir[0] == '\0') {
        return psd_error_set(err, PSD_INVALID, "the data directory is \"\"");
    }
    rc = make_all(dir, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_buffer_print(&path, "%s/" LOCK_NAME, dir)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    rc = open_dir(dir, &dir_fd, err);
    if (rc == PSD_OK) {
        rc = lock_file(dir_fd, dir, (const char *)path.data, ret_fd, err);
        (void)close(dir_fd);
    }
    return rc;
}
