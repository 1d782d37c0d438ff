/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to ps_session: shared by its files.
 *
 *   session.c         starting and ending operations, learning routes, breaking
 *   session_look.c    what it reports about itself
 *   session_queue.c   operations in their partitions, credits, sending
 *   session_link.c    connections: HELLO, resending, time
 *   session_bulk.c    second connections, for large bodies
 *   session_answer.c  received messages
 *   session_lent.c    operations that a relay has
 *   session_forgotten.c    partitions that have forgotten the session
 *
 * An operation stays in its partition's list, which is in order of submission,
 * until its end. It first waits for credits of its link. The link gives them in
 * order of submission, and the operation keeps them until its end, so an
 * operation with credits never waits, at a clock gate, for one without. Then it
 * is queued, sent in the order of its partition, and if necessary queued and
 * sent again.
 *
 * A partition with operations is in the `active` list of its link; one that has
 * something to send is in the link's `ready` ring as well, which gives each
 * partition its turn.
 *
 * All walks follow lists in insertion order, so that the same events give the
 * same effects.
 */
#ifndef PS_PROTOCOL_SESSION_PRIVATE_H
#define PS_PROTOCOL_SESSION_PRIVATE_H

#include <sys/queue.h>

#include "base/map.h"
#include "protocol/session/session.h"

#define PS_LINKS_MAX 4096     /* places that one session may know */
#define PS_BACKOFF_DOUBLING 4 /* waits double up to 2^4 times the first */
#define PS_RESEND_GAP_MS 50   /* minimum time between two sends of the same operation */
#define PS_RESEND_MAX_MS 3600000
#define PS_RECENT 512 /* a power of two; ids are consecutive */
#define PS_REASON_SIZE (PS_TEXT_MAX + 1)

typedef struct ps_part ps_part_t;
typedef struct ps_link ps_link_t;

typedef struct ps_op {
    TAILQ_ENTRY(ps_op) in_list;    /* of its partition, or unreported */
    TAILQ_ENTRY(ps_op) in_waiting; /* of its link; without credits only */
    ps_part_t *part;
    ps_op_start_t ask;   /* as started; its payload is held */
    uint64_t id;         /* `request` on the wire */
    uint64_t seq;        /* PULL, BUNDLE: the last one before it */
    size_t bytes;        /* of the payload */
    bool credited;       /* counts against the credits of its link */
    bool sent;           /* an answer is awaited; else queued or waiting */
    bool bulk;           /* it was sent on the bulk connection */
    bool counted;        /* … or the other one, and counts there: n_numbered */
    bool again;          /* when due: send it again instead of probing */
    uint32_t tries;      /* number of retries */
    uint64_t n_sends;    /* 0: no answer can come yet */
    uint32_t n_unsure;   /* number of sends that may have been taken */
    bool asked;          /* a PROBE was sent: answers may belong to it */
    uint64_t sent_epoch; /* epoch of the last send */
    uint64_t start_ms;
    uint64_t sent_ms;    /* the last send */
    uint64_t heard_ms;   /* the last sign of it from the server; or its start */
    uint64_t piece_ms;   /* the last piece of its answer; 0: none yet */
    uint64_t due_ms;     /* sent: when to retry */
    char *reason;        /* owned; of the last PARKED or BUSY; may be NULL */
    psd_status_t status; /* unreported: its final status */
} ps_op_t;
TAILQ_HEAD(ps_ops, ps_op);

/* It has a seq of its own. */
static inline bool ps_op_is_numbered(const ps_op_t *self)
{
    return self->ask.kind == PS_KIND_PUSH || self->ask.kind == PS_KIND_MARK;
}

