/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/client/connection: a client's state, its links and the control port
 *
 * It is       The state of a client; sockets to shards, filters for messages,
 *             requests to the control port, the worker's heartbeat.
 * It uses     lib/transport, lib/protocol/session, lib/wire.
 * It ignores  What is sent and why, and which call waits: a request is an owner
 *             that it hands back, and other answers go to a call-back.
 * Start at    client_state.h for the state, link.c for sockets and the choice
 *             between lane, ipc and tcp, control.c for questions.
 */
/*
 * psd_client - private to lib/client: the state of a client
 *
 * Owner    The room that declares the functions of a part works on that part;
 *          types of higher rooms appear only as pointers.
 */
#ifndef PS_CLIENT_CLIENT_STATE_H
#define PS_CLIENT_CLIENT_STATE_H

#include <sys/queue.h>

#include "base/map.h"
#include "client/connection/desk.h"
#include "client/connection/heartbeat.h"
#include "client/connection/sender.h"
#include "protocol/session/finder.h"
#include "protocol/session/session.h"
#include "psd/client.h"
#include "psd/rows.h"
#include "transport/sockets/curve.h"
#include "transport/sockets/socket.h"
#include "wire/messages/reply.h"
#include "wire/filters/filter_code.h"
#include "wire/filters/keys_cache.h"

#define PS_TIMEOUT_MS 10000 /* of calls that set none */

typedef struct ps_slice_request ps_slice_request_t;
typedef struct ps_ticket ps_ticket_t;
typedef struct ps_request_queue ps_request_queue_t;
typedef struct ps_membership ps_membership_t;

#define PS_QUESTION_OP_MAX 64 /* of the name of a question */

TAILQ_HEAD(ps_slice_requests, ps_slice_request);
typedef struct ps_by_peer ps_by_peer_t;
TAILQ_HEAD(ps_by_peers, ps_by_peer);
TAILQ_HEAD(ps_tickets, ps_ticket);
TAILQ_HEAD(ps_queues, ps_request_queue);

typedef enum ps_transport {
    PS_TRANSPORT_UNSAID = 0, /* from the environment, else AUTO */
    PS_TRANSPORT_AUTO = 1,
    PS_TRANSPORT_TCP = 2,
    PS_TRANSPORT_IPC = 3,
    PS_TRANSPORT_LANE = 4,
    /* From the environment alone: of the process, not of a client. */
    PS_TRANSPORT_MPI = 5,
    PS_TRANSPORT_MPI_AUTO = 6
} ps_transport_t;

struct psd_options {
    bool has_timeout; /* else the environment's, else PS_TIMEOUT_MS */
    uint32_t timeout_ms;
    ps_transport_t transport;
    bool has_wait; /* else the environment's, else by where the address is */
    bool waits;    /* also when the connection is refused */
    bool no_guest; /* it wants a session of the registry, or none */
    bool has_spin; /* else the environment's, else PS_LANE_SPIN_US */
    uint32_t spin_us;
    psd_on_wait_t *on_wait; /* NULL: no report */
    void *on_wait_user;
};

struct psd_call {
    bool has_timeout; /* else the client's */
    uint32_t timeout_ms;
    ps_ack_t ack;
    int32_t priority;
    psd_ticket_t after; /* 0: none */
    uint32_t command;
    bool borrow;
    bool ends_clock;
    bool has_filter; /* else the table's */
    ps_filter_t filter;
    struct psd_trace *trace; /* borrowed; NULL: none */
};

/* The connection to one shard; its number is its place in the array. */
typedef struct ps_client_link {
    ps_socket_t *socket;                     /* owned */
    char endpoint[PS_LINK_ENDPOINT_MAX + 1]; /* where it goes */
    bool welcomed;
    bool lane_failed;           /* it was a lane that ended: AUTO uses another transport */
    ps_key_cache_t *sent_lists; /* owned; lists of keys that the server was asked
                                   to cache; NULL: none */
    uint32_t n_misses;          /* how many of them the server did not know any more */
} ps_client_link_t;

/* A table whose routes this client knows. Lives as long as the client. */
typedef struct ps_known_table {
    uint32_t id;
    uint32_t n_partitions;
    char name[PS_NAME_MAX + 1];
    bool in_job;                /* marks go to its partitions */
    bool adds_up;               /* its clocks are added up, and the relay knows it … */
    bool adds_any;              /* … or its pushes are, whenever they come (max_delay not 0) */
    ps_request_queue_t *queues; /* owned; one for each partition */
} ps_known_table_t;

