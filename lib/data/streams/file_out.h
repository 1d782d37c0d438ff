/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_file_out - bytes that become a file when they are complete
 *
 * What     Writes under a temporary name beside its place, compresses when the
 *          name ends with .gz or .zst, flushes, renames; removes a file that is
 *          not committed. The new file gets the permissions of the file that it
 *          replaces. "-", or any other name of standard output, writes there,
 *          plain unless the name says otherwise. Standard output, pipes and
 *          devices get the bytes at once. Names of other compressions (.xz) are
 *          refused.
 * Owner    the caller closes it
 * Threads  confined to one thread
 * Errors   PSD_IO naming file and reason; PSD_NOMEM
 */
#ifndef PS_DATA_FILE_OUT_H
#define PS_DATA_FILE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "psd/status.h"

typedef struct ps_file_out ps_file_out_t;

/* "-", or any other name of what standard output is. */
bool ps_file_out_names_stdout(const char *path);

/* mode: the permissions from the first byte on, minus the umask; also the most
 * that a replaced file passes on. PSD_INVALID: the path is too long, a
 * directory, or has the suffix of a compression that cannot be written. */
PSD_MUST_CHECK psd_status_t ps_file_out_open(const char *path, mode_t mode,
                                             ps_file_out_t **ret_file, psd_error_t *err);
/* It replaces no file: the commit is refused when one is there then. */
void ps_file_out_keep_others(ps_file_out_t *self);
PSD_MUST_CHECK psd_status_t ps_file_out_write(ps_file_out_t *self, const void *bytes, size_t size,
                                              psd_error_t *err);
/* No write may follow it. */
PSD_MUST_CHECK psd_status_t ps_file_out_commit(ps_file_out_t *self, psd_error_t *err);
/* The same without waiting for the disk: after a loss of power it may be
 * broken. */
PSD_MUST_CHECK psd_status_t ps_file_out_place(ps_file_out_t *self, psd_error_t *err);
void ps_file_out_close(ps_file_out_t **self_p);
/* The temporary path until then, for programs that may be interrupted; "":
 * none. Borrowed. */
const char *ps_file_out_beside(const ps_file_out_t *self);
/* Where it will be; borrowed. */
const char *ps_file_out_path(const ps_file_out_t *self);
bool ps_file_out_is_stdout(const ps_file_out_t *self);
/* Of the file so far, packed; all of it when it is committed. */
uint64_t ps_file_out_bytes(const ps_file_out_t *self);
/* Flushes the directory of a file that was renamed, so that its name survives a
 * loss of power. A system that cannot do that has still renamed it. */
void ps_file_out_flush_name(const char *path);
#endif
