/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the control part: its state, one request, and the operations. */
#ifndef PS_SERVER_CONTROL_INNER_H
#define PS_SERVER_CONTROL_INNER_H

#include "base/alloc.h"
#include "base/log.h"
#include "server/state/control.h"
#include "server/nodes/fleet.h"
#include "server/quorum/replica_list.h"
#include "server/state/invites.h"
#include "server/state/owners.h"
#include "server/state/replies.h"
#include "server/threads/delay.h"
#include "server/nodes/watch.h"
#include "protocol/placement/registry_decide.h"
#include "protocol/quorum/quorum_care.h"
#include "protocol/registry/registry_work.h"
#include "protocol/session/finder.h"
#include "protocol/waiters/waiters.h"
#include "storage/snapshot/checkpoint.h"
#include "wire/messages/doc.h"

#define PS_NODE_PRINCIPAL "node." /* before the name of a node: its principal */
#define PS_CONTROL_VERSION 1      /* of requests and answers */
#define PS_CLIENTS_MAX 4096       /* whose repeated hello gives the same session */

typedef struct ps_client_row {
    ps_id_t client;
    uint64_t session;
} ps_client_row_t;

/* A backup of the registry, fetched piece by piece. */
typedef struct ps_backup {
    ps_buffer_t bytes; /* owned */
    uint64_t number;   /* 1, 2, … of those since the start */
} ps_backup_t;

typedef enum ps_checkpoint_kind {
    PS_CHECKPOINT_CREATE = 1,
    PS_CHECKPOINT_RESTORE = 2,
    PS_CHECKPOINT_VERIFY = 3
} ps_checkpoint_kind_t;

typedef struct ps_checkpoint_work {
    uint64_t number; /* of this work; 0: none is under way */
    ps_checkpoint_kind_t kind;
    char name[PS_CHECKPOINT_NAME_MAX + 1];
    uint32_t table;     /* RESTORE: that is made; 0: not yet */
    ps_doc_t *manifest; /* owned; CREATE: without its files; else NULL */
    uint32_t job;       /* CREATE: whose clock is the boundary, exactly; 0: of
                           none … */
    uint64_t clock;     /* … which is this; 0: not known yet */
    bool holds_work;    /* its workers behind the clock get no answers about slices
                           until its queues are in the manifest */
    uint64_t looked_ms;
    psd_status_t status; /* why it failed, if it did … */
    char text[400];      /* … in words */
} ps_checkpoint_work_t;

#define PS_DENIED_MAX 8 /* refused nodes on record; of more, the newest */

/* A node that was refused when it wanted to join, or to speak. */
typedef struct ps_denied {
    char name[PS_NAME_MAX + 1]; /* "": none was */
    char why[256];
    uint64_t first_ms; /* of those of one name, close to each other */
    uint64_t last_ms;
    uint64_t noted_ms; /* in the history; 0: not yet */
    uint64_t n;
    bool grave; /* it does not pass by itself */
} ps_denied_t;

#define PS_PROMISED_MAX 64
#define PS_PROMISED_MS 60000

/* A name reserved for a node until it announces itself. */
typedef struct ps_promised {
    char name[PS_NAME_MAX + 1];
    ps_id_t secret; /* the node's */
    uint64_t until_ms;
} ps_promised_t;

#define PS_FAILED_MAX 32     /* nodes that were invited in vain, on record */
#define PS_CANDIDATES_MAX 64 /* nodes that are looked at for the next member */

/* What a leader remembers about members of the registry; the next leader does not
 * know it. */
typedef struct ps_tending {
    uint64_t look_ms;                         /* when the members are looked at next */
    uint64_t enough_ms;                       /* since then there are enough nodes to
                                                 replicate the registry; 0: there are not */
    ps_id_t token;                            /* that an invited member repeats; zero: none
                                                 was invited */
    char invited[PS_NAME_MAX + 1];            /* who is invited; "": nobody */
    uint32_t n_invites;                       /* … so often */
    char asked[PS_NAME_MAX + 1];              /* whom pscli wants to be a member; "": nobody */
    uint64_t asked_ms;                        /* … when it last said so */
    uint64_t failed[PS_FAILED_MAX];           /* incarnations, a ring by n_failed */
    uint64_t n_failed;                        /* invited in vain */
    char too_old[PS_NAME_MAX + 1];            /* the last node that was refused as a member for
                                                 its build */
    uint64_t known[PS_QUORUM_MEMBERS_MAX];    /* members … */
    uint64_t since_ms[PS_QUORUM_MEMBERS_MAX]; /* … and when this leader first saw them */
    bool is_alone;                            /* it was said that it stays so */
} ps_tending_t;

