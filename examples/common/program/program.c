/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of main around the work. */
#include "program.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static psd_status_t tell_version(const char *name)
{
    (void)printf("%s %s\n", name, psd_version());
    return PSD_OK;
}

int ex_program(const char *name, psd_status_t (*run)(int argc, char **argv, psd_error_t *err),
               int argc, char **argv)
{
    bool is_version = argc == 2 && strcmp(argv[1], "--version") == 0;
    psd_error_t *err = psd_error_new();
    psd_status_t rc = is_version ? tell_version(name) : run(argc, argv, err);

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

double ex_now_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
