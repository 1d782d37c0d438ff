/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/session: a client's requests, until each has ended exactly
 * once
 *
 * It is       The client's machine: sequence numbers, credits, retries, routes,
 *             HELLO and WELCOME, the pace of a link, messages in pieces.
 * It uses     facts, core, lib/wire, lib/model, lib/base.
 * It ignores  Sockets, the system clock, how a call was cut into slices, and
 *             everything on the server's side.
 * Start at    session.c for the calls, session_answer.c for receiving,
 *             session_queue.c for sending.
 */
/*
 * ps_session - the client side: numbers pushes, resends, follows the map
 *
 * What     One pure state machine per client. It keeps every push until its
 *          result is known, sends within the credits of each connection, sends
 *          HELLO, resends after a lost answer, a gap or a new connection, and
 *          takes new routes from MOVED. One operation is one slice for one
 *          partition; cutting a call into slices is lib/client's work.
 * Shape    link: a connection to one shard of one node incarnation, numbered
 *          from 0 in the order of first use
 *          op: an operation, numbered from 1, never used twice
 * Owner    The caller; ps_session_destroy drops unanswered operations.
 * Threads  Confined to one thread.
 */
#ifndef PS_PROTOCOL_SESSION_H
#define PS_PROTOCOL_SESSION_H

#include "protocol/facts/node_names.h"
#include "protocol/core/outbox.h"
#include "wire/messages/route.h"

typedef struct ps_session ps_session_t;

typedef struct ps_session_args {
    ps_id_t cluster;
    ps_id_t client;
    uint64_t session;
    uint32_t filters;    /* that the client supports; PS_FILTER_BIT_… */
    uint64_t bulk_bytes; /* bodies from this size on use the bulk connection, if there is one; 0: 64
                            KiB */
    uint64_t resend_ms;  /* silence before the first retry; doubles with each try up to 16 times
                            this */
} ps_session_args_t;

typedef struct ps_op_worker { /* 0 job: no worker */
    uint32_t job;
    uint32_t worker;
    uint32_t member;
    uint32_t joins;
    uint64_t clock;
} ps_op_worker_t;

/* A client's identity to partitions. A partition that has forgotten the client
 * gets another identity, whose seqs start again from 1. */
typedef struct ps_identity {
    ps_id_t client;
    uint64_t session;
} ps_identity_t;

PSD_MUST_CHECK psd_status_t ps_session_new(const ps_session_args_t *args,
                                           ps_session_t **ret_session, psd_error_t *err);
void ps_session_destroy(ps_session_t **self_p);

/* Learns where the partitions of a table are (all of them, in order). Routes
 * that are not newer than the known ones are ignored; pending operations go to
 * their new place with the next tick. Errors: PSD_NOMEM; PSD_PROTO another
 * number of routes than before, or not in order; PSD_LIMIT too many places. */
PSD_MUST_CHECK psd_status_t ps_session_routes(ps_session_t *self, uint32_t table,
                                              const ps_route_t *routes, uint32_t n_routes,
                                              psd_error_t *err);
/* The nodes' names for reasons; the caller sets the lines. Borrowed for as long
 * as the session lives. */
ps_node_names_t *ps_session_names(ps_session_t *self);
/* Forgets a table; its operations end with `status`. If any of them was a push
 * or a mark, the table cannot be used again: it is unknown whether its seq was
 * consumed.
 */
void ps_session_forget(ps_session_t *self, uint32_t table, psd_status_t status,
                       ps_outbox_t *outbox);

/* One operation: one slice for one partition. Fields that its kind does not
 * have are 0. */
