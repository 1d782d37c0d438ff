/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/protocol/registry: the agreed state of the cluster
 *
 * It is       Commands: planned against the state, checked, tried, kept or undone.
 *             Nodes, tables, jobs, workers, work queues. Their fields, from which
 *             bytes and rows follow.
 * It uses     facts, core, trust, lib/wire, lib/model, lib/base.
 * It ignores  SQLite, sockets, callers, and which copies should move
 *             (placement).
 * Start at    registry_fields.def, then the file of a command's noun, which
 *             plans, checks and applies it: registry_table.c; _cluster, _node,
 *             _job, _job_table, _queue, _copies (planned by placement). Joins
 *             and work have plans of their own: registry_join.c, _work.
 *             command_code.h: a command's bytes and their version.
 *             registry_live.c: heartbeats, and workers silent for too long.
 *             registry.c runs commands.
 */
/*
 * ps_registry - the cluster's membership, tables, placement, jobs and workers
 *
 * What     A deterministic state machine fed by an ordered list of commands. A
 *          request is first planned: checked against the state and turned into
 *          a command (or refused), without changing anything. The shell tries
 *          the command, stores the rows that it touched, and keeps it, or
 *          undoes it if they cannot be stored. So every answered request is on
 *          disk. The same commands in the same order give the same state; the
 *          log of a replicated registry (quorum) relies on that.
 * Units    now_ms: boot clock, only for liveness, never stored. unix_ms: wall
 *          clock, stored in events, never used for decisions.
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_REGISTRY_H
#define PS_PROTOCOL_REGISTRY_H

#include "protocol/facts/copies.h"
#include "protocol/facts/job.h"
#include "protocol/facts/lost.h"
#include "protocol/facts/work.h"
#include "protocol/registry/registry_fields.def"
#include "protocol/trust/trust.h"

#define PS_NODE_SHARDS_MAX 1024
#define PS_JOBS_ENDED_MAX 256 /* ended jobs that are kept */
#define PS_OUTCOMES_KEPT 4096 /* of requests, for their repetitions */
#define PS_SM_VERSION 6       /* what this psd applies; the state has what the cluster agreed on */
#define PS_SETTINGS_MAX 32
#define PS_PRINCIPALS_MAX 1024 /* none is ever forgotten: a denied one is known as such */

typedef struct ps_registry ps_registry_t;

/* What is stored of the cluster as a whole. */
typedef struct ps_cluster {
    uint32_t id; /* 1 */
    char name[PS_NAME_MAX + 1];
    ps_id_t uuid;
    uint64_t epoch;
    uint64_t sessions;   /* up to this one they may be given out */
    uint32_t last_table; /* highest ids ever given */
    uint32_t last_job;
    uint64_t created_unix_ms;
    ps_id_t lineage;     /* of its history: the uuid at first, another one after a restore */
    uint32_t sm_version; /* of what commands mean, up to PS_SM_VERSION */
} ps_cluster_t;

typedef struct ps_node {
    uint32_t id;              /* > 0, in the order of first starts; 0 in a plan: a new node, or one
                                 that keeps its id */
    uint64_t started_unix_ms; /* its last start; 0 in a plan */
    char name[PS_NAME_MAX + 1];
    uint64_t incarnation; /* random, made at every start */
    uint32_t n_shards;
    uint32_t weight; /* its share of the copies relative to other nodes; 0: its number of shards; up
                        to PS_NODE_SHARDS_MAX */
    ps_id_t secret;  /* the same for all its lives: a node with its name must prove it; zero: none
                        yet */
    char control[PS_ENDPOINT_MAX + 1];
    ps_route_t *shards;    /* owned; n_shards: tcp and ipc of each shard */
    bool draining;         /* it gets no copies, and its copies move away */
    uint32_t held;         /* ps_hold_t; its starts do not change that */
    bool kept;             /* a start only: its logs were read, and tables with a log are restored
                              up to the last flush. They existed when an earlier life joined: of two
                              starts without a join between, the second must not count as kept what
                              the first did not find */
    const ps_lost_t *lost; /* borrowed, a start only: the unreadable part of what was kept */
    size_t n_lost;
    bool accepts_loss; /* a start only: last copies in `lost` may be given up */
    /* Not stored. */
    bool up;                     /* it has started or was heard since the registry was loaded, and
                                    is not suspect; only such nodes get partitions */
    bool suspect;                /* silent for too long (registry_decide.h) */
    uint64_t last_seen_ms;       /* now_ms of its last heartbeat */
    uint64_t started_ms;         /* now_ms of its start, or of the load */
    uint64_t disk_ms;            /* now_ms when a primary last left it because its disk failed; 0:
                                    never */
    uint64_t unreached_ms;       /* now_ms when a client last reported that it cannot reach it
                                    (registry_decide.h); 0: none did */
    uint64_t unreached_until_ms; /* until then that report is valid */
} ps_node_t;