struct ps_control {
    ps_control_args_t is;           /* what it was made with; all borrowed */
    ps_control_counts_t own_counts; /* counted there, when it was made with no other place */
    ps_control_counts_t *counts;    /* borrowed */
    uint64_t look_ms;               /* when the next look for /metrics is due; 0: now */
    uint64_t old_keys_ms;           /* when to look which old keys are to end; UINT64_MAX: none */
    ps_replies_t replies;
    ps_watches_t watches;
    ps_owners_t *owners;      /* owned; whose each session is; with rights */
    ps_invites_t invites;     /* of nodes and clients; with rights */
    ps_client_row_t *clients; /* owned; a ring of PS_CLIENTS_MAX */
    size_t n_clients;         /* ever said hello */
    uint64_t last_session;    /* given out since the start */
    uint64_t started_ms;
    uint64_t n_denied;                 /* requests that used a node's name without its secret */
    ps_denied_t denied[PS_DENIED_MAX]; /* nodes that were refused lately */
    ps_promised_t promised[PS_PROMISED_MAX]; /* a ring, by n_promised */
    size_t n_promised;
    ps_overseer_t *overseer;   /* owned; all nodes */
    ps_fleet_t *fleet;         /* owned; sends what the overseer decides */
    ps_waiter_list_t unserved; /* that were read, in order of coming; each in its request, owned */
    size_t n_unserved;
    size_t unserved_bytes; /* of these, as they came */
    uint64_t drained_ms;   /* all that had come by then was read */
    ps_waiters_t waiters;  /* each in its request, which is owned */
    ps_backup_t backup;    /* that is being fetched */
    ps_checkpoint_work_t checkpoint;
    uint64_t checkpoint_serial; /* of the last work */
    ps_delay_t delay;           /* of the thread */
    uint64_t forgiven_ms;       /* when its delay was last looked at */
    uint64_t grace_ms;          /* no worker is lost before that; 0: not set */
    uint64_t decide_ms;         /* no decision about copies before that */
    ps_tending_t tending;       /* of the registry's members */
    uint64_t begun_ms;          /* when it began to answer for the registry */
    bool work_due;              /* questions about slices may have an answer */
    psd_error_t *err;           /* of the request at hand */
};

/* A request from its bytes to its answer. An operation that returns with
 * waits.kind set adds it to the waiters. */
typedef struct ps_request_doc {
    ps_waiter_t waits;          /* who asks, and what it waits for; the first member */
    ps_asker_t caller;          /* … as far as its connection proves it */
    ps_doc_t *doc;              /* owned; as it came */
    ps_buffer_t text;           /* owned; as it came, while it waits for its turn */
    const ps_control_row_t *op; /* NULL: unknown */
    ps_doc_t *reply;            /* owned; v, id and status are set; operations add */
    bool silent;                /* it gets no answer, or already has it */
    ps_call_kind_t ask_kind;
    uint32_t ask_job;
    uint64_t until_ms;           /* how long it waits for what is missing; 0: unset */
    ps_buffer_t words;           /* owned; of CHECKPOINT, with its '\0' */
    unsigned step;               /* how often the nodes have answered */
    uint32_t last_table;         /* nodes got the change before the question */
    const ps_answers_t *answers; /* the last ones; step > 0 */
    const char *missing;         /* "", or the node that has not answered; step > 0 */
    uint32_t job;                /* what an operation keeps between steps … */
    uint64_t clock;              /* … of work queues: that the client has finished */
    uint32_t made;               /* the table that it makes; 0: none */
    bool lets_in;                /* a node's key counts by it */
    ps_doc_t *array;             /* … and borrows from the reply */
    bool once;                   /* its answer is kept for a repetition */
    ps_outcome_t outcome;        /* what an earlier try, whose answer nobody knows any more, has
                                    changed; kind 0: nothing, or there was none */
    uint64_t detail;             /* JOB_JOIN: the member and its life (control_job.c) */
    ps_work_ask_t work;          /* SLICE, DONE */
    ps_work_answer_t answer;     /* … and its answer once the command is stored, … */
    bool planned;                /* … of which it is a part */
    bool was_dry;                /* the operation only looked, as the request asked for */
    bool is_judged;              /* it is known who asked: … */
    uint32_t who_id;             /* … the principal before its change; 0: none … */
    char who[PS_NAME_MAX + 1];   /* … and its name */
} ps_control_request_t;

/* control_names.c */
/* A name for a node that has none yet: `wanted`, or that with -2, -3 … when
 * another node has it or got it a moment ago. Reserves it for `secret` for a
 * minute. Errors: PSD_LIMIT. */
