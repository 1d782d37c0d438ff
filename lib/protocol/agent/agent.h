/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_agent - a node's side of the conversation with the registry
 *
 * What     A pure machine. It announces the node until the registry answers,
 *          sends beats, turns the registry's tells and questions into tasks for
 *          the shards, in their order, answers each when the shards have done
 *          it, and forwards their reports. When the registry is silent, the
 *          shards go on with the map that they have; the node announces itself
 *          again when the registry does not know it any more.
 * Order    The shell passes in what happens: a message, a task that is done, a
 *          report, time. Then it runs what ps_agent_next_task, _next_message and
 *          _next_note return, until they return nothing.
 * Shape    joining --> announced <--> alone
 * Units    ms of any monotonic clock
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_AGENT_H
#define PS_PROTOCOL_AGENT_H

#include "protocol/agent/node_message.h"

typedef struct ps_agent ps_agent_t;

typedef struct ps_agent_args {
    ps_node_t node;     /* what it announces; lists are borrowed until
                           ps_agent_destroy */
    const char *damage; /* found at this start; ""; borrowed */
    ps_id_t cluster;
    uint64_t heartbeat_ms;   /* 0: the registry is in this process, and needs no signs of life */
    bool looks_at_sizes;     /* asks the shards for sizes of partitions (SIZES) */
    const ps_heard_t *heard; /* what it knew when its last life ended; NULL: nothing; copied */
} ps_agent_args_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_agent_new(const ps_agent_args_t *args, uint64_t now_ms,
                                         ps_agent_t **ret_agent, psd_error_t *err);
/* Takes NULL, nulls *self_p. */
void ps_agent_destroy(ps_agent_t **self_p);
/* A table that a shard has read from its disk: the registry says which of them
 * were dropped meanwhile. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_agent_know(ps_agent_t *self, uint32_t table, psd_error_t *err);

/* ---- what happens ---- */

/* Bytes of the registry's message. What cannot be read is dropped, and noted as
 * a refusal. */
void ps_agent_take(ps_agent_t *self, ps_bytes_t bytes, uint64_t now_ms);
/* The shards have done the task with that number (ps_agent_began), or say why
 * not. Takes the answers. */
void ps_agent_finished(ps_agent_t *self, uint64_t local, psd_status_t status, const char *text,
                       ps_answers_t *answers, uint64_t now_ms);
/* A shard's report; shards repeat a report while it holds. */
void ps_agent_report(ps_agent_t *self, const ps_report_t *report);
void ps_agent_tick(ps_agent_t *self, uint64_t now_ms);
uint64_t ps_agent_deadline(const ps_agent_t *self);
/* The process ran out of descriptors, or has some again. */
void ps_agent_set_files_out(ps_agent_t *self, bool is_out);
/* The node ends: tells the registry, which then need not wait for a timeout. */
void ps_agent_end(ps_agent_t *self);

/* ---- what to do ---- */

typedef enum ps_agent_task_kind {
    PS_TASK_TABLE = 1, /* table: all of it, as it is now */
    PS_TASK_DROP,      /* id */
    PS_TASK_JOB,       /* job */
    PS_TASK_SESSIONS,  /* session: the highest that was given out; message: settings */
    PS_TASK_ASK,       /* question, id of a job or 0, words */
    PS_TASK_FENCE,     /* fence; a report has the answer */
    PS_TASK_INVITE,    /* message */
    PS_TASK_SIZES,     /* sizes of the primaries here */
    PS_TASK_ASIDE      /* id: its rows stay, and nobody gets them */
} ps_agent_task_kind_t;

/* For the shards of a node. */
typedef struct ps_agent_task {
    ps_agent_task_kind_t kind;
    const ps_table_t *table; /* borrowed until ps_agent_began, as job and words */
    const ps_job_t *job;
    uint32_t id;
    uint32_t question;
    ps_bytes_t words;
    uint64_t session;
    ps_copy_fence_t fence;
    const ps_node_message_t *message;
} ps_agent_task_t;
/* The next task; ps_agent_began says what came of it. false: none. */
PSD_MUST_CHECK bool ps_agent_next_task(ps_agent_t *self, ps_agent_task_t *ret_task);
/* status PSD_OK: the shards do it, under that number of theirs (0: it is done
 * already, and FENCE always is); else why they cannot. */
void ps_agent_began(ps_agent_t *self, uint64_t local, psd_status_t status, const char *text);

