/* SPDX-License-Identifier: Apache-2.0 */
/* One node, opened step by step. */
#include "server/server_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/control_ops.h"
#include "server/quorum/replica.h"
#include "server/config/place.h"
#include "protocol/placement/registry_decide.h"

#define IO_THREADS_MAX 4
#define RETIRE_AFTER_MS 2000 /* no message is in flight for that long */

/* ---- the registry ---- */

/* The cluster's name and id: made at the first start, then kept. A
 * configured name must equal the kept one. */
static psd_status_t settle_cluster(ps_server_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    const ps_config_t *config = self->config;
    ps_registry_t *registry = ps_replica_registry(self->replica);
    const char *name = ps_registry_cluster(registry, &self->cluster);
    psd_status_t rc = PSD_OK;

    (void)snprintf(self->cluster_name, sizeof self->cluster_name, "%s",
                   name == NULL ? config->cluster.name : name);
    if (name != NULL) {
        if (config->origins[PS_KEY_cluster_name].source != PS_SOURCE_DEFAULT &&
            strcmp(name, config->cluster.name) != 0) {
            return psd_error_set(err, PSD_FOREIGN,
                                 "data directory %s belongs to cluster \"%s\", "
                                 "cluster.name is \"%s\"",
                                 self->dir, name, config->cluster.name);
        }
        return PSD_OK;
    }
    rc = ps_server_check_lost(self, err);
    if (rc == PSD_OK) {
        rc = ps_random(self->cluster.bytes, sizeof self->cluster.bytes, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_plan_cluster(registry, config->cluster.name, &self->cluster, ps_unix_ms(),
                                      &command, err);
    }
    if (rc == PSD_OK) {
        rc = ps_replica_commit(self->replica, &command, PS_LOG_INFO, err);
    }
    return rc == PSD_OK ? ps_replica_flush(self->replica, err) : rc;
}

static bool has_name(const ps_config_t *config)
{
    return config->origins[PS_KEY_node_name].source != PS_SOURCE_DEFAULT;
}

/* Which of the registry's nodes this one is. A registry that was restored into an empty
 * directory may be on any of them: on the one that node.name says, or else the first. */
static const ps_node_t *own_node(const ps_server_t *self, const char *known)
{
    const ps_registry_t *registry = ps_replica_registry(self->replica);
    const ps_node_t *named = NULL;

    if (known[0] != '\0') {
        return ps_registry_node(registry, known);
    }
    if (has_name(self->config) && !ps_server_has_log(self)) {
        named = ps_registry_node(registry, self->config->node.name);
    }
    return named == NULL ? ps_registry_node_at(registry, 0) : named;
}

/* The node keeps the name of its first start: a host may be renamed, and the
 * tables are this node's. */
static psd_status_t settle_node(ps_server_t *self, psd_error_t *err)
{
    const ps_config_t *config = self->config;
    const char *name = config->node.name;
    const ps_registry_t *registry = ps_replica_registry(self->replica);
    char known[PS_NAME_MAX + 1] = "";
    ps_member_self_t who = {.name = self->node, .rights = self->rights};
    psd_status_t rc = ps_server_read_name(self, known, &who.secret, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_registry_n_nodes(registry) > 0) {
        const ps_node_t *node = own_node(self, known);

        if (node == NULL) {
            return psd_error_set(err, PSD_FOREIGN,
                                 "data directory %s belongs to node \"%s\", which its part of "
                                 "the registry does not know",
                                 self->dir, known);
        }
        if (has_name(config) && strcmp(node->name, name) != 0) {
            return psd_error_set(err, PSD_FOREIGN,
                                 "data directory %s belongs to node \"%s\", "
                                 "node.name is \"%s\"",
                                 self->dir, node->name, name);
        }
        name = node->name;
        who.secret = node->secret;
    }
    if (ps_registry_n_nodes(registry) == 0 && known[0] != '\0') {
        name = known; /* a rebuilt registry: no node has started with it yet */
    }
    (void)snprintf(self->node, sizeof self->node, "%.*s", PS_NAME_MAX, name);
    self->old_sessions = ps_registry_old_sessions(registry);
    if (ps_id_is_zero(&who.secret)) {
        rc = ps_random(&who.secret, sizeof who.secret, err);
    }
    if (rc == PSD_OK) {
        rc = ps_server_settle_life(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_server_note_first(self, &who.secret, err);
    }
    who.incarnation = self->incarnation;
    return rc == PSD_OK ? ps_member_new(&who, &self->cluster, config, &self->member, err) : rc;
}

/* ---- ports ---- */

static psd_status_t start_shards(ps_server_t *self, psd_error_t *err)
{
    const ps_config_t *config = self->config;
    ps_shards_args_t args = {
        .n_shards = (uint32_t)config->shards,
        .core =
            {
                .cluster = self->cluster,
                .incarnation = self->incarnation,
                .credit_requests = (uint32_t)config->limits.credit_requests,
                .credit_bytes = config->limits.credit_bytes,
                .chunk_bytes = (uint32_t)config->limits.chunk_bytes,
                .slice_bytes = config->limits.slice_bytes,
                .held_bytes = config->limits.held_bytes,
                .keys_bytes = config->limits.keys_bytes,
                .memory_bytes = config->limits.memory_bytes,
                .table_bytes = config->limits.table_bytes,
                .sessions_max = (uint32_t)config->limits.sessions,
                .retire_after_ms = RETIRE_AFTER_MS,
                .record_bytes = config->limits.frame_bytes - PS_HEADER_MAX,
                .trace = config->log.level >= PS_LOG_DEBUG,
                .slow_ms = (uint32_t)config->log.slow_ms,
                .lease_ms = (uint32_t)config->copies.lease_ms,
                .slow_after_ms = (uint32_t)config->copies.slow_after_ms,
                .tail_bytes = config->copies.tail_bytes,
                .flight_bytes = config->copies.flight_bytes,
                .copy_bytes_per_s = config->copies.bytes_per_s,
                .busy_copy_bytes_per_s = config->copies.busy_bytes_per_s,
                .log_queue_bytes = config->disk.queue_bytes,
                .snapshot_after_bytes = config->disk.snapshot_after_bytes,
            },
        .socket = ps_server_socket_args(self),
        .log_dir = self->dir,
        .node = self->node,
        .segment_bytes = config->disk.segment_bytes,
        .log_level = config->log.level,
        .turns = self->turns,
        .metrics = self->metrics,
        .rights = self->rights,
        .audit = self->audit,
        .public_key = self->rights == NULL ? NULL : self->keys.public_key,
    };
    psd_status_t rc = PSD_OK;

    args.socket.lane.spin_us = (uint32_t)config->lane.spin_us;
    (void)snprintf(args.host, sizeof args.host, "%.200s", self->host);
    args.first_port = config->listen.shard_ports.first;
    (void)snprintf(args.advertise, sizeof args.advertise, "%.200s", self->advertise);
    if (self->ipc[0] != '\0') {
        (void)snprintf(args.dir, sizeof args.dir, "%.*s", PS_IPC_DIR_MAX, self->run_dir);
    }
    rc = ps_shards_start(&args, &self->shards, err);
    if (rc != PSD_OK && args.first_port > 0) {
        return psd_error_wrap(err, rc, "listen.shard_ports");
    }
    self->damage.accepted = config->accept_loss;
    if (rc == PSD_OK) {
        rc = ps_node_damage_gather(&self->damage, self->shards, err);
    }
    if (rc == PSD_OK) {
        ps_shards_set_last_session(self->shards, self->old_sessions);
    }
    return rc;
}

/* ---- this start ---- */

static void log_addresses(const ps_server_t *self)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t line = {0};
    char quoted[512];

    for (uint32_t i = 0; i < ps_shards_n(self->shards); i++) {
        if (!ps_buffer_print(&line, "%s%s", i == 0 ? "" : ",",
                             ps_route_any(ps_shards_route(self->shards, i)))) {
            break;
        }
    }
    ps_log(PS_LOG_INFO, "listening",
           "control=%s ipc=%s shards=%s node=%s incarnation=%" PRIu64
           " data_dir=%s version=%s pid=%ld",
           self->endpoint, self->ipc[0] == '\0' ? "-" : self->ipc,
           line.data == NULL ? "" : (const char *)line.data, self->node, self->incarnation,
           ps_log_quote(self->dir, quoted, sizeof quoted), PSD_RELEASE, (long)getpid());
    if (self->ipc[0] == '\0') {
        ps_log(PS_LOG_WARN, "ipc_off", "reason=\"the path %s is longer than %d bytes\"",
               self->run_dir, PS_IPC_DIR_MAX);
    }
}

/* The identity of this node when it has the registry itself. */
static psd_status_t settle_own(ps_server_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_server_check_own(self, err);

    if (rc == PSD_OK && !ps_server_has_registry(self)) {
        rc = ps_server_check_lost(self, err);
    }
    if (rc == PSD_OK && self->replica == NULL) {
        rc = ps_server_open_replica(self, err);
    }
    if (rc == PSD_OK && ps_replica_has_log(self->dir) && !ps_replica_is_member(self->replica)) {
        rc = psd_error_set(err, PSD_FOREIGN,
                           "data directory %s has the log of a replicated registry, and not its "
                           "state; start this node with --join, or, when --force-new-registry was "
                           "interrupted here, with that again",
                           self->dir);
    }
    if (rc == PSD_OK) {
        rc = ps_server_check_age(self, err);
    }
    if (rc == PSD_OK) {
        rc = settle_cluster(self, err);
    }
    return rc == PSD_OK ? settle_node(self, err) : rc;
}

/* The registry takes this node in as any other. */
static psd_status_t start_own(ps_server_t *self, psd_error_t *err)
{
    const ps_replica_net_t net = ps_server_net(self);
    psd_status_t rc = PSD_OK;

    if (ps_replica_is_member(self->replica)) {
        rc = ps_replica_start(self->replica, &net, err);
        return rc == PSD_OK ? ps_server_announce_member(self, err) : rc;
    }
    rc = ps_server_start_control(self, err);
    if (rc == PSD_OK) {
        rc = ps_server_announce_member(self, err);
    }
    if (rc == PSD_OK) {
        ps_server_exchange(self);
        rc = ps_member_failure(self->member, err);
    }
    if (rc == PSD_OK && !ps_member_is_announced(self->member)) {
        rc =
            psd_error_set(err, PSD_IO, "the registry could not store this start; the log says why");
    }
    if (rc == PSD_OK) {
        rc = ps_control_start(self->control, err);
    }
    if (rc == PSD_OK) {
        ps_server_exchange(self);
    }
    return rc;
}

static psd_status_t open_all(ps_server_t *self, psd_error_t *err)
{
    int n_io = (int)self->config->shards;
    bool joins = false;
    psd_status_t rc = ps_place_make(self->config->data_dir, 0700, &self->dir, err);

    joins = self->config->cluster.join.n_items > 0 || self->config->security.token_file[0] != '\0';
    if (rc == PSD_OK) {
        rc = ps_server_open_run_dir(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_context_new(n_io > IO_THREADS_MAX ? IO_THREADS_MAX : n_io, &self->context, err);
    }
    if (rc == PSD_OK) {
        ps_thread_watch_prepare(ps_context_zmq(self->context));
        rc = ps_context_guard(self->context, err); /* before any port of it is bound */
    }
    if (rc == PSD_OK) {
        rc = ps_server_open_keys(self, err); /* before any other node is spoken to */
    }
    if (rc == PSD_OK) {
        rc = ps_server_end_leave(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_server_recover(self, err);
    }
    joins = rc == PSD_OK && (joins || ps_server_has_left(self));
    if (rc == PSD_OK && joins) {
        rc = ps_server_look(self, &joins, err);
    }
    if (rc == PSD_OK) {
        rc = joins ? ps_server_join(self, err) : settle_own(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_log_set_level((ps_log_level_t)self->config->log.level);
    ps_server_settle_hosts(self);
    rc = ps_server_settle_keys(self, joins, err);
    if (rc == PSD_OK) {
        rc = ps_server_open_audit(self, err);
    }
    /* Tables that the shards read from disk may need them. */
    if (rc == PSD_OK) {
        rc = ps_plugins_load(self->config->updaters.dir, &self->plugins, err);
    }
    if (rc == PSD_OK) {
        rc = ps_server_open_port(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_server_open_turns(self, err);
    }
    if (rc == PSD_OK) {
        ps_metrics_set_turns(self->metrics, self->turns);
        ps_metrics_set_stage(self->metrics, PS_STAGE_RECOVERING);
        rc = start_shards(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_metrics_set_stage(self->metrics, PS_STAGE_JOINING);
    log_addresses(self);
    rc = joins ? ps_server_start_member(self, err) : start_own(self, err);
    if (rc == PSD_OK && joins && ps_replica_has_log(self->dir)) {
        rc = ps_server_accept(self, NULL, err);
    }
    return rc == PSD_OK ? ps_thread_watch_start(self->turns, ps_context_zmq(self->context),
                                                &self->program, &self->watch, err)
                        : rc;
}

psd_status_t ps_server_open(const ps_config_t *config, const ps_server_host_t *host,
                            ps_metrics_t *metrics, ps_server_t **ret_server, psd_error_t *err)
{
    ps_server_t *self = ps_alloc(1, sizeof *self);

    *ret_server = self;
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the server");
    }
    self->config = config;
    self->program = *host;
    self->metrics = metrics;
    self->err = psd_error_new();
    self->lock = -1;
    self->run_lock = -1;
    return open_all(self, err);
}

void ps_server_close(ps_server_t **self_p)
{
    ps_server_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_thread_watch_stop(&self->watch);
    ps_server_remove_files(self);
    ps_control_destroy(&self->control);
    if (self->member != NULL) {
        ps_member_end(self->member);
    }
    ps_member_destroy(&self->member);
    ps_shards_stop(&self->shards);
    ps_replica_close(&self->replica);
    ps_socket_close(&self->port);
    ps_context_destroy(&self->context);
    ps_turns_close(&self->turns);
    ps_plugins_done(&self->plugins);
    ps_audit_log_close(&self->audit, ps_unix_ms());
    ps_rights_destroy(&self->rights);
    ps_key_pair_done(&self->keys);
    ps_node_damage_done(&self->damage);
    if (self->lock >= 0) {
        (void)close(self->lock);
    }
    if (self->run_lock >= 0) {
        (void)close(self->run_lock);
    }
    psd_error_destroy(&self->err);
    ps_free(self->run_dir);
    ps_free(self->dir);
    ps_free(self);
    *self_p = NULL;
}