/* A question whose answer a call waits for. When no answer comes, the client
 * retries with the same id, by which the node recognises it. */
typedef struct ps_client_question {
    TAILQ_ENTRY(ps_client_question) in_list;
    bool is_asked; /* the client has it in its list */
    char op[PS_QUESTION_OP_MAX + 1];
    uint64_t id;
    ps_buffer_t text;     /* owned */
    uint32_t timeout_ms;  /* as the question has it */
    uint64_t deadline_ms; /* no answer comes after that */
    uint64_t ask_ms;      /* when it is retried */
    uint64_t again_ms;    /* backoff: time since the last try */
    ps_doc_t *reply;      /* owned; NULL: not yet */
} ps_client_question_t;
TAILQ_HEAD(ps_questions, ps_client_question);

/* The client as a worker, as far as its requests need it. */
typedef struct ps_client_worker {
    ps_beat_t *beat; /* one holder is this; NULL: it is no worker */
    int wake_fd;     /* the beat's: readable when it has news; -1: there is none */
    unsigned n_news; /* of the beat, that were looked at */
    char job[PS_NAME_MAX + 1];
    ps_op_worker_t stamp; /* of requests made now; its clock: those finished */
    uint64_t start;       /* clocks counted as finished when it joined */
    psd_status_t ended;   /* PSD_OK, or why it is no worker any more */
    bool has_overlay;     /* it asks for one, so that tables which it makes can use it */
    bool is_timed;        /* its job's max_delay is not 0: no clock holds deltas together */
} ps_client_worker_t;

/* What lib/client/job does in each turn of a worker's client. */
typedef struct ps_job_hooks {
    void (*look)(psd_client_t *client); /* once a turn */
    /* An answer that no call waits for. False: it is not for a job. */
    bool (*learn)(psd_client_t *client, uint64_t id, const ps_doc_t *reply);
} ps_job_hooks_t;

struct psd_client {
    psd_options_t options;
    unsigned n_forks;         /* before it was made */
    bool is_private;          /* it holds the server of this process (private_server.h) */
    bool has_gathered;        /* the servers of its job were there when its process's node began */
    char *endpoint;           /* owned; as given: of one control port, or several */
    ps_context_t *context;    /* owned */
    ps_key_pair_t keys;       /* of PSD_KEY_FILE, else of an admin (discover.h) … */
    bool has_keys;            /* … if there is one */
    ps_key_watch_t key_watch; /* of that file */

    /* control */
    ps_socket_t *control;          /* owned; to an address of the finder */
    ps_finder_t finder;            /* of the registry */
    size_t registry_at;            /* its address that answered last */
    bool is_registry_lost;         /* it was left for another one, and none has answered yet */
    uint64_t unheard_ms;           /* since when questions wait without a word; 0: none waits */
    uint64_t last_ask;             /* id of the newest question */
    struct ps_questions questions; /* borrowed; those that calls wait for */
    uint64_t tables_asked;         /* id of the job_tables under way; 0: none */
    uint64_t idle_asked;           /* id of the work_idle under way; 0: none */
    uint64_t routes_asked;         /* id of the newest question of reroute.c; or 0 */
    uint64_t routes_asked_ms;      /* when that was asked */
    uint64_t routes_owed_ms;       /* since when answers are outstanding */
    uint64_t routes_took_ms;       /* time until the last one was answered */
    uint64_t doubt_ms;             /* since when a shard is silent; 0: none is */
    uint64_t routes_due_ms;        /* when to ask where its partitions are */
    uint64_t looked_ms;            /* when that was last checked */
    uint64_t listens_ms;           /* since when it is checked without a gap */
    uint64_t identity_asked;       /* id of the hello for another session; or 0 */
    uint64_t identity_first;       /* of the first one for next_id */
    uint64_t identity_due_ms;      /* not asked for before */
    ps_id_t next_id;               /* that it is asked for with */
    bool told_forgotten;           /* on_wait got the reason */
    uint64_t guest_first;          /* a guest's first hello for a session; 0: none yet */
    uint64_t guest_asked;          /* … and its newest */
    uint64_t guest_due_ms;         /* when it asks again */

