/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_key_watch - a key file that may be replaced while its key is in use
 *
 * What     `pscli auth rotate` puts another file in place of it. A program that has both keys'
 *          time to look goes on with the new one.
 * Owner    The caller; plain values, nothing to free.
 * Threads  confined to one
 */
#ifndef PS_TRANSPORT_KEY_WATCH_H
#define PS_TRANSPORT_KEY_WATCH_H

#include <limits.h>
#include <stdint.h>
#include <sys/stat.h>

#include "transport/keys/key_file.h"

#define PS_KEY_SETTLE_MS 1000

typedef struct ps_key_watch {
    char path[PATH_MAX]; /* "": there is no file */
    dev_t device;        /* of the file that was read last … */
    ino_t inode;
    struct timespec changed;
    uint64_t look_ms; /* the next look is not before that */
    ino_t next;       /* another file that is there … */
    uint64_t next_ms; /* … and when it was first seen; 0: there is none */
} ps_key_watch_t;

/* Begins, before the file is read; a relative path is that of the working directory of now, and one
 * that is too long is not watched. */
void ps_key_watch_begin(ps_key_watch_t *self, const char *path);
/* Whether there is another file by now, with another pair, which is then in *pair: PS_KEY_SETTLE_MS
 * after it came (by its own time and the wall clock, or after it was first seen), for nodes that do
 * not lead hear of a new key with their next heartbeat. Looks twice a second at most, so it may be
 * asked often. One that cannot be read is as good as none. */
PSD_MUST_CHECK bool ps_key_watch_look(ps_key_watch_t *self, uint64_t now_ms, uint64_t unix_ms,
                                      ps_key_pair_t *pair);
/* The pair of the last look was of no use, so the caller has the old one again: the next look
 * finds the file again. */
void ps_key_watch_undo(ps_key_watch_t *self);
#endif