struct ps_part {
    TAILQ_ENTRY(ps_part) in_active;
    TAILQ_ENTRY(ps_part) in_ready;
    uint32_t identity; /* under which the partition is used */
    bool is_forgotten; /* it needs another identity; nothing is sent meanwhile */
    ps_link_t *place;  /* where it lives; borrowed */
    ps_link_t *link;   /* where its operations are; NULL: no operations */
    struct ps_ops ops;
    ps_op_t *queued; /* the first operation that is not sent */
    uint32_t table;
    uint32_t partition;
    uint64_t epoch;
    uint64_t seq;           /* the last seq given out */
    uint64_t ended_seq;     /* the greatest of a push or mark that has ended */
    uint64_t ended_epoch;   /* … and the epoch under which it ended */
    uint64_t pause_ms;      /* nothing is sent before this time */
    uint32_t pauses;        /* pauses since the last success */
    uint32_t n_numbered[2]; /* unanswered pushes and marks on the first connection, and on the bulk
                               connection */
    bool ready;             /* in the ring of its link */
    bool blocked;           /* its next mark waits for the values of a pull, or its next push for
                               operations on the other connection */
};
TAILQ_HEAD(ps_parts, ps_part);

typedef struct ps_session_table {
    uint32_t id;
    bool known; /* routes are known */
    bool torn;  /* forgotten with numbered operations in flight: their numbers cannot be used again,
                   nor later ones */
    uint32_t n_parts;
    ps_part_t *parts; /* owned */
} ps_session_table_t;

typedef enum ps_link_state {
    PS_LINK_UNUSED = 0,   /* known, never needed; has no number */
    PS_LINK_GREETING = 1, /* HELLO is in flight */
    PS_LINK_READY = 2     /* WELCOME arrived */
} ps_link_state_t;

/* The second connection of a link. */
typedef struct ps_bulk {
    bool allowed;          /* may be opened */
    ps_link_state_t state; /* UNUSED: has no number */
    uint64_t number;
    uint32_t hello_tries;
    uint64_t hello_due_ms;
} ps_bulk_t;

struct ps_link {
    ps_link_state_t state;
    uint32_t identity; /* the identity in HELLO */
    uint64_t number;
    ps_route_t route;                        /* partition and epoch mean nothing here */
    char endpoint[PS_LINK_ENDPOINT_MAX + 1]; /* the endpoint actually used; "": unknown */
    struct ps_parts active;
    struct ps_parts ready;
    struct ps_ops waiting;  /* for credits; by id */
    uint64_t last_credited; /* the highest id that got credits */
    uint32_t hello_tries;
    uint64_t hello_ms;       /* when the current series of HELLOs began */
    uint64_t hello_due_ms;   /* GREETING: when to send HELLO again */
    uint64_t sign_ms;        /* the first sign of life since then; 0: none */
    uint64_t pace_ms;        /* the round-trip time of a question there */
    uint64_t greeted_ms;     /* GREETING: since when */
    uint64_t doubted_ms;     /* since when it owes a sign of life; 0: it does not */
    uint32_t n_credited;     /* operations that count against the credits */
    uint64_t credited_bytes; /* of their bodies */
    uint32_t credit_requests;
    uint64_t credit_bytes;
    uint32_t chunk_bytes;
    uint64_t slice_bytes;
    uint32_t filters; /* that both ends support */
    ps_bulk_t bulk;
};

/* Of the largest bundle that its shard takes; 0 before its WELCOME. */
static inline uint32_t ps_link_bundle_bytes(const ps_link_t *self)
{
    bool takes_most = self->chunk_bytes > PS_BUNDLE_BYTES ||
                      (self->chunk_bytes > 0 && (self->filters & PS_SPEAKS_BUNDLES) != 0);

    return takes_most ? PS_BUNDLE_BYTES : self->chunk_bytes;
}

struct ps_session {
    ps_session_args_t args;
    ps_identity_t *identities; /* owned; the first is that of args */
    size_t n_identities;
    size_t identities_capacity;
    ps_link_t **places; /* owned; all links, in the order in which they became known */
    size_t n_places;
    size_t places_capacity;
    ps_link_t **links; /* borrowed from places; by number, including bulk; room for all */
    size_t n_links;
    size_t links_capacity;
    ps_session_table_t **tables; /* owned; in the order in which they became known */
    size_t n_tables;
    size_t tables_capacity;
    ps_map_t table_of;          /* number -> ps_session_table_t */
    ps_op_t *recent[PS_RECENT]; /* by id, if the slot is free … */
    ps_map_t op_of;             /* … else id -> ps_op_t */
    struct ps_ops unreported;   /* ended; no memory to report it yet */
    struct ps_ops spare;        /* owned; for reuse */
    size_t n_spare;
    uint64_t last_op;
    size_t n_pulls;    /* and bundles */
    size_t n_numbered; /* pushes and marks */
    uint64_t wake_ms;  /* no timer is due before this time */
    psd_status_t broken;
    char broken_text[PS_TEXT_MAX + 1];
    ps_node_names_t names; /* of nodes, for people */
    char *reason;          /* owned; buffer for ps_session_reason */
};

