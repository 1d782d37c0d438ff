/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/client/requests: calls, from their start until the caller has the
 * result
 *
 * It is       Tables, pushes, pulls and other operations on rows; tickets, their
 *             requests and queues; a client's turns.
 * It uses     slices, which cut a call; connection, which carries it; the
 *             session, which retries.
 * It ignores  Jobs: a worker's clock is a stamp and a list of tables to mark,
 *             and the job's part of a turn is two call-backs.
 * Start at    rows.c for a push, ticket.h for its states, pump.c for a turn.
 */
/*
 * ps_ticket, ps_slice_request, ps_request_queue - calls under way
 *
 * What     A call is a ticket; each of its slices is a request. A request waits
 *          in the queue of its partition until there is room and it is its
 *          turn. Then it is an operation of the session. It ends with an
 *          answer:
 *
 *              waiting --> sent --> ended
 *                 |         |  ^
 *                 |         +--+  it asks for the rest of a pull
 *                 +-----------------> ended (a pull whose deadline has passed)
 *
 *          A ticket ends when all of its requests have, or at its deadline:
 *          pushes then go on without it (ticket NULL).
 * Shape    A queue is in order of round; within a round marks come last,
 *          greater priority first, then first come first served. A ticket's
 *          number is its place among the client's tickets and, in the upper
 *          bits, how often the place was used before: a lookup needs no search.
 * Owner    The client keeps tickets and requests that have ended, and reuses
 *          them.
 */
#ifndef PS_CLIENT_TICKET_H
#define PS_CLIENT_TICKET_H

#include "client/connection/client_state.h"
#include "client/slices/cut.h"
#include "psd/trace.h"

typedef enum ps_request_kind {
    PS_REQUEST_PUSH = 1,
    PS_REQUEST_PULL = 2,
    PS_REQUEST_PUSHPULL = 3,
    PS_REQUEST_MARK = 4
} ps_request_kind_t;

/* The operation on the rows, when it is more than a plain push or pull:
 * wire/messages/message.h, PS_OP_FIELDS. */
typedef struct ps_row_op_args {
    uint8_t op; /* ps_change_op_t or ps_read_op_t */
    uint32_t other;
    uint64_t operand;
    uint64_t since;
} ps_row_op_args_t;

/* The combined result of one slice's answers, when these are not rows; the
 * caller's. */
typedef struct ps_aggregate {
    double number;    /* SUM, SQUARES, DOT: of all pieces, in order */
    uint64_t count;   /* NONZEROS */
    uint64_t version; /* of the partition, at the first piece; 0: none yet */
    uint32_t partition;
} ps_aggregate_t;

/* Of a push or mark to a table whose pushes are added up whenever they come (lend.h): */
#define PS_WAY_NONE 0 /* it has not gone, or is none of these */
#define PS_WAY_LENT 1
#define PS_WAY_DIRECT 2

/* Ways of a request that is not sent as it is. */
#define PS_DETOUR_FILTER 1 /* through its filter */
#define PS_DETOUR_LEND 2   /* by the relay, if that may be (lend.h) */

struct ps_slice_request {
    TAILQ_ENTRY(ps_slice_request) in_list; /* waiting, sent, ended or spare */
    TAILQ_ENTRY(ps_slice_request) in_ticket;
    ps_ticket_t *ticket; /* NULL: no call waits for it */
    ps_request_queue_t *queue;
    ps_request_kind_t kind;
    ps_row_op_args_t row_op;
    ps_slice_t slice;
    ps_payload_t *payload;     /* one holder is the request; may be NULL */
    bool borrows;              /* the payload points at the caller's memory */
    uint32_t n_sends;          /* how often a socket got it */
    uint32_t n_fixed_sends;    /* … that keeps the address that the payload had
                                  then */
    ps_places_t places;        /* owned */
    ps_aggregate_t *aggregate; /* borrowed as long as there is a ticket; or NULL */
    ps_op_worker_t worker;     /* as it was when the call was made */
    uint8_t detour;            /* PS_DETOUR_…; 0: straight to the shard */
    uint8_t way;               /* PS_WAY_…; counted in its queue */
    ps_filter_t filter;
    ps_ack_t ack;
    int32_t priority;
    psd_ticket_t after; /* 0: none */
    uint64_t round;
    uint64_t op;           /* of the session; 0: it waits, or has ended */
    bool is_sent;          /* counted in its queue as in flight … */
    uint64_t sent_bytes;   /* … with this number of bytes */
    uint64_t metered_us;   /* when its deltas went to the shard; 0: nobody measures it */
    bool was_answered;     /* by ACK or VALUES */
    bool marks;            /* it finishes a clock there: a mark, or the last push */
    bool is_direct;        /* its rows come from the shard, whatever the plan says */
    ps_by_peer_t *by_peer; /* owned; its rows come from another worker (by_peer.h); or NULL */
    psd_trace_t *trace;    /* borrowed as long as there is a ticket; or NULL */
    size_t traced;         /* its place there */
};

