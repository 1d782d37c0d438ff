/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_disk_stream - writes a long file past the page cache
 *
 * What     It collects bytes in a buffer and writes them with O_DIRECT, if the
 *          file allows that. To copy them into the page cache would double the
 *          CPU time, and would evict pages that other programs need. A file
 *          that fits into the buffer goes through the page cache.
 * Errors   errno's numbers.
 * Owner    The caller; the file is borrowed until ps_disk_stream_close, and no
 *          other code writes it.
 * Threads  Confined to one.
 */
#ifndef PS_STORAGE_DISK_STREAM_H
#define PS_STORAGE_DISK_STREAM_H

#include "base/bytes.h"

typedef struct ps_disk_stream ps_disk_stream_t;

/* Of an empty file. NULL: no memory. */
ps_disk_stream_t *ps_disk_stream_open(int fd);
/* Appends. 0, or an errno number; then only close may follow. */
PSD_MUST_CHECK int ps_disk_stream_add(ps_disk_stream_t *self, ps_bytes_t bytes);
/* What is in the buffer is written; nothing is flushed, and no more may be
 * added. 0, or why not. */
PSD_MUST_CHECK int ps_disk_stream_finish(ps_disk_stream_t *self);
/* Takes NULL. What was not finished may be missing. */
void ps_disk_stream_close(ps_disk_stream_t **self_p);
#endif
