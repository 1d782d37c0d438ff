/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/sockets/shared_object.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX 300

/* Which other user could change it? NULL: none. */
static const char *unsafe(const struct stat *is)
{
    if (is->st_uid != 0 && is->st_uid != geteuid()) {
        return "belongs neither to root nor to the user of psd";
    }
    if ((is->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return "can be written by its group or by everybody";
    }
    return NULL;
}

psd_status_t ps_object_dir(const char *dir, int *ret_fd, psd_error_t *err)
{
    struct stat is;
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    psd_status_t rc = PSD_OK;

    if (fd < 0) {
        return psd_error_set(err, PSD_IO, "%s", strerror(errno));
    }
    if (fstat(fd, &is) != 0) {
        rc = psd_error_set(err, PSD_IO, "%s", strerror(errno));
    } else if (unsafe(&is) != NULL) {
        rc = psd_error_set(err, PSD_DENIED, "%s", unsafe(&is));
    }
    if (rc != PSD_OK) {
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    return PSD_OK;
}

static psd_status_t check_file(int dir, const char *file, psd_error_t *err)
{
    struct stat is;
    int fd = openat(dir, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    psd_status_t rc = PSD_OK;

    if (fd < 0) {
        return psd_error_set(err, PSD_IO, "%s",
                             errno == ELOOP ? "it is a symbolic link" : strerror(errno));
    }
    if (fstat(fd, &is) != 0) {
        rc = psd_error_set(err, PSD_IO, "%s", strerror(errno));
    } else if (!S_ISREG(is.st_mode)) {
        rc = psd_error_set(err, PSD_INVALID, "it is not a file");
    } else if (unsafe(&is) != NULL) {
        rc = psd_error_set(err, PSD_DENIED, "it %s", unsafe(&is));
    }
    (void)close(fd);
    return rc;
}

/* Opens the file by its name in the directory that was checked, which no other
 * user can change; the directory's own path may lead elsewhere by now. A
 * descriptor of the file would not do, because the loader takes two objects of
 * one path for the same. */
psd_status_t ps_object_load(int dir, const char *file, const char *symbol, void **ret_object,
                            void **ret_symbol, psd_error_t *err)
{
    char path[FILE_MAX + 32];
    void *object = NULL;
    void *found = NULL;
    psd_status_t rc = check_file(dir, file, err);

    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d/%.*s", dir, FILE_MAX, file);
    object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        return psd_error_set(err, PSD_FAILED, "%.200s", dlerror());
    }
    found = dlsym(object, symbol);
    if (found == NULL) {
        (void)dlclose(object);
        return psd_error_set(err, PSD_INVALID, "it exports no %s", symbol);
    }
    *ret_object = object;
    *ret_symbol = found;
    return PSD_OK;
}
