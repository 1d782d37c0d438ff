/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes of an overseer, their tells and the questions; for its files
 * only. */
#ifndef PS_PROTOCOL_OVERSEER_STATE_H
#define PS_PROTOCOL_OVERSEER_STATE_H

#include "base/map.h"
#include "protocol/overseer/overseer.h"

/* One object whose newest state a node may lack. */
typedef struct ps_tell {
    ps_tell_kind_t kind;
    bool flying;         /* in flight: sent, not answered */
    uint32_t id;         /* of the table or job */
    uint32_t again_ms;   /* backoff between two sends; grows */
    uint64_t question;   /* ASK: its serial */
    uint64_t serial;     /* from the first send on; 0: not sent yet */
    uint64_t due_ms;     /* when it is sent again */
    uint64_t since;      /* TABLE, JOB: the node has it as of this revision; 0: it lacks it … */
    uint64_t revision;   /* … and of this one once it acknowledges. Both from the first send on */
    psd_status_t status; /* why the node could not accept it; PSD_OK: unknown */
    char text[PS_REFUSAL_TEXT_SIZE];
} ps_tell_t;

typedef struct ps_overseen {
    char name[PS_NAME_MAX + 1];
    uint64_t incarnation;
    uint64_t conn;
    ps_health_t state;
    ps_health_t told;                 /* the last reported health; 0: none */
    uint64_t silent_ms;               /* when it became what it is */
    bool files_out;                   /* it is out of descriptors */
    uint32_t n_aside;                 /* tables that it keeps aside */
    char damage[PS_DAMAGE_TEXT_SIZE]; /* what its start found; "" */
    bool stale;                       /* no memory to record a change: everything will be sent
                                         again */
    ps_map_t tables;                  /* owned; revisions (as pointers) of the tables that it has
                                         acknowledged, by id */
    ps_map_t jobs;                    /* owned; versions of its running jobs, likewise */
    ps_tell_t *tells;                 /* owned; in order */
    size_t n_tells;
    size_t tells_capacity;
} ps_overseen_t;

struct ps_overseer {
    ps_overseer_args_t is;
    ps_overseen_t *nodes; /* owned */
    size_t n_nodes;
    size_t nodes_capacity;
    ps_question_t **questions; /* owned, each too */
    size_t n_questions;
    size_t n_done; /* of them: nobody is waited for */
    size_t questions_capacity;
    uint64_t last_serial;
    uint64_t sessions; /* sessions that may have been given out */
    uint64_t index;    /* of the last command that the state has */
    uint64_t ticked_ms;
    ps_seat_t seats[PS_SEATS_MAX]; /* that have the registry */
    size_t n_seats;
    char leader[PS_NAME_MAX + 1];
};

/* The node that announced itself with this incarnation; NULL: none. */
ps_overseen_t *ps_overseen_find(const ps_overseer_t *self, uint64_t incarnation);
/* Notes everything that the registry knows. */
void ps_overseen_note_all(ps_overseer_t *self, ps_overseen_t *node);
/* Notes a question, after everything noted before. false: no memory. */
PSD_MUST_CHECK bool ps_overseen_note_question(ps_overseen_t *node, uint64_t question);
/* Withdraws a question that nothing waits for any more. */
void ps_overseen_withdraw(ps_overseer_t *self, uint64_t question);
/* The node has answered the question, which is not sent again. true: it has not
 * applied an earlier tell of a job, so its answer does not count. */
bool ps_overseen_end_question(ps_overseen_t *node, uint64_t question);
/* Makes all questions stop waiting for this node. */
void ps_overseen_give_up(ps_overseer_t *self, const ps_overseen_t *node);
/* Ends overdue questions. */
void ps_overseer_expire(ps_overseer_t *self, uint64_t now_ms, bool here_hangs);
#endif