PSD_MUST_CHECK psd_status_t ps_control_give_name(ps_control_t *self, const char *wanted,
                                                 const ps_id_t *secret,
                                                 char ret_name[PS_NAME_MAX + 1], psd_error_t *err);
/* control_session.c */
ps_control_op_t ps_control_hello;
/* control_table.c */
ps_control_op_t ps_control_table_create;
ps_control_op_t ps_control_table_open;
ps_control_op_t ps_control_table_list;
ps_control_op_t ps_control_table_inspect;
ps_control_op_t ps_control_table_drop;
ps_control_op_t ps_control_table_ack;
ps_control_op_t ps_control_table_set;
/* control_routes.c */
ps_control_op_t ps_control_routes;
/* control_job.c */
ps_control_op_t ps_control_job_join;
ps_control_op_t ps_control_job_leave;
ps_control_op_t ps_control_job_stop;
ps_control_op_t ps_control_job_tables;
ps_control_op_t ps_control_job_state;
ps_control_op_t ps_control_heartbeat;
/* control_overlay.c */
/* A heartbeat that says where the worker's relay listens: its answer gets a plan that is newer
 * than the one that the worker has. Errors: PSD_PROTO, PSD_INVALID, PSD_NOMEM, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_control_overlay_beat(ps_control_t *self,
                                                    const ps_control_request_t *request,
                                                    const ps_job_t *job, uint32_t rank,
                                                    uint64_t clock, psd_error_t *err);
/* "overlay" of a job that has a plan. false: no memory. */
PSD_MUST_CHECK bool ps_control_add_overlay(const ps_control_t *self, uint32_t job, ps_doc_t *doc);
/* control_barrier.c */
ps_control_op_t ps_control_barrier;
/* control_work.c */
ps_control_op_t ps_control_work_open;
ps_control_op_t ps_control_work_next;
ps_control_op_t ps_control_work_done;
/* Answers the questions about slices that are new or may have an answer now;
 * stores their changes together. */
void ps_control_settle_work(ps_control_t *self);
/* Its deadline has passed: ends the question. */
void ps_control_expire_work(ps_control_t *self, ps_control_request_t *request, uint64_t now_ms);
/* "queues" of a job. false: no memory. */
PSD_MUST_CHECK bool ps_control_add_queues(const ps_control_t *self, uint32_t job, ps_doc_t *doc);
/* control_idle.c */
ps_control_op_t ps_control_work_idle;
/* control_clock.c */
ps_control_op_t ps_control_job_list;
ps_control_op_t ps_control_job_inspect;
ps_control_op_t ps_control_worker_list;
ps_control_op_t ps_control_clock_list;
ps_control_op_t ps_control_clock_inspect;
/* control_why.c */
ps_control_op_t ps_control_why;
/* control_cluster.c */
ps_control_op_t ps_control_cluster_status;
ps_control_op_t ps_control_slow;
ps_control_op_t ps_control_cluster_events;
ps_control_op_t ps_control_node_list;
ps_control_op_t ps_control_node_inspect;

/* control_setting.c */
ps_control_op_t ps_control_settings;
ps_control_op_t ps_control_setting_set;
/* Logs each setting of the cluster that differs from what this node's file says; only: 0, or
 * the id of the only one. */
void ps_control_tell_overridden(const ps_control_t *self, uint32_t only);

/* control_auth.c */
ps_control_op_t ps_control_auth_list;
ps_control_op_t ps_control_auth_allow;
ps_control_op_t ps_control_auth_deny;
ps_control_op_t ps_control_auth_rotate;
ps_control_op_t ps_control_auth_can;
ps_control_op_t ps_control_auth_whoami;
/* control_audit.c of control */
ps_control_op_t ps_control_auth_audit;
/* control_note.c */
/* Who asks is kept for the audit: the request may change who that is. */
void ps_control_note_who(const ps_control_t *self, ps_control_request_t *request);
/* The request ends: the audit gets a line when it is one of those that it has. */
void ps_control_note(const ps_control_t *self, const ps_control_request_t *request,
                     psd_status_t status);

/* control_registry.c */
ps_control_op_t ps_control_registry_list;
ps_control_op_t ps_control_registry_set;
ps_control_op_t ps_control_registry_transfer;
/* control_backup.c */
ps_control_op_t ps_control_cluster_backup;
/* control_checkpoint.c */
ps_control_op_t ps_control_checkpoint_create;
ps_control_op_t ps_control_checkpoint_list;
ps_control_op_t ps_control_checkpoint_inspect;
ps_control_op_t ps_control_checkpoint_drop;
/* control_restore.c */
ps_control_op_t ps_control_checkpoint_restore;
ps_control_op_t ps_control_checkpoint_verify;
ps_control_op_t ps_control_checkpoint_look;
/* control_queues.c: whether the question must wait until a checkpoint has
 * the queues of its job. */
