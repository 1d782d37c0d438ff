/* SPDX-License-Identifier: Apache-2.0 */
/* A node whose registry is elsewhere: which cluster its data directory
 * belongs to, and how it joins. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "server/server_inner.h"
#include "storage/disk/data_dir.h"
#include "storage/disk/format_note.h"
#include "transport/discovery/discovery.h"
#include "wire/messages/doc.h"
#include "wire/messages/formats.h"

/* The node keeps the name under which it joined. */
static psd_status_t settle_name(ps_server_t *self, const ps_belonging_t *known, psd_error_t *err)
{
    const ps_config_t *config = self->config;

    if (ps_server_has_registry(self) && !ps_replica_has_log(self->dir)) {
        return psd_error_set(err, PSD_FOREIGN,
                             "data directory %s has a registry of its own; a node that joins a "
                             "cluster needs another directory",
                             self->dir);
    }
    if (known->is_there && config->origins[PS_KEY_node_name].source != PS_SOURCE_DEFAULT &&
        strcmp(known->node, config->node.name) != 0) {
        return psd_error_set(err, PSD_FOREIGN,
                             "data directory %s belongs to node \"%s\", "
                             "node.name is \"%s\"",
                             self->dir, known->node, config->node.name);
    }
    (void)snprintf(self->node, sizeof self->node, "%.*s", PS_NAME_MAX,
                   known->is_there ? known->node : config->node.name);
    return PSD_OK;
}

static psd_status_t check_cluster(const ps_server_t *self, const ps_belonging_t *known,
                                  const ps_joined_t *joined, psd_error_t *err)
{
    if (known->is_there && !ps_id_equal(&known->cluster, &joined->cluster)) {
        return psd_error_set(err, PSD_FOREIGN,
                             "data directory %s belongs to cluster \"%s\", the "
                             "registry at %s is that of another cluster, "
                             "\"%s\"",
                             self->dir, known->name, ps_member_registry(self->member),
                             joined->cluster_name);
    }
    return PSD_OK;
}

static bool is_default_name(const ps_server_t *self)
{
    return self->config->origins[PS_KEY_node_name].source == PS_SOURCE_DEFAULT;
}

/* The registry lets this node's key in, for the pair of a token or of an admin, at that endpoint.
 * who: gets the name that it is let in under, and the address to join at, which endpoint has. */
static psd_status_t introduce(ps_server_t *self, ps_member_self_t *who, ps_joined_t *joined,
                              const char *endpoint, const ps_key_pair_t *pair, psd_error_t *err)
{
    PSD_AUTO(ps_member_destroy) ps_member_t *member = NULL;
    ps_socket_args_t socket = ps_server_socket_args(self);
    ps_member_self_t stranger = *who;
    psd_status_t rc = PSD_OK;

    socket.keys = pair;
    stranger.only = endpoint;
    stranger.key = self->keys.public_key;
    stranger.has_joined = false;
    rc = ps_member_join(self->config, &socket, &stranger, &self->program, &member, joined, err);
    if (rc == PSD_OK) {
        memcpy(self->node, joined->node, sizeof self->node);
        who->any_name = false;
        who->only = endpoint;
        ps_log(PS_LOG_INFO, "node_let_in", "node=%s registry=%s", self->node, endpoint);
    }
    return rc;
}

static bool has_token(const ps_server_t *self)
{
    return self->rights != NULL && self->config->security.token_file[0] != '\0';
}

/* The first address to join at where a psd of this user listens, on this host, that has written
 * down where its admin's key is. false: there is none. */
static bool find_admin(const ps_server_t *self, char ret_endpoint[PS_ENDPOINT_MAX + 1],
                       ps_key_pair_t *ret_admin)
{
    const ps_text_list_t *urls = &self->config->cluster.join;

    for (size_t i = 0; self->rights != NULL && i < urls->n_items; i++) {
        ps_discovery_t found;

        if (ps_discovery_find(urls->items[i], &found) && found.key_file[0] != '\0' &&
            ps_key_file_read(found.key_file, ret_admin, NULL) == PSD_OK) {
            memcpy(ret_endpoint, found.control, PS_ENDPOINT_MAX + 1);
            return true;
        }
    }
    return false;
}

static psd_status_t join_by(ps_server_t *self, ps_member_self_t *who, ps_joined_t *joined,
                            const char *endpoint, const ps_key_pair_t *pair, psd_error_t *err)
{
    const ps_socket_args_t socket = ps_server_socket_args(self);
    psd_status_t rc = introduce(self, who, joined, endpoint, pair, err);

    return rc == PSD_OK ? ps_member_join(self->config, &socket, who, &self->program, &self->member,
                                         joined, err)
                        : rc;
}

