/* SPDX-License-Identifier: Apache-2.0 */
/* Between the port of a shard and its core. */
#include "daemon/shard_pieces.h"

#include <malloc.h>

#define TRIM_BYTES (1 << 20) /* connections close one by one */

void
ps_shard_limit_pieces(ps_socket_t *port,
                      const ps_shard_t *core,
                      ps_shard_told_t *told,
                      const ps_shard_actor_args_t *args)
{
    uint64_t most = args->core.memory_bytes;
    uint64_t rest = 0;

    told->unfinished = ps_socket_unfinished_bytes(port);
    if (most > 0) {
        rest = ps_shard_others(told, args->common) + ps_shard_bytes(core);
        ps_socket_set_unfinished_max(port, rest < most ? most - rest : 0);
    }
}

void
ps_shard_dropped_pieces(uint64_t bytes)
{
    if (bytes >= TRIM_BYTES) {
        (void)malloc_trim(0); /* ZeroMQ's threads have allocated them */
    }
}
