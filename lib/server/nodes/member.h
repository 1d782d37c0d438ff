/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/server/nodes: the registry's messages to nodes, and this node as one of
 * them
 *
 * It is       The shells of ps_overseer (fleet.h) and of ps_agent (member.h): joins,
 *             heartbeats, tasks for the shards, damage that a start found. Also
 *             the state of jobs that is not stored, who waits for whom, and what
 *             any node answers a client while the registry has no leader
 *             (member_map.c).
 * It uses     shards, quorum, config; lib/protocol (overseer, agent, session,
 *             waiters, facts), lib/transport, lib/wire/messages, lib/base.
 * It ignores  Which message is due: overseer and agent decide. All other requests of
 *             clients.
 * Start at    fleet.h for the registry's side, member.h for the node's.
 */
/*
 * ps_member - this node as a node of the cluster
 *
 * What     The shell around ps_agent, which decides what to say to the registry
 *          and what the shards are to do. This runs the tasks. Where the registry
 *          is on another node, it joins, sends through that node's control port,
 *          and answers at this node's that the registry is elsewhere. Where the
 *          registry is on this node, the server carries the messages. It never
 *          blocks but for the join.
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_SERVER_MEMBER_H
#define PS_SERVER_MEMBER_H

#include "server/config/config.h"
#include "server/config/host.h"
#include "server/nodes/node_damage.h"
#include "server/config/plugins.h"
#include "server/quorum/replica.h"
#include "server/shards/rights.h"
#include "server/shards/shards.h"
#include "protocol/session/finder.h"
#include "transport/sockets/socket.h"

typedef struct ps_member ps_member_t;

/* What the registry says to a node that asks to join. */
typedef struct ps_joined {
    char node[PS_NAME_MAX + 1]; /* the node's name */
    ps_id_t cluster;
    char cluster_name[PS_NAME_MAX + 1];
    uint64_t session;     /* the highest that was given out */
    ps_members_t members; /* the nodes that have the registry */
} ps_joined_t;

/* The node that joins. */
typedef struct ps_member_self {
    const char *name;
    uint64_t incarnation;
    ps_id_t secret;              /* of all lives of the node */
    bool any_name;               /* when the name is taken, accept another */
    bool has_joined;             /* in an earlier life: it waits for its registry */
    const ps_members_t *members; /* that it knew then */
    const char *only;            /* the one address to ask at; NULL: all that are known */
    const char *key;             /* public, of the node: the socket has the pair of a token, and
                                    this one is to be known; NULL: the socket has it itself */
    ps_rights_t *rights;         /* borrowed; what it hears about principals; NULL: nothing */
} ps_member_self_t;

/*
 * Asks the nodes of config->cluster.join, then who->members, in turn and round
 * and round until the registry answers: a node that is not the registry names
 * it. Blocks, since nothing else runs yet: a node that joins for the first time
 * for 30 s at most, one that has joined before without limit, and says to the
 * log and to the host what it waits for. Blocks also until the registry has
 * forgotten an earlier life of this node.
 *
 * socket  of the link; its lane options are not looked at
 * host    borrowed for the call
 *
 * Errors: PSD_CONNECT none answers, naming each address and what it said;
 * PSD_INTERRUPTED host->end_fd says so; PSD_DENIED another node of that name is
 * alive, it has another secret, or its key is not known there; PSD_CONFIG it has
 * a key, and no address names that of the registry; PSD_VERSION; PSD_PROTO;
 * PSD_NOMEM; PSD_IO.
 */
PSD_MUST_CHECK psd_status_t ps_member_join(const ps_config_t *config,
                                           const ps_socket_args_t *socket,
                                           const ps_member_self_t *who,
                                           const ps_server_host_t *host, ps_member_t **ret_member,
                                           ps_joined_t *ret_joined, psd_error_t *err);
/* A node that has the registry itself: without a link. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_member_new(const ps_member_self_t *who, const ps_id_t *cluster,
                                          const ps_config_t *config, ps_member_t **ret_member,
                                          psd_error_t *err);
/* Takes NULL, nulls *self_p. */
void ps_member_destroy(ps_member_t **self_p);

