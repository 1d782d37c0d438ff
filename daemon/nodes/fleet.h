/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_fleet - all nodes of the cluster, as the registry's control part sees them
 *
 * What     Tells them what the registry has decided and asks them how things
 *          are. What is told is a name (a table, a job); its newest state is
 *          sent, and sent again until the node says that it has it, in the
 *          order of telling and under one number. Questions go to every shard
 *          of every node that is up; what is told before a question is done
 *          before it is answered, so that an answer also says that. The
 *          registry's own node is one of them: its shards are told and asked
 *          by their pipes. No call waits for anybody.
 * Shape    A node's life:
 *
 *              up <--> suspect --> down
 *               ^-------------------+
 *
 *          up: it has announced itself and the registry does not suspect it;
 *          suspect: it is told and asked nothing; down: silent for
 *          PS_FLEET_DOWN_FACTOR times suspect_after.
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_DAEMON_FLEET_H
#define PS_DAEMON_FLEET_H

#include "daemon/nodes/node_damage.h"
#include "daemon/config/plugins.h"
#include "daemon/shards/shards.h"
#include "protocol/registry/registry.h"
#include "transport/sockets/socket.h"
#include "transport/threads/turns_look.h"
#include "wire/messages/doc.h"

#define PS_FLEET_DOWN_FACTOR 5
#define PS_BRIEF_MS 700

typedef struct ps_fleet ps_fleet_t;

/* All borrowed until ps_fleet_destroy. */
typedef struct ps_fleet_args {
    ps_registry_t *registry;
    ps_shards_t *shards; /* of this node */
    ps_socket_t *port;   /* the control port: other nodes speak through it */
    const ps_plugins_t *plugins;
    const char *node;     /* this node */
    uint64_t incarnation; /* of this node */
    uint64_t suspect_after_ms;
    const ps_turns_t *turns; /* of this node's threads; NULL: nobody looks */
} ps_fleet_args_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_fleet_new(const ps_fleet_args_t *args, ps_fleet_t **ret_fleet,
                                         psd_error_t *err);
/* Frees the questions too; their contexts are the caller's. Takes NULL. */
void ps_fleet_destroy(ps_fleet_t **self_p);

/* ---- who is there ---- */

typedef enum ps_fleet_state {
    PS_FLEET_UP = 1,
    PS_FLEET_SUSPECT = 2,
    PS_FLEET_DOWN = 3
} ps_fleet_state_t;

typedef struct ps_fleet_view {
    ps_fleet_state_t state;
    uint64_t silent_ms; /* since it was heard; 0 for this node */
    bool never;         /* it was not heard since the registry's start */
    const char *damage; /* what its start found damaged; "". Borrowed */
    bool files_out;     /* it is out of descriptors */
} ps_fleet_view_t;

/* How a node of the registry is. */
ps_fleet_view_t ps_fleet_look(const ps_fleet_t *self, const ps_node_t *node);
/* A node is heard no more, or again. */
typedef struct ps_fleet_news {
    char name[PS_NAME_MAX + 1];
    ps_fleet_state_t state;
    uint64_t silent_ms;
} ps_fleet_news_t;
/* What has changed since it was asked for last, once; false: nothing. */
bool ps_fleet_next_news(ps_fleet_t *self, ps_fleet_news_t *ret_news);
/* "up", "suspect", "down" */
const char *ps_fleet_state_name(ps_fleet_state_t state);

/* A node that the registry has, and speaks to us by conn: it is up, and is told
 * everything. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_fleet_add(ps_fleet_t *self, const ps_node_t *node, uint64_t conn,
                                         psd_error_t *err);
/* Whether that life of a node is out of descriptors. */
void ps_fleet_set_files_out(ps_fleet_t *self, uint64_t incarnation, bool is_out);
/* What that life of a node found damaged; "": nothing. */
void ps_fleet_set_damage(ps_fleet_t *self, uint64_t incarnation, const char *text);
/* PSD_OK: the node has announced itself by that connection. Errors: PSD_NO_NODE
 * it has to (first, or again, for the registry was restarted). */