#define PS_TICKET_PLACE_BITS 24 /* of a number: its place, counted from 1 */
#define PS_TICKET_PLACE_MASK ((UINT64_C(1) << PS_TICKET_PLACE_BITS) - 1)

struct ps_ticket {
    TAILQ_ENTRY(ps_ticket) in_list;    /* of the open, done or idle ones */
    psd_ticket_t number;               /* idle: the next number that it gets */
    struct ps_slice_requests requests; /* that have not ended */
    uint32_t timeout_ms;
    uint64_t deadline_ms;
    uint64_t held_ms; /* since when all of it waits for psd_clock (hold.h); 0: it does not */
    bool is_idle;
    bool has_ended;
    psd_status_t status;
    psd_error_t *error;   /* owned; NULL while nothing failed */
    void *values;         /* the caller's; where DENSE answers go */
    psd_result_t *result; /* borrowed; where psd_fetch gathers; or NULL */
    /* names the call, for errors */
    const char *verb;              /* "push to"; static */
    const ps_known_table_t *table; /* NULL: none */
    uint32_t command;              /* 0: none */
};

#define PS_TOLD_MS 3000 /* after it on_wait gets a call that is still open */
#define PS_TICKET_NAME_SIZE (PS_NAME_MAX + 64)

struct ps_request_queue {
    TAILQ_ENTRY(ps_request_queue) in_busy; /* while requests wait */
    const ps_known_table_t *table;
    uint32_t partition;
    struct ps_slice_requests waiting;
    ps_slice_request_t *last; /* of the call that is being made; else NULL */
    ps_slice_request_t *held; /* it waits for psd_clock (hold.h); else NULL */
    uint64_t pushed_round;    /* one more than the last round in which a push went, if there is a
                                 relay */
    uint32_t n_sent;          /* requests in flight */
    uint64_t sent_bytes;      /* of their payloads */
    uint64_t marked_seq;      /* of the last push or mark that ended a clock here, if there is a
                                 relay; 0: none */
    uint32_t n_lent;          /* requests under way by the relay … */
    uint32_t n_direct;  /* … and not, where pushes are added up whenever they come; there also: */
    bool has_ended;     /* a direct one: the shard knows this client as one of the job */
    bool is_unfit;      /* the last push could not be lent: marks go as it went */
    uint64_t finished;  /* clocks, after the last mark that went; 0: none has */
    uint32_t n_spared;  /* how many of the next go directly */
    uint32_t n_by_peer; /* pulls whose rows come from another worker; marks wait for them */
    uint32_t n_refused; /* clocks in a row in which rows of other workers were not to be had */
    uint64_t refused_at;   /* the last of them */
    uint32_t n_late;       /* of the clocks that are to be … */
    uint64_t direct_until; /* … pulled directly, since rows did not come in time */
};

/* ---- slice_request.c ---- */

/* NULL: no memory. Takes payload and places out of the cut. */
ps_slice_request_t *ps_slice_request_new(psd_client_t *client, ps_request_kind_t kind,
                                         ps_cut_t *cut);
/* Makes it an operation of the session; ends it if that fails. */
void ps_slice_request_send(psd_client_t *client, ps_slice_request_t *request);
/* Puts a request that is in no list on the list of those that have ended. */
void ps_slice_request_end(psd_client_t *client, ps_slice_request_t *request, psd_status_t status,
                          const char *text);
/* Releases a request that is in no list. */
void ps_slice_request_destroy(psd_client_t *client, ps_slice_request_t **request_p);
/* Releases all requests of a list. */
void ps_slice_requests_drop(psd_client_t *client, struct ps_slice_requests *requests);