/* All borrowed until ps_member_destroy. */
typedef struct ps_member_args {
    ps_shards_t *shards;
    ps_socket_t *port; /* the node's own control port */
    const ps_plugins_t *plugins;
    const char *control;            /* the endpoint that this node advertises */
    const ps_node_damage_t *damage; /* what this start found */
    const char *dir;                /* of heard.json */
    const char *cluster_name;
} ps_member_args_t;

/* The shards run: announces them. Where files were damaged, waits a few
 * seconds for the decision of a registry elsewhere. Errors: PSD_NOMEM; PSD_DAMAGED what
 * was lost has no other copy. */
PSD_MUST_CHECK psd_status_t ps_member_start(ps_member_t *self, const ps_member_args_t *args,
                                            psd_error_t *err);
/* Where the registry is silent, or has moved: asks the next of the nodes that
 * have it. For a node that has no part of it. */
void ps_member_search(ps_member_t *self, const ps_socket_args_t *socket);
/* Tells the members of the registry that do not lead that this node lives: several
 * times in suspect_after, at ps_member_sign_due. replica: this node's; may be NULL. */
void ps_member_sign(ps_member_t *self, const ps_replica_t *replica, const ps_socket_args_t *socket);
uint64_t ps_member_sign_due(const ps_member_t *self);
/* The registry is at that endpoint from now on; NULL: on this node, without a
 * link. Errors: those of ps_socket_connect; then nothing has changed. */
PSD_MUST_CHECK psd_status_t ps_member_move(ps_member_t *self, const char *registry,
                                           const ps_socket_args_t *socket, psd_error_t *err);
/* Without a link: the next message to the registry, borrowed until the next
 * call, and one from it. false: none. */
PSD_MUST_CHECK bool ps_member_next_message(ps_member_t *self, ps_bytes_t *ret_bytes);
void ps_member_take(ps_member_t *self, ps_bytes_t bytes);
/* The ZeroMQ socket of the link, for zloop; ps_member_receive then. NULL without
 * a link. */
void *ps_member_handle(ps_member_t *self);
/* The link itself, to wait for. NULL: there is none. Borrowed until the next call. */
ps_socket_t *ps_member_link(const ps_member_t *self);
/* What only this node and the registry know. Borrowed. */
const ps_id_t *ps_member_secret(const ps_member_t *self);
/* "tcp://…" of the registry. */
const char *ps_member_registry(const ps_member_t *self);
/* The nodes that have the registry, as it said last. Borrowed until the next call.
 * Returns how many; 0: it is alone, or said nothing yet. */
size_t ps_member_seats(const ps_member_t *self, const ps_seat_t **ret_seats);
/* Of the registry that it follows; zero: of none. Borrowed. */
const ps_id_t *ps_member_lineage(const ps_member_t *self);
/* The registry is reachable. */
bool ps_member_is_heard(const ps_member_t *self);
/* PSD_OK, or why this node cannot go on: PSD_DAMAGED as above. */
PSD_MUST_CHECK psd_status_t ps_member_failure(const ps_member_t *self, psd_error_t *err);
/* The registry has answered this incarnation's announcement: the node is
 * part of the cluster. */
bool ps_member_is_announced(const ps_member_t *self);
/* The registry has denied this node's key, and has not let it in since. */
bool ps_member_is_shut_out(const ps_member_t *self);
/* The registry asks this node to be a member of it. true: once for each time. */
PSD_MUST_CHECK bool ps_member_take_invite(ps_member_t *self, ps_node_message_t *ret_invite);
/* Takes in what the registry sends. */
void ps_member_receive(ps_member_t *self);
/* Takes in the answers and reports of this node's shards, and answers the registry. */
void ps_member_receive_shards(ps_member_t *self);
/* The process ran out of descriptors, or has some again: tells the registry. */
void ps_member_set_files_out(ps_member_t *self, bool is_out);
/* Tells the registry that this node ends, so that it need not wait for a timeout. */
void ps_member_end(ps_member_t *self);
/* Refuses requests at the node's own control port; what other members of the
 * registry say there is for the replica, which may be NULL. */
void ps_member_receive_port(ps_member_t *self, ps_replica_t *replica);
/* Sends a beat; checks whether the registry is alive. */
void ps_member_tick(ps_member_t *self);
uint64_t ps_member_deadline(const ps_member_t *self);
#endif
