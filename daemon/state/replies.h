/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_replies - what was answered lately, for requests that come twice
 *
 * What     A client that hears nothing sends its request again under the same
 *          id. What changes something must then be answered as the first time,
 *          and not done again.
 * Shape    the last PS_REPLIES_MAX answers of at most PS_REPLIES_BYTES_MAX
 *          together; the oldest goes first
 * Owner    The caller; embedded, zeroed at first. Threads: confined to one.
 */
#ifndef PS_DAEMON_REPLIES_H
#define PS_DAEMON_REPLIES_H

#include "base/bytes.h"

#define PS_REPLIES_MAX 1024
#define PS_REPLIES_BYTES_MAX (UINT64_C(64) << 20)

typedef struct ps_reply {
    uint64_t session;
    uint64_t id;
    ps_buffer_t text; /* owned */
} ps_reply_t;

typedef struct ps_replies {
    ps_reply_t *ring; /* owned; PS_REPLIES_MAX, made with the first reply */
    size_t first;     /* the oldest */
    size_t n;
    uint64_t bytes;
} ps_replies_t;

void ps_replies_done(ps_replies_t *self);
/* Keeps a copy. Without memory it is not kept, and the client's second request
 * is judged anew. */
void ps_replies_keep(ps_replies_t *self, uint64_t session, uint64_t id, ps_bytes_t text);
/* The answer, borrowed until the next call; false when it is not known. */
bool ps_replies_find(const ps_replies_t *self, uint64_t session, uint64_t id, ps_bytes_t *ret_text);
#endif