typedef struct ps_op_start {
    ps_kind_t kind; /* PUSH, PULL, MARK; of a relay: BUNDLE */
    uint32_t table;
    uint32_t partition;
    ps_op_worker_t worker;
    ps_slice_t slice;      /* PUSH, PULL */
    ps_payload_t *payload; /* kept (ps_payload_keep); NULL: no body */
    uint32_t timeout_ms;   /* sent to the server; ends a pull there and, if the server is silent,
                              here; never a push */
    uint8_t ack;           /* PUSH: ps_ack_t */
    bool pull;             /* PUSH: answered by VALUES */
    bool marks;            /* PUSH: also a mark of the worker's clock + 1 */
    bool wants_times;      /* PUSH, PULL: the answer says where the time went, if the shard can */
    uint8_t op;            /* ps_change_op_t or ps_read_op_t */
    uint32_t other;        /* the table that the op reads too */
    uint64_t operand;      /* of the op */
    uint64_t since;        /* PULL: only rows changed after this version */
    uint64_t plan;         /* BUNDLE: the version that the relay goes by */
    uint16_t n_from;       /* BUNDLE: contributors … */
    uint16_t n_spans;      /* … and spans of the payload */
    void *owner;           /* the caller's own, passed on in the operation's SEND and DONE effects;
                              never read */
} ps_op_start_t;

/*
 * Starts an operation. It is sent now or when credits allow; credits go in the
 * order of starting. A mark is sent after the values of the earlier pulls of
 * its partition have arrived, so that they are not those of a later clock. It
 * ends with a PS_EFFECT_DONE whose `to` is the op and whose message is ACK,
 * VALUES (with payload) or REFUSED. Until then the session holds the payload.
 * A BUNDLE of more bytes than the shard takes ends with PSD_LIMIT when its turn comes.
 * A BUNDLE is of the epoch in which it was started: it ends with PSD_SPLIT where it would go in
 * another one, and each of its origins sends its own.
 * A BUNDLE is sent once for each connection: where the shard is silent, it is
 * asked whether it lives, and does not get the bytes again.
 *
 * Errors: PSD_NOMEM; PSD_NO_TABLE when routes are not known; PSD_CLOSED when
 * the session is broken (ps_session_broken says why). Nothing was started then.
 */
PSD_MUST_CHECK psd_status_t ps_session_start(ps_session_t *self, uint64_t now_ms,
                                             const ps_op_start_t *start, ps_outbox_t *outbox,
                                             uint64_t *ret_op, psd_error_t *err);
/* Gives up a BUNDLE: it ends without a PS_EFFECT_DONE, and its answer is ignored. It has no seq,
 * and is nobody's only copy. Numbers of other operations, or of none, change nothing. */
void ps_session_cancel(ps_session_t *self, uint64_t op);
/* A relay has a push or mark that was sent: the shard is not asked about it before until_ms, but
 * its answer ends it as ever. Numbers of other operations, or of none, change nothing. */
void ps_session_lent(ps_session_t *self, uint64_t op, uint64_t until_ms);
/* The relay gave it back: it is sent from here, now. */
void ps_session_given_back(ps_session_t *self, uint64_t now_ms, uint64_t op, ps_outbox_t *outbox);
/* The last sign of that operation from the shard, or its start; 0: it has ended. */
uint64_t ps_session_heard_ms(const ps_session_t *self, uint64_t op);

/* A message arrived on a link (chunks assembled), time passed, or the link's
 * connection was lost and opened again. The session holds payloads of answers
 * if it needs them. A peer that violates the protocol breaks the session, never
 * the program. */
void ps_session_received(ps_session_t *self, uint64_t now_ms, uint64_t link,
                         const ps_message_t *message, ps_payload_t *payload, ps_outbox_t *outbox);
/* A piece of the answer to `request` has arrived on a link. The request is
 * retried only when no piece arrives for twice the previous gap. */
void ps_session_heard(ps_session_t *self, uint64_t now_ms, uint64_t link, uint64_t request);
void ps_session_tick(ps_session_t *self, uint64_t now_ms, ps_outbox_t *outbox);
void ps_session_relinked(ps_session_t *self, uint64_t now_ms, uint64_t link, ps_outbox_t *outbox);
/* Since when a shard owes a sign of life, and the tables with operations in
 * flight to such shards: their routes may be stale. The caller asks the
 * registry after a while, and passes the answers to ps_session_routes and
 * ps_session_forget. UINT64_MAX: no shard does. */
#define PS_DOUBT_MAX 256
uint64_t ps_session_doubt(const ps_session_t *self, uint32_t ret_tables[PS_DOUBT_MAX],
                          size_t *ret_n);
/* The sum of the epochs of a table's known routes; 0: none are known. Epochs
 * only grow, so the same sum means the same routes. */
