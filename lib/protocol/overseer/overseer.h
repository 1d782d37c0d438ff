/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/overseer: what the registry sends to the nodes, and asks
 * them
 *
 * It is       For each node the state that it may lack, sent in order until the
 *             node acknowledges it; questions, until all nodes have answered or
 *             are given up; which nodes are up, suspect or down.
 * It uses     agent (its messages), placement, registry, facts, core, lib/wire,
 *             lib/model, lib/base.
 * It ignores  How a message travels, what an answer says, clocks and threads.
 * Start at    ps_overseer_next in tells.c; talk.c for the messages.
 */
/*
 * ps_overseer - all nodes of the cluster, as the registry sees them
 *
 * What     A tell names an object (a table, a job). The overseer sends its
 *          newest state, and resends it until the node acknowledges it, in
 *          order and under one number. Questions go to every node that is up. A
 *          node applies the tells before a question before it answers, so an
 *          answer also acknowledges those. The node with the registry is a node
 *          like the others, but is never suspect.
 * Order    The shell reports events (a table changed, a node was heard, a node
 *          answered, time passed), then sends what ps_overseer_next returns,
 *          until it returns nothing.
 * Shape    A node's life:
 *
 *              up <--> suspect --> down
 *               ^-------------------+
 *
 *          up: it has announced itself and the registry does not suspect it;
 *          suspect: it gets no tells and no questions; down: silent for
 *          PS_OVERSEER_DOWN_FACTOR times suspect_after.
 * Units    ms of any monotonic clock
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_OVERSEER_H
#define PS_PROTOCOL_OVERSEER_H

#include "protocol/agent/node_message.h"

#define PS_OVERSEER_DOWN_FACTOR 5
#define PS_OVERSEER_WINDOW 64 /* sent to a node and not answered */
#define PS_BRIEF_MS 700
#define PS_REFUSAL_TEXT_SIZE 200

typedef struct ps_overseer ps_overseer_t;

typedef struct ps_overseer_args {
    ps_registry_t *registry; /* borrowed until ps_overseer_destroy */
    uint64_t incarnation;    /* of the node with the registry */
    uint64_t suspect_after_ms;
    uint64_t term; /* in which that node leads; 0: the registry was never replicated */
} ps_overseer_args_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_overseer_new(const ps_overseer_args_t *args, uint64_t now_ms,
                                            ps_overseer_t **ret_overseer, psd_error_t *err);
/* Frees the questions too; their contexts stay the caller's. Takes NULL. */
void ps_overseer_destroy(ps_overseer_t **self_p);

/* ---- overseer.c: the nodes ---- */

typedef enum ps_health { PS_HEALTH_UP = 1, PS_HEALTH_SUSPECT = 2, PS_HEALTH_DOWN = 3 } ps_health_t;
/* "up", "suspect", "down" */
const char *ps_health_name(ps_health_t state);

typedef struct ps_sight {
    ps_health_t state;
    uint64_t silent_ms; /* since its last message; 0 for this node */
    bool never;         /* it was never heard since the registry's start */
    const char *damage; /* damage found at its start; "". Borrowed */
    bool files_out;     /* it is out of descriptors */
    uint32_t n_aside;   /* tables that it keeps aside */
} ps_sight_t;

/* The health of a node of the registry. */
ps_sight_t ps_overseer_look(const ps_overseer_t *self, const ps_node_t *node, uint64_t now_ms);

/* A node's health changed. */
typedef struct ps_sight_news {
    char name[PS_NAME_MAX + 1];
    ps_health_t state;
    ps_health_t before; /* 0: it joined for the first time, or a node that was up restarted */
    uint64_t silent_ms; /* when its health changed */
} ps_sight_news_t;
/* The next change of health, each reported once; false: none. */
bool ps_overseer_next_news(ps_overseer_t *self, ps_sight_news_t *ret_news);

/* A node of the registry announced itself on conn (a number of the shell's): it
 * is up, and gets everything. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_overseer_add(ps_overseer_t *self, const ps_node_t *node,
                                            uint64_t conn, psd_error_t *err);
/* Notes whether that life of a node is out of descriptors. */
void ps_overseer_set_files_out(ps_overseer_t *self, uint64_t incarnation, bool is_out);
/* Notes how many tables that life of a node keeps aside, because the registry does
 * not know them. */
void ps_overseer_set_aside(ps_overseer_t *self, uint64_t incarnation, uint32_t n_aside);
/* Notes the damage that this life of a node found; "": none. */
void ps_overseer_set_damage(ps_overseer_t *self, uint64_t incarnation, const char *text);
/* PSD_OK: the node has announced itself on that connection. Errors: PSD_NO_NODE
 * it must announce itself (the first time, or again after a restart of the
 * registry). */
