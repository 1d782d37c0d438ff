/* SPDX-License-Identifier: Apache-2.0 */
/* Where clients find a node: the hosts, ports and sockets that it listens on. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "server/config/endpoint.h"
#include "server/config/place.h"
#include "server/server_inner.h"
#include "storage/disk/data_dir.h"

#define LINGER_MS 1000    /* for answers that are queued at the end */
#define ASSEMBLY_FACTOR 2 /* unfinished bodies of a connection, in credits */

ps_socket_args_t ps_server_socket_args(const ps_server_t *self)
{
    const ps_config_t *config = self->config;

    return (ps_socket_args_t){
        .context = self->context,
        .high_water = (int)config->limits.high_water,
        .frame_bytes = config->limits.frame_bytes,
        .assembly_bytes = config->limits.credit_bytes * ASSEMBLY_FACTOR,
        .chunk_bytes = (uint32_t)config->limits.chunk_bytes,
        .linger_ms = LINGER_MS,
        .is_guarded = true,
        .keys = self->rights == NULL ? NULL : &self->keys,
        .peers = (ps_door_peers_t)config->lane.peers,
        .lane = {.most = (uint32_t)config->lane.max, .arena_bytes = config->lane.arena_bytes},
    };
}

/* ---- the directory of the sockets ---- */

psd_status_t ps_server_open_run_dir(ps_server_t *self, psd_error_t *err)
{
    const ps_config_t *config = self->config;
    bool is_apart = config->runtime_dir[0] != '\0';
    mode_t mode = config->lane.peers == PS_PEERS_OWNER   ? 0700
                  : config->lane.peers == PS_PEERS_GROUP ? 0750
                                                         : 0755;
    psd_status_t rc = PSD_OK;

    rc = ps_place_make(is_apart ? config->runtime_dir : self->dir, is_apart ? mode : 0700,
                       &self->run_dir, err);
    if (rc != PSD_OK || strcmp(self->run_dir, self->dir) == 0) {
        return rc;
    }
    /* Another psd with another data directory may use this directory. */
    rc = ps_data_dir_lock(self->run_dir, &self->run_lock, err);
    return rc == PSD_OK ? PSD_OK : psd_error_wrap(err, rc, "runtime_dir");
}

/* ---- hosts ---- */

/* The first tcp endpoint to listen on; NULL when there is only ipc. */
static const char *first_tcp(const ps_config_t *config)
{
    for (size_t i = 0; i < config->listen.endpoints.n_items; i++) {
        char host[PS_ENDPOINT_MAX + 1];

        ps_endpoint_host(config->listen.endpoints.items[i], host);
        if (host[0] != '\0') {
            return config->listen.endpoints.items[i];
        }
    }
    return NULL;
}

void ps_server_settle_hosts(ps_server_t *self)
{
    const ps_config_t *config = self->config;
    const char *tcp = first_tcp(config);

    self->host[0] = '\0';
    if (tcp != NULL) {
        ps_endpoint_host(tcp, self->host);
    }
    if (config->listen.advertise[0] != '\0') {
        (void)snprintf(self->advertise, sizeof self->advertise, "%.*s", PS_ENDPOINT_MAX,
                       config->listen.advertise);
    } else if (tcp != NULL && ps_endpoint_is_wildcard(tcp) &&
               gethostname(self->advertise, sizeof self->advertise - 1) != 0) {
        self->advertise[0] = '\0';
    }
}

/* ---- the control port ---- */

/* The control port as other hosts reach it. */
static void settle_endpoint(ps_server_t *self)
{
    const ps_config_t *config = self->config;
    const char *tcp = first_tcp(config);
    const char *bound = ps_socket_endpoint(self->port, 0);

    for (size_t i = 0; i < config->listen.endpoints.n_items; i++) {
        if (config->listen.endpoints.items[i] == tcp) {
            bound = ps_socket_endpoint(self->port, i);
        }
    }
    (void)snprintf(self->listens, sizeof self->listens, "%.*s", PS_ENDPOINT_MAX,
                   tcp == NULL ? "" : bound);
    if (tcp != NULL && self->advertise[0] != '\0') {
        ps_endpoint_with_host(bound, self->advertise, self->endpoint);
    } else {
        (void)snprintf(self->endpoint, sizeof self->endpoint, "%.*s", PS_ENDPOINT_MAX, bound);
    }
}

psd_status_t ps_server_open_port(ps_server_t *self, psd_error_t *err)
{
    const ps_text_list_t *list = &self->config->listen.endpoints;
    ps_socket_args_t args = ps_server_socket_args(self);
    psd_status_t rc = PSD_OK;

    args.patience_ms = PS_PATIENCE_SMALL_MS;
    rc = ps_socket_bind((const char *const *)list->items, list->n_items, &args, &self->port, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (strlen(self->run_dir) <= PS_IPC_DIR_MAX) {
        (void)snprintf(self->ipc, sizeof self->ipc, "ipc://%s/psd.ipc", self->run_dir);
        rc = ps_socket_bind_more(self->port, self->ipc, err);
    } else if (self->host[0] == '\0') {
        return psd_error_set(err, PSD_CONFIG,
                             "listen.endpoints has ipc alone, and the shards' sockets do not fit "
                             "in %s, whose path is longer than %d bytes; set runtime_dir",
                             self->run_dir, PS_IPC_DIR_MAX);
    }
    if (rc == PSD_OK) {
        settle_endpoint(self);
        rc = ps_server_name_key(self, self->endpoint, err);
    }
    return rc;
}

/* ---- the end ---- */

void ps_server_remove_files(const ps_server_t *self)
{
    if (self->control != NULL || self->member != NULL) {
        ps_place_remove(self->dir, PS_ANNOUNCEMENT);
        ps_server_withdraw(self);
    }
    if (self->run_lock >= 0) {
        ps_place_remove(self->run_dir, PS_ANNOUNCEMENT);
    }
    if (self->turns != NULL) {
        ps_place_remove(self->run_dir, PS_TURNS_FILE);
    }
    if (self->ipc[0] == '\0') {
        return;
    }
    ps_place_remove(self->run_dir, "psd.ipc");
    for (uint32_t i = 0; self->shards != NULL && i < ps_shards_n(self->shards); i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "shard-%" PRIu32 ".ipc", i);
        ps_place_remove(self->run_dir, name);
        (void)snprintf(name, sizeof name, "shard-%" PRIu32 ".ipc.lane", i);
        ps_place_remove(self->run_dir, name);
    }
}
