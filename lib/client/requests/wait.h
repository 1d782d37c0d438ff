/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: turns of the client until an event. */
#ifndef PS_CLIENT_WAIT_H
#define PS_CLIENT_WAIT_H

#include "client/requests/ticket.h"

/*
 * Asks, with retries, and waits for the answer.
 *
 * grace_ms   in   beyond timeout_ms, for a node that answers DEADLINE itself
 * ret_reply  out  set whenever the node answered, also when it refused; the
 *                 caller destroys it; may be NULL
 * Errors: what the node answered; PSD_DEADLINE it did not answer.
 */
PSD_MUST_CHECK psd_status_t ps_question_ask(psd_client_t *self, ps_doc_t *question,
                                            uint32_t timeout_ms, uint32_t grace_ms,
                                            ps_doc_t **ret_reply, psd_error_t *err);
/* The same, but it retries within the client's timeout when the answer is BUSY:
 * a node has failed that the registry still counted as up, and others will take
 * over. */
PSD_MUST_CHECK psd_status_t ps_control_insist(psd_client_t *self, ps_doc_t *question,
                                              ps_doc_t **ret_reply, psd_error_t *err);
/* Lets time pass, and handles messages meanwhile, unless the client is
 * broken. */
void ps_wait_ms(psd_client_t *client, uint64_t wait_ms);
/* Waits a short while until every shard in use has sent WELCOME. A mark cannot
 * be sent before. If the worker then makes no call for long, other workers
 * would wait for a clock that is finished. */
void ps_wait_for_welcome(psd_client_t *client);
/* Waits until the ticket has ended and uses it up. wait_ms: the longest wait;
 * UINT64_MAX: only the ticket's own deadline counts. Errors: the ticket's
 * result; PSD_DEADLINE, the ticket goes on. */
PSD_MUST_CHECK psd_status_t ps_ticket_wait(psd_client_t *client, ps_ticket_t *ticket,
                                           uint64_t wait_ms, psd_error_t *err);
/* A guest takes turns until it has a session. Errors: PSD_NOT_LEADER it got none within the
 * timeout, naming who is asked; nothing was sent. */
PSD_MUST_CHECK psd_status_t ps_client_want_session(psd_client_t *self, uint32_t timeout_ms,
                                                   psd_error_t *err);
#endif
