/* SPDX-License-Identifier: Apache-2.0 */
/* This node's part of the registry: alone, or a member and what it knows of others. */
#include "server/quorum/replica.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "server/quorum/quorum_steps.h"
#include "server/quorum/replica_inner.h"
#include "server/quorum/replica_log.h"
#include "protocol/placement/registry_decide.h"
#include "protocol/registry/command_code.h"
#include "storage/registry/registry_backup.h"
#include "transport/threads/clock.h"

#define COMMIT_MS 1000 /* for a majority to agree */

psd_status_t ps_replica_open(const char *dir, const ps_registry_args_t *args,
                             ps_replica_t **ret_replica, psd_error_t *err)
{
    PSD_AUTO(ps_replica_close) ps_replica_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self != NULL) {
        self->args = *args;
        self->commit_ms = COMMIT_MS;
        self->dir = ps_strdup(dir);
    }
    if (self == NULL || self->dir == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the registry");
    }
    rc = ps_registry_db_open(dir, &self->db, err);
    if (rc == PSD_OK) {
        rc = ps_registry_new(args, &self->registry, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_load(self->db, self->registry, ps_now_ms(), err);
    }
    if (rc == PSD_OK) {
        *ret_replica = self;
        self = NULL;
    }
    return rc;
}

void ps_replica_close(ps_replica_t **self_p)
{
    ps_replica_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_quorum_thread_stop(&self->thread);
    ps_registry_destroy(&self->registry);
    ps_registry_db_close(&self->db); /* takes back a group that is not settled */
    ps_buffer_done(&self->group.bytes);
    ps_buffer_done(&self->group.said_text);
    ps_free(self->group.said);
    ps_free(self->dir);
    ps_free(self);
    *self_p = NULL;
}

ps_registry_t *ps_replica_registry(const ps_replica_t *self)
{
    return self->registry;
}

ps_registry_db_t *ps_replica_db(const ps_replica_t *self)
{
    return self->db;
}

ps_quorum_thread_t *ps_replica_thread(const ps_replica_t *self)
{
    return self->thread;
}

/* ---- members ---- */

psd_status_t ps_replica_snapshot(ps_registry_db_t *db, ps_quorum_snapshot_t *ret, psd_error_t *err)
{
    ps_registry_member_t members[PS_REGISTRY_MEMBERS_MAX];
    const ps_applied_t applied = ps_registry_db_applied(db);
    size_t n = 0;
    psd_status_t rc = ps_registry_db_members(db, members, &n, err);

    *ret = (ps_quorum_snapshot_t){.index = applied.index, .term = applied.term};
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        ps_quorum_member_t *member = &ret->members.at[ret->members.n++];

        member->id = members[i].id;
        member->role = members[i].role == PS_ROLE_VOTER ? PS_QUORUM_VOTER : PS_QUORUM_STANDBY;
        memcpy(member->node, members[i].node, sizeof member->node);
        ret->members_index = members[i].index;
    }
    return rc;
}

/* Only nodes of the registry speak for members; those of an old psd have no
 * secret to prove it with. */
static void trust_all(ps_replica_t *self, const ps_id_t *cluster)
{
    size_t n = ps_registry_n_nodes(self->registry);
    ps_trust_t *nodes = n == 0 ? NULL : ps_alloc(n, sizeof *nodes);
    size_t n_trusted = 0;

    for (size_t i = 0; nodes != NULL && i < n; i++) {
        const ps_node_t *node = ps_registry_node_at(self->registry, i);

        if (!ps_id_is_zero(&node->secret)) {
            memcpy(nodes[n_trusted].node, node->name, sizeof node->name);
            ps_proof_key(&node->secret, cluster, node->name, &nodes[n_trusted++].key);
        }
    }
    if (n == 0 || nodes != NULL) {
        ps_quorum_thread_trust(self->thread, nodes, n_trusted);
    }
    ps_free(nodes);
}

