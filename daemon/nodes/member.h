/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_member - a node of a cluster whose registry is another node's
 *
 * What     Speaks with the registry's control port: joins, announces its
 *          shards, says that it lives, takes in what it is told and answers
 *          what it is asked, when its shards have done it; passes on what they
 *          report of copies. Waits for nobody. When the registry is gone the
 *          shards go on with what they know, and the node announces itself when
 *          it is back. The node's own control port answers that the registry is
 *          elsewhere.
 * Shape    joining --> announced <--> alone
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_DAEMON_MEMBER_H
#define PS_DAEMON_MEMBER_H

#include "daemon/config/config.h"
#include "daemon/nodes/node_damage.h"
#include "daemon/config/plugins.h"
#include "daemon/shards/shards.h"
#include "transport/sockets/socket.h"

typedef struct ps_member ps_member_t;

/* What the registry says to a node that asks to join. */
typedef struct ps_joined {
    char node[PS_NAME_MAX + 1]; /* the node's name */
    ps_id_t cluster;
    char cluster_name[PS_NAME_MAX + 1];
    uint64_t session; /* the highest that was given out */
} ps_joined_t;

/* Who joins. */
typedef struct ps_member_self {
    const char *name;
    uint64_t incarnation;
    ps_id_t secret; /* of all lives of the node */
    bool any_name;  /* when the name is taken another one will do */
} ps_member_self_t;

/*
 * Asks the registries of config->cluster.join in turn; the first that answers
 * is kept. Waits for a few seconds, for nothing else runs yet: also for an
 * earlier life of this node to be forgotten.
 *
 * socket  of the link; its lane options are not looked at
 *
 * Errors: PSD_CONNECT none answers; PSD_DENIED another node of that name is
 * alive, or it has another secret; PSD_VERSION; PSD_PROTO; PSD_NOMEM; PSD_IO.
 */
PSD_MUST_CHECK psd_status_t ps_member_join(const ps_config_t *config,
                                           const ps_socket_args_t *socket,
                                           const ps_member_self_t *who, ps_member_t **ret_member,
                                           ps_joined_t *ret_joined, psd_error_t *err);
/* Takes NULL, nulls *self_p. */
void ps_member_destroy(ps_member_t **self_p);

/* All borrowed until ps_member_destroy. */
typedef struct ps_member_args {
    ps_shards_t *shards;
    ps_socket_t *port; /* the node's own control port */
    const ps_plugins_t *plugins;
    const char *control;            /* the endpoint that this node advertises */
    const ps_node_damage_t *damage; /* what this start found */
} ps_member_args_t;

/* The shards run: announces them. Where files were damaged, waits a few seconds
 * for the registry's word. Errors: PSD_NOMEM; PSD_DAMAGED what was lost has no
 * other copy. */
PSD_MUST_CHECK psd_status_t ps_member_start(ps_member_t *self, const ps_member_args_t *args,
                                            psd_error_t *err);
/* The ZeroMQ socket of the link, for zloop; ps_member_receive then. */
void *ps_member_handle(ps_member_t *self);
/* "tcp://…" of the registry. */
const char *ps_member_registry(const ps_member_t *self);
/* The registry is heard. */
bool ps_member_is_heard(const ps_member_t *self);
/* PSD_OK, or why this node cannot go on: PSD_DAMAGED as above. */
PSD_MUST_CHECK psd_status_t ps_member_failure(const ps_member_t *self, psd_error_t *err);
/* It has answered the announcement of this life: the node is one of the
 * cluster's. */
bool ps_member_is_announced(const ps_member_t *self);
/* Takes in what the registry sends. */
void ps_member_receive(ps_member_t *self);
/* Takes in what the shards of this node have done or reported, and answers. */
void ps_member_receive_shards(ps_member_t *self);
/* The process is out of descriptors, or no more: the registry hears of it. */
void ps_member_set_files_out(ps_member_t *self, bool is_out);
/* Says that this node ends, so that nobody waits for its silence. */
void ps_member_end(ps_member_t *self);
/* Refuses what came to the node's own control port. */
void ps_member_receive_port(ps_member_t *self);
/* Says that it lives; sees whether the registry does. */
void ps_member_tick(ps_member_t *self);
uint64_t ps_member_deadline(const ps_member_t *self);
#endif
