/* SPDX-License-Identifier: Apache-2.0 */
/* Binds the lane. */
#include "server/shards/shard_lane.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"

#define QUOTED_SIZE 512

void ps_shard_lane_open(ps_socket_t *port, const ps_shard_actor_args_t *args)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    char endpoint[PS_ENDPOINT_MAX + sizeof "lane://.lane"];
    char quoted[QUOTED_SIZE];

    (void)snprintf(endpoint, sizeof endpoint, "lane://%s.lane", args->ipc + strlen("ipc://"));
    if (ps_socket_bind_more(port, endpoint, err) != PSD_OK) {
        ps_log(PS_LOG_WARN, "lane_off", "shard=%" PRIu32 " reason=%s", args->core.shard,
               ps_log_quote(psd_error_text(err), quoted, sizeof quoted));
    }
}
