/* SPDX-License-Identifier: Apache-2.0 */
/* Directories and files of the node. */
#include "server/config/place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "storage/disk/disk.h"

static psd_status_t make_one(const char *dir, mode_t mode, psd_error_t *err)
{
    struct stat is;

    if (mkdir(dir, mode) == 0 && chmod(dir, mode) == 0) {
        return PSD_OK;
    }
    if (errno == EEXIST && stat(dir, &is) == 0 && S_ISDIR(is.st_mode)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_IO, "cannot make directory %s: %s", dir,
                         errno == EEXIST ? "a file is in the way" : strerror(errno));
}

psd_status_t ps_place_make(const char *dir, mode_t mode, char **ret_path, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) char *copy = ps_strdup(dir);
    size_t length = strlen(dir);
    char real[PATH_MAX];

    if (copy == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    while (length > 1 && copy[length - 1] == '/') {
        copy[--length] = '\0'; /* a link with a slash after it is followed */
    }
    if (ps_disk_is_link(copy)) {
        return ps_disk_refuse_link(copy, err);
    }
    for (char *at = copy + 1; copy[0] != '\0' && *at != '\0'; at++) {
        psd_status_t rc = PSD_OK;

        if (*at != '/') {
            continue;
        }
        *at = '\0';
        rc = make_one(copy, mode, err);
        *at = '/';
        if (rc != PSD_OK) {
            return rc;
        }
    }
    if (make_one(copy, mode, err) != PSD_OK) {
        return PSD_IO;
    }
    if (realpath(copy, real) == NULL) {
        return psd_error_set(err, PSD_IO, "cannot use directory %s: %s", dir, strerror(errno));
    }
    *ret_path = ps_strdup(real);
    return *ret_path == NULL ? psd_error_set(err, PSD_NOMEM, "no memory for a path") : PSD_OK;
}

static bool write_all(int fd, ps_bytes_t text)
{
    size_t done = 0;

    while (done < text.size) {
        ssize_t n = write(fd, text.data + done, text.size - done);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Writes and flushes the file `path`, a new one: whoever has an old one open, or planted
 * one, does not read along. */
static bool write_file(const char *path, mode_t mode, ps_bytes_t text)
{
    int fd = -1;
    bool done = false;

    (void)unlink(path); /* of a psd that was killed; what stays is refused here: */
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    done = write_all(fd, text) && fchmod(fd, mode) == 0 && fsync(fd) == 0;
    if (close(fd) != 0) {
        return false;
    }
    return done;
}

static bool flush_dir(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool done = false;

    if (fd < 0) {
        return false;
    }
    done = fsync(fd) == 0;
    (void)close(fd);
    return done;
}

psd_status_t ps_place_write(const char *dir, const char *name, mode_t mode, ps_bytes_t text,
                            psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t beside = {0};

    if (!ps_buffer_print(&path, "%s/%s", dir, name) ||
        !ps_buffer_print(&beside, "%s/%s.new", dir, name)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    if (!write_file((const char *)beside.data, mode, text) ||
        rename((const char *)beside.data, (const char *)path.data) != 0 || !flush_dir(dir)) {
        return psd_error_set(err, PSD_IO, "cannot write %s: %s", (const char *)path.data,
                             strerror(errno));
    }
    return PSD_OK;
}

void ps_place_remove(const char *dir, const char *name)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};

    if (ps_buffer_print(&path, "%s/%s", dir, name)) {
        (void)unlink((const char *)path.data);
    }
}
