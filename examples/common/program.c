/* SPDX-License-Identifier: Apache-2.0 */
/* What main does around the work. */
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATH_SIZE 4096

int
ex_program(const char *name,
           psd_status_t (*run)(int argc, char **argv, psd_error_t *err),
           int argc,
           char **argv)
{
    psd_error_t *err = psd_error_new();
    psd_status_t rc = run(argc, argv, err);

    if (rc != PSD_OK) {
        const char *text = psd_error_text(err);

        (void)fprintf(stderr, "%s: %s %s\n", name, psd_status_code(rc),
                      *text != '\0' ? text : psd_status_text(rc));
    } else if (fflush(stdout) != 0) {
        (void)fprintf(stderr, "%s: stdout cannot be written\n", name);
        rc = PSD_IO;
    }
    psd_error_destroy(&err);
    return psd_status_exit(rc);
}

/* The directory that a path is in; false: too long. */
static bool
directory_of(const char *path, char ret_directory[PATH_SIZE])
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

psd_status_t
ex_output_check(const char *option,
                const char *path,
                bool replaces,
                psd_error_t *err)
{
    const char *rank = getenv("PSD_WORKER");
    char directory[PATH_SIZE];
    struct stat found;
    bool is_there = false;

    if (path == NULL || (rank != NULL && strcmp(rank, "0") != 0)) {
        return PSD_OK;
    }
    if (!directory_of(path, directory)) {
        return psd_error_set(err, PSD_IO, "--%s %.80s...: path too long",
                             option, path);
    }
    is_there = stat(path, &found) == 0;
    if (is_there && S_ISDIR(found.st_mode)) {
        return psd_error_set(err, PSD_IO, "--%s %s: %s", option, path,
                             strerror(EISDIR));
    }
    if (is_there && !replaces ? access(path, W_OK) != 0
                              : access(directory, W_OK | X_OK) != 0) {
        return psd_error_set(err, PSD_IO, "--%s %s: %s", option, path,
                             strerror(errno));
    }
    return PSD_OK;
}

double
ex_now_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