PSD_MUST_CHECK psd_status_t ps_overseer_hear(const ps_overseer_t *self, uint64_t incarnation,
                                             uint64_t conn, psd_error_t *err);
/* A heartbeat, with the greatest epoch that the node knows. Errors:
 * PSD_NO_NODE, and those of ps_registry_node_beat. */
PSD_MUST_CHECK psd_status_t ps_overseer_beat(ps_overseer_t *self, uint64_t incarnation,
                                             uint64_t max_epoch, uint64_t now_ms, psd_error_t *err);
/* The connection to that life of a node. false: it has not announced itself. */
PSD_MUST_CHECK bool ps_overseer_find(const ps_overseer_t *self, uint64_t incarnation,
                                     uint64_t *ret_conn);
size_t ps_overseer_n_nodes(const ps_overseer_t *self);

/* Time has passed: updates silent nodes and overdue questions. here_hangs: a
 * thread of this node hangs; only used while ps_overseer_is_in_haste. */
void ps_overseer_tick(ps_overseer_t *self, uint64_t now_ms, bool here_hangs);
/* True while a brief question waits (ps_overseer_be_brief). */
bool ps_overseer_is_in_haste(const ps_overseer_t *self);
/* When the next tick is due; UINT64_MAX for never. */
uint64_t ps_overseer_deadline(const ps_overseer_t *self);

/* ---- tells.c: telling ---- */

/* X(NAME): the kinds of tells; the messages of these names carry them, and for
 * a table that the node has already PLACES. */
#define PS_TELL_MAP(X) X(KNOWN) X(SESSIONS) X(TABLE) X(DROP) X(JOB) X(ASK)

#define PS_TELL_ENUM(NAME) PS_TELL_##NAME,
typedef enum ps_tell_kind { PS_TELL_MAP(PS_TELL_ENUM) PS_TELL_COUNT } ps_tell_kind_t;
#undef PS_TELL_ENUM
/* "table", …; for the log. */
const char *ps_tell_name(ps_tell_kind_t kind);

/* Sends the table or job, in the registry's newest state, to all nodes that are
 * up. Other nodes get everything when they come up. */
void ps_overseer_tell_table(ps_overseer_t *self, uint32_t table);
void ps_overseer_tell_job(ps_overseer_t *self, uint32_t job);
/* Announces that sessions up to this one may be given out. */
void ps_overseer_tell_sessions(ps_overseer_t *self, uint64_t session);
/* Sends what the cluster has set, which nodes go by from then on. */
void ps_overseer_tell_settings(ps_overseer_t *self);
uint64_t ps_overseer_sessions(const ps_overseer_t *self);
/* Sets the index of the last command that the state has: all that is sent from now on
 * carries it. */
void ps_overseer_set_index(ps_overseer_t *self, uint64_t index);
/* Call before a drop is decided: reserves memory to record the drop, because
 * the registry will have forgotten the table. false: no memory. */
PSD_MUST_CHECK bool ps_overseer_reserve(ps_overseer_t *self);
void ps_overseer_tell_drop(ps_overseer_t *self, uint32_t table);

/* An iteration over what to send now; begins as {0}. */
typedef struct ps_sending_round {
    size_t node; /* position of the round: private … */
    size_t at;
    size_t n_flying;
    bool entered;
    uint64_t now_ms; /* … up to here */
    uint64_t conn;
    uint64_t incarnation;
    ps_tell_kind_t kind;
    uint32_t id;       /* of the table or job */
    uint64_t question; /* ASK: its serial */
    uint64_t serial;   /* the node's answer names it */
    uint64_t since;    /* TABLE, JOB: the registry's revision of what the node has; 0: nothing */
    const char *name;  /* of the node; borrowed */
} ps_sending_round_t;

typedef enum ps_sent {
    PS_SENT = 1,
    PS_SENT_NOT, /* later, and so are those after it */
    PS_SENT_GONE /* it is obsolete */
} ps_sent_t;

/* The next thing to send. false: nothing more now. */
PSD_MUST_CHECK bool ps_overseer_next(ps_overseer_t *self, uint64_t now_ms,
                                     ps_sending_round_t *round);
/* Reports the result. */
void ps_overseer_sent(ps_overseer_t *self, ps_sending_round_t *round, ps_sent_t sent);

/* ---- talk.c: messages ---- */

/* Appends the message that the round is at. PS_SENT: it is to be sent; NOT: no
 * memory; GONE. */
PSD_MUST_CHECK ps_sent_t ps_overseer_encode(const ps_overseer_t *self,
                                            const ps_sending_round_t *round, ps_buffer_t *buffer);
/* A node must take no more records of lower epochs. Sent once: the answer comes as
 * a report, and the caller retries. false: no memory. */
PSD_MUST_CHECK bool ps_overseer_encode_fence(ps_overseer_t *self, uint64_t incarnation,
                                             const ps_copy_fence_t *fence, ps_buffer_t *buffer);
