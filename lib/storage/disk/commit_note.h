/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_commit_note - how many commits a database has had, beside it
 *
 * What     A log of SQLite's (-wal) that is damaged is read up to the damage,
 *          and what is behind it is gone without a word. A number beside the
 *          database, written behind every commit, tells: who has fewer than it
 *          says has lost some. It is not flushed, so a loss of power may leave
 *          an older one, which says too little and never too much.
 * Shape    DIR/registry.commits: u64 n, u64 XXH3-64 of it; 16 bytes at once
 * Owner    The caller closes it. Threads: confined to one.
 */
#ifndef PS_STORAGE_COMMIT_NOTE_H
#define PS_STORAGE_COMMIT_NOTE_H

#include <stdint.h>

#include "psd/status.h"

typedef struct ps_commit_note {
    int fd; /* -1: closed */
} ps_commit_note_t;

/* Opens or makes it. ret_n: what it says; 0 when it is new. Errors: PSD_IO;
 * PSD_DAMAGED. */
PSD_MUST_CHECK psd_status_t ps_commit_note_open(ps_commit_note_t *ret_note, const char *dir,
                                                uint64_t *ret_n, psd_error_t *err);
/* What cannot be written is left as it is: it says too little. */
void ps_commit_note_write(const ps_commit_note_t *self, uint64_t n);
void ps_commit_note_close(ps_commit_note_t *self);
#endif
