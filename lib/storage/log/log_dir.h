/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_log_dir - whether an earlier run has used the directory of a log
 *
 * What     It looks for any file that only a run makes, not only for
 *          log-flushed: when that one is missing and others are there, the log
 *          is damaged, not new.
 * Threads  Confined to one at a time.
 */
#ifndef PS_STORAGE_LOG_DIR_H
#define PS_STORAGE_LOG_DIR_H

#include "storage/disk/disk.h"

typedef struct ps_log_dir {
    bool is_opened; /* log-flushed is there: a start had it open */
    bool is_filled; /* segments, snapshots or tables are */
} ps_log_dir_t;

/* True: the name of a segment, a snapshot or a table's file. */
bool ps_log_dir_fills(const char *name);
/* Looks at a directory; one that is not there is made. Errors: those of the
 * disk. */
PSD_MUST_CHECK psd_status_t ps_log_dir_look(ps_disk_t *disk, const char *dir, ps_log_dir_t *ret,
                                            psd_error_t *err);

static inline bool ps_log_dir_is_used(const ps_log_dir_t *self)
{
    return self->is_opened || self->is_filled;
}
#endif
