/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/data/streams: bytes in and out
 *
 * It is       Inputs unpacked, windows over them, files that appear when they
 *             are complete, and the batch of samples that bytes become.
 * It uses     lib/transport/threads, lib/base; zlib and zstd.
 * It ignores  Lines, formats, and what a byte means.
 * Start at    source.h, file_out.h, samples.h.
 */
/*
 * ps_source - the bytes of one input, unpacked
 *
 * What     A plain, gzip or zstd file (its first bytes say which; several
 *          members or frames in a row count as one) or standard input, read
 *          once from the front.
 * Units    bytes
 * Owner    the caller closes it
 * Threads  confined to one thread
 * Errors   PSD_IO naming file and reason; PSD_DAMAGED packed data that is
 *          broken or ends early; PSD_LIMIT zstd data that wants more than
 *          128 MiB; PSD_NOMEM
 */
#ifndef PS_DATA_SOURCE_H
#define PS_DATA_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

typedef struct ps_source ps_source_t;

/* path "-" is standard input. PSD_INVALID: it is a directory. */
PSD_MUST_CHECK psd_status_t ps_source_open(const char *path, ps_source_t **ret_source,
                                           psd_error_t *err);
/* A regular file that is open already, from its front on. The descriptor stays
 * the caller's, and no other code reads from it meanwhile. Errors use
 * `name`. */
PSD_MUST_CHECK psd_status_t ps_source_open_fd(int fd, const char *name, ps_source_t **ret_source,
                                              psd_error_t *err);
void ps_source_close(ps_source_t **self_p);
/* Fills as much as there is; *ret_size 0 is the end. size > 0. */
PSD_MUST_CHECK psd_status_t ps_source_read(ps_source_t *self, void *ret_bytes, size_t size,
                                           size_t *ret_size, psd_error_t *err);
/* Can it be begun at any offset? Packed data and pipes cannot. */
bool ps_source_can_seek(const ps_source_t *self);
/* Before the first read: go on at this offset. Only where it can. */
PSD_MUST_CHECK psd_status_t ps_source_seek(ps_source_t *self, uint64_t offset, psd_error_t *err);
/* Of the file as it lies there; 0 of what has no size. */
uint64_t ps_source_size(const ps_source_t *self);
/* How much of the file has been taken so far. */
uint64_t ps_source_taken(const ps_source_t *self);
/* As it was opened; borrowed. */
const char *ps_source_path(const ps_source_t *self);
#endif
