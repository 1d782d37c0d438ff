/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_fleet - the shell around the registry's ps_overseer
 *
 * What     The overseer decides what to send to which node and when. This sends
 *          it through the control port. Messages to the agent of this node,
 *          which is in the same process, wait here until the server takes them.
 *          So do all messages, answers to clients too, while something is stored
 *          and not flushed.
 *          No call blocks.
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_SERVER_FLEET_H
#define PS_SERVER_FLEET_H

#include "protocol/overseer/overseer.h"
#include "transport/sockets/socket.h"
#include "transport/threads/turns_look.h"

#define PS_CONN_OWN 0 /* the connection of this node's agent; no port has it */

typedef struct ps_fleet ps_fleet_t;

/* All borrowed until ps_fleet_destroy. */
typedef struct ps_fleet_args {
    ps_overseer_t *overseer;
    ps_socket_t *port;       /* the control port: other nodes speak through it */
    const ps_turns_t *turns; /* of this node's threads; NULL: not watched */
} ps_fleet_args_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_fleet_new(const ps_fleet_args_t *args, ps_fleet_t **ret_fleet,
                                         psd_error_t *err);
/* Takes NULL. */
void ps_fleet_destroy(ps_fleet_t **self_p);

/* Sends bytes to a node or a client, which get nothing when their queue is full.
 * false: not sent. */
bool ps_fleet_say(ps_fleet_t *self, uint64_t conn, ps_bytes_t bytes);
/* From here on nothing leaves: what is said waits for ps_fleet_release, in order. */
void ps_fleet_hold(ps_fleet_t *self);
bool ps_fleet_holds(const ps_fleet_t *self);
/* Sends what waited. */
void ps_fleet_release(ps_fleet_t *self);
/* Takes out what waits, and is not said then, one after the other; from the first call on
 * nothing is held any more. The bytes are the caller's. false: none is left. */
PSD_MUST_CHECK bool ps_fleet_unsay(ps_fleet_t *self, uint64_t *ret_conn, ps_buffer_t *ret_bytes);
/* The next message to this node's agent, which the caller frees. false: none. */
PSD_MUST_CHECK bool ps_fleet_next_own(ps_fleet_t *self, ps_buffer_t *ret_bytes);
/* Sends all that is due. Call it after everything that may have told or asked
 * something. */
void ps_fleet_send_due(ps_fleet_t *self);
/* Asks the node of that copy to take no more records of older epochs
 * (ps_overseer_encode_fence). */
void ps_fleet_fence(ps_fleet_t *self, const ps_copy_t *copy, uint32_t table, uint32_t partition,
                    uint64_t epoch);
/* Asks that life of a node to be a member of the registry. */
void ps_fleet_invite(ps_fleet_t *self, uint64_t incarnation, const ps_node_message_t *invite);
/* Finds silent nodes, resends, and ends overdue questions. Call
 * ps_fleet_send_due then. */
void ps_fleet_tick(ps_fleet_t *self);
/* A node could not apply a tell. */
void ps_fleet_log_refusal(const ps_tell_view_t *tell, psd_status_t status, const char *text);
#endif