/* What an operator took from a node, and no leader gives it by itself. */
typedef enum ps_hold {
    PS_HOLD_NOT = 0,
    PS_HOLD_VOTE = 1, /* its vote in the registry */
    PS_HOLD_OUT = 2   /* its part of it */
} ps_hold_t;

typedef enum ps_node_state {
    PS_NODE_UP = 1,
    PS_NODE_DRAINING = 2,
    PS_NODE_REMOVED = 3
} ps_node_state_t;

typedef struct ps_table {
    uint32_t id; /* > 0, never used twice */
    uint64_t created_unix_ms;
    bool rows_lost;         /* the last whole copy of a partition was restarted: earlier pushes
                               are lost; stays true until the table is dropped */
    bool loss_acked;        /* an operator acknowledged the loss, and continues with the rows
                               pushed since; another loss clears it */
    uint64_t lost_sessions; /* sessions up to this one are older than the loss, and are refused;
                               0: none */
    uint32_t lost_jobs;     /* jobs up to this one that have it open opened it before the loss; 0:
                               those have been notified, and another job has opened it since */
    bool restoring;         /* rows of a checkpoint are still missing: no client may use it, and
                               it does not outlive the registry process that restores it */
    ps_table_spec_t spec;   /* settled and checked */
    ps_copies_t *copies;    /* owned; spec.n_partitions, in order */
    ps_route_t *routes;     /* owned; parallel to copies: the route to each first copy, for
                               clients. In a command: NULL */
    uint64_t *changed;      /* owned; parallel to copies: the registry's revision when it last
                               changed; in a command: NULL */
    uint64_t revision;      /* … of the last change of the table. Not stored */
    uint64_t *bytes;        /* owned; parallel to copies: size of each, as last reported
                               (ps_registry_set_bytes); in a command: NULL */
    struct ps_copy_watch *watches; /* owned; parallel to copies, for the registry only; in a
                                 command: NULL */
} ps_table_t;

/* They free what the value owns and zero it; fit PSD_AUTO. */
void ps_node_done(ps_node_t *self);
void ps_table_done(ps_table_t *self);

/* The new copies of one partition. */
typedef struct ps_change {
    uint32_t table;
    uint32_t partition;
    bool rows_lost;     /* its rows are lost */
    uint64_t prefer;    /* incarnation of the copy to promote among equal ones; 0: any. Not
                           stored */
    ps_copies_t copies; /* tcp of each is filled in */
} ps_change_t;

/* The changes of the stored state; registry_fields.def has the list. */
#define PS_COMMAND_ENUM(NAME, number, word, event) PS_COMMAND_##NAME = number,
typedef enum ps_command_kind { PS_COMMAND_MAP(PS_COMMAND_ENUM) } ps_command_kind_t;
#undef PS_COMMAND_ENUM

/* What the cluster can set; registry_fields.def has the list. */
#define PS_SETTING_ENUM(NAME, number, key) PS_SETTING_##NAME = number,
typedef enum ps_setting_id { PS_SETTING_MAP(PS_SETTING_ENUM) PS_SETTING_END } ps_setting_id_t;
#undef PS_SETTING_ENUM

typedef struct ps_setting {
    uint32_t id;    /* ps_setting_id_t */
    uint64_t value; /* as the node's configuration has it; 0, 1: false, true */
} ps_setting_t;