void ps_replica_meet(ps_replica_t *self, const ps_quorum_members_t *members)
{
    ps_id_t cluster = {{0}};

    if (ps_registry_cluster(self->registry, &cluster) == NULL) {
        return; /* it has no state yet */
    }
    trust_all(self, &cluster);
    for (uint32_t i = 0; i < members->n; i++) {
        const ps_node_t *node = ps_registry_node(self->registry, members->at[i].node);

        if (node != NULL) {
            ps_quorum_thread_meet(self->thread, members->at[i].id, node->name, node->control, "");
        }
    }
}

static psd_status_t start_thread(ps_replica_t *self, const ps_replica_net_t *net,
                                 const ps_quorum_snapshot_t *snapshot, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    ps_quorum_thread_args_t args = {.node = net->node,
                                    .host = net->host,
                                    .advertise = net->advertise,
                                    .cluster = net->cluster,
                                    .incarnation = net->incarnation,
                                    .secret = net->secret,
                                    .snapshot = snapshot,
                                    .socket = net->socket,
                                    .knows = net->knows,
                                    .knows_of = net->knows_of,
                                    .turns = net->turns};
    psd_status_t rc = ps_replica_log_dir(self->dir, &dir, err);

    if (rc == PSD_OK && !ps_buffer_print(&path, "%s/registry.ipc", net->run_dir)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    if (rc != PSD_OK) {
        return rc;
    }
    args.dir = (const char *)dir.data;
    args.path = (const char *)path.data;
    rc = ps_quorum_thread_start(&args, &self->thread, err);
    if (rc == PSD_OK) {
        ps_log(PS_LOG_INFO, "registry_member", "node=%s endpoint=%s", net->node,
               ps_quorum_thread_endpoint(self->thread));
    }
    if (rc == PSD_OK && snapshot != NULL) {
        ps_replica_meet(self, &snapshot->members);
    }
    return rc;
}

/* The database is of one that has just become the first member, and whose log
 * was not made before psd ended. */
static bool lacks_log(const ps_replica_t *self, const ps_quorum_snapshot_t *snapshot)
{
    return snapshot->members.n == 1 && !ps_replica_has_log(self->dir);
}

psd_status_t ps_replica_start(ps_replica_t *self, const ps_replica_net_t *net, psd_error_t *err)
{
    ps_quorum_snapshot_t snapshot = {0};
    psd_status_t rc = ps_replica_snapshot(self->db, &snapshot, err);

    if (rc == PSD_OK && lacks_log(self, &snapshot)) {
        rc = ps_replica_make_log(self->dir, &net->cluster, ps_registry_lineage(self->registry),
                                 snapshot.members.at[0].id, snapshot.index + 1, snapshot.term, err);
    }
    return rc == PSD_OK ? start_thread(self, net, snapshot.members.n == 0 ? NULL : &snapshot, err)
                        : rc;
}

bool ps_replica_has_begun(const ps_replica_t *self)
{
    return self->is_begun;
}

bool ps_replica_is_member(const ps_replica_t *self)
{
    ps_quorum_snapshot_t snapshot = {0};

    return ps_replica_snapshot(self->db, &snapshot, NULL) == PSD_OK && snapshot.members.n > 0;
}

/* Its state so far is of a term before all others. */
psd_status_t ps_replica_begin(ps_replica_t *self, const ps_replica_net_t *net, psd_error_t *err)
{
    const ps_applied_t before = ps_registry_db_applied(self->db);
    const ps_applied_t applied = {.index = before.index + 1, .term = before.term + 1};
    ps_quorum_members_t members = {.n = 1};
    psd_status_t rc = ps_replica_new_member(&members.at[0].id, err);

    members.at[0].role = PS_QUORUM_VOTER;
    (void)snprintf(members.at[0].node, sizeof members.at[0].node, "%s", net->node);
    if (rc == PSD_OK && !ps_replica_is_member(self)) {
        rc = ps_shelf_put_members(self->db, &members, applied.index, applied, err);
        self->is_begun = rc == PSD_OK;
    }
    if (rc == PSD_OK) { /* its log begins after that */
        rc = ps_registry_db_flush(self->db, err);
    }
    if (rc == PSD_OK) {
        rc = ps_replica_start(self, net, err);
    }
    if (rc == PSD_OK) { /* it alone votes, and leads at once */
        ps_quorum_thread_look(self->thread, &self->view);
        self->led_term = self->view.term;
    }
    return rc;
}

void ps_replica_accept(ps_replica_t *self, const ps_node_message_t *invite)
{
    ps_trust_t inviting = {.key = invite->proof};

    if (self->thread != NULL && !ps_replica_has_members(self)) {
        memcpy(inviting.node, invite->node.name, sizeof inviting.node);
        ps_quorum_thread_trust(self->thread, &inviting, 1);
        ps_quorum_thread_repeat(self->thread, &invite->token);
        ps_quorum_thread_meet(self->thread, invite->member, invite->node.name, "",
                              invite->node.control);
    }
}

void ps_replica_hear(ps_replica_t *self, ps_bytes_t bytes)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};

    if (self->thread != NULL && ps_node_message_decode(bytes, &message, NULL) == PSD_OK &&
        message.kind == PS_NODE_MEMBER) {
        ps_quorum_thread_hear(self->thread, &message);
    }
}

