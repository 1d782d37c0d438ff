/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the fleet: the other nodes, what they were told, what was asked.
 */
#ifndef PS_DAEMON_FLEET_INNER_H
#define PS_DAEMON_FLEET_INNER_H

#include "daemon/fleet.h"

/* X(NAME, op): what a node can be told; op is the word on the wire */
#define PS_TELL_MAP(X)                                           \
    X(KNOWN, "tell_known")       /* the numbers of all tables */ \
    X(SESSIONS, "tell_sessions") /* the highest session */       \
    X(TABLE, "tell_table")                                       \
    X(DROP, "tell_drop")                                         \
    X(JOB, "tell_job")

#define PS_TELL_ENUM(NAME, op) PS_TELL_##NAME,
typedef enum ps_tell_kind {
    PS_TELL_MAP(PS_TELL_ENUM) PS_TELL_COUNT
} ps_tell_kind_t;
#undef PS_TELL_ENUM

/* One thing that a node may not have yet. */
typedef struct ps_tell {
    ps_tell_kind_t kind;
    uint32_t id;         /* of the table or job */
    uint64_t serial;     /* as it was last sent; 0: not yet */
    uint64_t due_ms;     /* when it is sent again */
    psd_status_t status; /* why the node could not take it; PSD_OK: unknown */
    char text[200];
} ps_tell_t;

/* Another node. */
typedef struct ps_fleet_node {
    char name[PS_NAME_MAX + 1];
    uint64_t incarnation;
    uint64_t conn;
    uint64_t heard_ms;
    ps_fleet_state_t state;
    bool stale; /* there was no memory to note something: all is told again */
    ps_tell_t *tells; /* owned; in the order of telling */
    size_t n_tells;
    size_t tells_capacity;
} ps_fleet_node_t;

struct ps_fleet {
    ps_fleet_args_t is;
    ps_fleet_node_t *nodes; /* owned */
    size_t n_nodes;
    size_t nodes_capacity;
    ps_question_t **questions; /* owned, each too */
    size_t n_questions;
    size_t questions_capacity;
    uint64_t last_serial;
    uint64_t sessions; /* that may have been given out */
    uint64_t ticked_ms;
};

/* fleet_tell.c */
/* The node shall have it: noted, and sent. */
void ps_fleet_note(ps_fleet_t *self,
                   ps_fleet_node_t *node,
                   ps_tell_kind_t kind,
                   uint32_t id);
/* Everything that the registry knows. */
void ps_fleet_note_all(ps_fleet_t *self, ps_fleet_node_t *node);
/* Sends what is due. */
void ps_fleet_send_due(ps_fleet_t *self, ps_fleet_node_t *node);
/* The node's answer to a tell. false: it was none. */
bool ps_fleet_told(ps_fleet_node_t *node,
                   uint64_t serial,
                   psd_status_t status,
                   const char *text);
/* Sends a document with v, op and serial to the node. false: it did not go. */
PSD_MUST_CHECK bool ps_fleet_send(ps_fleet_t *self,
                                  const ps_fleet_node_t *node,
                                  const ps_doc_t *doc);
/* {"v":1,"op":…,"serial":…}; NULL: no memory. */
ps_doc_t *ps_fleet_message(const char *op, uint64_t serial);

/* fleet_ask.c */
/* Nobody waits for this node any more. */
void ps_fleet_give_up(ps_fleet_t *self, const ps_fleet_node_t *node);
void ps_fleet_expire(ps_fleet_t *self, uint64_t now_ms);
/* The node that announced itself under this incarnation; NULL: none. */
ps_fleet_node_t *ps_fleet_find(const ps_fleet_t *self, uint64_t incarnation);
#endif
