/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the fleet: the nodes, what they were told, what was asked. */
#ifndef PS_DAEMON_FLEET_INNER_H
#define PS_DAEMON_FLEET_INNER_H

#include "daemon/nodes/fleet.h"

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

/* One thing that a node may not have yet. */
typedef struct ps_tell {
    ps_tell_kind_t kind;
    bool flying;         /* sent, not answered */
    uint32_t id;         /* of the table or job */
    uint32_t again_ms;   /* between two sendings; grows */
    uint64_t question;   /* ASK: its serial */
    uint64_t serial;     /* from the first sending on; 0: not sent yet */
    uint64_t local;      /* this node, flying: the shards' serial */
    uint64_t due_ms;     /* when it is sent again */
    psd_status_t status; /* why the node could not take it; PSD_OK: unknown */
    char text[200];
} ps_tell_t;

typedef struct ps_fleet_node {
    char name[PS_NAME_MAX + 1];
    uint64_t incarnation;
    uint64_t conn;
    ps_fleet_state_t state;
    ps_fleet_state_t told;            /* the last one that was news; 0: none was */
    uint64_t silent_ms;               /* when it became what it is */
    bool here;                        /* this node: told and asked by the pipes of its shards */
    bool files_out;                   /* it is out of descriptors */
    char damage[PS_DAMAGE_TEXT_SIZE]; /* what its start found; "" */
    bool stale;                       /* no memory to record a change: everything is resent */
    ps_tell_t *tells;                 /* owned; in the order of telling */
    size_t n_tells;
    size_t tells_capacity;
} ps_fleet_node_t;

struct ps_fleet {
    ps_fleet_args_t is;
    ps_fleet_node_t *nodes; /* owned; the first one is this node */
    size_t n_nodes;
    size_t nodes_capacity;
    ps_question_t **questions; /* owned, each too */
    size_t n_questions;
    size_t questions_capacity;
    uint64_t last_serial;
    uint64_t sessions; /* that may have been given out */
    uint64_t ticked_ms;
    uint64_t look;    /* the shards' serial: what the partitions here take; 0: not
                         asked */
    uint64_t look_ms; /* when that is asked next */
    psd_error_t *err; /* owned; of what is done at hand */
};

/* fleet_tell.c */
/* The node shall have it: noted, and sent. A node that is not up is told
 * everything when it is. */
void ps_fleet_note(ps_fleet_t *self, ps_fleet_node_t *node, ps_tell_kind_t kind, uint32_t id);
/* A question goes behind all that was noted. false: no memory. */
PSD_MUST_CHECK bool ps_fleet_note_question(ps_fleet_node_t *node, const ps_question_t *question);
/* Nobody waits for the answer any more. */
void ps_fleet_withdraw(ps_fleet_t *self, uint64_t question);
/* Everything that the registry knows. */
void ps_fleet_note_all(ps_fleet_t *self, ps_fleet_node_t *node);
/* Sends what is due. */
void ps_fleet_send_due(ps_fleet_t *self, ps_fleet_node_t *node);
/* The node has done it (and it is forgotten), or says why it could not. */
void ps_fleet_told(ps_fleet_node_t *node, ps_tell_t *tell, psd_status_t status, const char *text);
/* The word on the wire. */
const char *ps_tell_op(ps_tell_kind_t kind);

/* fleet_send.c */
typedef enum ps_sent {
    PS_SENT = 1,
    PS_SENT_NOT,     /* later, and what is behind it too */
    PS_SENT_REFUSED, /* self->err says why this node cannot take it */
    PS_SENT_GONE     /* there is nothing to say any more */
} ps_sent_t;
/* Sends the newest state of what the tell names. */
ps_sent_t ps_fleet_send(ps_fleet_t *self, const ps_fleet_node_t *node, ps_tell_t *tell);

/* fleet_ask.c */
/* The question with that serial; NULL: nobody waits for it. */
ps_question_t *ps_fleet_question(const ps_fleet_t *self, uint64_t serial);
/* The node has answered what it was asked by `tell`, which is forgotten. status
 * not OK: it could not. Takes the calls out of answers. */
void ps_fleet_answered(ps_fleet_t *self, ps_fleet_node_t *node, ps_tell_t *tell,
                       psd_status_t status, ps_answers_t *answers);
/* Nobody waits for this node any more. */
void ps_fleet_give_up(ps_fleet_t *self, const ps_fleet_node_t *node);
void ps_fleet_expire(ps_fleet_t *self, uint64_t now_ms);
/* The node that announced itself under this incarnation; NULL: none. */
ps_fleet_node_t *ps_fleet_find(const ps_fleet_t *self, uint64_t incarnation);
#endif
