/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_replies - recent answers, for repeated requests
 *
 * What     A client without an answer repeats its request under the same id. A
 *          request that changes something must then get the first answer, and
 *          not be done again.
 * Shape    the last PS_REPLIES_MAX answers of at most PS_REPLIES_BYTES_MAX
 *          together; the oldest goes first
 * Owner    The caller; embedded, zeroed at first. Threads: confined to one.
 */
#ifndef PS_SERVER_REPLIES_H
#define PS_SERVER_REPLIES_H

#include "base/bytes.h"

#define PS_REPLIES_MAX 1024
#define PS_REPLIES_BYTES_MAX (UINT64_C(64) << 20)

typedef struct ps_kept_reply {
    uint64_t session;
    uint64_t id;
    ps_buffer_t text; /* owned */
} ps_kept_reply_t;

typedef struct ps_replies {
    ps_kept_reply_t *ring; /* owned; PS_REPLIES_MAX, made with the first reply */
    size_t first;          /* the oldest */
    size_t n;
    uint64_t bytes;
} ps_replies_t;

void ps_replies_done(ps_replies_t *self);
/* Keeps a copy. Without memory nothing is kept, and a repeated request runs
 * again. */
void ps_replies_keep(ps_replies_t *self, uint64_t session, uint64_t id, ps_bytes_t text);
/* The answer, borrowed until the next call; false when it is not known. */
bool ps_replies_find(const ps_replies_t *self, uint64_t session, uint64_t id, ps_bytes_t *ret_text);
#endif