static inline void ps_session_wake(ps_session_t *self, uint64_t at_ms)
{
    if (at_ms < self->wake_ms) {
        self->wake_ms = at_ms;
    }
}

static inline bool ps_link_bulk_is(const ps_link_t *self, uint64_t number)
{
    return self->bulk.state != PS_LINK_UNUSED && self->bulk.number == number;
}

/* Its endpoint, for people. */
static inline const char *ps_link_place(const ps_link_t *self)
{
    if (self->endpoint[0] != '\0') {
        return self->endpoint;
    }
    return ps_route_any(&self->route);
}

/* session_doubt.c */
/* An operation is being probed. A live shard answers a PROBE at once; a PULL
 * may be held, so the link also sends HELLO. */
void ps_link_doubt(ps_session_t *self, uint64_t now_ms, const ps_op_t *op, ps_outbox_t *outbox);
/* A message arrived: the link owes no sign of life. */
void ps_link_lives(ps_link_t *self, uint64_t now_ms);
/* Updates the link's pace from an answer that took at most this time: fast
 * answers lower it gradually. */
void ps_link_answered(ps_link_t *self, uint64_t took_ms);
/* … from a WELCOME: that of a link that opens counts fully. If HELLO asked
 * whether the shard is alive, the time before the first sign of life does not
 * count: a node that paused is not a slow link. */
void ps_link_welcomed(ps_link_t *self, uint64_t now_ms, bool was_ready);
/* Does not retry it before then. */
void ps_op_wait(ps_session_t *self, ps_op_t *op, uint64_t until_ms);
/* session_bulk.c */
/* Decides on which connection to send an operation now. False: it must wait for
 * others of its partition. */
PSD_MUST_CHECK bool ps_bulk_choose(ps_session_t *self, uint64_t now_ms, ps_op_t *op,
                                   ps_outbox_t *outbox);
/* An operation is being probed: the answer may have gone to the other
 * connection, and nothing else would show that it is broken. HELLO there
 * registers it again. */
void ps_bulk_ask(ps_session_t *self, uint64_t now_ms, const ps_op_t *op, ps_outbox_t *outbox);
/* It is no longer in flight. */
void ps_bulk_uncount(ps_op_t *op);
/* The connection is new, or unknown there: sends HELLO, and everything
 * again. */
void ps_bulk_greet(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox);
void ps_bulk_tick(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox);
/* session_forgotten.c */
/* Its partition no longer knows the session: true when pending operations may
 * start again under another session, because none of them was taken. */
bool ps_part_may_begin_anew(const ps_part_t *part);
/* True when this operation decides that. */
bool ps_op_decides(const ps_op_t *op);
/* Starts them again, as soon as there is another identity. */
void ps_part_begin_anew(ps_session_t *self, uint64_t now_ms, ps_part_t *part, ps_outbox_t *outbox);
/* Notes that the operation's last send was not taken. */
void ps_op_not_taken(ps_op_t *op);
/* session_look.c */
const char *ps_op_reason(const ps_session_t *self, const ps_op_t *op, uint64_t now_ms);
/* session.c */
PSD_MUST_CHECK psd_status_t ps_session_learn(ps_session_t *self, ps_session_table_t *table,
                                             const ps_route_t *routes, uint32_t n_routes,
                                             psd_error_t *err);
/* Ends all operations with status; later calls are refused. */
void ps_session_break(ps_session_t *self, psd_status_t status, const char *text,
                      ps_outbox_t *outbox);

