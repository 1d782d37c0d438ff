/* SPDX-License-Identifier: Apache-2.0 */
/* ps_shard_pieces - what the port of a shard knows of long bodies: how much
 * of an answer was sent, and how much of a request has arrived. */
#ifndef PS_SERVER_SHARD_PIECES_H
#define PS_SERVER_SHARD_PIECES_H

#include "server/shards/shard_tell.h"

/* The answer to a repeated request may already be on its way to the client,
 * on either connection: sets event->sending. */
void ps_shard_find_answer(ps_socket_t *port, ps_shard_t *core, uint64_t now_ms, ps_event_t *event);
/* The answer to a message that was not accepted, with that status. false:
 * none. A CHUNK without memory gets no answer, since it does not name its
 * partition; the client learns the fate of its request when it retries. */
PSD_MUST_CHECK bool ps_shard_refusal(const ps_message_t *of, psd_status_t status, const char *text,
                                     ps_message_t *ret_refused);
/* Counts pieces of requests as memory of the node, and limits them to what
 * is left. */
void ps_shard_limit_pieces(ps_socket_t *port, const ps_shard_t *core, ps_shard_told_t *told,
                           const ps_shard_actor_args_t *args);
#endif