size_t ps_replica_seats(const ps_replica_t *self, ps_seat_t ret_seats[PS_SEATS_MAX],
                        char ret_leader[PS_NAME_MAX + 1])
{
    const ps_quorum_members_t *members = &self->view.members;
    const ps_quorum_member_t *leader = ps_quorum_members_find(members, self->view.leader);
    size_t n = 0;

    (void)snprintf(ret_leader, PS_NAME_MAX + 1, "%s", leader == NULL ? "" : leader->node);
    for (uint32_t i = 0; i < members->n; i++) {
        const ps_node_t *node = ps_registry_node(self->registry, members->at[i].node);

        if (node != NULL) {
            memcpy(ret_seats[n].node, node->name, sizeof ret_seats[n].node);
            memcpy(ret_seats[n++].endpoint, node->control, sizeof ret_seats[0].endpoint);
        }
    }
    return n;
}

const char *ps_replica_role(const ps_replica_t *self, const char *node)
{
    const ps_quorum_members_t *members = &self->view.members;

    for (uint32_t i = 0; i < members->n; i++) {
        if (strcmp(members->at[i].node, node) == 0) {
            return members->at[i].id == self->view.leader   ? "leader"
                   : members->at[i].role == PS_QUORUM_VOTER ? "voter"
                                                            : "stand-by";
        }
    }
    return "";
}

bool ps_replica_has_members(const ps_replica_t *self)
{
    return self->view.members.n > 0;
}

void ps_replica_lead(ps_replica_t *self, uint64_t term)
{
    self->led_term = term;
}

uint64_t ps_replica_led_term(const ps_replica_t *self)
{
    return self->led_term;
}

void ps_replica_hear_node(ps_replica_t *self, ps_bytes_t bytes)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t beat = {0};
    const ps_node_t *node = NULL;
    ps_id_t cluster = {{0}};

    if (ps_node_message_decode(bytes, &beat, NULL) == PSD_OK &&
        ps_registry_cluster(self->registry, &cluster) != NULL &&
        ps_id_equal(&cluster, &beat.cluster)) {
        node = ps_registry_node_by_incarnation(self->registry, beat.incarnation);
    }
    if (node != NULL) { /* else this member does not know it yet */
        (void)!ps_registry_node_beat(self->registry, node->name, beat.incarnation, 0, ps_now_ms(),
                                     NULL);
    }
}

void ps_replica_listen(ps_replica_t *self)
{
    ps_registry_listen(self->registry, ps_now_ms());
}

uint64_t ps_replica_n_refused(const ps_replica_t *self)
{
    return self->view.n_refused;
}

bool ps_replica_may_answer(const ps_replica_t *self)
{
    return self->thread == NULL ||
           (!self->is_late && !self->is_ahead &&
            ps_quorum_thread_majority_ms(self->thread) + PS_QUORUM_FRESH_MS >= ps_now_ms());
}
