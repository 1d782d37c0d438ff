/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: taking turns until something has happened. */
#ifndef PS_CLIENT_WAIT_H
#define PS_CLIENT_WAIT_H

#include "client/requests/ticket.h"

/*
 * Asks, again if need be, and waits for the answer.
 *
 * grace_ms   in   beyond timeout_ms, for a node that says DEADLINE itself
 * ret_reply  out  set whenever the node answered, also when it refused; the
 *                 caller destroys it; may be NULL
 * Errors: what the node answered; PSD_DEADLINE it did not.
 */
PSD_MUST_CHECK psd_status_t ps_control_ask(psd_client_t *self, ps_doc_t *question,
                                           uint32_t timeout_ms, uint32_t grace_ms,
                                           ps_doc_t **ret_reply, psd_error_t *err);
/* The same, and again within the client's time when the answer is BUSY: a node
 * has failed that the registry still counted on, and others will do its work.
 */
PSD_MUST_CHECK psd_status_t ps_control_insist(psd_client_t *self, ps_doc_t *question,
                                              ps_doc_t **ret_reply, psd_error_t *err);
/* Lets time pass, with an eye on what comes, unless the client is broken. */
void ps_wait_ms(psd_client_t *client, uint64_t wait_ms);
/* Until every shard that is used has said WELCOME, for a short while: a mark
 * cannot go out before, its worker may not call again for a long one, and the
 * others would wait for a clock that is finished. */
void ps_wait_for_welcome(psd_client_t *client);
/* Waits for the end and uses the ticket up. wait_ms: at most; UINT64_MAX: its
 * own deadline is enough. Errors: its result; PSD_DEADLINE, the ticket goes on.
 */
PSD_MUST_CHECK psd_status_t ps_ticket_wait(psd_client_t *client, ps_ticket_t *ticket,
                                           uint64_t wait_ms, psd_error_t *err);
#endif
