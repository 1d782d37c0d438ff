/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: one turn of a client. */
#ifndef PS_CLIENT_PUMP_H
#define PS_CLIENT_PUMP_H

#include "client/connection/client_state.h"

/* One turn: waits for at most until until_ms (0: not at all), takes in what
 * arrived, does what has to be done. */
void ps_pump(psd_client_t *self, uint64_t until_ms);
/* Does what the session wants, and what follows from it. After it outbox and
 * ended are empty. */
void ps_perform(psd_client_t *self);
/* The same for a call that starts something and returns: when much is under
 * way, small messages over ZeroMQ may be left for the next call to send, or for
 * the sender's thread (sender.h). */
void ps_perform_start(psd_client_t *self);
#endif
