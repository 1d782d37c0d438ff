/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: a request's times are noted in its call's trace while a ticket waits for
 * it. All of these do nothing for a request without a trace. */
#ifndef PS_CLIENT_TRACE_H
#define PS_CLIENT_TRACE_H

#include "client/requests/ticket.h"
#include "psd/trace.h"

/* The request begins: from now on it has a place in the trace, unless that is full. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_trace_begin(psd_trace_t *trace, ps_slice_request_t *request,
                                           psd_error_t *err);
/* A socket to that endpoint gets it. */
void ps_trace_sent(ps_slice_request_t *request, const char *endpoint);
/* The session has its answer. */
void ps_trace_answered(ps_slice_request_t *request, const ps_message_t *message);
/* It has ended. */
void ps_trace_ended(ps_slice_request_t *request);
/* Its ticket ends without it. */
void ps_trace_cut_off(ps_slice_request_t *request);
#endif
