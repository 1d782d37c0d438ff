/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to lib/client/relay: the state of the thread, by file
 *
 *   relay_thread.c  its life and its turns; what is lent, what is done
 *   callers.c       the port: who connects, proves to be a worker, and brings bundles
 *   keys.c          at security.level encrypt: its own keys, and those of other workers
 *   ways.c          connections to the relays that this one sends to
 *   rows.c          rows on their way out
 *   courier.c       bundles to the nodes, as a client of its own
 *   relay_trace.c   a file of all that, where the worker wants one
 */
#ifndef PS_CLIENT_RELAY_INNER_H
#define PS_CLIENT_RELAY_INNER_H

#include "client/connection/client_state.h"
#include "client/relay/relay_thread.h"
#include "client/relay/relay_trace.h"
#include "protocol/relay/meet.h"
#include "protocol/relay/relay_down.h"

#define PS_RELAY_STRANGERS_MAX 32 /* connections that have proved nothing, at a time */
#define PS_RELAY_UNDER_WAY_MAX 1024
#define PS_RELAY_TURN_MAX 256 /* messages of a connection or port in one turn: others wait too */
/* A bundle is one frame, of at most PS_BUNDLE_BYTES. A stranger can make a relay hold as
 * much. */
#define PS_RELAY_FRAME_BYTES (UINT64_C(4) << 20)

/* A connection to the port. */
typedef struct ps_relay_caller {
    uint64_t conn;
    bool is_proved;
    ps_meet_asked_t asked;
} ps_relay_caller_t;

/* A connection to another relay. */
typedef struct ps_relay_way {
    ps_relay_member_t to;
    ps_socket_t *socket; /* owned; NULL: it is opened again at due_ms */
    ps_id_t nonce;
    unsigned tries;      /* to open it, since it was ready */
    bool is_ready;       /* both have proved themselves */
    uint64_t due_ms;     /* not ready: it is opened again then … */
    uint64_t owes_ms;    /* … ready: since when it owes a sign of life; 0: it does not */
    uint64_t owes_bytes; /* that it was sent since then */
    uint32_t n_sent;     /* bundles that it has not taken yet … */
    uint64_t sent_bytes; /* … of these bytes, since there was none … */
    uint64_t sent_us;    /* … at that time */
    uint64_t newest;     /* the bundle that went there last */
    uint64_t skip_to;    /* the newest when one was refused: up to it nothing is measured */
} ps_relay_way_t;

/* A bundle that the courier brings. */
typedef struct ps_under_way {
    uint64_t number; /* of the relay */
    uint64_t op;     /* of the courier's session */
    uint64_t heard_ms;
    uint64_t sent_us;
    uint64_t bytes;
} ps_under_way_t;

struct ps_relay_thread {
    ps_desk_t *desk; /* one holder; NULL in a test: nothing is measured */
    unsigned n_forks;
    bool runs;
    bool rows_go_on;        /* rows go from worker to worker, too */
    bool verifies;          /* deltas of its worker get a check, where sums are exact */
    char *trace_pattern;    /* owned; NULL: no trace */
    ps_relay_trace_t trace; /* owned */
    ps_overlay_rules_t rules;
    char *sites;            /* owned; what PSD_SITE says; NULL: nothing */
    ps_overlay_conf_t conf; /* owned; only its edges */
    ps_may_t may;           /* where rules.is_listed: to whom it may send */
    pthread_t thread;
    ps_context_t *context; /* owned */
    ps_key_pair_t keys;    /* of port and ways … */
    bool has_keys;         /* … which speak CURVE then; else in the clear */
    ps_socket_t *port;     /* owned */
    const ps_relay_calls_t *calls;
    psd_client_t *courier; /* owned */
    ps_relay_t *relay;     /* owned */
    ps_relay_down_t *down; /* owned; NULL: rows do not go from worker to worker */
    ps_relay_speaker_t speaker;
    ps_meet_self_t self;
    ps_relay_facts_t facts;     /* owned; the plan that it goes by … */
    ps_relay_facts_t before;    /* owned; … and the one before it, for earlier clocks */
    ps_map_t tables;            /* id -> ps_desk_table_t, owned */
    ps_relay_caller_t *callers; /* owned; oldest first */
    size_t n_callers;
    size_t callers_capacity;
    ps_relay_way_t *ways; /* owned */
    size_t n_ways;
    size_t ways_capacity;
    ps_under_way_t *under_way; /* owned */
    size_t n_under_way;
    size_t under_way_capacity;
    ps_socket_t **polled; /* owned */
    bool *ready;          /* owned; of each of polled */
    size_t polled_capacity;
    size_t ready_capacity;
    uint64_t now_ms;
};