    /* identity of this client, from the WELCOME */
    ps_id_t id;
    ps_id_t cluster;
    uint64_t number; /* of the session; PS_GUEST_FIRST or more: of a guest */
    uint64_t heartbeat_ms;
    bool encrypts; /* psd is at security.level encrypt */

    /* data */
    ps_session_t *session;   /* owned; NULL before the welcome */
    ps_outbox_t outbox;      /* actions that the session wants */
    ps_outbox_t batch;       /* those of them under way */
    ps_client_link_t *links; /* owned */
    size_t n_links;
    size_t links_capacity;
    ps_socket_t **polled; /* owned; control, then the links */
    size_t polled_capacity;
    bool *ready; /* owned; of each of polled */
    size_t ready_capacity;
    uint32_t credit_requests; /* of the newest WELCOME */
    uint64_t credit_bytes;
    ps_coder_t *coder;             /* owned; NULL until a filter is used */
    ps_sender_t *sender;           /* owned; NULL until there is much to send */
    bool no_sender;                /* there is no thread to be had */
    char trouble[PS_TEXT_MAX + 1]; /* the last message that could not be read */

    /* calls */
    uint64_t now_ms;                /* read once a call and once a turn */
    struct ps_queues busy;          /* those in which requests wait */
    struct ps_slice_requests held;  /* pushes that wait for psd_clock, in no queue */
    uint64_t held_ms;               /* since when the first of them does */
    uint64_t held_bytes;            /* of their values */
    struct ps_slice_requests sent;  /* operations of the session */
    struct ps_by_peers by_peer;     /* those whose rows come from another worker (by_peer.h) */
    uint64_t last_want;             /* the number of the last question for rows */
    uint64_t rows_heard_ms;         /* when rows came from another worker last */
    struct ps_slice_requests ended; /* requests to be finished */
    struct ps_slice_requests spare; /* owned; to be used again */
    size_t n_spare;
    ps_ticket_t **tickets; /* owned; by place, see ticket.h */
    size_t n_tickets;
    size_t tickets_capacity;
    struct ps_tickets open_tickets; /* not ended, oldest first */
    struct ps_tickets done_tickets; /* ended, not waited for yet */
    struct ps_tickets idle_tickets; /* to be used again */
    uint64_t expire_ms;             /* no ticket's deadline is before this */
    uint64_t turned_ms;             /* the last turn ended */
    uint64_t tell_ms;               /* no report of a long wait before this … */
    uint64_t quiet_ms;              /* … and this, because the last one was recent */
    size_t n_after;                 /* waiting requests that name a ticket */
    size_t n_waiting;               /* waiting requests that are no pulls */
    size_t n_under_way;             /* requests that are sent */
    bool after_ended;               /* a ticket ended that they may have named */
    uint64_t round;                 /* marks sent so far; orders requests around them */

    TAILQ_HEAD(ps_drafts, psd_draft) drafts; /* begun or committed */

    /* tables and work */
    ps_known_table_t **tables; /* owned */
    size_t n_tables;
    size_t tables_capacity;
    ps_client_worker_t worker;
    ps_membership_t *membership;     /* owned; NULL: no worker */
    const ps_job_hooks_t *job_hooks; /* NULL: no worker */
    ps_desk_t *desk;                 /* of its worker's relay, borrowed; NULL: nothing is lent */
    uint64_t job_due_ms;             /* when they look at the latest, without news */
    uint32_t n_lost_workers;         /* of the job that it has left */
    uint32_t first_worker;           /* of its last barrier */
    uint64_t last_work;              /* number of the newest question for a slice */

    psd_error_t *scratch; /* owned; for calls whose text goes elsewhere */
    psd_status_t broken;  /* by ourselves; the session may be broken too */
    char broken_text[PS_TEXT_MAX + 1];
};

/* ---- client_state.c ------------------------------------------------------ */

/* Makes empty lists; comes before any other call. */
void ps_client_init(psd_client_t *self);
/* Every later call fails with this reason. The first reason counts. */
void ps_client_break(psd_client_t *self, psd_status_t status, const char *text);
/* client.c: psd_connect to an endpoint that names nodes, and none of this process. Errors: as
 * psd_connect. */
