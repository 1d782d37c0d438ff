/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/server/state: what the control part knows, and how it is shown
 *
 * It is       The state of the control port, a request on its way, the commit of a
 *             change to the registry, answers kept for retries; and what pscli
 *             shows: status and problems, clocks, why, queues, routes, moves.
 * It uses     nodes, shards, quorum, threads, metrics, config; lib/protocol,
 *             lib/storage, lib/transport, lib/wire/messages, lib/base.
 * It ignores  What an operation does (control, checkpoints).
 * Start at    control_inner.h for the state and a request, control_commit.c for a
 *             change.
 */
/*
 * ps_control - the control port: JSON requests of clients and of pscli
 *
 * What     request -> checked -> planned by the registry -> stored -> applied
 *          -> sent to the shards -> answered. Keeps the answers of requests
 *          that change something, so that a repeated request is answered again,
 *          not done again. Also: barriers, lost workers, and the queries of
 *          `pscli`.
 * Owner    The caller.
 * Threads  confined to one.
 */
#ifndef PS_SERVER_CONTROL_H
#define PS_SERVER_CONTROL_H

#include "server/metrics/cluster_look.h"
#include "server/config/config.h"
#include "server/config/plugins.h"
#include "server/shards/shards.h"
#include "server/quorum/replica.h"
#include "protocol/registry/registry.h"
#include "protocol/trust/trust.h"
#include "storage/audit/audit_log.h"
#include "storage/registry/registry_db.h"
#include "transport/sockets/socket.h"
#include "transport/threads/turns_look.h"

typedef struct ps_control ps_control_t;

/* What the control part asks the nodes before an operation runs. */
typedef enum ps_first_ask {
    PS_ASK_NONE = 0, /* nothing, or what the operation asks itself */
    PS_ASK_REACHED,  /* whether they have what changed so far */
    PS_ASK_INSPECT,  /* partitions */
    PS_ASK_BRIEFLY,  /* the same, without nodes that do not answer at once */
    PS_ASK_JOB       /* clocks and held requests of the job that is named */
} ps_first_ask_t;

struct ps_request_doc;
/* An operation adds its fields to request->reply, or returns an error. To
 * ask the nodes it returns ps_control_ask, and runs again, one step further,
 * with the answers. */
typedef psd_status_t ps_control_op_t(ps_control_t *self, struct ps_request_doc *request,
                                     psd_error_t *err);
typedef struct ps_control_row {
    const char *name;
    ps_trust_op_t trust; /* what the caller needs a right to (protocol/trust/trust.h) */
    ps_control_op_t *run;
    bool is_open; /* needs no session */
    bool once;    /* changes something: a repetition gets the first answer */
    ps_first_ask_t first;
} ps_control_row_t;

/* All borrowed until ps_control_destroy. */
typedef struct ps_control_args {
    const ps_control_row_t *ops; /* 64 at most */
    size_t n_ops;
    const ps_config_t *config;
    ps_replica_t *replica;   /* has the next two, and gets the commands */
    ps_replica_net_t net;    /* for members of the registry */
    ps_registry_t *registry; /* loaded */
    ps_registry_db_t *db;
    ps_socket_t *port; /* bound */
    const ps_plugins_t *plugins;
    const char *dir;           /* data directory */
    const char *node;          /* name of this node */
    uint64_t incarnation;      /* of this node */
    const ps_turns_t *turns;   /* of this node's threads; NULL: not watched */
    ps_rights_t *rights;       /* where shards look up principals; NULL: rights are not checked */
    const char *admin_key;     /* public; of the first admin, "": none. With rights … */
    const char *node_key;      /* … public; of this node … */
    uint32_t owner;            /* … and its uid */
    ps_control_meter_t *meter; /* where it counts; NULL: nowhere */
    ps_audit_log_t *audit;     /* of this node; NULL: there is none */
} ps_control_args_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_control_new(const ps_control_args_t *args,
                                           ps_control_t **ret_control, psd_error_t *err);
/* What it would have said about commands that may never have been (ps_replica_is_ahead) is
 * dropped: who waits for an answer hears that another node leads, and asks again. */
void ps_control_unsay(ps_control_t *self);
/* Answers all waiting requests with that. */
void ps_control_end_all(ps_control_t *self, psd_status_t status, const char *text);
/* Answers waiting requests with STOPPING. Takes NULL, nulls *self_p. */
void ps_control_destroy(ps_control_t **self_p);

/* Before the first request, after this node has announced itself: drops tables
 * whose restore was cut off, and logs those that lost rows. Errors: those of
 * ps_commit. */
PSD_MUST_CHECK psd_status_t ps_control_start(ps_control_t *self, psd_error_t *err);
/* Answers the requests that wait, not more than a batch at a time. */
void ps_control_receive(ps_control_t *self);
/* Takes in a message of a node's agent: that of this node by PS_CONN_OWN
 * (fleet.h). ps_control_settle then. */
void ps_control_take_node(ps_control_t *self, uint64_t conn, ps_bytes_t bytes);
/* The next message to this node's agent, which the caller frees. false: none. */
PSD_MUST_CHECK bool ps_control_next_own(ps_control_t *self, ps_buffer_t *ret_bytes);
/* Goes on with what waited for nodes, decides about copies, sends what is due. */
void ps_control_settle(ps_control_t *self);
/* Time has passed: silent workers and nodes, requests that are due, questions. */
void ps_control_tick(ps_control_t *self);
/* When to call ps_control_tick next; UINT64_MAX for never. */
uint64_t ps_control_deadline(const ps_control_t *self);
/* Applies the reloadable settings. Borrowed like the first config. */
void ps_control_set_config(ps_control_t *self, const ps_config_t *config);
#endif