/* registry_fields.def says which command carries which member. */
typedef struct ps_command {
    ps_command_kind_t kind;
    uint64_t unix_ms;
    uint64_t epoch;             /* the map's epoch after this command */
    uint64_t session;           /* whose request it answers … */
    uint64_t request;           /* … and the request's id; 0, 0: no client's */
    uint64_t detail;            /* for the outcome, by the one who knows the request */
    char text[256];             /* for people: "worker 2 of job lr was lost" */
    ps_cluster_t cluster;       /* its creation is unix_ms */
    char name[PS_NAME_MAX + 1]; /* of the node, table or queue */
    uint64_t number;            /* sessions stored so far; id of a table; ps_node_state_t; term */
    uint64_t member;            /* that leads in the term */
    ps_combine_t combine;       /* of the table, from now on */
    ps_setting_t setting;
    bool is_set;                /* … has that value; false: what nodes' files say counts */
    ps_principal_t *principals; /* owned; of PRINCIPAL one, as it is from now on */
    size_t n_principals;
    ps_node_t node;       /* owned */
    ps_change_t *changes; /* owned; ascending by table and partition */
    size_t n_changes;
    ps_table_t table;           /* owned */
    ps_job_t job;               /* owned; only the id if the command carries no more */
    ps_work_t work;             /* owned */
    ps_work_resumed_t *resumed; /* of a job at its start; owned, and each element too */
    size_t n_resumed;
    uint32_t n_expected;      /* workers expected at a job's start */
    uint64_t created_unix_ms; /* of a job */
    uint64_t ended;           /* on load: the job's place in the order of ends; 0: none, or assigned
                                 now */
    bool told;                /* all jobs that had the table open when it lost rows have been
                                 notified; this job opens it after that */
} ps_command_t;

/* Frees its contents and zeroes it; fits PSD_AUTO. */
void ps_command_done(ps_command_t *self);

/* What one command did for a client's request. It is part of the state, so a
 * request that is repeated is not done again, whoever answers it. */
typedef struct ps_outcome {
    uint64_t id;      /* 1, 2, 3 …; the last PS_OUTCOMES_KEPT are kept */
    uint64_t session; /* > 0 */
    uint64_t request; /* its id, of the session */
    uint32_t kind;    /* ps_command_kind_t */
    uint64_t number;  /* id of the table, job or node, number of the queue; 0: of none */
    uint64_t detail;  /* of the command */
} ps_outcome_t;

typedef struct ps_registry_args {
    uint32_t default_partitions; /* row slices of a table whose request names none */
    uint64_t lost_after_ms;      /* silence after which a worker is lost */
    uint64_t join_within_ms;     /* time for expected workers to join */
    uint64_t heartbeat_ms;       /* 1000: between two signs of life of a worker */
    uint32_t tables_max;         /* limits refuse new ones, never a load */
    uint32_t jobs_max;           /* jobs that have not ended */
    uint32_t nodes_max;
    bool disk;                      /* nodes have logs: level disk is available */
    uint32_t copies_max;            /* replicas that a table may want, up to
                                       PS_REPLICAS_MAX; 0 is 1 */
    uint64_t copy_bytes_per_s;      /* of each node, which goes by it: rows to new copies; 0: any */
    uint64_t busy_copy_bytes_per_s; /* the same while clients use the shards */
    /* For registry_decide.h; 0 means the default given with each. */
    uint64_t suspect_after_ms;   /* 400: silence after which a node is suspect */
    uint64_t ask_again_ms;       /* 100: between retries of a fence */
    uint64_t repair_after_ms;    /* 30000: silence after which a node is given up: its copies are
                                    created again elsewhere */
    uint64_t unreached_after_ms; /* 2000: silence after which a client's report that it cannot reach
                                    a node counts, and a primary's report that it cannot reach a
                                    copy */
    uint64_t lease_ms;           /* 300: that shards have: nothing is promoted on
                                    a node that has started since */
    uint64_t catch_up_after_ms;  /* 600000, plus 1 s for each MB to be copied: a copy that has not
                                    caught up by then is given up if another node can take one */
    uint32_t catching_up_max;    /* 1: concurrent new copies on a node */
    uint32_t moves_max;          /* 4: concurrent rebalancing moves, of copies and of primaries */
    uint32_t uneven_max;         /* 1: copies above its share that a node may have before one moves
                                    away */
    bool rebalance_on_request;   /* rebalance only after ps_registry_even_out, until the nodes are
                               even */
} ps_registry_args_t;