/* The next message to the registry, borrowed until the next call. false: none. */
PSD_MUST_CHECK bool ps_agent_next_message(ps_agent_t *self, ps_bytes_t *ret_bytes);
/* The registry is elsewhere from now on: the node announces itself there, and
 * what it had to say to the one before is void. heartbeat_ms is as in the args. */
void ps_agent_move(ps_agent_t *self, uint64_t heartbeat_ms, uint64_t now_ms);
/* The message could not be sent: the registry is gone or slow. A later beat has
 * its news; a tell that got no answer comes again. */
void ps_agent_unsent(ps_agent_t *self);

/* Appends a sign of life for members of the registry that do not lead: a BEAT with
 * serial 0. false: the registry never heard of this start, or no memory. */
PSD_MUST_CHECK bool ps_agent_sign(const ps_agent_t *self, ps_buffer_t *buffer);
/* What one of them answered: a leader of a later term makes itself known
 * (ps_agent_elsewhere). */
void ps_agent_take_of_member(ps_agent_t *self, ps_bytes_t bytes);

/* True once: the registry knows of this start now. Ask before the tasks. */
PSD_MUST_CHECK bool ps_agent_take_joined(ps_agent_t *self);

/* Jobs, and tables, up to that number that are not known here are gone: the registry has had
 * time to tell of the others. 0: none. */
uint32_t ps_agent_told_job(const ps_agent_t *self);
uint32_t ps_agent_told_table(const ps_agent_t *self);

typedef enum ps_agent_note_kind {
    PS_AGENT_GONE = 1, /* the registry is silent, for silent_ms */
    PS_AGENT_BACK,
    PS_AGENT_REFUSED,    /* the registry refuses `what`, message `serial`, or this node cannot
                            read `what`; first, and again after an hour */
    PS_AGENT_NOT_OBEYED, /* this node could not do `what` */
    PS_AGENT_PAST,       /* an older registry, or one of a history that was left, speaks; first,
                            and again after an hour */
    PS_AGENT_ASIDE       /* table `serial` is kept aside from now on */
} ps_agent_note_kind_t;

typedef struct ps_agent_note {
    ps_agent_note_kind_t kind;
    uint64_t silent_ms;
    const char *what; /* static */
    uint64_t serial;
    psd_status_t status;
    char text[PS_DAMAGE_TEXT_SIZE];
} ps_agent_note_t;
/* For the log; each once. Notes that nobody reads in time are dropped. */
PSD_MUST_CHECK bool ps_agent_next_note(ps_agent_t *self, ps_agent_note_t *ret_note);

/* true when what the node remembers has changed since: store it before the next task.
 * Borrowed until the next call. */
PSD_MUST_CHECK bool ps_agent_take_heard(ps_agent_t *self, const ps_heard_t **ret_heard);

/* ---- queries ---- */

/* A registry has told it of all tables, in this life. */
bool ps_agent_has_map(const ps_agent_t *self);
/* The table as the registry told last, with routes. Borrowed until the next message. NULL:
 * it knows none, or keeps it aside. */
const ps_table_t *ps_agent_table(const ps_agent_t *self, uint32_t id);
const ps_table_t *ps_agent_table_named(const ps_agent_t *self, const char *name);
/* The nodes that have the registry, as it said last; borrowed until the next
 * call. Returns how many. */
size_t ps_agent_seats(const ps_agent_t *self, const ps_seat_t **ret_seats);
/* The one to ask next, in turn, and never this node itself: it would take its own answer for
 * a sign of life. NULL: it knows no other. */
const ps_seat_t *ps_agent_next_seat(ps_agent_t *self);
/* The node that was asked has the registry no more, or not now, and named this
 * endpoint; "": none. NULL: it has. */
const char *ps_agent_elsewhere(const ps_agent_t *self);
/* Since the registry was last heard, or this node moved to it. */
uint64_t ps_agent_silent_ms(const ps_agent_t *self, uint64_t now_ms);

/* Since a registry last said something else than that it does not lead. */
uint64_t ps_agent_unled_ms(const ps_agent_t *self, uint64_t now_ms);

/* The registry has answered this incarnation's announcement: the node is part of
 * the cluster. */
bool ps_agent_is_announced(const ps_agent_t *self);
/* Of the registry that the node follows; zero: of none. Borrowed. */
const ps_id_t *ps_agent_lineage(const ps_agent_t *self);
/* The registry is reachable. */
bool ps_agent_is_heard(const ps_agent_t *self);
/* Why the registry refuses this node for ever: what it lost has no other copy;
 * "": it does not. Borrowed. */
const char *ps_agent_refusal(const ps_agent_t *self);
#endif
