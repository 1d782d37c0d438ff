/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of a data set, found by their names. */
#include "data/records/matrix_names.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"

bool ps_matrix_names_end(const char *path, const char *ending)
{
    size_t size = strlen(path);
    size_t n = strlen(ending);

    return size > n && strcmp(path + size - n, ending) == 0 && path[size - n - 1] != '/';
}

/* Is it the id of a group, as writers print it? */
static bool is_id(const char *text)
{
    char again[24];
    int64_t id = 0;

    if (!ps_text_i64(text, &id) || id < INT32_MIN || id > INT32_MAX) {
        return false;
    }
    (void)snprintf(again, sizeof again, "%d", (int)id);
    return strcmp(again, text) == 0;
}

static psd_status_t add(ps_matrix_names_t *self, const char *name, psd_error_t *err)
{
    char *copy = NULL;

    if (self->n == PS_MATRICES_MAX) {
        return psd_error_set(err, PSD_LIMIT,
                             "%s is one matrix too many: %d can be read "
                             "together",
                             name, PS_MATRICES_MAX);
    }
    copy = ps_strdup(name);
    if (copy == NULL || !ps_grow(&self->names, &self->capacity, self->n + 1, sizeof *self->names)) {
        ps_free(copy);
        return psd_error_set(err, PSD_NOMEM, "no memory for the name of %s", name);
    }
    self->names[self->n++] = copy;
    return PSD_OK;
}

/* Adds NAME, if NAME.info is there. */
static psd_status_t add_if_there(ps_matrix_names_t *self, const char *name, psd_error_t *err)
{
    char path[PATH_MAX + 8];

    (void)snprintf(path, sizeof path, "%s.info", name);
    return access(path, F_OK) == 0 ? add(self, name, err) : PSD_OK;
}

/* STEM.ID for the directory's entry "STEM.ID.info"; "": it is none. */
static void name_of_entry(const char *stem, const char *base, const char *entry,
                          char ret_name[PATH_MAX])
{
    size_t n = strlen(base);
    char id[24];
    size_t size = strlen(entry);

    ret_name[0] = '\0';
    if (size < n + 7 || size - n - 6 >= sizeof id || strncmp(entry, base, n) != 0 ||
        entry[n] != '.' || !ps_matrix_names_end(entry, ".info")) {
        return;
    }
    (void)snprintf(id, sizeof id, "%.*s", (int)(size - n - 6), entry + n + 1);
    if (is_id(id)) {
        int length = snprintf(ret_name, PATH_MAX, "%s.%s", stem, id);

        if (length < 0 || length >= PATH_MAX) {
            ret_name[0] = '\0';
        }
    }
}

/* By number; all names are STEM.ID. */
static int by_id(const void *a, const void *b)
{
    long left = strtol(strrchr(*(char *const *)a, '.') + 1, NULL, 10);
    long right = strtol(strrchr(*(char *const *)b, '.') + 1, NULL, 10);

    return left < right ? -1 : left > right;
}

static psd_status_t add_groups(ps_matrix_names_t *self, const char *stem, psd_error_t *err)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(stem, '/');
    const char *base = slash == NULL ? stem : slash + 1;
    size_t first = self->n;
    DIR *entries = NULL;
    psd_status_t rc = PSD_OK;

    (void)snprintf(directory, sizeof directory, "%.*s", slash == NULL ? 1 : (int)(slash - stem) + 1,
                   slash == NULL ? "." : stem);
    entries = opendir(directory);
    if (entries == NULL) {
        char reason[128];

        return psd_error_set(err, PSD_IO, "cannot read the directory %s: %s", directory,
                             strerror_r(errno, reason, sizeof reason));
    }
    for (struct dirent *entry = readdir(entries); entry != NULL && rc == PSD_OK;
         entry = readdir(entries)) {
        char name[PATH_MAX];

        name_of_entry(stem, base, entry->d_name, name);
        if (name[0] != '\0') {
            rc = add(self, name, err);
        }
    }
    (void)closedir(entries);
    if (self->n > first) {
        qsort(self->names + first, self->n - first, sizeof *self->names, by_id);
    }
    return rc;
}

/* All matrices of the stem. */
static psd_status_t add_all(ps_matrix_names_t *self, char stem[PATH_MAX], psd_error_t *err)
{
    size_t size = strlen(stem);
    psd_status_t rc = add_if_there(self, stem, err);

    if (rc == PSD_OK) {
        memcpy(stem + size, ".X", 3);
        rc = add_if_there(self, stem, err);
        stem[size] = '\0';
    }
    return rc == PSD_OK ? add_groups(self, stem, err) : rc;
}

/* Cuts the stem out of a name; true: the name means all of its matrices. */
static bool cut_stem(char name[PATH_MAX])
{
    char *dot = strrchr(name, '.');
    char *slash = strrchr(name, '/');

    if (dot == NULL || (slash != NULL && dot < slash)) {
        return true;
    }
    if (strcmp(dot, ".y") == 0) {
        *dot = '\0';
        return true;
    }
    if (strcmp(dot, ".X") == 0 || is_id(dot + 1)) {
        *dot = '\0';
        return false;
    }
    return true;
}

bool ps_matrix_names_is_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *slash = strrchr(name, '/');

    return dot != NULL && (slash == NULL || slash < dot) &&
           (strcmp(dot, ".y") == 0 || strcmp(dot, ".X") == 0 || is_id(dot + 1));
}

static psd_status_t find(ps_matrix_names_t *self, const char *path, psd_error_t *err)
{
    char name[PATH_MAX];
    char stem[PATH_MAX];
    size_t size = strlen(path) - strlen(".info");
    psd_status_t rc = PSD_OK;

    if (size + 8 > PATH_MAX) {
        return psd_error_set(err, PSD_INVALID, "%s: a path of %zu bytes", path, size);
    }
    memcpy(name, path, size);
    name[size] = '\0';
    memcpy(stem, name, size + 1);
    rc = cut_stem(stem) ? add_all(self, stem, err) : add(self, name, err);
    if (rc == PSD_OK && self->n == 0) {
        return psd_error_set(err, PSD_INVALID, "%s: there is neither %s.info nor one of a group",
                             path, stem);
    }
    (void)snprintf(name, sizeof name, "%.*s.y.info", PATH_MAX - 8, stem);
    if (rc == PSD_OK && access(name, F_OK) == 0) {
        name[strlen(name) - strlen(".info")] = '\0';
        self->labels = ps_strdup(name);
        rc = self->labels != NULL ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory for a name");
    }
    return rc;
}

psd_status_t ps_matrix_names_find(ps_matrix_names_t *ret_names, const char *path, psd_error_t *err)
{
    ps_matrix_names_t self = {0};
    psd_status_t rc = PSD_OK;

    if (!ps_matrix_names_end(path, ".info")) {
        return psd_error_set(err, PSD_INVALID, "%s: name the binary file that ends with .info",
                             path);
    }
    rc = find(&self, path, err);
    if (rc != PSD_OK) {
        ps_matrix_names_done(&self);
        return rc;
    }
    *ret_names = self;
    return PSD_OK;
}

void ps_matrix_names_done(ps_matrix_names_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_free(self->names[i]);
    }
    ps_free(self->names);
    ps_free(self->labels);
    *self = (ps_matrix_names_t){0};
}
