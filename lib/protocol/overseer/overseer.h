/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/overseer: what the registry tells the nodes, and asks them
 *
 * It is       For each node what it may not have yet, sent in order until it has
 *             it; questions, until all nodes have answered or are given up; who
 *             is up, suspect or down.
 * It uses     placement, registry, facts, core, lib/wire, lib/model, lib/base.
 * It ignores  How a message travels, what an answer says, clocks and threads.
 * Start at    ps_overseer_next in tells.c.
 */
/*
 * ps_overseer - all nodes of the cluster, as the registry sees them
 *
 * What     What is told is a name (a table, a job); its newest state is sent,
 *          and sent again until the node says that it has it, in the order of
 *          telling and under one number. Questions go to every node that is
 *          up; what was told before a question is done before it is answered,
 *          so an answer also says that. The registry's own node (`here`) is one
 *          of them: what goes to it is not lost, and is not sent twice.
 * Order    The shell calls what happens (a table changed, a node was heard, a
 *          node answered, time passed), then sends whatever ps_overseer_next
 *          names, until it names nothing.
 * Shape    A node's life:
 *
 *              up <--> suspect --> down
 *               ^-------------------+
 *
 *          up: it has announced itself and the registry does not suspect it;
 *          suspect: it is told and asked nothing; down: silent for
 *          PS_OVERSEER_DOWN_FACTOR times suspect_after.
 * Units    ms of any clock that only grows
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_OVERSEER_H
#define PS_PROTOCOL_OVERSEER_H

#include "protocol/registry/registry.h"

#define PS_OVERSEER_DOWN_FACTOR 5
#define PS_OVERSEER_WINDOW 64 /* sent to a node and not answered */
#define PS_BRIEF_MS 700
#define PS_DAMAGE_TEXT_SIZE 512
#define PS_REFUSAL_TEXT_SIZE 200

typedef struct ps_overseer ps_overseer_t;

typedef struct ps_overseer_args {
    ps_registry_t *registry; /* borrowed until ps_overseer_destroy */
    const char *node;        /* this node; copied */
    uint64_t incarnation;    /* of this node */
    uint64_t suspect_after_ms;
} ps_overseer_args_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_overseer_new(const ps_overseer_args_t *args, uint64_t now_ms,
                                            ps_overseer_t **ret_overseer, psd_error_t *err);
/* Frees the questions too; their contexts are the caller's. Takes NULL. */
void ps_overseer_destroy(ps_overseer_t **self_p);

/* ---- overseer.c: who is there ---- */

typedef enum ps_health { PS_HEALTH_UP = 1, PS_HEALTH_SUSPECT = 2, PS_HEALTH_DOWN = 3 } ps_health_t;
/* "up", "suspect", "down" */
const char *ps_health_name(ps_health_t state);

typedef struct ps_sight {
    ps_health_t state;
    uint64_t silent_ms; /* since it was heard; 0 for this node */
    bool never;         /* it was not heard since the registry's start */
    const char *damage; /* what its start found damaged; "". Borrowed */
    bool files_out;     /* it is out of descriptors */
} ps_sight_t;

/* How a node of the registry is. */
ps_sight_t ps_overseer_look(const ps_overseer_t *self, const ps_node_t *node, uint64_t now_ms);

/* A node is heard no more, or again. */
typedef struct ps_sight_news {
    char name[PS_NAME_MAX + 1];
    ps_health_t state;
    ps_health_t before; /* 0: it has come for the first time, or as another life
                         of a node that was up */
    uint64_t silent_ms; /* when it became what it is */
} ps_sight_news_t;
/* What has changed since it was asked for last, once; false: nothing. */
bool ps_overseer_next_news(ps_overseer_t *self, ps_sight_news_t *ret_news);

/* A node that the registry has, and speaks to us by conn (a number of the
 * shell's): it is up, and is told everything. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_overseer_add(ps_overseer_t *self, const ps_node_t *node,
                                            uint64_t conn, psd_error_t *err);
/* Whether that life of a node is out of descriptors. */
void ps_overseer_set_files_out(ps_overseer_t *self, uint64_t incarnation, bool is_out);
/* What that life of a node found damaged; "": nothing. */
void ps_overseer_set_damage(ps_overseer_t *self, uint64_t incarnation, const char *text);
/* PSD_OK: the node has announced itself by that connection. Errors: PSD_NO_NODE
 * it has to (first, or again, for the registry was restarted). */