bool ps_control_checkpoint_holds(const ps_control_t *self, const ps_control_request_t *request);
/* control_checkpoint_work.c: cancels work that no client asks about any
 * more, and says when that may be due; UINT64_MAX for never. */
void ps_control_checkpoint_tick(ps_control_t *self);
uint64_t ps_control_checkpoint_deadline(const ps_control_t *self);
/* control_routes.c: "nodes", the names of the nodes in the routes. Returns
 * false when there is no memory. */
PSD_MUST_CHECK bool ps_control_add_names(const ps_control_t *self, ps_doc_t *reply);
/* control_table.c: creates a table and tells the nodes; drops it again when
 * one cannot hold it. */
PSD_MUST_CHECK psd_status_t ps_control_make_table(ps_control_t *self,
                                                  const ps_control_request_t *request,
                                                  const ps_table_spec_t *spec, bool restoring,
                                                  psd_error_t *err);
/* request: that wants it, or NULL. */
PSD_MUST_CHECK psd_status_t ps_control_drop_table(ps_control_t *self,
                                                  const ps_control_request_t *request,
                                                  const char *name, psd_error_t *err);
/* request: that made it, or NULL. */
void ps_control_take_table_back(ps_control_t *self, const ps_control_request_t *request,
                                const char *name);
/* Whether a table that needs more copies than nodes are up may get them
 * within the request's timeout: then the request pauses. */
bool ps_control_may_have_nodes(const ps_control_t *self, ps_control_request_t *request,
                               const ps_table_spec_t *spec);
/* control.c: whether a request that waits for the nodes creates the table,
 * and may yet withdraw it. */
bool ps_control_is_made(const ps_control_t *self, uint32_t table);
/* control.c: looks again at the waiting requests that are due. */
void ps_control_look_again(ps_control_t *self);
/* control_unknown.c */
ps_control_op_t ps_control_registry_unknown;
ps_control_op_t ps_control_registry_accept;
ps_control_op_t ps_control_registry_discard;
/* control_members.c: adds, promotes, replaces and removes members of the registry. */
void ps_control_tend_members(ps_control_t *self);
/* The members, and the nodes that could be one. */
typedef struct ps_members_view {
    ps_quorum_view_t view;
    ps_member_sight_t sights[PS_QUORUM_MEMBERS_MAX];
    ps_care_member_t members[PS_QUORUM_MEMBERS_MAX];
    ps_care_node_t nodes[PS_CANDIDATES_MAX];
    char domains[PS_QUORUM_MEMBERS_MAX + PS_CANDIDATES_MAX][PS_ENDPOINT_MAX + 1];
    ps_care_t care;
} ps_members_view_t;
/* Looks; the result borrows from the registry and itself. There is a replicated registry. */
void ps_control_view_members(ps_control_t *self, ps_members_view_t *ret_view);
/* Answers to nodes name the members from now on. */
void ps_control_tell_seats(ps_control_t *self);
/* control_accept.c */
ps_control_op_t ps_control_auth_accept;
/* control_invite.c */
ps_control_op_t ps_control_auth_invite;
ps_control_op_t ps_control_node_invite;
ps_control_op_t ps_control_node_rights;
/* control_node.c */
ps_control_op_t ps_control_node_join;
/* A message of builds before PS_NODE_FORMAT 4: refuses it by name. */
ps_control_op_t ps_control_node_old;

/* control_problems.c */
/* "problems": what an operator should know, and what psd does about it.
 * request: has the nodes' answers to INSPECT. false: no memory. */
PSD_MUST_CHECK bool ps_control_add_problems(const ps_control_t *self,
                                            const ps_control_request_t *request, ps_doc_t *reply,
                                            bool *ret_any);
/* Why a drain does not finish. */
void ps_control_print_stuck(const ps_node_t *node, const ps_node_left_t *left, char *ret_text,
                            size_t size);
/* What is wrong with one table. false: no memory. */
PSD_MUST_CHECK bool ps_control_add_table_problems(const ps_control_t *self, const ps_table_t *table,
                                                  ps_doc_t *array);
/* Adds a line for each node that has primaries of the table and is silent,
 * or that clients do not reach; sets *ret_any when there is one. false: no
 * memory. */
PSD_MUST_CHECK bool ps_control_add_silent(const ps_control_t *self, const ps_table_t *table,
                                          ps_doc_t *array, bool *ret_any);