/* Errors: PSD_INVALID an argument is 0; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_new(const ps_registry_args_t *args,
                                            ps_registry_t **ret_registry, psd_error_t *err);
void ps_registry_destroy(ps_registry_t **self_p);

/*
 * Applies a planned or decoded command, which stays the caller's, on trial: the
 * shell stores the rows that it touched (registry_rows.h), then keeps it, or
 * undoes it if they cannot be stored. Call nothing else in between. Errors,
 * with the state unchanged: PSD_DAMAGED it does not fit the state; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_registry_try(ps_registry_t *self, const ps_command_t *command,
                                            uint64_t now_ms, psd_error_t *err);
void ps_registry_keep(ps_registry_t *self);
void ps_registry_undo(ps_registry_t *self);
/* Tries and keeps it. */
PSD_MUST_CHECK psd_status_t ps_registry_apply(ps_registry_t *self, const ps_command_t *command,
                                              uint64_t now_ms, psd_error_t *err);

/*
 * Plans. Each fills *ret_command (ps_command_done by the caller) on PSD_OK, and
 * does not change the state. A plan with nothing to change sets kind to 0. All
 * may fail with PSD_NOMEM, PSD_INVALID for arguments, and PSD_LIMIT.
 */
/* Kind 0 when the cluster exists already. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_cluster(const ps_registry_t *self, const char *name,
                                                     const ps_id_t *uuid, uint64_t unix_ms,
                                                     ps_command_t *ret_command, psd_error_t *err);
/* Settles and checks the spec, gives the table its id and spreads copies of its
 * partitions over the shards of all nodes that are up and not draining; all are
 * in sync, because they are empty. Errors: PSD_TABLE_EXISTS; PSD_FEW_NODES
 * fewer than replicas; PSD_UNSUPPORTED more replicas than args.copies_max, a
 * level that copies in memory cannot reach, or a table that does not combine each
 * in a cluster of machine version 1; PSD_INVALID the level wants more
 * replicas. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_table(const ps_registry_t *self,
                                                   const ps_table_spec_t *spec, uint64_t unix_ms,
                                                   ps_command_t *ret_command, psd_error_t *err);
/* Sets what becomes of a clock's pushes. Kind 0 when it is so already. Errors:
 * PSD_NO_TABLE; PSD_INVALID the updater does not take that; PSD_UNSUPPORTED the
 * cluster is of machine version 1; PSD_BUSY a job whose workers run has the table
 * open. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_set(const ps_registry_t *self, const char *name,
                                                 ps_combine_t combine, uint64_t unix_ms,
                                                 ps_command_t *ret_command, psd_error_t *err);
/* Acknowledges that the table lost rows: it is no longer reported as a problem.
 * Kind 0 when it lost none, or the loss is acknowledged already. Errors:
 * PSD_NO_TABLE. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_ack(const ps_registry_t *self, const char *name,
                                                 uint64_t unix_ms, ps_command_t *ret_command,
                                                 psd_error_t *err);
/* Allows use of a table that was planned with `restoring`. Kind 0 when it is
 * allowed already. Errors: PSD_NO_TABLE. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_restored(const ps_registry_t *self, uint32_t table,
                                                      uint64_t unix_ms, ps_command_t *ret_command,
                                                      psd_error_t *err);
/* Errors: PSD_NO_TABLE. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_drop(const ps_registry_t *self, const char *name,
                                                  uint64_t unix_ms, ps_command_t *ret_command,
                                                  psd_error_t *err);
/* A node of the same name is the same node after a restart: the contents of its
 * copies are gone, unless kept. If another copy is an heir, the node's copy
 * catches up, and a primary on the node is fenced, so that an heir is promoted.
 * If no other copy is an heir, the node's copy stays (or will become) the
 * primary, and rows are lost. A kept heir of a table with a log becomes
 * PS_COPY_KEPT, or stays primary if no other copy is an heir; copies in `lost`
 * count as gone. Of its shards only tcp and ipc are read. Errors: PSD_DAMAGED
 * no other copy of a lost one is an heir, and node->accepts_loss is false. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_node(const ps_registry_t *self, const ps_node_t *node,
                                                  uint64_t unix_ms, ps_command_t *ret_command,
                                                  psd_error_t *err);
/* An event without a change: a row of the history. */
ps_command_t ps_registry_plan_note(const ps_registry_t *self, uint64_t unix_ms, const char *text);
/* Drains a node, or lets it stay; or removes it. With force its copies are
 * lost: a partition of which it had the last copy is created again, empty, and
 * rows are lost. Kind 0 when nothing changes. Errors: PSD_NO_NODE; REMOVED:
 * PSD_NODE_HELD it is up, or has copies and force is false, or no other node
 * can take a new copy. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_node_state(const ps_registry_t *self, const char *name,
                                                        ps_node_state_t state, bool force,
                                                        uint64_t unix_ms, ps_command_t *ret_command,
                                                        psd_error_t *err);
/* After a command that lost rows: marks all workers of the first job with live
 * workers that had opened the table before as lost, in one command. Plan, store
 * and apply it repeatedly until kind is 0. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_loss(const ps_registry_t *self, uint64_t unix_ms,
                                                  ps_command_t *ret_command, psd_error_t *err);
/*
 * The first command of a member that leads. It makes all earlier ones committed.
 * No session number that another leader may have given is given again. Tables
 * whose restore the earlier leader did not finish are dropped. Nothing is known
 * any more about who lives, as after a load. Errors: PSD_INVALID term or member
 * is 0, or above INT64_MAX.
 */
