/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_ticket, ps_errand, ps_lane - calls under way
 *
 * What     A call is a ticket; each of its slices is an errand. An errand waits
 *          in the lane of its partition until there is room and its turn has
 *          come, is an operation of the session then, and ends with an answer:
 *
 *              waiting --> sent --> ended
 *                 |         |  ^
 *                 |         +--+  a pull's rest is asked for
 *                 +-----------------> ended (a pull whose time is over)
 *
 *          A ticket ends when all of its errands have, or at its deadline:
 *          errands that push then go on alone (ticket NULL).
 * Shape    A lane is in order of round, marks last in theirs, greater priority
 *          first, then first come first served.
 */
#ifndef PS_CLIENT_TICKET_H
#define PS_CLIENT_TICKET_H

#include "client/client_state.h"

typedef enum ps_errand_kind {
    PS_ERRAND_PUSH = 1,
    PS_ERRAND_PULL = 2,
    PS_ERRAND_PUSHPULL = 3,
    PS_ERRAND_MARK = 4
} ps_errand_kind_t;

struct ps_errand {
    TAILQ_ENTRY(ps_errand) in_lane; /* while it waits; then while it ends */
    TAILQ_ENTRY(ps_errand) in_ticket;
    ps_ticket_t *ticket; /* NULL: nobody waits for it */
    ps_lane_t *lane;
    ps_errand_kind_t kind;
    ps_slice_t slice;
    ps_payload_t *payload; /* one holder is the errand; may be NULL */
    bool borrows;          /* the payload points at memory of the caller's */
    uint32_t n_sends;      /* borrows: how often that was given to ZeroMQ */
    ps_places_t places;    /* owned */
    ps_op_worker_t worker; /* as it was when the call was made */
    ps_ack_t ack;
    int32_t priority;
    psd_ticket_t after; /* 0: none */
    uint64_t round;
    uint64_t op;         /* of the session; 0: it waits, or has ended */
    bool is_sent;        /* counts as one of its lane that are under way */
    uint64_t sent_bytes; /* … with so many bytes */
    bool was_answered;   /* by ACK or VALUES */
    psd_status_t status; /* ended: how */
    char *text;          /* owned; ended: why, when it failed; may be NULL */
};

struct ps_ticket {
    TAILQ_ENTRY(ps_ticket) in_list; /* of the open or the done ones */
    psd_ticket_t number;
    struct ps_errands errands; /* that have not ended */
    uint32_t timeout_ms;
    uint64_t deadline_ms;
    bool has_ended;
    psd_status_t status;
    psd_error_t *error;   /* owned; NULL while nothing failed */
    void *values;         /* of the caller's; where DENSE answers go */
    psd_result_t *result; /* borrowed; where psd_fetch gathers; or NULL */
    char what[PS_NAME_MAX + 64]; /* "push to table "w"" */
};

struct ps_lane {
    uint32_t table;
    uint32_t partition;
    struct ps_errands waiting;
    uint32_t n_sent;     /* errands under way */
    uint64_t sent_bytes; /* of their payloads */
};

/* ---- lane.c ---- */

/* The lane to a partition; made when there is none. NULL: no memory. */
ps_lane_t *ps_lane_of(psd_client_t *client, uint32_t table, uint32_t partition);
/* Puts an errand into its place; ps_lane_run sends it. */
void ps_lane_add(psd_client_t *client, ps_errand_t *errand);
/* Takes one out that waits. */
void ps_lane_remove(psd_client_t *client, ps_errand_t *errand);
/* Sends what can go now. */
void ps_lane_run(psd_client_t *client, ps_lane_t *lane);
void ps_lanes_run(psd_client_t *client);
/* Errands that wait and change something. */
size_t ps_lanes_n_pushes(const psd_client_t *client);
void ps_lanes_done(psd_client_t *client);

/* ---- errand.c ---- */

/* NULL: no memory. Takes payload and places out of the cut. */
ps_errand_t *
ps_errand_new(psd_client_t *client, ps_errand_kind_t kind, ps_cut_t *cut);
/* Makes it an operation of the session; ends it if that fails. */
void ps_errand_send(psd_client_t *client, ps_errand_t *errand);
/* The session's answer. */
void ps_errand_answered(psd_client_t *client,
                        ps_errand_t *errand,
                        const ps_message_t *message,
                        ps_payload_t *payload);
/* Puts it, which is in no lane, on the list of those that ended. */
void ps_errand_end(psd_client_t *client,
                   ps_errand_t *errand,
                   psd_status_t status,
                   const char *text);
/* Behind the outbox: gives loans back, tells the ticket, frees it. */
void ps_errand_finish(psd_client_t *client, ps_errand_t **errand_p);
void ps_errand_destroy(psd_client_t *client, ps_errand_t **errand_p);
/* What it waits for. Borrowed until the next call. */
const char *ps_errand_reason(const psd_client_t *client,
                             const ps_errand_t *errand,
                             char ret_text[PS_TEXT_MAX + 1]);

/* ---- loan.c ---- */

/* The caller takes its memory back from an errand that goes on: its payload is
 * copied, and what lies in sockets is dropped. Without memory for that the
 * client breaks. */
void ps_loan_call_in(psd_client_t *client, ps_errand_t *errand);
/* The caller takes its memory back from an errand that has ended. */
void ps_loan_end(psd_client_t *client, ps_errand_t *errand);

/* ---- ticket.c ---- */

/* A ticket without errands. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_ticket_new(psd_client_t *client,
                                          uint32_t timeout_ms,
                                          ps_ticket_t **ret_ticket,
                                          psd_error_t *err);
/* Takes the errand in. */
void ps_ticket_add(ps_ticket_t *self, ps_errand_t *errand);
/* Forgets a ticket none of whose errands was put into a lane. */
void ps_ticket_abandon(psd_client_t *client, ps_ticket_t **self_p);
/* One of its errands has ended. */
void ps_ticket_errand_ended(psd_client_t *client, ps_errand_t *errand);
/* Ends a ticket that has no errands (any more). */
void ps_ticket_end_if_done(psd_client_t *client, ps_ticket_t *self);
/* Ends those whose deadline has passed. */
void ps_tickets_expire(psd_client_t *client, uint64_t now_ms);
/* Gives the result of one that has ended, and forgets it. */
PSD_MUST_CHECK psd_status_t ps_ticket_use_up(psd_client_t *client,
                                             ps_ticket_t *self,
                                             psd_error_t *err);
/* Waits for the end and uses the ticket up; until_ms UINT64_MAX: its own
 * deadline is enough. Errors: its result; PSD_DEADLINE, the ticket goes on. */
PSD_MUST_CHECK psd_status_t ps_ticket_wait(psd_client_t *client,
                                           ps_ticket_t *ticket,
                                           uint64_t until_ms,
                                           uint64_t waited_ms,
                                           psd_error_t *err);
void ps_tickets_done(psd_client_t *client);

#endif
