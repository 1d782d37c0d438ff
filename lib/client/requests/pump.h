/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: one turn of a client. */
#ifndef PS_CLIENT_PUMP_H
#define PS_CLIENT_PUMP_H

#include "client/connection/client_state.h"

/* One turn: waits until until_ms at most (0: not at all), handles messages that
 * arrived, and sends what is due. */
void ps_pump(psd_client_t *self, uint64_t until_ms);
/* Performs the actions that the session wants, and what follows from them.
 * Afterwards outbox and ended are empty. */
void ps_perform(psd_client_t *self);
/* The same for a call that starts a request and returns. When much is in
 * flight, it may leave small messages over ZeroMQ to the next call or to the
 * sender's thread (sender.h). */
void ps_perform_start(psd_client_t *self);
#endif
