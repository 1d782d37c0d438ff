/* SPDX-License-Identifier: Apache-2.0 */
/* ps_shard_lane - the lane socket of a shard, beside its ipc socket */
#ifndef PS_SERVER_SHARD_LANE_H
#define PS_SERVER_SHARD_LANE_H

#include "server/shards/shard_actor.h"

/* Clients of this host then come by lane; when it cannot be opened, which is
 * logged, they come by ipc. */
void ps_shard_lane_open(ps_socket_t *port, const ps_shard_actor_args_t *args);
#endif
