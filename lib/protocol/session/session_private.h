/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to ps_session: what its files share.
 *
 *   session.c         starting operations, learning routes, breaking
 *   session_look.c    what it tells about itself
 *   session_queue.c   operations in their partitions, credits, sending
 *   session_end.c     how operations end
 *   session_link.c    connections: HELLO, resending, time
 *   session_bulk.c    second connections, for large bodies
 *   session_answer.c  what arrives
 *   session_anew.c    partitions that have forgotten the session
 *
 * An operation stays in its partition's list, which is in order of submission,
 * until its end. It first waits for credits of its link, which are given in
 * order of submission and kept to its end; so those that have credits never
 * wait, at a clock gate, for one that has none. Then it is queued, and sent in
 * the order of its partition, and perhaps queued and sent again.
 * A partition with operations is in the `active` list of its link; one that has
 * something to send is in the link's `ready` ring as well, which gives each
 * partition its turn.
 *
 * All walks follow lists in the order in which things were put in, so that the
 * same events give the same effects.
 */
#ifndef PS_PROTOCOL_SESSION_PRIVATE_H
#define PS_PROTOCOL_SESSION_PRIVATE_H

#include <sys/queue.h>

#include "base/map.h"
#include "protocol/session/session.h"

#define PS_LINKS_MAX 4096     /* places that one session may learn of */
#define PS_BACKOFF_DOUBLING 4 /* waits double up to 2^4 times the first */
#define PS_RESEND_GAP_MS 50   /* least time between two sends of one thing */
#define PS_RESEND_MAX_MS 3600000
#define PS_RECENT 512 /* a power of two; ids follow each other */
#define PS_REASON_SIZE (PS_TEXT_MAX + 1)

typedef struct ps_part ps_part_t;
typedef struct ps_link ps_link_t;

typedef struct ps_op {
    TAILQ_ENTRY(ps_op) in_list;    /* of its partition, or unreported */
    TAILQ_ENTRY(ps_op) in_waiting; /* of its link; without credits only */
    ps_part_t *part;
    ps_op_start_t ask;   /* as it was started; its payload is held */
    uint64_t id;         /* `request` on the wire */
    uint64_t seq;        /* PULL: `after` */
    size_t bytes;        /* of the payload */
    bool credited;       /* counts against the credits of its link */
    bool sent;           /* an answer is awaited; else queued or waiting */
    bool bulk;           /* it went by the connection for bulk */
    bool counted;        /* … or the other, and counts there: n_numbered */
    bool again;          /* when due: send it, do not ask */
    uint32_t tries;      /* asked again so often */
    uint64_t n_sends;    /* 0: no answer can come yet */
    uint32_t n_unsure;   /* sends that may have been taken */
    bool asked;          /* a PROBE has gone: answers may be its */
    uint64_t sent_epoch; /* epoch of the last send */
    uint64_t start_ms;
    uint64_t sent_ms;    /* the last send */
    uint64_t heard_ms;   /* the last sign of it from the server; or start */
    uint64_t piece_ms;   /* the last piece of its answer; 0: none came */
    uint64_t due_ms;     /* sent: when to ask again */
    char *reason;        /* owned; of the last PARKED or BUSY; may be NULL */
    psd_status_t status; /* unreported: how it ended */
} ps_op_t;
TAILQ_HEAD(ps_ops, ps_op);

struct ps_part {
    TAILQ_ENTRY(ps_part) in_active;
    TAILQ_ENTRY(ps_part) in_ready;
    uint32_t identity; /* that it is used under */
    bool is_forgotten; /* it needs another one; nothing is sent meanwhile */
    ps_link_t *place;  /* where it lives; borrowed */
    ps_link_t *link;   /* where its operations are; NULL: it has none */
    struct ps_ops ops;
    ps_op_t *queued; /* the first operation that is not sent */
    uint32_t table;
    uint32_t partition;
    uint64_t epoch;
    uint64_t seq;           /* the last one given out */
    uint64_t ended_seq;     /* the greatest of a push or mark that has ended */
    uint64_t ended_epoch;   /* … and under which that one did */
    uint64_t pause_ms;      /* nothing is sent before this time */
    uint32_t pauses;        /* since the last success */
    uint32_t n_numbered[2]; /* unanswered pushes and marks that went by the
                               first connection, and by that for bulk */
    bool ready;             /* in the ring of its link */
    bool blocked;           /* its next mark waits for the values of a pull, or its next
                               push for what went by the other connection */
};
TAILQ_HEAD(ps_parts, ps_part);

typedef struct ps_session_table {
    uint32_t id;
    bool known; /* routes are known */
    bool torn;  /* forgotten with numbered operations under way: their
                   numbers cannot be used again, nor those behind them */
    uint32_t n_parts;
    ps_part_t *parts; /* owned */
} ps_session_table_t;