/* control_skew.c */
/* "warnings": what is not wrong but costs time or memory: nodes that may run
 * out of memory, and tables of which one partition has more than three times
 * its share (model/tables/skew.h). answers: of INSPECT. false: no memory. */
PSD_MUST_CHECK bool ps_control_add_warnings(const ps_control_t *self, const ps_answers_t *answers,
                                            ps_doc_t *reply);
/* Those of one table; none while a primary has not answered. */
PSD_MUST_CHECK bool ps_control_add_skew(const ps_table_t *table, const ps_answers_t *answers,
                                        ps_doc_t *array);

/* control_memory.c: nodes whose rows use more than eight tenths of their
 * limit. */
PSD_MUST_CHECK bool ps_control_add_memory(const ps_control_t *self, const ps_answers_t *answers,
                                          ps_doc_t *array);

/* control_voters.c */
/* Voters of the registry; 0: it is alone. */
uint32_t ps_control_n_voters(const ps_control_t *self);
/* A problem when voters are silent; a warning when there are too few to survive the
 * loss of one; `registry` of the status. false: no memory. */
PSD_MUST_CHECK bool ps_control_add_voters(const ps_control_t *self, ps_doc_t *array);
PSD_MUST_CHECK bool ps_control_add_lonely(const ps_control_t *self, ps_doc_t *array);
PSD_MUST_CHECK bool ps_control_add_registry(const ps_control_t *self, ps_doc_t *reply);

/* control_news.c: rows of the history: nodes that fall silent or come back;
 * refused nodes. at_once: waiting would not help. */
void ps_control_note_nodes(ps_control_t *self);
/* Damage that a node found at its start; "": nothing. */
void ps_control_note_damage(ps_control_t *self, const char *name, const char *damage);
/* A row for each table that lost rows by an applied command. */
void ps_control_note_losses(ps_control_t *self, const ps_command_t *command);
void ps_control_note_denied(ps_control_t *self, const char *name, bool at_once, const char *why);
/* … which cluster status shows for a while. false: no memory. */
PSD_MUST_CHECK bool ps_control_add_denied(const ps_control_t *self, ps_doc_t *problems);

/* control_look.c */
/* Looks at all that it knows, for /metrics, when that is due. */
void ps_control_look(ps_control_t *self);
/* When that is; UINT64_MAX: never. */
uint64_t ps_control_look_at(const ps_control_t *self);
/* It leads no more: others know. */
void ps_control_look_away(ps_control_t *self);
/* The checkpoint's work has ended. */
void ps_control_count_checkpoint(ps_control_t *self, bool is_done);

/* control_drain.c */
ps_control_op_t ps_control_node_drain;
ps_control_op_t ps_control_node_remove;
ps_control_op_t ps_control_cluster_rebalance;
ps_control_op_t ps_control_cluster_repair;

/* control_moves.c */
/* Bytes of partitions as their primaries report them: answers of INSPECT. */
void ps_control_learn_bytes(ps_control_t *self, const ps_answers_t *answers);
/* "moves", "bytes", "bytes_done", "bytes_per_s", "rate" (measured, limit or
 * assumed) and "seconds" until they are made. false: no memory. */
PSD_MUST_CHECK bool ps_control_add_moves(const ps_control_t *self, const ps_move_t *moves, size_t n,
                                         const ps_answers_t *answers, ps_doc_t *reply);

/* control_copies.c */
/* A report of a shard of the node with that incarnation about a copy. */
void ps_control_take_report(ps_control_t *self, uint64_t from, const ps_report_t *report);
/* Makes the registry's decisions about copies; call it after everything that
 * may bring a report. */
void ps_control_decide(ps_control_t *self);
/* The same at the start; gives nodes time to find this registry. */
void ps_control_decide_later(ps_control_t *self);
/* When the next decision may be due; UINT64_MAX for never. */
uint64_t ps_control_decide_at(const ps_control_t *self);
/* Sends the tables whose copies the command has changed. */
void ps_control_tell_changes(ps_control_t *self, const ps_command_t *command);

/* Runs the operation again when every node that is up has answered, or is
 * known not to answer. Returns PSD_OK. */
psd_status_t ps_control_ask(ps_control_request_t *request, ps_call_kind_t kind, uint32_t job);
/* Asks the same question again, a little later. Returns PSD_OK. */
psd_status_t ps_control_ask_again(ps_control_request_t *request);
/* Runs the operation again a little later, in the same step, without a
 * question. A repetition of the request waits with it. Returns PSD_OK. */
