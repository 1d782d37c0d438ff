/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_commit_note - the number of commits of a database, in a file beside it
 *
 * What     SQLite reads a damaged log (-wal) up to the damage, and silently
 *          drops the rest. A number beside the database, written after every
 *          commit, shows that: a database with fewer commits has lost some. The
 *          number is not flushed, so a power loss may leave an older one, which
 *          is too low and never too high.
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