PSD_MUST_CHECK psd_status_t ps_overseer_hear(const ps_overseer_t *self, uint64_t incarnation,
                                             uint64_t conn, psd_error_t *err);
/* A sign of life, with the greatest epoch that the node knows. Errors:
 * PSD_NO_NODE, and those of ps_registry_node_beat. */
PSD_MUST_CHECK psd_status_t ps_overseer_beat(ps_overseer_t *self, uint64_t incarnation,
                                             uint64_t max_epoch, uint64_t now_ms, psd_error_t *err);
/* Where that life of a node is reached. false: it has not come. */
PSD_MUST_CHECK bool ps_overseer_find(const ps_overseer_t *self, uint64_t incarnation,
                                     uint64_t *ret_conn, bool *ret_here);
size_t ps_overseer_n_nodes(const ps_overseer_t *self);
/* A number that no tell and no question has. */
uint64_t ps_overseer_next_serial(ps_overseer_t *self);

/* Time has passed: who is silent, which question is overdue. here_hangs: a
 * thread of this node does not go on; it matters while
 * ps_overseer_is_in_haste. */
void ps_overseer_tick(ps_overseer_t *self, uint64_t now_ms, bool here_hangs);
/* Somebody waits who wants a quick answer. */
bool ps_overseer_is_in_haste(const ps_overseer_t *self);
/* When a tick is next wanted; UINT64_MAX for never. */
uint64_t ps_overseer_deadline(const ps_overseer_t *self);

/* ---- tells.c: telling ---- */

/* X(NAME, op): what a node can be told; op is the word on the wire */
#define PS_TELL_MAP(X)                                           \
    X(KNOWN, "tell_known")       /* the numbers of all tables */ \
    X(SESSIONS, "tell_sessions") /* the highest session */       \
    X(TABLE, "tell_table")                                       \
    X(DROP, "tell_drop")                                         \
    X(JOB, "tell_job")                                           \
    X(ASK, "ask") /* a question */

#define PS_TELL_ENUM(NAME, op) PS_TELL_##NAME,
typedef enum ps_tell_kind { PS_TELL_MAP(PS_TELL_ENUM) PS_TELL_COUNT } ps_tell_kind_t;
#undef PS_TELL_ENUM
/* The word on the wire. */
const char *ps_tell_op(ps_tell_kind_t kind);

/* The table or job, as the registry has it, to all nodes that are up; one that
 * is not is told everything when it is. */
void ps_overseer_tell_table(ps_overseer_t *self, uint32_t table);
void ps_overseer_tell_job(ps_overseer_t *self, uint32_t job);
/* Sessions up to this one may be given out. */
void ps_overseer_tell_sessions(ps_overseer_t *self, uint64_t session);
uint64_t ps_overseer_sessions(const ps_overseer_t *self);
/* Before a drop is decided: there is memory to remember that it is to be told,
 * for the registry will have forgotten the table. false: there is none. */
PSD_MUST_CHECK bool ps_overseer_reserve(ps_overseer_t *self);
void ps_overseer_tell_drop(ps_overseer_t *self, uint32_t table);

/* What is to be sent now; begins as {0}. */
typedef struct ps_sending_round {
    size_t node; /* where the round is: private … */
    size_t at;
    size_t n_flying;
    bool entered;
    uint64_t now_ms; /* … up to here */
    uint64_t conn;
    uint64_t incarnation;
    bool here;
    ps_tell_kind_t kind;
    uint32_t id;       /* of the table or job */
    uint64_t question; /* ASK: its serial */
    uint64_t serial;   /* the node's answer names it */
    const char *name;  /* of the node; borrowed */
} ps_sending_round_t;

