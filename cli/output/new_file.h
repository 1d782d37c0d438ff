/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_new_file - a ps_file_out to print to; an interrupt removes it
 *
 * What     See data/streams/file_out.h: it appears when it is complete,
 *          compressed as its name says; "-" is standard output. After an
 *          interrupt or a failure it leaves nothing.
 * Threads  One at a time in a process: the signal handler knows the path.
 */
#ifndef PS_CLI_NEW_FILE_H
#define PS_CLI_NEW_FILE_H

#include <stdint.h>
#include <stdio.h>

#include "data/streams/file_out.h"

typedef struct ps_new_file {
    FILE *file; /* owned; NULL when not open */
    ps_file_out_t *out;
    char *buffer;    /* of the stream */
    psd_status_t rc; /* of the first write that failed, and why */
    psd_error_t *why;
} ps_new_file_t;

/* Nothing moves it while it is open. Errors: as ps_file_out_open. */
PSD_MUST_CHECK psd_status_t ps_new_file_open(ps_new_file_t *ret_file, const char *path, mode_t mode,
                                             psd_error_t *err);
/* The error of writing, if any: the stream's own error has no text. */
PSD_MUST_CHECK psd_status_t ps_new_file_check(const ps_new_file_t *self, psd_error_t *err);
/* Puts it in place. ret_bytes: its size. Errors: those of ps_file_out_write. */
PSD_MUST_CHECK psd_status_t ps_new_file_commit(ps_new_file_t *self, uint64_t *ret_bytes,
                                               psd_error_t *err);
/* Removes what was not committed; fits PSD_AUTO. */
void ps_new_file_done(ps_new_file_t *self);
#endif