/* relay_thread.c: what deltas of a partition have in common. false: the table is not known. */
PSD_MUST_CHECK bool ps_relay_key_of(const ps_relay_thread_t *self, uint32_t table,
                                    uint32_t partition, uint64_t clock, ps_relay_key_t *ret_key);

/* keys.c */
/* Makes keys for a relay that is to encrypt, before its port is bound. false: it cannot, and the
 * log says why. */
PSD_MUST_CHECK bool ps_relay_begin_keys(ps_relay_thread_t *self);
/* Opens its port; after ps_relay_begin_keys, if it has keys. Errors: PSD_INVALID an address that
 * other workers do not reach; as ps_socket_bind. */
PSD_MUST_CHECK psd_status_t ps_relay_bind(ps_relay_thread_t *self, const char *listen,
                                          psd_error_t *err);
/* Where others find it: its key belongs to it. false: too long. */
PSD_MUST_CHECK bool ps_relay_place(const ps_relay_thread_t *self, char ret[PS_ENDPOINT_MAX + 1]);
/* Lets in the workers of a plan alone; NULL: nobody new. Who is connected stays. */
void ps_relay_admit(const ps_relay_thread_t *self, const ps_relay_facts_t *facts);
/* Who has just sent MEET on that connection has the key that the plan names for this worker. */
PSD_MUST_CHECK bool ps_relay_has_key(const ps_relay_thread_t *self, uint64_t conn,
                                     const ps_relay_member_t *member);

/* callers.c */
/* There is a new plan: who is not in it is a stranger. */
void ps_callers_plan(ps_relay_thread_t *self);
void ps_callers_receive(ps_relay_thread_t *self);
/* RELAYED, to the worker if it is there. */
void ps_callers_tell(ps_relay_thread_t *self, const ps_relay_deed_t *deed);

/* ROWS_ON, to the worker if it is there. false: it cannot be sent now. */
PSD_MUST_CHECK bool ps_callers_send_rows(ps_relay_thread_t *self, uint32_t worker,
                                         const ps_message_t *rows, ps_payload_t *payload);

/* rows.c */
/* There is a new plan: whom rows come from, and go to. */
void ps_rows_plan(ps_relay_thread_t *self);
/* What the client has put on the desk. */
void ps_rows_from_desk(ps_relay_thread_t *self);
/* Does what is to be done. */
void ps_rows_turn(ps_relay_thread_t *self);

/* ways.c */
/* There is a new plan: opens and closes connections. */
void ps_ways_plan(ps_relay_thread_t *self);
void ps_ways_receive(ps_relay_thread_t *self);
/* Opens again what is due. */
void ps_ways_tick(ps_relay_thread_t *self);
uint64_t ps_ways_due(const ps_relay_thread_t *self);
/* false: it cannot be sent there now. */
PSD_MUST_CHECK bool ps_ways_send(ps_relay_thread_t *self, const ps_relay_deed_t *deed);
/* false: it cannot be sent there now. */
PSD_MUST_CHECK bool ps_ways_want(ps_relay_thread_t *self, uint32_t worker,
                                 const ps_message_t *want);
void ps_ways_done(ps_relay_thread_t *self);

/* courier.c */
/* Takes note of where a table is. */
void ps_courier_learn(ps_relay_thread_t *self, const ps_desk_table_t *table);
PSD_MUST_CHECK bool ps_courier_send(ps_relay_thread_t *self, const ps_relay_deed_t *deed);
/* One turn: receives, sends, tells the relay what became of its bundles. */
void ps_courier_turn(ps_relay_thread_t *self);
uint64_t ps_courier_due(const ps_relay_thread_t *self);
#endif