typedef enum ps_link_state {
    PS_LINK_UNUSED = 0,   /* learned of, never needed; has no number */
    PS_LINK_GREETING = 1, /* HELLO is on its way */
    PS_LINK_READY = 2     /* WELCOME came */
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
    uint32_t identity; /* that HELLO says */
    uint64_t number;
    ps_route_t route;                        /* partition and epoch mean nothing here */
    char endpoint[PS_LINK_ENDPOINT_MAX + 1]; /* where it was really opened; ""
                                                is not known */
    struct ps_parts active;
    struct ps_parts ready;
    struct ps_ops waiting;  /* for credits; by id */
    uint64_t last_credited; /* the highest id that has got any */
    uint32_t hello_tries;
    uint64_t hello_ms;       /* when it was said first of late */
    uint64_t hello_due_ms;   /* GREETING: when to say HELLO again */
    uint64_t sign_ms;        /* the first sign of life since then; 0: none */
    uint64_t pace_ms;        /* what a question and its answer take there */
    uint64_t greeted_ms;     /* GREETING: since when */
    uint64_t doubted_ms;     /* since when it owes a sign of life; 0: it does
                                not */
    uint32_t n_credited;     /* operations that count against the credits */
    uint64_t credited_bytes; /* of their bodies */
    uint32_t credit_requests;
    uint64_t credit_bytes;
    uint32_t chunk_bytes;
    uint64_t slice_bytes;
    uint32_t filters; /* that both ends speak */
    ps_bulk_t bulk;
};