/* session_queue.c */
uint64_t ps_session_backoff(uint64_t first_ms, uint32_t tries);
uint64_t ps_session_gap_ms(const ps_session_t *self);
/* How long to wait for an answer after this number of tries: on a slow link at
 * least twice its pace. */
uint64_t ps_link_wait_ms(const ps_session_t *self, const ps_link_t *link, uint32_t tries);
/* Removes an operation from its partition; no answer will match it any more. */
void ps_op_detach(ps_op_t *op);
/* Appends a new operation to its partition's list. */
void ps_op_enqueue(ps_op_t *op);
/* Queues it to be sent again in its turn. */
void ps_op_requeue(ps_op_t *op);
void ps_part_requeue(ps_part_t *part);
/* Sends nothing to it for a time that grows with each pause (backoff). */
void ps_part_pause(ps_session_t *self, uint64_t now_ms, ps_part_t *part);
/* Carries all its operations to the link of its place; sends nothing there. */
void ps_part_carry(ps_part_t *part, uint64_t now_ms);
/* Removes it from the ring: it has nothing to send now. */
void ps_part_leave_ring(ps_part_t *part);
/* Adds it to the ring of its link if it has something to send. */
void ps_part_make_ready(ps_part_t *part, uint64_t now_ms);
/* Sends as far as credits allow. */
void ps_link_flush(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox);
/* Probes a sent operation: PROBE, or the PULL again. */
void ps_op_ask(ps_session_t *self, uint64_t now_ms, ps_op_t *op, ps_outbox_t *outbox);
/* session.c */
/* Ends an operation by an answer. Without memory nothing changes: it will be
 * probed again. */
void ps_op_end(ps_session_t *self, ps_op_t *op, const ps_message_t *answer, ps_payload_t *payload,
               ps_outbox_t *outbox);
/* Ends an operation locally. */
void ps_op_end_locally(ps_session_t *self, ps_op_t *op, psd_status_t status, const char *text,
                       ps_outbox_t *outbox);
/* Reports the ends that could not be reported for lack of memory. */
void ps_session_report(ps_session_t *self, ps_outbox_t *outbox);
/* The operation of that number, or NULL. */
ps_op_t *ps_op_find(const ps_session_t *self, uint64_t id);
/* Gives an operation its number. false: no memory. */
PSD_MUST_CHECK bool ps_op_name(ps_session_t *self, ps_op_t *op, uint64_t id);
/* Frees pending operations and spare ones. */
void ps_ops_drop(ps_session_t *self);
/* A new operation, zeroed except for its list links. NULL: no memory. */
ps_op_t *ps_op_new(ps_session_t *self);
/* Releases an operation that is in no list; it may be reused. */
void ps_op_destroy(ps_session_t *self, ps_op_t **op_p);

/* session_link.c */
/* The link to that place under that identity; created if missing. Errors:
 * PSD_NOMEM, PSD_LIMIT.
 */
PSD_MUST_CHECK psd_status_t ps_link_find(ps_session_t *self, const ps_route_t *route,
                                         uint32_t identity, ps_link_t **ret_link, psd_error_t *err);
/* Opens an unused link. Without memory the next tick does. */
void ps_link_open(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox);
/* Sends HELLO on the first connection, or on the bulk connection. */
void ps_link_say_hello(ps_session_t *self, uint64_t now_ms, ps_link_t *link, bool bulk,
                       ps_outbox_t *outbox);
/* Queues every unanswered operation again, in order. */
void ps_link_requeue(ps_link_t *link, uint64_t now_ms);
/* Sends HELLO, and sends everything again after the WELCOME. */
void ps_link_greet(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox);
/* Takes the newer routes of a MOVED, and carries the operations along. Errors:
 * PSD_PROTO they cannot be read or are not those of the table; PSD_LIMIT too
 * many places. */
PSD_MUST_CHECK psd_status_t ps_session_moved(ps_session_t *self, uint64_t now_ms,
                                             const ps_msg_moved_t *moved,
                                             const ps_payload_t *payload, ps_outbox_t *outbox);
/* Carries a partition's operations to its current place. */
void ps_part_move(ps_session_t *self, uint64_t now_ms, ps_part_t *part, ps_outbox_t *outbox);
#endif
