/* SPDX-License-Identifier: Apache-2.0 */
/* The page in which the node's threads report that they turn. */
#include "server/server_inner.h"

#define READ_BITS 0644    /* of the users that may use the sockets */
#define THREADS_A_SHARD 3 /* itself, its journal, the files of a checkpoint */
#define THREADS_BESIDE 32 /* control, filler, watch, zap, ZeroMQ's */

psd_status_t ps_server_open_turns(ps_server_t *self, psd_error_t *err)
{
    const size_t n_endpoints = self->config->listen.endpoints.n_items;
    const ps_door_peers_t peers = (ps_door_peers_t)self->config->lane.peers;
    psd_status_t rc = ps_turns_open(
        self->run_dir, ps_peers_mode(peers) & READ_BITS,
        THREADS_A_SHARD * (uint32_t)self->config->shards + THREADS_BESIDE, &self->turns, err);

    for (size_t i = 0; rc == PSD_OK && i < n_endpoints; i++) {
        ps_turns_listen(self->turns, ps_socket_endpoint(self->port, i));
    }
    if (rc == PSD_OK) {
        ps_turns_listen(self->turns, self->endpoint);
        ps_turns_listen(self->turns, self->ipc);
        ps_context_watch_guard(self->context, self->turns);
    }
    return rc;
}

ps_turns_t *ps_server_turns(const ps_server_t *self)
{
    return self->turns;
}
