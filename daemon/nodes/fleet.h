/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_fleet - the shell around the registry's ps_overseer
 *
 * What     The overseer decides what to send to which node and when. This sends
 *          it through the control port, or to the shards of this node, and
 *          brings their answers back. No call blocks.
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_DAEMON_FLEET_H
#define PS_DAEMON_FLEET_H

#include "daemon/config/plugins.h"
#include "daemon/shards/shards.h"
#include "protocol/overseer/overseer.h"
#include "transport/sockets/socket.h"
#include "transport/threads/turns_look.h"

typedef struct ps_fleet ps_fleet_t;

/* All borrowed until ps_fleet_destroy. */
typedef struct ps_fleet_args {
    ps_overseer_t *overseer;
    ps_registry_t *registry;
    ps_shards_t *shards; /* of this node */
    ps_socket_t *port;   /* the control port: other nodes speak through it */
    const ps_plugins_t *plugins;
    uint64_t incarnation;    /* of this node */
    const ps_turns_t *turns; /* of this node's threads; NULL: not watched */
} ps_fleet_args_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_fleet_new(const ps_fleet_args_t *args, ps_fleet_t **ret_fleet,
                                         psd_error_t *err);
/* Takes NULL. */
void ps_fleet_destroy(ps_fleet_t **self_p);

/* Sends all that is due. Call it after everything that may have told or asked
 * something. */
void ps_fleet_send_due(ps_fleet_t *self);
/* Asks the node of that copy to take no more records of older epochs
 * (ps_overseer_encode_fence). */
void ps_fleet_fence(ps_fleet_t *self, const ps_copy_t *copy, uint32_t table, uint32_t partition,
                    uint64_t epoch);
/* Takes in the answers of this node's shards. The caller takes their
 * reports. */
void ps_fleet_take_shards(ps_fleet_t *self);
/* Finds silent nodes, resends, and ends overdue questions; now and then asks for
 * the sizes of partitions. Call ps_fleet_send_due then. */
void ps_fleet_tick(ps_fleet_t *self);
/* A node could not apply a tell. */
void ps_fleet_log_refusal(const ps_tell_view_t *tell, psd_status_t status, const char *text);
#endif