PSD_MUST_CHECK psd_status_t ps_registry_plan_term(const ps_registry_t *self, uint64_t term,
                                                  uint64_t member, uint64_t unix_ms,
                                                  ps_command_t *ret_command, psd_error_t *err);
/* Sets one of the cluster's settings, or, value NULL, leaves it to the nodes' files again. Kind 0
 * when it is so. Errors: PSD_UNSUPPORTED a member of the registry is of a psd that does not
 * know such commands. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_setting(const ps_registry_t *self, ps_setting_id_t id,
                                                     const uint64_t *value, const char *shown,
                                                     uint64_t unix_ms, ps_command_t *ret_command,
                                                     psd_error_t *err);
/* All members of the registry know machine version `version`: commands may be of it. Kind 0 when
 * the cluster has it, or a newer one. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_machine(const ps_registry_t *self, uint32_t version,
                                                     uint64_t unix_ms, ps_command_t *ret_command,
                                                     psd_error_t *err);
/* An operator's wish about a node as a member of the registry: it is held, or may be one again.
 * Kind 0: it is so. Errors: PSD_NO_NODE; PSD_UNSUPPORTED the cluster is of a machine version
 * below 5. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_hold(const ps_registry_t *self, const char *node,
                                                  ps_hold_t hold, uint64_t unix_ms,
                                                  ps_command_t *ret_command, psd_error_t *err);
/* A principal is as given from now on, by its name a new one or one that is known; its id and
 * epoch are the registry's to give. Kind 0 when it is so. Errors: PSD_UNSUPPORTED a member of the
 * registry is of a psd that does not know such commands, or no second key; PSD_INVALID it cannot be
 * stored, or its key or uid is another one's; PSD_DENIED nobody would be left who may change
 * principals. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_principal(const ps_registry_t *self,
                                                       const ps_principal_t *principal,
                                                       uint64_t unix_ms, ps_command_t *ret_command,
                                                       psd_error_t *err);
/* If fewer than half of n stored sessions are left: a command for n more. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_sessions(const ps_registry_t *self, uint32_t n,
                                                      uint64_t unix_ms, ps_command_t *ret_command,
                                                      psd_error_t *err);
/*
 * A worker joins. Two commands: the first makes it `joining` (and creates the
 * job with its expected workers if no current job exists). The shell tells the
 * shards, gathers the clocks that they have seen, and plans the second command
 * with them. With attach a running worker gets one more member instead: one
 * command; n_workers and max_delay are ignored. ret_command->job
 * names the joined job; of one that is known only the workers that change, as in
 * each command of a job from machine version 4 on.
 * Errors: PSD_WORKER_EXISTS; PSD_JOB_MISMATCH other n_workers or max_delay;
 * PSD_JOB_STOPPED and workers of it still run; attach: PSD_NO_JOB,
 * PSD_NO_WORKER, PSD_WORKER_LOST.
 */
