/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/client: one call of the user, before it is a ticket. */
#ifndef PS_CLIENT_CALL_H
#define PS_CLIENT_CALL_H

#include "client/requests/draft.h"
#include "client/requests/ticket.h"

typedef struct ps_call {
    psd_table_t *table;
    ps_request_kind_t kind;
    const psd_select_t *select;
    const void *values;        /* deltas; PUSH, PUSHPULL */
    void *ret_values;          /* PULL, PUSHPULL */
    size_t n_values;           /* of each */
    const psd_call_t *options; /* may be NULL */
    bool borrow;
    ps_row_op_args_t row_op;    /* 0: a plain push or pull */
    psd_draft_t *draft;         /* holds the values, if they are ours; else NULL */
    bool whole;                 /* no filter holds back any of its values */
    psd_result_t *result;       /* psd_fetch gathers here; else NULL */
    ps_aggregate_t *aggregates; /* one for each cut, zeroed; else NULL */
    const uint64_t *since;      /* of each partition: pulls newer rows only; or NULL */
    const char *verb;           /* "sum of"; static; NULL: the kind's */
} ps_call_t;

/* The maximum body of a slice, as of now. */
uint64_t ps_call_slice_bytes(const psd_client_t *client);
/* Checks, cuts and starts a call. Errors: those of psd_push_start. */
PSD_MUST_CHECK psd_status_t ps_call_start(const ps_call_t *call, psd_ticket_t *ret_ticket,
                                          psd_error_t *err);
/* Starts a ticket with a request for each cut. Takes the cuts' payloads; on an
 * error nothing was started. */
PSD_MUST_CHECK psd_status_t ps_call_start_cuts(const ps_call_t *call, ps_cuts_t *cuts,
                                               ps_ticket_t **ret_ticket, psd_error_t *err);
#endif