psd_status_t ps_control_pause(ps_control_request_t *request);
/* Makes it wait for a barrier or a slice of the job, for the "timeout_ms" that
 * it names, a day at most. Errors: PSD_PROTO. */
PSD_MUST_CHECK psd_status_t ps_control_wait(ps_control_request_t *request, ps_waits_for_t kind,
                                            const ps_job_t *job, psd_error_t *err);
/* The next request that waits for that; see ps_waiters_next. */
ps_control_request_t *ps_control_next(const ps_control_t *self, const ps_control_request_t *after,
                                      ps_waits_for_t kinds, uint32_t job);
/* PSD_OK when all nodes have answered. Errors: PSD_BUSY naming one. */
PSD_MUST_CHECK psd_status_t ps_control_check_answered(const ps_control_request_t *request,
                                                      psd_error_t *err);
/* Sets `members`: the nodes that have the registry. False: no memory. */
PSD_MUST_CHECK bool ps_control_add_members(const ps_control_t *self, ps_doc_t *reply);
/* PSD_OK when it is this cluster. Errors: PSD_CLUSTER. */
PSD_MUST_CHECK psd_status_t ps_control_check_uuid(const ps_control_t *self, const ps_id_t *wanted,
                                                  psd_error_t *err);
/* PSD_OK when doc names no cluster under "cluster", or this one. Errors:
 * PSD_CLUSTER, PSD_PROTO. */
PSD_MUST_CHECK psd_status_t ps_control_check_cluster(const ps_control_t *self, const ps_doc_t *doc,
                                                     psd_error_t *err);
/* PSD_OK when doc's "versions" has the one that this psd speaks with such a
 * peer; else the error names the peer (`who`: "client", "node") and what to
 * do. Errors: PSD_VERSION, PSD_PROTO. */
PSD_MUST_CHECK psd_status_t ps_control_check_versions(const ps_doc_t *doc, const char *who,
                                                      uint64_t spoken, const char *hint,
                                                      psd_error_t *err);

/* PSD_OK when the request may come from this session. Errors: PSD_NO_SESSION.
 */
PSD_MUST_CHECK psd_status_t ps_control_check_session(const ps_control_t *self, uint64_t session,
                                                     psd_error_t *err);
/* PSD_OK unless it comes from a worker that was lost together with rows.
 * Errors: PSD_ROWS_LOST, naming the table. */
PSD_MUST_CHECK psd_status_t ps_control_check_rows(const ps_control_t *self,
                                                  const ps_control_request_t *request,
                                                  psd_error_t *err);
/* control_commit.c: ps_replica_commit. Nothing is sent from then on until
 * ps_control_flush. */
PSD_MUST_CHECK psd_status_t ps_control_commit(ps_control_t *self, const ps_command_t *command,
                                              ps_log_level_t level, psd_error_t *err);
/* The same for a command that is what the request asks for: a repetition gets
 * it as request->outcome with `detail`, even from another member. */
PSD_MUST_CHECK psd_status_t ps_control_commit_for(ps_control_t *self,
                                                  const ps_control_request_t *request,
                                                  ps_command_t *command, uint64_t detail,
                                                  ps_log_level_t level, psd_error_t *err);
/* Flushes what was stored in this turn, and sends what waited for that. false: it
 * is unknown what is stored, nothing was sent, and psd, or this control part, is to end. */
bool ps_control_flush(ps_control_t *self);
/* The same, before something is done outside of the registry. Errors: PSD_NOT_LEADER. */
PSD_MUST_CHECK psd_status_t ps_control_check_flushed(ps_control_t *self, psd_error_t *err);
/* That, and sends all that nodes are to be told or asked. */
void ps_control_send_due(ps_control_t *self);
/* Ends the command's text, which goes into the history, with who asked for it. Commands that
 * are committed with ps_control_commit_for are signed there. */
void ps_control_sign(const ps_control_t *self, const ps_control_request_t *request,
                     ps_command_t *command);
/* control_who.c */
/* The principal that a caller is: by its key, or on this host by its uid. NULL: none. */
const ps_principal_t *ps_control_principal(const ps_control_t *self, const ps_asker_t *caller);
/* control_may.c */
/* Whether who asks has a right to it. PSD_OK also where rights are not checked. Errors:
 * PSD_DENIED, with who it is and what to do. */
PSD_MUST_CHECK psd_status_t ps_control_may(const ps_control_t *self,
                                           const ps_control_request_t *request, psd_error_t *err);
/* A list that is asked for has this table or job. */
bool ps_control_sees(const ps_control_t *self, const ps_control_request_t *request,
                     ps_object_t object, const char *name);
/* One more right, which the request needs for what it also does. Errors: those of
 * ps_control_may. */