typedef struct ps_join {
    const char *job;
    uint32_t worker;    /* 0 .. PS_WORKERS_MAX - 1 */
    uint32_t n_workers; /* expected, 1 .. PS_WORKERS_MAX */
    int32_t max_delay;
    bool attach;
} ps_join_t;
PSD_MUST_CHECK psd_status_t ps_registry_plan_join(const ps_registry_t *self, const ps_join_t *join,
                                                  uint64_t unix_ms, ps_command_t *ret_command,
                                                  psd_error_t *err);
/* A job that resumes from a checkpoint: its workers are expected, at a clock
 * that they have finished, without a time limit until the first one joins; then
 * as in any job. */
typedef struct ps_resume {
    const char *job;
    uint32_t n_workers;
    int32_t max_delay;
    uint64_t clock;
    const ps_work_resumed_t *queues;
    size_t n_queues; /* up to PS_QUEUES_MAX */
} ps_resume_t;
/* Errors: PSD_BUSY a job of that name has not ended; PSD_LIMIT, PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_resume(const ps_registry_t *self,
                                                    const ps_resume_t *resume, uint64_t unix_ms,
                                                    ps_command_t *ret_command, psd_error_t *err);
/* Makes the joining worker run. Its start follows from the workers' clocks at
 * their most advanced partitions (clocks[i] belongs to ranks[i]; a worker that
 * is not named is at its own start). An expected worker starts where it was
 * expected, because it held all others there. Otherwise the start is for BSP
 * the highest clock of all, for SSP and ASP that of the slowest other live
 * worker, or 0 if there is none. Kind 0 when it runs already. Errors:
 * PSD_NO_JOB, PSD_NO_WORKER, PSD_WORKER_LOST it was lost meanwhile. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_start(const ps_registry_t *self, uint32_t job,
                                                   uint32_t worker, const uint32_t *ranks,
                                                   const uint64_t *clocks, size_t n,
                                                   uint64_t unix_ms, ps_command_t *ret_command,
                                                   psd_error_t *err);
/* A worker finishes (it must run), or is lost. Kind 0 when it has finished
 * already, or is lost already and `lost` is wanted. Errors: PSD_NO_JOB;
 * PSD_NO_WORKER; PSD_WORKER_LOST it should finish but is lost. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_end(const ps_registry_t *self, uint32_t job,
                                                 uint32_t worker, ps_worker_state_t state,
                                                 uint64_t unix_ms, ps_command_t *ret_command,
                                                 psd_error_t *err);
/* As plan_end for a lost worker, and gives up its job: if no other worker is in
 * it or has finished it, workers that never joined are no longer expected. The
 * job has then ended, and a later worker starts a new one. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_give_up(const ps_registry_t *self, uint32_t job,
                                                     uint32_t worker, uint64_t unix_ms,
                                                     ps_command_t *ret_command, psd_error_t *err);
/* Stops a job: the shards tell running workers; expected ones are lost. Kind 0
 * when the job has ended or is stopped. Errors: PSD_NO_JOB. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_stop(const ps_registry_t *self, const char *job,
                                                  uint64_t unix_ms, ps_command_t *ret_command,
                                                  psd_error_t *err);
/* Kind 0 when the job has the table open already. Rows lost earlier do not
 * count as a loss of this job, if plan_loss has finished since. Errors:
 * PSD_NO_JOB, PSD_JOB_STOPPED, PSD_NO_TABLE. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_job_table(const ps_registry_t *self, uint32_t job,
                                                       uint32_t table, uint64_t unix_ms,
                                                       ps_command_t *ret_command, psd_error_t *err);

/* Liveness, not stored. A heartbeat of a worker, with its own clock (only
 * shown). joins 0: its current life. A heartbeat of a finished worker is
 * accepted. Errors: PSD_NO_JOB; PSD_NO_WORKER it has not joined;
 * PSD_WORKER_LOST it was declared lost, or joins names an older life. */
