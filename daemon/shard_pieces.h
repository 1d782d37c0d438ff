/* SPDX-License-Identifier: Apache-2.0 */
/* ps_shard_pieces - what the port of a shard has of requests that come in
 * pieces. */
#ifndef PS_DAEMON_SHARD_PIECES_H
#define PS_DAEMON_SHARD_PIECES_H

#include "daemon/shard_tell.h"

/* Counts pieces of requests as memory of the node, and leaves them what is left
 * of that. */
void ps_shard_limit_pieces(ps_socket_t *port,
                           const ps_shard_t *core,
                           ps_shard_told_t *told,
                           const ps_shard_actor_args_t *args);
/* So many bytes of them were dropped: much goes back to the system. */
void ps_shard_dropped_pieces(uint64_t bytes);
#endif
