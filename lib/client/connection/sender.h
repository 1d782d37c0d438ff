/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_sender - a thread that sends the messages that its client has deferred
 *
 * What     Sending a message costs more than making it. So a client with
 *          several requests in flight defers small messages when a call that
 *          started one returns, and the next call sends them together. When no
 *          call comes, this thread sends them.
 *
 *              kept --(lend)--> lent --(take_back)--> kept
 *                ^               |
 *                +---- sent ---- busy
 *
 * Units    Lent messages are sent within 2 ms, if the system lets the thread
 *          run.
 * Owner    The client; ps_sender_stop waits for the thread's end.
 * Threads  lend, take_back and stop from the client's thread. The sender's
 *          thread works only while it is lent; never both at a time.
 */
#ifndef PS_CLIENT_SENDER_H
#define PS_CLIENT_SENDER_H

#include <stdbool.h>

#include "psd/status.h"

typedef struct ps_sender ps_sender_t;

/* Starts the thread, with all signals blocked. send_all(owner) is its work.
 * Errors: PSD_NOMEM; PSD_IO: no thread. */
PSD_MUST_CHECK psd_status_t ps_sender_start(void (*send_all)(void *owner), void *owner,
                                            ps_sender_t **ret_sender, psd_error_t *err);
/* From now on, until ps_sender_take_back, send_all may run once. */
void ps_sender_lend(ps_sender_t *self);
/* After it send_all does not run. Takes one that was not lent, and NULL. */
void ps_sender_take_back(ps_sender_t *self);
/* Takes NULL, nulls *self_p. False: this is a forked child, and the parent's
 * thread was running send_all at the fork. */
bool ps_sender_stop(ps_sender_t **self_p);
#endif
