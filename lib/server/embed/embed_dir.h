/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_embed_dir - the temporary directory of an embedded server
 *
 * What     $TMPDIR/psd-embed-HOST-XXXXXX, else below /tmp. Its process locks it for
 *          as long as it is used; one of this user and host that nobody has locked
 *          belonged to a process that was killed, and the next one to be made removes
 *          it. A hidden file marks it: a directory that somebody named so is not ours.
 * Owner    The caller; embedded. A forked child gives the lock up: it does not
 *          keep the directory from being removed.
 */
#ifndef PS_SERVER_EMBED_DIR_H
#define PS_SERVER_EMBED_DIR_H

#include "transport/threads/fork.h"

typedef struct ps_embed_dir {
    char *path; /* owned; NULL: there is none */
    int fd;     /* owned; of the directory, locked */
    ps_fork_item_t in_child;
} ps_embed_dir_t;

/* Makes one; removes those that killed processes left. Errors: PSD_IO naming the
 * directory, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_embed_dir_make(ps_embed_dir_t *ret_dir, psd_error_t *err);
/* Removes it with all in it, also while others still write there. Ignores a
 * zeroed one. */
void ps_embed_dir_remove(ps_embed_dir_t *self);
/* The same where nothing else may be touched, at the end of a process. */
void ps_embed_dir_empty(const ps_embed_dir_t *self);
#endif
