/* SPDX-License-Identifier: Apache-2.0 */
/* The input files of a program. */
#include "inputs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool can_list(const char *path)
{
    DIR *list = opendir(path);

    if (list == NULL) {
        return false;
    }
    (void)closedir(list);
    return true;
}

/* false: errno says why. */
static bool can_read(const ps_opt_t *option, const char *path)
{
    struct stat found;
    int file = -1;

    if (stat(path, &found) != 0) {
        return false;
    }
    if (S_ISDIR(found.st_mode)) {
        errno = EISDIR;
        return option->kind == PS_OPT_INPUTS && can_list(path);
    }
    if (!S_ISREG(found.st_mode)) {
        return access(path, R_OK) == 0;
    }
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    (void)close(file);
    return true;
}

static psd_status_t check_pattern(const ps_opt_t *option, const char *pattern, psd_error_t *err)
{
    glob_t found = {0};
    psd_status_t rc = PSD_OK;

    if (glob(pattern, 0, NULL, &found) == GLOB_NOMATCH) {
        rc = psd_error_set(err, PSD_INVALID,
                           "--%s %s is neither a file nor a pattern that matches one", option->name,
                           pattern);
    }
    for (size_t i = 0; rc == PSD_OK && i < found.gl_pathc; i++) {
        if (!can_read(option, found.gl_pathv[i])) {
            rc = psd_error_set(err, PSD_IO, "--%s %s: %s", option->name, found.gl_pathv[i],
                               strerror(errno));
        }
    }
    globfree(&found);
    return rc;
}

static psd_status_t check(const ps_opt_t *option, const char *path, psd_error_t *err)
{
    bool many = option->kind == PS_OPT_INPUTS;

    if ((many && strcmp(path, "-") == 0) || can_read(option, path)) {
        return PSD_OK;
    }
    if (many && errno == ENOENT && strpbrk(path, "*?[") != NULL) {
        return check_pattern(option, path, err);
    }
    return psd_error_set(err, PSD_IO, "--%s %s: %s", option->name, path, strerror(errno));
}

psd_status_t ex_inputs_check(const ex_command_t *command, const void *options, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (const ps_opt_t *option = command->options; rc == PSD_OK && !ps_opt_is_end(option);
         option++) {
        const char *path = NULL;

        if (option->kind == PS_OPT_INPUT || option->kind == PS_OPT_INPUTS) {
            memcpy(&path, (const char *)options + option->offset, sizeof path);
        }
        if (path != NULL) {
            rc = check(option, path, err);
        }
    }
    return rc;
}