PSD_MUST_CHECK psd_status_t ps_control_may_also(const ps_control_t *self,
                                                const ps_control_request_t *request, ps_verb_t verb,
                                                ps_object_t object, const char *name,
                                                psd_error_t *err);
/* The session is that of who asks. Errors: PSD_DENIED it is another one's. */
PSD_MUST_CHECK psd_status_t ps_control_own_session(ps_control_t *self,
                                                   const ps_control_request_t *request,
                                                   uint64_t session, psd_error_t *err);
/* Before the first request: where nobody may change principals, the owner of psd and root
 * become admins. Errors: PSD_CONFIG nobody can be one; those of ps_control_commit. */
PSD_MUST_CHECK psd_status_t ps_control_begin_rights(ps_control_t *self, psd_error_t *err);
/* control_node_key.c */
/* The node of that name has that key from now on, as principal "node.NAME". request: by which;
 * NULL: nobody asked. Errors: PSD_INVALID the name is too long, or the key is another one's; those
 * of ps_control_commit. */
PSD_MUST_CHECK psd_status_t ps_control_know_node(ps_control_t *self, ps_control_request_t *request,
                                                 const char *node, const char *key,
                                                 psd_error_t *err);
/* A node of that name can have a principal. Errors: PSD_INVALID the name is too long, or its
 * principal is no node. */
PSD_MUST_CHECK psd_status_t ps_control_check_node_name(const ps_control_t *self, const char *node,
                                                       psd_error_t *err);
/* The node has no part of the registry: whose key is denied is heard no more, and a member that
 * is not heard could be the one that is needed to let it in again. Errors: PSD_DENIED it has. */
PSD_MUST_CHECK psd_status_t ps_control_check_guest(const ps_control_t *self, const char *node,
                                                   psd_error_t *err);
/* The same for the node whose principal that is, if it is one that may speak. */
PSD_MUST_CHECK psd_status_t ps_control_check_no_member(const ps_control_t *self,
                                                       const char *principal, psd_error_t *err);
/* The request removed the node: its key may nothing any more. One that has none is fine. Errors:
 * those of ps_control_commit. */
PSD_MUST_CHECK psd_status_t ps_control_deny_node(ps_control_t *self,
                                                 const ps_control_request_t *request,
                                                 const char *node, psd_error_t *err);
/* The caller speaks for a node: as one of the principals of role node. true also where rights
 * are not checked. */
PSD_MUST_CHECK bool ps_control_is_node(const ps_control_t *self, const ps_asker_t *caller);
/* The caller has a token (invites.h), known, whatever became of it. */
PSD_MUST_CHECK bool ps_control_has_token(const ps_control_t *self, const ps_asker_t *caller);
/* control_accept.c: a client may be invited under that name. Errors: PSD_INVALID it is that of
 * a node, or of one who is let in already. */
PSD_MUST_CHECK psd_status_t ps_control_check_newcomer(const ps_control_t *self, const char *name,
                                                      psd_error_t *err);
/* A node of that name and key may join with the token. Errors: PSD_DENIED it
 * was used by another one, has expired, was taken back, is for another node or a client, or was
 * made by one who may not make any now; the key is that of a token. */
PSD_MUST_CHECK psd_status_t ps_control_check_token(const ps_control_t *self,
                                                   const ps_invite_t *invite, const char *node,
                                                   const char *key, psd_error_t *err);
/* control_auth.c: "role", and of which "tables" and "jobs". Errors: PSD_INVALID no role that a
 * person or a job may have; those of ps_doc_get_text. */
PSD_MUST_CHECK psd_status_t ps_control_read_rule(const ps_doc_t *doc, ps_rule_t *ret_rule,
                                                 psd_error_t *err);
/* control_auth.c: a principal as "auth_list" shows it. false: no memory. */
PSD_MUST_CHECK bool ps_control_fill_principal(const ps_principal_t *principal, ps_doc_t *doc);
/* The principal that the document names. Errors: PSD_INVALID there is none. */
PSD_MUST_CHECK psd_status_t ps_control_find_principal(const ps_control_t *self, const ps_doc_t *doc,
                                                      const char *key,
                                                      const ps_principal_t **ret_principal,
                                                      psd_error_t *err);
/* It is as given from now on, for that request. Errors: those of ps_registry_plan_principal and
 * ps_control_commit_for. */
PSD_MUST_CHECK psd_status_t ps_control_put_principal(ps_control_t *self,
                                                     const ps_control_request_t *request,
                                                     const ps_principal_t *next, psd_error_t *err);