uint64_t ps_session_epochs(const ps_session_t *self, uint32_t table);
/* A shard that owes a sign of life, and since when. */
typedef struct ps_silent {
    uint64_t incarnation;
    uint32_t shard;
    uint64_t since_ms;
} ps_silent_t;
#define PS_SILENT_MAX 64
/* Returns the number of silent shards with operations in flight. */
size_t ps_session_silent(const ps_session_t *self, ps_silent_t ret_silent[PS_SILENT_MAX]);
/* A partition has forgotten this client, which needs another identity to
 * continue there; nothing that is still pending was taken under the old one.
 * The caller gets an identity from the registry, and adds it. */
bool ps_session_wants_identity(const ps_session_t *self, uint32_t *ret_table,
                               uint32_t *ret_partition);
/* Errors: PSD_NOMEM; the identity is then still wanted. */
PSD_MUST_CHECK psd_status_t ps_session_add_identity(ps_session_t *self, const ps_identity_t *added,
                                                    psd_error_t *err);
/* A guest, whose number is PS_GUEST_FIRST or more and which has started nothing but pulls,
 * has got a session: every shard hears of it, and pulls under way are asked again. */
void ps_session_settle(ps_session_t *self, uint64_t now_ms, uint64_t session, ps_outbox_t *outbox);
/* The session number of a link, for BYE. */
uint64_t ps_session_number(const ps_session_t *self, uint64_t link);
/* When the next tick is due; UINT64_MAX for never. */
uint64_t ps_session_deadline(const ps_session_t *self);

/* The route of a link: for PS_EFFECT_OPEN. Borrowed until the next call. */
const ps_route_t *ps_session_link(const ps_session_t *self, uint64_t link);
/* Sets the endpoint of the route to which the link was opened; errors name it
 * from now on. Longer ones are cut. */
#define PS_LINK_ENDPOINT_MAX (PS_ENDPOINT_MAX + 16) /* "lane://PATH.lane" */
void ps_session_link_goes(ps_session_t *self, uint64_t link, const char *endpoint);
/* Allows one more connection to the same shard, for bulk. The session opens it
 * with the first large body, by a PS_EFFECT_OPEN like any other. */
void ps_session_allow_bulk(ps_session_t *self, uint64_t link);
/* True when the link is a bulk connection. */
bool ps_session_link_is_bulk(const ps_session_t *self, uint64_t link);
/* True when operations are in flight on the link, or wait for its WELCOME. */
bool ps_session_link_is_used(const ps_session_t *self, uint64_t link);
/* The current link to a partition; false: none is open. */
PSD_MUST_CHECK bool ps_session_link_of(const ps_session_t *self, uint32_t table, uint32_t partition,
                                       uint64_t *ret_link);
/* The chunk size of values on a link; 0 before its WELCOME. */
uint32_t ps_session_chunk_bytes(const ps_session_t *self, uint64_t link);
/* The largest bundle that the shard of a link takes; 0 before its WELCOME. */
uint32_t ps_session_bundle_bytes(const ps_session_t *self, uint64_t link);
/* Filters that both ends of a link support; 0 before its WELCOME. */
uint32_t ps_session_filters(const ps_session_t *self, uint64_t link);
/* Largest body of one slice on any link; UINT64_MAX before a WELCOME. */
uint64_t ps_session_slice_bytes(const ps_session_t *self);
/* Operations that have not ended (pushes and marks only / all). */
size_t ps_session_pending(const ps_session_t *self, bool with_pulls);
/* The reason of the last PARKED of this op, or what the session itself knows
 * that it waits for ("node "n1" (tcp://…): no answer from its shard 0 at
 * tcp://… for 3 s"). "" when unknown. Borrowed until the next call. */
const char *ps_session_reason(const ps_session_t *self, uint64_t now_ms, uint64_t op);
/* PSD_OK, or why every further call is refused: ROWS_LOST, VERSION, CLUSTER,
 * INCARNATION, DENIED, CLOSED, PROTO, LIMIT (no room for one more client there,
 * or too many places in the map). */
psd_status_t ps_session_broken(const ps_session_t *self, const char **ret_text);
#endif
