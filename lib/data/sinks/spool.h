/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_spool - bytes that wait until the bytes before them are known
 *
 * What     A file without a name, in the directory of the file that it will be
 *          part of; else, as for pipes, in the directory of temporary files. No
 *          part of it is left, however the program ends.
 * Owner    the caller owns the struct
 * Threads  confined to one thread
 * Errors   PSD_IO naming the file and the reason; PSD_NOMEM
 */
#ifndef PS_DATA_SPOOL_H
#define PS_DATA_SPOOL_H

#include "data/streams/file_out.h"

typedef struct ps_spool {
    int fd;           /* -1: it is not open */
    const char *path; /* borrowed; for errors */
} ps_spool_t;

/* path is borrowed until ps_spool_done. */
PSD_MUST_CHECK psd_status_t ps_spool_open(ps_spool_t *ret_spool, const char *path,
                                          psd_error_t *err);
/* Takes one that is not open, too. */
void ps_spool_done(ps_spool_t *self);
PSD_MUST_CHECK psd_status_t ps_spool_write(ps_spool_t *self, const void *bytes, size_t size,
                                           psd_error_t *err);
/* Appends all of it to the file. */
PSD_MUST_CHECK psd_status_t ps_spool_copy(ps_spool_t *self, ps_file_out_t *to, psd_error_t *err);
#endif
