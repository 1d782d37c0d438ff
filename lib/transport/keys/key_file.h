/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/transport/keys: keys of this program
 *
 * It is       Key pairs of CURVE: making them, their files.
 * It uses     lib/base; zmq, for the keys themselves.
 * It ignores  Who may do what (lib/protocol/trust), connections.
 * Start at    key_file.h.
 */
/*
 * ps_key_file - a file with the key pair of a principal
 *
 * What     Whoever can read the secret key is the principal. So the file is its
 *          owner's alone (0600), is never overwritten, and is not read when
 *          others may read it.
 * Shape    lines of text: "name NAME", "public-key KEY", "secret-key KEY"; those
 *          that begin with "#" are for people. A key is 40 characters, Z85.
 * Owner    The caller, who clears a pair with ps_key_pair_done.
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_TRANSPORT_KEY_FILE_H
#define PS_TRANSPORT_KEY_FILE_H

#include "psd.h"

#include "base/alloc.h"

#define PS_KEY_SIZE 40     /* characters of a key */
#define PS_KEY_NAME_MAX 63 /* bytes of a principal's name */

typedef struct ps_key_pair {
    char name[PS_KEY_NAME_MAX + 1];
    char public_key[PS_KEY_SIZE + 1];
    char secret_key[PS_KEY_SIZE + 1];
} ps_key_pair_t;

/* The public half alone. */
typedef struct ps_public_key {
    char text[PS_KEY_SIZE + 1];
} ps_public_key_t;

/* Overwrites the secret; fits PSD_AUTO. */
void ps_key_pair_done(ps_key_pair_t *self);
/* A new pair. Errors: PSD_INVALID name; PSD_UNSUPPORTED libzmq has no CURVE. */
PSD_MUST_CHECK psd_status_t ps_key_pair_make(const char *name, ps_key_pair_t *ret_pair,
                                             psd_error_t *err);
/* Writes a new file, and flushes it. The folder must exist. Errors: PSD_IO, also when there is a
 * file of that name: it is left as it is. */
PSD_MUST_CHECK psd_status_t ps_key_file_write(const char *path, const ps_key_pair_t *pair,
                                              psd_error_t *err);
/* Reads one. Errors name the file and what to do: PSD_IO there is none, or it cannot be read;
 * PSD_DENIED others may read it, or it is another user's (root's are taken from anyone);
 * PSD_INVALID it is no regular file, too long, not of such lines, or its keys are no pair. */
PSD_MUST_CHECK psd_status_t ps_key_file_read(const char *path, ps_key_pair_t *ret_pair,
                                             psd_error_t *err);
/*
 * Keeps a key file under a second name as well, in place of what has that. It is the first step of
 * a change: what a disk may refuse (a file that is mounted by itself, a folder of that name) is
 * refused here, so that only a rename is left for ps_key_file_swap.
 *
 * Errors: PSD_IO; path is as it was, and what was old may be gone.
 */
PSD_MUST_CHECK psd_status_t ps_key_file_keep(const char *path, const char *old, psd_error_t *err);
/*
 * Puts another key file in place of one, at once: whoever opens `path` finds one or the other.
 *
 * next  a whole key file in the same folder; the name is gone afterwards
 *
 * Errors: PSD_IO; path is as it was, or has the new file.
 */
PSD_MUST_CHECK psd_status_t ps_key_file_swap(const char *path, const char *next, psd_error_t *err);
#endif
