/* SPDX-License-Identifier: Apache-2.0 */
/* ps_shard_pieces - what the port of a shard knows of bodies that take long:
 * how far an answer is on its way, and what of requests has come so far. */
#ifndef PS_DAEMON_SHARD_PIECES_H
#define PS_DAEMON_SHARD_PIECES_H

#include "daemon/shards/shard_tell.h"

/* What is asked again may have its answer on the way to the client, by either
 * connection: event->sending. */
void ps_shard_find_answer(ps_socket_t *port, ps_shard_t *core, uint64_t now_ms, ps_event_t *event);
/* What is answered to a message that was not taken in, for that reason. false:
 * nothing is, to a CHUNK that there is no memory for, as it does not say of
 * which partition it is: who asks what became of its request is told. */
PSD_MUST_CHECK bool ps_shard_refusal(const ps_message_t *of, psd_status_t status, const char *text,
                                     ps_message_t *ret_refused);
/* Counts pieces of requests as memory of the node, and leaves them what is left
 * of that. */
void ps_shard_limit_pieces(ps_socket_t *port, const ps_shard_t *core, ps_shard_told_t *told,
                           const ps_shard_actor_args_t *args);
#endif