struct ps_session {
    ps_session_args_t args;
    ps_identity_t *identities; /* owned; the first is that of args */
    size_t n_identities;
    size_t identities_capacity;
    ps_link_t **places; /* owned; all links, in order of learning */
    size_t n_places;
    size_t places_capacity;
    ps_link_t **links; /* borrowed from places; by number, those for bulk too;
                          room for all */
    size_t n_links;
    size_t links_capacity;
    ps_session_table_t **tables; /* owned; in order of learning */
    size_t n_tables;
    size_t tables_capacity;
    ps_map_t table_of;          /* number -> ps_session_table_t */
    ps_op_t *recent[PS_RECENT]; /* by id, as long as the place is free … */
    ps_map_t op_of;             /* … else id -> ps_op_t */
    struct ps_ops unreported;   /* ended; no memory to say so yet */
    struct ps_ops spare;        /* owned; to be used again */
    size_t n_spare;
    uint64_t last_op;
    size_t n_pulls;
    size_t n_numbered; /* pushes and marks */
    uint64_t wake_ms;  /* no timer is due before this time */
    psd_status_t broken;
    char broken_text[PS_TEXT_MAX + 1];
    ps_node_names_t names; /* of nodes, for people */
    char *reason;          /* owned; room for what ps_session_reason says */
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

/* Where it goes, for people. */
static inline const char *ps_link_place(const ps_link_t *self)
{
    if (self->endpoint[0] != '\0') {
        return self->endpoint;
    }
    return ps_route_any(&self->route);
}

/* session_doubt.c */
/* An operation is asked after. A shard that lives answers a PROBE at once; for
 * a PULL, which it may hold, it is told HELLO too. */
void ps_link_doubt(ps_session_t *self, uint64_t now_ms, const ps_op_t *op, ps_outbox_t *outbox);
/* Something has come: it owes no sign of life. */
void ps_link_lives(ps_link_t *self, uint64_t now_ms);
/* The link's pace by an answer that took no longer than that: quick ones bring
 * it down bit by bit. */
void ps_link_answered(ps_link_t *self, uint64_t took_ms);
/* … by a WELCOME: that of a link that opens counts whole. Where HELLO asked
 * whether the shard lives, what came before the first sign of that does not: a
 * node that stood still is no slow link. */
void ps_link_welcomed(ps_link_t *self, uint64_t now_ms, bool was_ready);
/* It is not asked again before then. */
void ps_op_wait(ps_session_t *self, ps_op_t *op, uint64_t until_ms);
/* session_bulk.c */
/* Decides by which connection an operation goes that is sent now. False: it
 * has to wait for others of its partition. */
PSD_MUST_CHECK bool ps_bulk_choose(ps_session_t *self, uint64_t now_ms, ps_op_t *op,
                                   ps_outbox_t *outbox);
/* It is asked after: the answer may have gone to the other connection, which
 * nothing else shows to be broken. HELLO there makes it known again. */
void ps_bulk_ask(ps_session_t *self, uint64_t now_ms, const ps_op_t *op, ps_outbox_t *outbox);
/* It is not under way any more. */
void ps_bulk_uncount(ps_op_t *op);
/* The connection is new, or unknown there: HELLO, and everything again. */
void ps_bulk_greet(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox);
void ps_bulk_tick(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox);
/* session_anew.c */
/* Its partition does not know the session any more: what is under way may begin
 * anew under another one, for nothing of it was taken. */
bool ps_part_may_begin_anew(const ps_part_t *part);
/* What is known of this one decides that. */
bool ps_op_decides(const ps_op_t *op);
/* It does, as soon as there is one. */
void ps_part_begin_anew(ps_session_t *self, uint64_t now_ms, ps_part_t *part, ps_outbox_t *outbox);
/* The operation's last send was not taken. */
void ps_op_not_taken(ps_op_t *op);
/* session_look.c */
const char *ps_op_reason(const ps_session_t *self, const ps_op_t *op, uint64_t now_ms);
/* session.c */
PSD_MUST_CHECK psd_status_t ps_session_learn(ps_session_t *self, ps_session_table_t *table,
                                             const ps_route_t *routes, uint32_t n_routes,
                                             psd_error_t *err);
/* Ends everything with status; later calls are refused. */
void ps_session_break(ps_session_t *self, psd_status_t status, const char *text,
                      ps_outbox_t *outbox);

/* session_queue.c */
uint64_t ps_session_backoff(uint64_t first_ms, uint32_t tries);
uint64_t ps_session_gap_ms(const ps_session_t *self);
/* How long an answer may take, asked for so often: over a link that takes its
 * time, twice that at least. */
uint64_t ps_link_wait_ms(const ps_session_t *self, const ps_link_t *link, uint32_t tries);
/* Takes an operation out of its partition; nobody answers it any more. */
void ps_op_detach(ps_op_t *op);
/* Puts a new operation behind the others of its partition. */
void ps_op_enqueue(ps_op_t *op);
/* It will be sent again in its turn. */
void ps_op_requeue(ps_op_t *op);
void ps_part_requeue(ps_part_t *part);
/* Sends nothing to it for a while that grows with each pause. */
void ps_part_pause(ps_session_t *self, uint64_t now_ms, ps_part_t *part);
/* Takes all of it to the link of its place; nothing of it is sent there. */
void ps_part_carry(ps_part_t *part, uint64_t now_ms);
/* It has nothing to send now. */
void ps_part_leave_ring(ps_part_t *part);
/* Puts it into the ring of its link if it has something to send. */
void ps_part_make_ready(ps_part_t *part, uint64_t now_ms);
/* Sends what the credits allow. */
void ps_link_flush(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox);
/* Asks what became of an operation that is sent: PROBE, or the PULL again. */
void ps_op_ask(ps_session_t *self, uint64_t now_ms, ps_op_t *op, ps_outbox_t *outbox);
/* session_end.c */
/* Ends an operation by an answer. Without memory nothing changes: it is asked
 * about again. */
void ps_op_end(ps_session_t *self, ps_op_t *op, const ps_message_t *answer, ps_payload_t *payload,
               ps_outbox_t *outbox);
/* Ends an operation by ourselves. */
void ps_op_end_locally(ps_session_t *self, ps_op_t *op, psd_status_t status, const char *text,
                       ps_outbox_t *outbox);
/* Says the ends that had no memory to be said. */
void ps_session_report(ps_session_t *self, ps_outbox_t *outbox);
/* The operation of that number, or NULL. */
ps_op_t *ps_op_find(const ps_session_t *self, uint64_t id);
/* Gives an operation its number. false: no memory. */
PSD_MUST_CHECK bool ps_op_name(ps_session_t *self, ps_op_t *op, uint64_t id);
/* Frees what is under way and what was kept to be used again. */
void ps_ops_drop(ps_session_t *self);
/* Zeroed but for its place in lists. NULL: no memory. */
ps_op_t *ps_op_new(ps_session_t *self);
/* Lets go of an operation that is in no list, which may be used again. */
void ps_op_destroy(ps_session_t *self, ps_op_t **op_p);

/* session_link.c */
/* The link to that place under that identity; made if there is none. Errors:
 * PSD_NOMEM, PSD_LIMIT.
 */
PSD_MUST_CHECK psd_status_t ps_link_find(ps_session_t *self, const ps_route_t *route,
                                         uint32_t identity, ps_link_t **ret_link, psd_error_t *err);
/* Opens a link that is unused. Without memory the next tick does. */
void ps_link_open(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox);
/* Says HELLO on the first connection, or on that for bulk. */
void ps_link_say_hello(ps_session_t *self, uint64_t now_ms, ps_link_t *link, bool bulk,
                       ps_outbox_t *outbox);
/* Everything that is unanswered goes again, in order. */
void ps_link_requeue(ps_link_t *link, uint64_t now_ms);
/* Says HELLO, and sends everything again after the WELCOME. */
void ps_link_greet(ps_session_t *self, uint64_t now_ms, ps_link_t *link, ps_outbox_t *outbox);
/* Takes the newer ones of the routes that a MOVED carries, and carries the
 * operations along. Errors: PSD_PROTO they cannot be read or are not those of
 * the table; PSD_LIMIT too many places. */
PSD_MUST_CHECK psd_status_t ps_session_moved(ps_session_t *self, uint64_t now_ms,
                                             const ps_msg_moved_t *moved,
                                             const ps_payload_t *payload, ps_outbox_t *outbox);
/* Carries a partition's operations to where it lives now. */
void ps_part_move(ps_session_t *self, uint64_t now_ms, ps_part_t *part, ps_outbox_t *outbox);
#endif
