/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_dump - a file that is the direct dump of an array
 *
 * What     Stretches of a plain file from any offset on, read in steps of
 *          64 KiB, so that no more than that is read beside what is asked for.
 * Units    bytes
 * Owner    the caller owns the struct; a stretch is borrowed until the next
 *          call
 * Threads  confined to one thread
 * Errors   PSD_IO naming file and reason; PSD_INVALID no plain file;
 *          PSD_DAMAGED it ends early; PSD_NOMEM
 */
#ifndef PS_DATA_DUMP_H
#define PS_DATA_DUMP_H

#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

typedef struct ps_dump {
    char *path; /* owned */
    int fd;
    uint64_t size;
    uint64_t offset; /* of data[at] in the file */
    uint64_t end;    /* nothing is read from here on */
    uint8_t *data;   /* owned */
    size_t capacity;
    size_t at, filled; /* data[at .. filled) is not taken yet */
    uint64_t n_read;   /* so far */
} ps_dump_t;

PSD_MUST_CHECK psd_status_t ps_dump_open(ps_dump_t *ret_dump, const char *path, psd_error_t *err);
/* Frees what is inside and zeroes it; fits PSD_AUTO. */
void ps_dump_done(ps_dump_t *self);
/* The next stretch begins at `offset`; none goes beyond `end`. */
void ps_dump_go(ps_dump_t *self, uint64_t offset, uint64_t end);
/* The next `size` bytes. */
PSD_MUST_CHECK psd_status_t ps_dump_take(ps_dump_t *self, size_t size, const uint8_t **ret_bytes,
                                         psd_error_t *err);
#endif
