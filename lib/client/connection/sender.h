/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_sender - a thread that sends what its client has left unsent
 *
 * What     A message costs more to send than to make, so a client that has
 *          several requests under way leaves small ones unsent when a call
 *          that started one returns, for the next call to send together. When
 *          no call comes, this thread sends them.
 *
 *              kept --(lend)--> lent --(take_back)--> kept
 *                ^               |
 *                +---- sent ---- busy
 *
 * Units    What was lent is sent within 2 ms, as far as the system lets the
 *          thread run.
 * Owner    The client; ps_sender_stop waits for the thread's end.
 * Threads  lend, take_back and stop from the client's thread. The work is done
 *          while it is lent, by the sender's; never by both at a time.
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
/* From now on send_all may run, once, until it is taken back. */
void ps_sender_lend(ps_sender_t *self);
/* Behind it send_all does not run. Takes what was not lent, and NULL. */
void ps_sender_take_back(ps_sender_t *self);
/* Takes NULL, nulls *self_p. False: this is a child, and the thread of the
 * parent was at work when it was forked. */
bool ps_sender_stop(ps_sender_t **self_p);
#endif
