/* SPDX-License-Identifier: Apache-2.0 */
/* The files that paths, directories and patterns name. */
#include "data/feed/inputs.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"

static psd_status_t set_errno(const char *what, const char *path, psd_error_t *err)
{
    char reason[128];

    return psd_error_set(err, PSD_IO, "cannot %s %s: %s", what, path,
                         strerror_r(errno, reason, sizeof reason));
}

static psd_status_t add(ps_inputs_t *self, const char *path, uint64_t bytes, psd_error_t *err)
{
    char *copy = ps_strdup(path);

    if (copy == NULL || !ps_grow(&self->paths, &self->capacity, self->n + 1, sizeof *self->paths)) {
        ps_free(copy);
        return psd_error_set(err, PSD_NOMEM, "no memory for the name of %s", path);
    }
    self->paths[self->n++] = copy;
    self->bytes += bytes;
    return PSD_OK;
}

static int is_shown(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* By bytes, whatever the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static psd_status_t add_entry(ps_inputs_t *self, const char *directory, const char *name,
                              psd_error_t *err)
{
    char path[PATH_MAX];
    struct stat about;
    int n = snprintf(path, sizeof path, "%s/%s", directory, name);

    if (n < 0 || (size_t)n >= sizeof path) {
        return psd_error_set(err, PSD_INVALID, "a path in %s is longer than %d bytes", directory,
                             PATH_MAX - 1);
    }
    if (stat(path, &about) != 0) { /* a link to nothing is no file */
        return errno == ENOENT ? PSD_OK : set_errno("look at", path, err);
    }
    return S_ISREG(about.st_mode) ? add(self, path, (uint64_t)about.st_size, err) : PSD_OK;
}

static psd_status_t add_directory(ps_inputs_t *self, const char *directory, psd_error_t *err)
{
    struct dirent **entries = NULL;
    size_t before = self->n;
    int n = scandir(directory, &entries, is_shown, by_name);
    psd_status_t rc = PSD_OK;

    if (n < 0) {
        return set_errno("read the directory", directory, err);
    }
    for (int i = 0; i < n; i++) {
        if (rc == PSD_OK) {
            rc = add_entry(self, directory, entries[i]->d_name, err);
        }
        free(entries[i]);
    }
    free(entries);
    if (rc == PSD_OK && self->n == before) {
        return psd_error_set(err, PSD_INVALID, "%s has no files", directory);
    }
    return rc;
}

static psd_status_t add_path(ps_inputs_t *self, const char *path, const struct stat *about,
                             psd_error_t *err)
{
    if (S_ISDIR(about->st_mode)) {
        return add_directory(self, path, err);
    }
    return add(self, path, S_ISREG(about->st_mode) ? (uint64_t)about->st_size : 0, err);
}

static psd_status_t add_pattern(ps_inputs_t *self, const char *pattern, psd_error_t *err)
{
    glob_t found = {0};
    int code = glob(pattern, 0, NULL, &found);
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; code == 0 && rc == PSD_OK && i < found.gl_pathc; i++) {
        struct stat about;

        rc = stat(found.gl_pathv[i], &about) != 0 ? set_errno("look at", found.gl_pathv[i], err)
                                                  : add_path(self, found.gl_pathv[i], &about, err);
    }
    globfree(&found);
    if (code == GLOB_NOMATCH) {
        return psd_error_set(err, PSD_INVALID,
                             "%s is neither a file nor a pattern that matches one", pattern);
    }
    return code == GLOB_NOSPACE
               ? psd_error_set(err, PSD_NOMEM, "no memory for what %s matches", pattern)
               : (code == 0 ? rc : set_errno("look for", pattern, err));
}

psd_status_t ps_inputs_find(ps_inputs_t *ret_inputs, const char *const *paths, size_t n_paths,
                            psd_error_t *err)
{
    ps_inputs_t self = {0};
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < n_paths; i++) {
        struct stat about;

        if (strcmp(paths[i], "-") == 0) {
            rc = add(&self, paths[i], 0, err);
        } else if (stat(paths[i], &about) == 0) {
            rc = add_path(&self, paths[i], &about, err);
        } else if (errno == ENOENT && strpbrk(paths[i], "*?[") != NULL) {
            rc = add_pattern(&self, paths[i], err);
        } else {
            rc = set_errno("open", paths[i], err);
        }
    }
    if (rc != PSD_OK) {
        ps_inputs_done(&self);
        return rc;
    }
    *ret_inputs = self;
    return PSD_OK;
}

void ps_inputs_done(ps_inputs_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_free(self->paths[i]);
    }
    ps_free(self->paths);
    *self = (ps_inputs_t){0};
}