void ps_queue_init(ps_request_queue_t *self, const ps_known_table_t *table, uint32_t partition);
/* Another job's clocks: what was learnt of other workers counts no longer. */
void ps_queue_forget_peers(ps_request_queue_t *self);
/* Puts a request into its place; ps_queue_run sends it. */
void ps_queue_add(psd_client_t *client, ps_slice_request_t *request);
/* Removes a request that waits. */
void ps_queue_remove(psd_client_t *client, ps_slice_request_t *request);
/* Sends the requests that may go now. */
void ps_queue_run(psd_client_t *client, ps_request_queue_t *queue);
void ps_queues_run(psd_client_t *client);
/* After the outbox: gives loans back, tells the ticket, releases the request,
 * and sends the next requests that have room. */
void ps_slice_request_finish(psd_client_t *client, ps_slice_request_t **request_p);
/* Frees all requests of the client. */
void ps_slice_requests_done(psd_client_t *client);

/* ---- reply.c ---- */

/* Takes the session's answer to a request that was sent. */
void ps_slice_request_answered(psd_client_t *client, ps_slice_request_t *request,
                               const ps_message_t *message, ps_payload_t *payload);

/* ---- loan.c ---- */

/* The caller takes its memory back from a request that goes on: its payload is
 * copied, and messages in sockets are dropped. If there is no memory for the
 * copy, the client breaks. */
void ps_loan_call_in(psd_client_t *client, ps_slice_request_t *request);
/* The same from a request that has ended and borrows. */
void ps_loan_end(psd_client_t *client, ps_slice_request_t *request);

/* ---- ticket.c ---- */

/* A ticket without requests, from client->now_ms on. Errors: PSD_NOMEM;
 * PSD_LIMIT. */
PSD_MUST_CHECK psd_status_t ps_ticket_new(psd_client_t *client, uint32_t timeout_ms,
                                          ps_ticket_t **ret_ticket, psd_error_t *err);
/* The ticket of that number, unless it is used up; or NULL. */
static inline ps_ticket_t *ps_ticket_find(const psd_client_t *client, psd_ticket_t number)
{
    uint64_t place = number & PS_TICKET_PLACE_MASK;
    ps_ticket_t *self = place == 0 || place > client->n_tickets ? NULL : client->tickets[place - 1];

    return self != NULL && self->number == number && !self->is_idle ? self : NULL;
}
/* Adds the request. */
void ps_ticket_add(ps_ticket_t *self, ps_slice_request_t *request);
/* Frees the place of a ticket that has no requests, or is used up. */
void ps_ticket_forget(psd_client_t *client, ps_ticket_t **self_p);
/* A request of the ticket failed; the first failure is the ticket's result.
 * text: NULL or empty: the status says it all. */
void ps_ticket_note_failure(ps_ticket_t *self, uint32_t partition, psd_status_t status,
                            const char *text);
/* Ends a ticket that has no requests (any more). */
void ps_ticket_end_if_done(psd_client_t *client, ps_ticket_t *self);
/* Returns the result of a ticket that has ended, and forgets the ticket. */
PSD_MUST_CHECK psd_status_t ps_ticket_use_up(psd_client_t *client, ps_ticket_t *self,
                                             psd_error_t *err);
/* "push to table "w"", as errors begin. */
void ps_ticket_name(const ps_ticket_t *self, char ret_text[PS_TICKET_NAME_SIZE]);
void ps_tickets_done(psd_client_t *client);

/* ---- deadline.c ---- */

/* What the request waits for, in words. Borrowed until the next call. */
const char *ps_slice_request_reason(const psd_client_t *client, const ps_slice_request_t *request,
                                    char ret_text[PS_TEXT_MAX + 1]);
/* Ends tickets whose deadline has passed at client->now_ms. */
void ps_tickets_expire(psd_client_t *client);
/* Reports a call that has been open for PS_TOLD_MS to on_wait. */
void ps_tickets_tell(psd_client_t *client);
/* The program took no turn for a while: calls were open meanwhile, but the
 * program did not wait for them. */
void ps_tickets_were_away(psd_client_t *client);
/* After ps_perform: ends all open tickets, and gives their callers the memory
 * back. Pushes go on with copies. */
void ps_tickets_cut_off(psd_client_t *client, psd_status_t status, const char *text);
/* Returns PSD_DEADLINE and names what the ticket waits for. */
PSD_MUST_CHECK psd_status_t ps_ticket_overdue(const psd_client_t *client, const ps_ticket_t *self,
                                              uint64_t waited_ms, psd_error_t *err);

#endif