PSD_MUST_CHECK psd_status_t ps_registry_heartbeat(ps_registry_t *self, uint32_t job,
                                                  uint32_t worker, uint32_t joins, uint64_t clock,
                                                  uint64_t now_ms, psd_error_t *err);
/* Declares all workers of one job lost that have been silent or expected for too
 * long, in one command; kind 0: there are none in any job. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_registry_plan_silent(const ps_registry_t *self, uint64_t now_ms,
                                                    uint64_t unix_ms, ps_command_t *ret_command,
                                                    psd_error_t *err);
/* When ps_registry_plan_silent may next have something; UINT64_MAX for never. */
uint64_t ps_registry_deadline(const ps_registry_t *self);
/* Live workers of all jobs. */
size_t ps_registry_n_live(const ps_registry_t *self);
/* The registry itself was late by that since it last said so: the silence of each
 * worker counts less by it. */
void ps_registry_forgive(ps_registry_t *self, uint64_t late_ms, uint64_t now_ms);

/* Sets whether a node is up; only nodes that are up get partitions. Not stored.
 * Ignores an unknown node. */
void ps_registry_set_node_up(ps_registry_t *self, uint64_t incarnation, bool up, uint64_t seen_ms);

/* The next session number; 0 when plan_sessions must come first. */
uint64_t ps_registry_take_session(ps_registry_t *self);
/* The highest session that earlier starts may have given out: at a load, and
 * when a known node starts again, all that are stored. */
uint64_t ps_registry_old_sessions(const ps_registry_t *self);

/* The value that counts: the cluster's, else that of ps_registry_args_t. */
uint64_t ps_registry_setting(const ps_registry_t *self, ps_setting_id_t id);
/* The settings of the cluster, in no order, as they are sent to nodes. Borrowed until the
 * next command. */
const ps_setting_t *ps_registry_settings(const ps_registry_t *self, size_t *ret_n);
/* The value that would count without the cluster's. */
uint64_t ps_registry_own_setting(const ps_registry_t *self, ps_setting_id_t id);
bool ps_registry_is_set(const ps_registry_t *self, ps_setting_id_t id);
/* "cluster.repair_after"; NULL: there is no such setting. */
const char *ps_setting_key(ps_setting_id_t id);
/* The machine version that the cluster agreed on; 0: there is no cluster. */
uint32_t ps_registry_machine(const ps_registry_t *self);

/* Queries. All results are borrowed until the next apply; NULL when there is
 * none. */
/* Grows with every change of a principal; 0: there was none. */
uint64_t ps_registry_auth_epoch(const ps_registry_t *self);
/* In the order in which they came. */
size_t ps_registry_n_principals(const ps_registry_t *self);
const ps_principal_t *ps_registry_principal_at(const ps_registry_t *self, size_t i);
const ps_principal_t *ps_registry_principal(const ps_registry_t *self, const char *name);
/* By its key, or the old one that still counts. Also one that is denied. key "": none. */
const ps_principal_t *ps_registry_principal_by_key(const ps_registry_t *self, const char *key);
/* uid PS_NO_UID: none. */
const ps_principal_t *ps_registry_principal_by_uid(const ps_registry_t *self, uint32_t uid);
/* The first one whose old key is to end at that time; NULL: none. */
const ps_principal_t *ps_registry_principal_overdue(const ps_registry_t *self, uint64_t unix_ms);
const char *ps_registry_cluster(const ps_registry_t *self, ps_id_t *ret_uuid);
uint64_t ps_registry_epoch(const ps_registry_t *self);
/* All zeroes while there is no cluster. */
const ps_id_t *ps_registry_lineage(const ps_registry_t *self);
/* The newest outcome of a request; NULL when it changed nothing, or too many
 * requests have come since. */
const ps_outcome_t *ps_registry_answer(const ps_registry_t *self, uint64_t session,
                                       uint64_t request);