PSD_MUST_CHECK psd_status_t ps_client_connect(const char *endpoint, const psd_options_t *options,
                                              psd_client_t **ret_client, psd_error_t *err);
/* Begins every public call: clears err. Errors: PSD_CLOSED: this process was
 * forked after the client was made, and must not use it. */
PSD_MUST_CHECK psd_status_t ps_client_enter(const psd_client_t *self, psd_error_t *err);
/* True in a child that was forked after the client was made. */
bool ps_client_is_forked(const psd_client_t *self);
/* PSD_OK, or why the client is broken: PSD_ROWS_LOST, PSD_DENIED or PSD_CLOSED. */
PSD_MUST_CHECK psd_status_t ps_client_check(const psd_client_t *self, psd_error_t *err);
/* Pushes and marks that are not acknowledged or refused. */
size_t ps_client_n_unknown(const psd_client_t *self);
/* The known table of that number, or NULL. */
ps_known_table_t *ps_known_table(const psd_client_t *self, uint32_t id);

/* Takes the result of a mark of a table. A table that is gone gets no further
 * marks. */
void ps_client_mark_ended(psd_client_t *client, uint32_t table, psd_status_t status);

/* ---- options.c ----------------------------------------------------------- */

/* Takes options that are not set from the environment. Errors: PSD_INVALID,
 * naming the variable. */
PSD_MUST_CHECK psd_status_t ps_options_resolve(psd_options_t *self, psd_error_t *err);

/* ---- control.c ----------------------------------------------------------- */

/* A new question; the caller fills in the rest. NULL: no memory. */
ps_doc_t *ps_question_new(const char *op);
/* Asks for the session of that client. is_guest: it takes a node without the registry,
 * too. NULL: no memory. */
ps_doc_t *ps_question_hello(const ps_id_t *client, bool is_guest);
/* Sets job and job_id of a worker. False: no memory. */
PSD_MUST_CHECK bool ps_control_name_job(const psd_client_t *client, ps_doc_t *question);
/*
 * A question that the client retries: begin, look in each turn of the client
 * until it is over, then end. A question that has begun is the client's until
 * ps_question_end or _drop, one of which comes before the client is closed.
 * Errors of begin and look: nothing is under way, as after _drop; of end: what
 * the node answered; PSD_DEADLINE it did not answer.
 */