typedef enum ps_sent {
    PS_SENT = 1,
    PS_SENT_NOT,     /* later, and what comes after it too */
    PS_SENT_REFUSED, /* this node cannot take it */
    PS_SENT_GONE     /* there is nothing to say any more */
} ps_sent_t;

/* The next thing to send. false: nothing more now. */
PSD_MUST_CHECK bool ps_overseer_next(ps_overseer_t *self, uint64_t now_ms,
                                     ps_sending_round_t *round);
/* What came of it. SENT: `local` is a number of the shell's for it
 * (ps_overseer_find_local). REFUSED: status and text say why; returns true when
 * that is new. */
bool ps_overseer_sent(ps_overseer_t *self, ps_sending_round_t *round, ps_sent_t sent,
                      uint64_t local, psd_status_t status, const char *text);

/* PSD_OK, or why a node could not take the table in, with the node's name. */
PSD_MUST_CHECK psd_status_t ps_overseer_refusal(const ps_overseer_t *self, uint32_t table,
                                                psd_error_t *err);

/* Every node that is up has all that it was told. */
bool ps_overseer_is_settled(const ps_overseer_t *self);

/* ---- what a node says to what it was sent ---- */

/* What an answer is about. */
typedef struct ps_tell_view {
    ps_tell_kind_t kind;
    uint32_t id;
    uint64_t question; /* ASK */
    uint64_t serial;
    const char *node; /* borrowed */
} ps_tell_view_t;
/* false: nobody waits for that answer any more. */
PSD_MUST_CHECK bool ps_overseer_find_tell(const ps_overseer_t *self, uint64_t incarnation,
                                          uint64_t serial, ps_tell_view_t *ret_tell);
/* The same for this node, by the number that the shell gave. */
PSD_MUST_CHECK bool ps_overseer_find_local(const ps_overseer_t *self, uint64_t local,
                                           ps_tell_view_t *ret_tell);
/* The node has done it (and it is forgotten), or says why it could not: true
 * when that is new. */
bool ps_overseer_told(ps_overseer_t *self, uint64_t incarnation, uint64_t serial,
                      psd_status_t status, const char *text);

/* ---- questions.c: asking ---- */

typedef struct ps_question {
    uint64_t serial;
    int kind; /* the shell's */
    uint32_t job;
    uint64_t asked_ms;
    uint64_t deadline_ms;
    bool brief;      /* ps_overseer_be_brief */
    void *context;   /* the asker's */
    uint64_t *waits; /* owned; incarnations that have not answered */
    size_t n_waits;
    char missing[200]; /* "node n2 is silent"; "": all have answered */
} ps_question_t;
void ps_question_destroy(ps_question_t **self_p);

/* Asks; the question comes out of ps_overseer_next_done when every node that is
 * up has answered, or is silent, or the deadline has passed. About a job, a
 * silent node that clients of its tables may still reach is missing. Errors:
 * PSD_NOMEM, PSD_BUSY too many questions. */
PSD_MUST_CHECK psd_status_t ps_overseer_ask(ps_overseer_t *self, int kind, uint32_t job,
                                            void *context, uint64_t now_ms, psd_error_t *err);
/* Questions of that context are done without who does not answer
 * at once: other nodes after PS_BRIEF_MS, this one when a thread of it hangs.
 */
void ps_overseer_be_brief(ps_overseer_t *self, const void *context);
/* Borrowed; NULL: nobody waits for it. */
const ps_question_t *ps_overseer_question(const ps_overseer_t *self, uint64_t serial);
/* The question waits for that node's answer. */
PSD_MUST_CHECK bool ps_overseer_awaits(const ps_overseer_t *self, uint64_t incarnation,
                                       uint64_t serial);
/* The node has answered the question (not: ps_overseer_told); missing: why it could not; NULL:
 * it has. */
void ps_overseer_answered(ps_overseer_t *self, uint64_t incarnation, uint64_t serial,
                          const char *missing);
/* The next question that is done; the caller destroys it. NULL: none. */
ps_question_t *ps_overseer_next_done(ps_overseer_t *self);
/* The same of any question, before the end. */
ps_question_t *ps_overseer_take_question(ps_overseer_t *self);

#endif