size_t ps_registry_n_nodes(const ps_registry_t *self);
const ps_node_t *ps_registry_node_at(const ps_registry_t *self, size_t i);
const ps_node_t *ps_registry_node(const ps_registry_t *self, const char *name);
/* Whether the secret is the node's; a node without a secret accepts any. */
bool ps_node_knows(const ps_node_t *self, const ps_id_t *secret);
/* The node that a route leads to. */
const ps_node_t *ps_registry_node_by_incarnation(const ps_registry_t *self, uint64_t incarnation);
size_t ps_registry_n_tables(const ps_registry_t *self);
/* The highest ids ever given. */
uint32_t ps_registry_last_table(const ps_registry_t *self);
uint32_t ps_registry_last_job(const ps_registry_t *self);
const ps_table_t *ps_registry_table_at(const ps_registry_t *self, size_t i);
const ps_table_t *ps_registry_table(const ps_registry_t *self, const char *name);
const ps_table_t *ps_registry_table_by_id(const ps_registry_t *self, uint32_t id);
size_t ps_registry_n_jobs(const ps_registry_t *self);
const ps_job_t *ps_registry_job_at(const ps_registry_t *self, size_t i);
/* The newest of that name; it may have ended. */
const ps_job_t *ps_registry_job(const ps_registry_t *self, const char *name);
const ps_job_t *ps_registry_job_by_id(const ps_registry_t *self, uint32_t id);
/* The job with those workers alone that changed after its version `since`; 0: with all of
 * them. The caller ends it with ps_job_done. false: no such job, or no memory. */
PSD_MUST_CHECK bool ps_registry_job_changes(const ps_registry_t *self, uint32_t id, uint64_t since,
                                            ps_job_t *ret_job);
/* Tables that a job has opened, in the order of opening. */
size_t ps_registry_job_tables(const ps_registry_t *self, uint32_t job, const uint32_t **ret_tables);
/* The job's version when these last changed, or a later one; 0: no such job. */
uint64_t ps_registry_job_tables_version(const ps_registry_t *self, uint32_t job);
/* Whether only that node, up or not, may know clocks of the job: it has a
 * primary of one of the job's tables, or, while there is none, a copy that may
 * become primary. */
bool ps_registry_serves_job(const ps_registry_t *self, uint64_t incarnation, uint32_t job);
/* The number of workers expected at its start, and the time of the start.
 * false: no such job. */
bool ps_registry_job_facts(const ps_registry_t *self, uint32_t job, uint32_t *ret_n_expected,
                           uint64_t *ret_created_unix_ms);
/* running, finished, lost (ended, with a lost worker), stopped; "?" when there
 * is no such job. */
const char *ps_registry_job_state(const ps_registry_t *self, uint32_t job);
/* When a worker last gave a sign of life (its start, a heartbeat), and the
 * clock of its last heartbeat; 0: no clock. false: no sign yet. */
bool ps_registry_last_seen(const ps_registry_t *self, uint32_t job, uint32_t worker,
                           uint64_t *ret_seen_ms, uint64_t *ret_clock);
/*
 * A sum over all rows: of all fields of registry_fields.def, whatever came from
 * a plan, bytes or SQLite, and of nothing else. Two members of a quorum that
 * have applied the same commands have the same one. The rows' XXH3 are added,
 * so their order does not matter. 0: no memory to compute it.
 */
uint64_t ps_registry_hash(const ps_registry_t *self);
/* Copies on a node that nothing else stands in for. */
typedef struct ps_last {
    uint32_t n;      /* no other copy on a node that is up could become the primary */
    uint32_t n_down; /* of them: one on a node that is down could */
} ps_last_t;
/* What remains on a node: a drain is done when n_copies is 0. */
typedef struct ps_node_left {
    uint32_t n_copies;
    uint32_t n_primaries; /* of them */
    ps_last_t last;       /* of them */
    uint32_t n_stuck;     /* of them: no other node that is up can take one */
    uint64_t bytes;       /* of all, as far as known */
} ps_node_left_t;
/* false: no such node. */
PSD_MUST_CHECK bool ps_registry_node_left(const ps_registry_t *self, const char *name,
                                          ps_node_left_t *ret_left);
/* The table's partitions that are lost when the node is removed, and no node that is down
 * comes back. */
ps_last_t ps_registry_last_copies(const ps_registry_t *self, const ps_table_t *table,
                                  const ps_node_t *node);
#endif
