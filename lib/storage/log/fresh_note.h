/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_fresh_note - the logs of a node are new, and the registry does not know it
 *
 * What     When a node starts with its logs, the registry believes that its
 *          copies are complete. If logs were lost and a start made new ones,
 *          but ended before it joined, the next start would find logs as well.
 *          So a file beside the logs says that they are new. It is made before
 *          them, and removed when the registry has accepted a start with them.
 *          A start that ends earlier removes the logs that it made.
 * Shape    DIR/logs-new, empty; the logs are DIR/log-0, DIR/log-1, …
 * Owner    The caller; ps_fresh_note_done.
 * Threads  Confined to one at a time.
 */
#ifndef PS_STORAGE_FRESH_NOTE_H
#define PS_STORAGE_FRESH_NOTE_H

#include "storage/disk/disk.h"

typedef struct ps_fresh_note {
    bool is_fresh; /* there is a note: old content of the logs is lost */
    bool is_made;  /* by this start */
    bool *is_new;  /* owned; where is_made: of each log, that it was missing */
    uint32_t n_shards;
} ps_fresh_note_t;

/* Frees what it holds and zeroes it. */
void ps_fresh_note_done(ps_fresh_note_t *self);
/*
 * Before the logs are opened: looks for them, and makes the note when one of
 * them is missing, that is, has no file at all (log_dir.h).
 *
 * dir       in   of the node; it is there
 * ret_note  out  zeroed before; on errors, too, to be ended by done
 *
 * Errors: those of disk.h, PSD_NOMEM. The directories of the logs are made.
 */
PSD_MUST_CHECK psd_status_t ps_fresh_note_settle(ps_disk_t *disk, const char *dir,
                                                 uint32_t n_shards, ps_fresh_note_t *ret_note,
                                                 psd_error_t *err);
/* The registry has accepted this start; nothing was written to the logs before.
 * Errors: PSD_IO, PSD_NOMEM: the note may still be there. */
PSD_MUST_CHECK psd_status_t ps_fresh_note_remove(ps_fresh_note_t *self, ps_disk_t *disk,
                                                 const char *dir, psd_error_t *err);
/* The start has ended, and the logs are closed. If the registry has not
 * accepted it, removes the files that it made: first those of logs that were
 * missing, then the note. When something was written to such a log, the note
 * stays. Errors: PSD_IO, PSD_NOMEM: the note may still be there. */
PSD_MUST_CHECK psd_status_t ps_fresh_note_take_back(ps_fresh_note_t *self, ps_disk_t *disk,
                                                    const char *dir, psd_error_t *err);
#endif