/* The answer: the principal of that name as it is now. */
PSD_MUST_CHECK psd_status_t ps_control_answer_principal(const ps_control_t *self,
                                                        ps_control_request_t *request,
                                                        const char *name, psd_error_t *err);
/* control_rotate.c: ends the old keys whose time is over. */
void ps_control_end_old_keys(ps_control_t *self);
/* The shards get the principals, if they have changed. */
void ps_control_tell_rights(ps_control_t *self);
#define PS_CONTROL_WHO_SIZE 192
/* "alice (uid 1000)", "uid 1000", "127.0.0.1". Returns ret. */
const char *ps_control_print_who(const ps_control_t *self, const ps_asker_t *caller,
                                 char ret[PS_CONTROL_WHO_SIZE]);
/* control_answer.c */
/* A document with v, id and status; NULL: no memory. */
PSD_MUST_CHECK ps_doc_t *ps_control_new_reply(uint64_t id, psd_status_t status);
/* Sends a text as it is. Errors go to the log: the client asks again. */
void ps_control_send_text(ps_control_t *self, uint64_t conn, ps_bytes_t text);
/* Sends an answer; NULL means no memory. Errors go to the log. */
void ps_control_send_reply(ps_control_t *self, const ps_control_request_t *request,
                           const ps_doc_t *reply);
/* Sends a refusal. "" as text: the status's own. */
void ps_control_refuse(ps_control_t *self, const ps_control_request_t *request, psd_status_t status,
                       const char *text);
/* Sends the answer, request->reply or a refusal, and destroys the
 * request, which may wait. "" as text: the status's own. */
void ps_control_end(ps_control_t *self, ps_control_request_t *request, psd_status_t status,
                    const char *text);
/* "no memory for an answer" */
psd_status_t ps_control_no_memory(psd_error_t *err);

/* The table that `key` names. Errors: PSD_PROTO, PSD_NO_TABLE. */
PSD_MUST_CHECK psd_status_t ps_control_find_table(const ps_control_t *self, const ps_doc_t *doc,
                                                  const char *key, const ps_table_t **ret_table,
                                                  psd_error_t *err);
/* Whether this node has the updater of a table. Errors: as ps_plugins_bind. */
PSD_MUST_CHECK psd_status_t ps_control_check_updater(const ps_control_t *self,
                                                     const ps_table_spec_t *spec, psd_error_t *err);
/* The job that "job_id" names by its number, or "job" by number or name.
 * Errors: PSD_PROTO, PSD_NO_JOB. */
PSD_MUST_CHECK psd_status_t ps_control_find_job(const ps_control_t *self, const ps_doc_t *doc,
                                                const ps_job_t **ret_job, psd_error_t *err);
/* "tables":[{"table":…,"routes":[…]},…] of a job, only those that every node
 * had at the question, because a worker at once marks its clocks in each of
 * them. "version" of the job, or the previous one, so that the worker asks
 * for the rest. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_control_add_job_tables(ps_control_t *self, const ps_job_t *job,
                                                      const ps_control_request_t *request,
                                                      psd_error_t *err);
/* One table as `pscli table inspect` shows it, into doc. with_partitions: also
 * where each lives. false: no memory. */
PSD_MUST_CHECK bool ps_control_table_doc(const ps_control_t *self, const ps_table_t *table,
                                         const ps_answers_t *answers, bool with_partitions,
                                         ps_doc_t *doc);
/* {"pushes":…} of one table over all shards. false: no memory. */
PSD_MUST_CHECK bool ps_control_stats_doc(const ps_table_t *table, const ps_answers_t *answers,
                                         ps_doc_t *doc);

/* The job has changed: tells the nodes, and opens its barrier or ends
 * requests that wait there in vain. */
void ps_control_job_changed(ps_control_t *self, uint32_t job);
/* control_lost.c: after rows may have been lost: declares the workers of
 * jobs that used them lost, and gives the reason. */
void ps_control_end_jobs(ps_control_t *self);
/* control_find.c: how long a worker waits until its next heartbeat: the more workers
 * there are, the longer. */
uint64_t ps_control_beat_ms(const ps_control_t *self);
/* Declares workers lost that have been silent too long, unless this process
 * stood still. */
void ps_control_lose_silent(ps_control_t *self);
/* The request waits at its barrier from now on: the barrier may open, or its
 * worker be gone. */
void ps_control_begin_barrier(ps_control_t *self, ps_control_request_t *request);
/* Continues requests whose answers have come. */
void ps_control_go_on(ps_control_t *self);
/* Its deadline has passed: ends the request at a barrier. */
void ps_control_expire_barrier(ps_control_t *self, ps_control_request_t *request, uint64_t now_ms);
#endif