/* A new node that has no token, by the key of an admin who has started a psd on this host. */
static psd_status_t join_by_admin(ps_server_t *self, ps_member_self_t *who, ps_joined_t *joined,
                                  psd_status_t before, psd_error_t *err)
{
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t admin = {.name = ""};
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    char endpoint[PS_ENDPOINT_MAX + 1];
    psd_status_t rc = before;

    if (!find_admin(self, endpoint, &admin)) {
        return before;
    }
    rc = join_by(self, who, joined, endpoint, &admin, why);
    if (rc == PSD_DENIED) { /* that admin may not: how a node is let in says more */
        return before;
    }
    psd_error_clear(err);
    return rc == PSD_OK ? PSD_OK : psd_error_set(err, rc, "%s", psd_error_text(why));
}

/* A token is looked at only when it is needed: by a node that is not known yet. */
static psd_status_t join(ps_server_t *self, ps_member_self_t *who, ps_joined_t *joined,
                         psd_error_t *err)
{
    const ps_socket_args_t socket = ps_server_socket_args(self);
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t token = {.name = ""};
    char endpoint[PS_ENDPOINT_MAX + 1];
    psd_status_t rc = PSD_DENIED;
    psd_status_t read = PSD_OK;

    if (who->has_joined || !has_token(self)) {
        rc = ps_member_join(self->config, &socket, who, &self->program, &self->member, joined, err);
    }
    if (rc != PSD_DENIED && rc != PSD_CONFIG) {
        return rc;
    }
    if (!has_token(self)) {
        return who->has_joined ? rc : join_by_admin(self, who, joined, rc, err);
    }
    read = ps_server_read_token(self, endpoint, &token, who->has_joined ? NULL : err);
    if (read != PSD_OK) { /* of a node that has joined, why it is not let in says more */
        return who->has_joined ? rc : read;
    }
    psd_error_clear(err);
    return join_by(self, who, joined, endpoint, &token, err);
}

psd_status_t ps_server_join(ps_server_t *self, psd_error_t *err)
{
    ps_belonging_t known = {.is_there = false};
    ps_joined_t joined = {0};
    ps_member_self_t who = {.name = NULL};
    psd_status_t rc = ps_data_dir_lock(self->dir, &self->lock, err);

    if (rc == PSD_OK) {
        rc = ps_format_note_settle(ps_disk_real(), self->dir, PS_DISK_FORMAT, err);
    }
    if (rc == PSD_OK) {
        rc = ps_server_make_key(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_server_read_membership(self, &known, err);
    }
    if (rc == PSD_OK) {
        rc = settle_name(self, &known, err);
    }
    if (rc == PSD_OK) {
        rc = ps_server_settle_life(self, err);
    }
    who = (ps_member_self_t){.name = self->node,
                             .incarnation = self->incarnation,
                             .secret = known.secret,
                             .any_name = !known.is_there && is_default_name(self),
                             .has_joined = known.is_there,
                             .members = &known.members,
                             .rights = self->rights};
    if (rc == PSD_OK && ps_id_is_zero(&known.secret)) {
        rc = ps_random(&who.secret, sizeof who.secret, err);
    }
    if (rc == PSD_OK) {
        rc = join(self, &who, &joined, err);
    }
    if (rc == PSD_OK) {
        rc = check_cluster(self, &known, &joined, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    memcpy(self->node, joined.node, sizeof self->node); /* it may be given one */
    memcpy(self->cluster_name, joined.cluster_name, sizeof self->cluster_name);
    self->cluster = joined.cluster;
    self->old_sessions = joined.session;
    /* Stored before the node announces itself, so that it never lacks what
     * the registry stores then. */
    return ps_id_equal(&known.secret, &who.secret) && !known.own_registry &&
                   ps_members_equal(&known.members, &joined.members)
               ? PSD_OK
               : ps_server_write_membership(self, &joined, &who.secret, err);
}

psd_status_t ps_server_announce_member(ps_server_t *self, psd_error_t *err)
{
    const ps_member_args_t args = {
        .shards = self->shards,
        .port = self->port,
        .plugins = &self->plugins,
        .control = self->endpoint,
        .damage = &self->damage,
        .dir = self->dir,
        .cluster_name = self->cluster_name,
    };

    return ps_member_start(self->member, &args, err);
}

psd_status_t ps_server_start_member(ps_server_t *self, psd_error_t *err)
{
    bool is_given = is_default_name(self) && strcmp(self->node, self->config->node.name) != 0;

    ps_log(
        PS_LOG_INFO, "joined", "registry=%s node=%s%s", ps_member_registry(self->member),
        self->node,
        is_given
            ? " hint=\"the host's name was taken at the first join; set node.name to choose one\""
            : "");
    return ps_server_announce_member(self, err);
}