PSD_MUST_CHECK psd_status_t ps_fleet_hear(ps_fleet_t *self, uint64_t incarnation, uint64_t conn,
                                          psd_error_t *err);
/* A sign of life, with the greatest epoch that the node knows. Errors:
 * PSD_NO_NODE, and those of ps_registry_node_beat. */
PSD_MUST_CHECK psd_status_t ps_fleet_beat(ps_fleet_t *self, uint64_t incarnation,
                                          uint64_t max_epoch, psd_error_t *err);

/* ---- telling ---- */

/* The table, job or highest session, as the registry has it. */
void ps_fleet_tell_table(ps_fleet_t *self, uint32_t table);
void ps_fleet_tell_job(ps_fleet_t *self, uint32_t job);
/* Sessions up to this one may be given out. */
void ps_fleet_tell_sessions(ps_fleet_t *self, uint64_t session);
/* Before a drop is decided: there is memory to remember that it is to be told,
 * for the registry will have forgotten the table. false: there is none. */
PSD_MUST_CHECK bool ps_fleet_reserve(ps_fleet_t *self);
void ps_fleet_tell_drop(ps_fleet_t *self, uint32_t table);
/* Asks the node of that copy to take no records of older epochs there. Once:
 * the answer comes as a report, and who wants it asks again. */
void ps_fleet_fence(ps_fleet_t *self, const ps_copy_t *copy, uint32_t table, uint32_t partition,
                    uint64_t epoch);
/* PSD_OK, or why a node could not take the table in, with the node's name. */
PSD_MUST_CHECK psd_status_t ps_fleet_refusal(const ps_fleet_t *self, uint32_t table,
                                             psd_error_t *err);

/* ---- asking ---- */

typedef struct ps_question {
    uint64_t serial;
    ps_call_kind_t kind;
    uint32_t job;
    uint64_t asked_ms;
    uint64_t deadline_ms;
    bool brief;           /* ps_fleet_be_brief */
    void *context;        /* the asker's */
    ps_answers_t answers; /* owned; of the nodes that have answered */
    char *words;          /* owned; CHECKPOINT: what is asked; else NULL */
    uint64_t *waits;      /* owned; incarnations that have not */
    size_t n_waits;
    char missing[200]; /* "node n2 has not answered for 2.0 s"; "": all have */
} ps_question_t;
void ps_question_destroy(ps_question_t **self_p);

/* Asks; the question comes out of ps_fleet_next_done when every node that is up
 * has answered, or is silent, or the deadline has passed. About a job, a silent
 * node that clients of its tables may still reach is missing. words: of
 * CHECKPOINT, copied; else NULL. Errors: PSD_NOMEM, PSD_BUSY too many
 * questions. */
PSD_MUST_CHECK psd_status_t ps_fleet_ask(ps_fleet_t *self, ps_call_kind_t kind, uint32_t job,
                                         const char *words, void *context, psd_error_t *err);
/* The question of that context, asked last, is done without who does not answer
 * at once: other nodes after PS_BRIEF_MS, this one when a thread of it hangs.
 */
void ps_fleet_be_brief(ps_fleet_t *self, const void *context);
/* The next question that is done; the caller destroys it. NULL: none. */
ps_question_t *ps_fleet_next_done(ps_fleet_t *self);
/* What a node says to something told or asked. Errors: PSD_PROTO, PSD_INVALID,
 * PSD_NO_NODE, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_fleet_take_answer(ps_fleet_t *self, uint64_t incarnation,
                                                 const ps_doc_t *doc, psd_error_t *err);

/* Takes in what the shards of this node have answered; their reports are the
 * caller's to take. */
void ps_fleet_take_shards(ps_fleet_t *self);
/* Who is silent, what has to be told again, what is overdue. */
void ps_fleet_tick(ps_fleet_t *self);
/* When ps_fleet_tick is next wanted; UINT64_MAX for never. */
uint64_t ps_fleet_deadline(const ps_fleet_t *self);
#endif