PSD_MUST_CHECK psd_status_t ps_question_begin(psd_client_t *client, ps_doc_t *doc,
                                              uint32_t timeout_ms, uint32_t grace_ms,
                                              ps_client_question_t *ret, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_question_look(psd_client_t *client, ps_client_question_t *self,
                                             bool *ret_over, psd_error_t *err);
/* Sends all questions that have no answer again, at once. */
void ps_questions_repeat(psd_client_t *client);
/* When the next look is due, if nothing arrives before. */
uint64_t ps_question_wake_ms(const ps_client_question_t *self);
PSD_MUST_CHECK psd_status_t ps_question_end(psd_client_t *client, ps_client_question_t *self,
                                            ps_doc_t **ret_reply, psd_error_t *err);
/* Cancels it: the answer is not wanted any more. Takes one that is not under
 * way. */
void ps_question_drop(psd_client_t *client, ps_client_question_t *self);
/* Asks and does not wait. ret_id names the answer. */
PSD_MUST_CHECK psd_status_t ps_control_send(psd_client_t *self, ps_doc_t *question,
                                            uint64_t *ret_id, psd_error_t *err);
/* Gets an answer that no call waits for. */
typedef void ps_on_reply_t(psd_client_t *self, uint64_t id, const ps_doc_t *reply);
/* Handles the messages that have arrived. */
void ps_questions_receive(psd_client_t *self, ps_on_reply_t *on_other);

/* ---- registry_link.c ----------------------------------------------------- */

/* Opens the link to the control port of the first of the given addresses.
 * Errors: PSD_INVALID, naming the place in a list; PSD_NOMEM; PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_registry_open(psd_client_t *self, psd_error_t *err);
/* Takes note of an answer. false: its node is not the registry; the question is
 * still open, and is asked elsewhere. */
bool ps_registry_heard(psd_client_t *self, const ps_doc_t *reply);
/* Once a turn: goes to another address when this one is silent or not the
 * registry, and repeats all open questions there. */
void ps_registry_look(psd_client_t *self);
/* Before a turn: if there is another key in the file of PSD_KEY_FILE, goes on with that one, over
 * connections of its own. What was sent over the ones before is sent again. */
void ps_registry_look_at_keys(psd_client_t *self);
/* When the next look is due. */
uint64_t ps_registry_due_ms(const psd_client_t *self);
/* Before the WELCOME: looks for wait_ms at the addresses that are silent. true:
 * nobody listens at any of them, and the options say not to retry. ret_why: the
 * reasons, as far as the system knows them. */
bool ps_registry_is_refused(psd_client_t *self, uint32_t wait_ms, char ret_why[PS_FINDER_TEXT]);
/* "waits for the registry: tcp://a is silent, tcp://b says there is no leader";
 * "": there is one address alone. */
void ps_registry_reason(const psd_client_t *self, char ret_text[PS_FINDER_TEXT]);

/* ---- link.c -------------------------------------------------------------- */

/* Opens the link that the session asked for. */
void ps_links_open(psd_client_t *self, uint64_t link);
/* Hands a message that arrived on a link to the session. False: none
 * arrived. */
bool ps_links_receive(psd_client_t *self, uint64_t link);
/* Every link that is used has had its WELCOME. */
bool ps_links_are_welcome(const psd_client_t *self);
/* Drops every connection with all that waits in it, and opens it again. */
void ps_links_reset(psd_client_t *self);
/* The same for those connections that this program's key is proved on. */
void ps_links_rekey(psd_client_t *self);
void ps_links_close(psd_client_t *self);

/* ---- reroute.c ----------------------------------------------------------- */

/* Asks the registry where the partitions of a silent shard are, if that is due
 * (routes_due_ms). */
void ps_reroute_look(psd_client_t *self);
/* The backoff until the registry is asked again. silent_ms: how long the shard
 * is silent; took_ms: how long the registry's last answer took; is_asked: an
 * answer is outstanding. A slow link may be the only cause. */
uint64_t ps_reroute_gap_ms(uint64_t silent_ms, uint64_t took_ms, bool is_asked);
/* Takes the answer, if it is one to that question. */
void ps_reroute_learn(psd_client_t *self, uint64_t id, const ps_doc_t *reply);

/* ---- identity.c ---------------------------------------------------------- */

/* Whether an answer to hello says that psd is at security.level encrypt. */
void ps_identity_take_level(psd_client_t *self, const ps_doc_t *reply);
/* Asks the registry for another session, if a partition has forgotten this
 * client. */
void ps_identity_look(psd_client_t *self);
/* Takes the answer. False: it answers another question. */
bool ps_identity_learn(psd_client_t *self, uint64_t id, const ps_doc_t *reply);
/* It met nodes without a registry when it connected, and only reads until it has a session. */
bool ps_client_is_guest(const psd_client_t *self);
/* The number that a guest with this id goes by. */
uint64_t ps_guest_number(const ps_id_t *client);
/* Once a turn: a guest asks for a session. */
void ps_guest_look(psd_client_t *self);
/* Takes an answer that no call waits for. False: it is for somebody else. */
bool ps_guest_learn(psd_client_t *self, uint64_t id, const ps_doc_t *reply);

/* ---- link_filter.c --------------------------------------------------------
 */

/* Sends a PUSH or PULL through those parts of a filter that both ends support.
 * repeated: it is a resend. Errors: those of ps_socket_send. */
PSD_MUST_CHECK psd_status_t ps_link_send_filtered(psd_client_t *self, uint64_t link,
                                                  const ps_filter_t *filter,
                                                  const ps_message_t *plain, ps_payload_t *payload,
                                                  bool repeated);
/* Whether a message that arrived is for ps_link_receive_filtered. */
static inline bool ps_link_is_filtered(const ps_message_t *message)
{
    return (message->flags & PS_FLAG_CODED) != 0 || message->kind == PS_KIND_WELCOME ||
           message->kind == PS_KIND_REFUSED;
}
/* Decodes a coded answer; learns which lists the other end has forgotten.
 * Errors: those of ps_coder_decode. */
PSD_MUST_CHECK psd_status_t ps_link_receive_filtered(psd_client_t *self, uint64_t link,
                                                     ps_message_t *message,
                                                     ps_payload_t **payload_p, psd_error_t *err);
void ps_link_filter_done(ps_client_link_t *link);
#endif