/* That node's registry is to be a member. Sent once, as a fence. false: no memory. */
PSD_MUST_CHECK bool ps_overseer_encode_invite(ps_overseer_t *self, uint64_t incarnation,
                                              const ps_node_message_t *invite, ps_buffer_t *buffer);
/* Sets the members of the registry, which are copied, and its leader. Each
 * answer to a node carries them. */
void ps_overseer_set_seats(ps_overseer_t *self, const ps_seat_t *seats, size_t n,
                           const char *leader);
/* The answer to an announcement, a beat, or a message that is refused. false: no
 * memory. */
PSD_MUST_CHECK bool ps_overseer_encode_heard(const ps_overseer_t *self,
                                             const ps_node_message_t *heard, psd_status_t status,
                                             const char *text, ps_buffer_t *buffer);

/* The subject of an answer. */
typedef struct ps_tell_view {
    ps_tell_kind_t kind;
    uint32_t id;
    uint64_t question; /* ASK */
    uint64_t serial;
    const char *node; /* borrowed */
} ps_tell_view_t;

/* A node's message, which may come late or twice. Takes in beats and answers; a
 * report and an end are left to the caller, and so is ANNOUNCE, which is not for
 * this function. *ret_refused: the tell that the node could not carry out, when
 * that is new; kind PS_TELL_COUNT: none. Errors: PSD_NO_NODE, and those of
 * ps_registry_node_beat. */
PSD_MUST_CHECK psd_status_t ps_overseer_take(ps_overseer_t *self, uint64_t conn,
                                             ps_node_message_t *message, uint64_t now_ms,
                                             ps_tell_view_t *ret_refused, psd_error_t *err);

/* ---- what came of it ---- */

/* PSD_OK, or why a node could not accept the table, with the node's name. */
PSD_MUST_CHECK psd_status_t ps_overseer_refusal(const ps_overseer_t *self, uint32_t table,
                                                psd_error_t *err);

/* True when every node that is up has acknowledged all tells. */
bool ps_overseer_is_settled(const ps_overseer_t *self);

/* false: nothing waits for that answer any more. */
PSD_MUST_CHECK bool ps_overseer_find_tell(const ps_overseer_t *self, uint64_t incarnation,
                                          uint64_t serial, ps_tell_view_t *ret_tell);
/* The node has applied it (and the tell is forgotten), or says why it could
 * not: returns true when that is new. */
bool ps_overseer_told(ps_overseer_t *self, uint64_t incarnation, uint64_t serial,
                      psd_status_t status, const char *text);

/* ---- questions.c: asking ---- */

typedef struct ps_question {
    uint64_t serial;
    int kind; /* the shell's */
    uint32_t job;
    uint64_t asked_ms;
    uint64_t deadline_ms;
    bool brief;           /* ps_overseer_be_brief */
    void *context;        /* the asker's */
    ps_buffer_t words;    /* owned; the shell's */
    ps_answers_t answers; /* owned; of the nodes that have answered */
    uint64_t *waits;      /* owned; incarnations of nodes that have not answered */
    size_t n_waits;
    bool gave_up;      /* a node was waited for in vain, and may have it in its tells yet */
    char missing[200]; /* "node n2 is silent"; "": all have answered */
} ps_question_t;
void ps_question_destroy(ps_question_t **self_p);

/* Asks a question; words: "" or its text, copied. ps_overseer_next_done returns it when every node
 * that is up has answered or fallen silent, or when the deadline has passed. For a question about a
 * job, a silent node that clients of the job's tables may still reach counts as missing. Errors:
 * PSD_NOMEM, PSD_BUSY too many questions. */
PSD_MUST_CHECK psd_status_t ps_overseer_ask(ps_overseer_t *self, int kind, uint32_t job,
                                            const char *words, void *context, uint64_t now_ms,
                                            psd_error_t *err);
/* Questions of that context no longer wait for slow nodes: for other nodes at
 * most PS_BRIEF_MS, for this node not while one of its threads hangs.
 */
void ps_overseer_be_brief(ps_overseer_t *self, const void *context);
/* Borrowed; NULL: nothing waits for it. */
const ps_question_t *ps_overseer_question(const ps_overseer_t *self, uint64_t serial);
/* The node has answered the question (do not call ps_overseer_told for it);
 * status not PSD_OK: it could not. Takes the answers. */
void ps_overseer_answered(ps_overseer_t *self, uint64_t incarnation, uint64_t serial,
                          psd_status_t status, ps_answers_t *answers);
/* The next finished question; the caller destroys it. NULL: none. */
ps_question_t *ps_overseer_next_done(ps_overseer_t *self);
/* Takes any question, finished or not. */
ps_question_t *ps_overseer_take_question(ps_overseer_t *self);

#endif
