/* SPDX-License-Identifier: Apache-2.0 */
/* The output files of a program. */
#include "outputs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch.h"

#define PATH_SIZE 4096

static bool is_output(const ps_opt_t *option)
{
    return option->kind == PS_OPT_OUTPUT || option->kind == PS_OPT_OUTPUT_HERE;
}

static bool is_input(const ps_opt_t *option)
{
    return option->kind == PS_OPT_INPUT || option->kind == PS_OPT_INPUTS;
}

/* NULL: it does not exist, or is not a file. */
static const char *path_of(const ps_opt_t *option, const void *options)
{
    const char *path = NULL;

    if (is_input(option) || is_output(option)) {
        memcpy(&path, (const char *)options + option->offset, sizeof path);
    }
    return path;
}

/* The directory that a path is in; false: too long. */
static bool directory_of(const char *path, char ret_directory[PATH_SIZE])
{
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path);

    if (slash == path) {
        length = 1; /* of / itself */
    }
    if (length >= PATH_SIZE) {
        return false;
    }
    memcpy(ret_directory, path, length);
    ret_directory[length] = '\0';
    if (length == 0) {
        (void)snprintf(ret_directory, PATH_SIZE, ".");
    }
    return true;
}

static psd_status_t check_writable(const ps_opt_t *option, const char *path, psd_error_t *err)
{
    char directory[PATH_SIZE];
    struct stat found;
    bool is_there = stat(path, &found) == 0;

    if (!directory_of(path, directory)) {
        return psd_error_set(err, PSD_IO, "--%s %.80s...: path too long", option->name, path);
    }
    if (is_there && S_ISDIR(found.st_mode)) {
        return psd_error_set(err, PSD_IO, "--%s %s: %s", option->name, path, strerror(EISDIR));
    }
    if (option->kind == PS_OPT_OUTPUT && lstat(path, &found) == 0 &&
        !S_ISREG(found.st_mode)) { /* a link would be lost */
        return psd_error_set(err, PSD_IO, "--%s %s is not a file that can be replaced",
                             option->name, path);
    }
    if (is_there && option->kind == PS_OPT_OUTPUT_HERE ? access(path, W_OK) != 0
                                                       : access(directory, W_OK | X_OK) != 0) {
        return psd_error_set(err, PSD_IO, "--%s %s: %s", option->name, path, strerror(errno));
    }
    return PSD_OK;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is the file in the directory, and read with it? */
static bool is_in(const struct stat *file, const char *directory)
{
    struct dirent *entry = NULL;
    struct stat found;
    DIR *list = opendir(directory);
    bool is_found = false;

    while (list != NULL && !is_found && (entry = readdir(list)) != NULL) {
        is_found = entry->d_name[0] != '.' && fstatat(dirfd(list), entry->d_name, &found, 0) == 0 &&
                   is_same(file, &found);
    }
    if (list != NULL) {
        (void)closedir(list);
    }
    return is_found;
}

/* Is it the file of that name, or in the directory? */
static bool is_named(const struct stat *file, const char *name)
{
    struct stat named;

    return stat(name, &named) == 0 &&
           (is_same(file, &named) || (S_ISDIR(named.st_mode) && is_in(file, name)));
}

/* Is an output file one of those that a name stands for, whatever the
 * spelling: a file, all of a directory, all that a pattern matches? A device
 * is not. */
static bool is_among(const char *path, const char *names)
{
    glob_t found = {0};
    struct stat file;
    bool is_found = false;

    if (stat(path, &file) != 0) {
        return strcmp(path, names) == 0;
    }
    if (!S_ISREG(file.st_mode)) {
        return false;
    }
    is_found = is_named(&file, names);
    if (!is_found && strpbrk(names, "*?[") != NULL && glob(names, 0, NULL, &found) == 0) {
        for (size_t i = 0; !is_found && i < found.gl_pathc; i++) {
            is_found = is_named(&file, found.gl_pathv[i]);
        }
        globfree(&found);
    }
    return is_found;
}

static psd_status_t check_apart(const ex_command_t *command, const void *options,
                                const ps_opt_t *output, psd_error_t *err)
{
    const char *path = path_of(output, options);

    for (const ps_opt_t *other = command->options; !ps_opt_is_end(other); other++) {
        const char *other_path = path_of(other, options);

        if (other != output && other_path != NULL && is_among(path, other_path)) {
            return psd_error_set(err, PSD_USAGE, "--%s %s would overwrite --%s %s", output->name,
                                 path, other->name, other_path);
        }
    }
    return PSD_OK;
}

psd_status_t ex_outputs_check(const ex_command_t *command, const void *options, psd_error_t *err)
{
    const char *rank = ex_launch_rank();
    psd_status_t rc = PSD_OK;

    if (rank != NULL && strcmp(rank, "0") != 0) {
        return PSD_OK;
    }
    for (const ps_opt_t *option = command->options; rc == PSD_OK && !ps_opt_is_end(option);
         option++) {
        const char *path = path_of(option, options);

        if (is_output(option) && path != NULL) {
            rc = check_apart(command, options, option, err);
            rc = rc == PSD_OK ? check_writable(option, path, err) : rc;
        }
    }
    return rc;
}
