/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output - a file that appears when it is complete
 *
 * What     Written under a temporary name, flushed, renamed: a reader sees the
 *          old file or the complete new one.
 *
 *              ex_output_t output;
 *
 *              rc = ex_output_open(&output, path, err);
 *              if (rc == PSD_OK) {
 *                  bool good = fprintf(output.file, …) > 0;
 *
 *                  rc = ex_output_finish(&output, good, err);
 *              }
 * Threads  one
 */
#ifndef EX_OUTPUT_H
#define EX_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "psd.h"

#define EX_PATH_SIZE 4096

typedef struct ex_output {
    FILE *file;                /* to write to; owned */
    const char *path;          /* borrowed until it is finished */
    char beside[EX_PATH_SIZE]; /* its temporary path */
} ex_output_t;

/* Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ex_output_open(ex_output_t *ret_output, const char *path,
                                           psd_error_t *err);
/* Renames it into place, or removes it when !good. Closes it in each case.
 * Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ex_output_finish(ex_output_t *self, bool good, psd_error_t *err);
#endif
