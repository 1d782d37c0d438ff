/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_new_file - a file that is there when it is whole
 *
 * What     Written beside its place under another name, flushed, renamed; the
 *          directory is flushed too. Interrupted or failed, it leaves nothing.
 * Threads  One at a time in a process: the signal handler knows the path.
 */
#ifndef PS_CLI_NEW_FILE_H
#define PS_CLI_NEW_FILE_H

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "psd/status.h"

typedef struct ps_new_file {
    FILE *file;            /* owned; NULL when not open */
    char path[PATH_MAX];   /* where it will be */
    char beside[PATH_MAX]; /* where it is now; "" when it is nowhere */
} ps_new_file_t;

/* mode: who may do what with it, less what the umask takes away; from its first
 * byte on. Errors: PSD_IO naming the path; PSD_INVALID a path that is too long.
 */
PSD_MUST_CHECK psd_status_t ps_new_file_open(ps_new_file_t *ret_file,
                                             const char *path,
                                             mode_t mode,
                                             psd_error_t *err);
/* Puts it in place. ret_bytes: its size. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_new_file_commit(ps_new_file_t *self,
                                               uint64_t *ret_bytes,
                                               psd_error_t *err);
/* Takes away what was not committed; fits PSD_AUTO. */
void ps_new_file_done(ps_new_file_t *self);
#endif
