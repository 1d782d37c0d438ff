/* SPDX-License-Identifier: Apache-2.0 */
/* ps_shard_pieces - what the port of a shard knows of bodies that take long:
 * how far an answer is on its way, and what of requests has come so far. */
#ifndef PS_DAEMON_SHARD_PIECES_H
#define PS_DAEMON_SHARD_PIECES_H

#include "daemon/shards/shard_tell.h"

/* What is asked again may have its answer on the way to the client, by either
 * connection: event->sending. */
void ps_shard_find_answer(ps_socket_t *port, ps_shard_t *core, uint64_t now_ms, ps_event_t *event);
/* The answer to a message that was not accepted, with that status. false: none.
 * A CHUNK that there is no memory for does not name its partition, so it gets no
 * answer; the client learns the fate of its request when it retries. */
PSD_MUST_CHECK bool ps_shard_refusal(const ps_message_t *of, psd_status_t status, const char *text,
                                     ps_message_t *ret_refused);
/* Counts pieces of requests as memory of the node, and leaves them what is left
 * of that. */
void ps_shard_limit_pieces(ps_socket_t *port, const ps_shard_t *core, ps_shard_told_t *told,
                           const ps_shard_actor_args_t *args);
#endif
