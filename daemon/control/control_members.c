/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes have the registry: the first registry.voters of them that are up,
 * one at a time. */
#include <string.h>

#include "daemon/quorum/replica.h"
#include "daemon/state/control_inner.h"

#define LOOK_MS 500    /* between two looks */
#define SETTLE_MS 2000 /* that enough nodes must be up before the registry is replicated */

static bool is_up(const ps_control_t *self, const ps_node_t *node)
{
    return ps_overseer_look(self->overseer, node, ps_now_ms()).state == PS_HEALTH_UP &&
           !node->draining;
}

static size_t count_up(const ps_control_t *self)
{
    size_t n = 0;

    for (size_t i = 0; i < ps_registry_n_nodes(self->is.registry); i++) {
        n += is_up(self, ps_registry_node_at(self->is.registry, i)) ? 1 : 0;
    }
    return n;
}

static const ps_quorum_member_t *member_on(const ps_quorum_members_t *members, const char *node)
{
    for (uint32_t i = 0; i < members->n; i++) {
        if (strcmp(members->at[i].node, node) == 0) {
            return &members->at[i];
        }
    }
    return NULL;
}

/* Members change only after a command of the leader's term. */
static psd_status_t replicate(ps_control_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t note = {0};
    psd_status_t rc = ps_replica_begin(self->is.replica, &self->is.net, err);

    if (rc == PSD_OK) {
        note = ps_registry_plan_note(self->is.registry, ps_unix_ms(),
                                     "the registry is replicated from here on");
        rc = ps_control_commit(self, &note, PS_LOG_INFO, err);
    }
    return rc;
}

/* Enough nodes have been up for a while: the registry gets a log. */
static psd_status_t begin(ps_control_t *self, psd_error_t *err)
{
    uint64_t now_ms = ps_now_ms();

    if (count_up(self) < self->is.config->registry.voters) {
        self->enough_ms = 0;
        return PSD_OK;
    }
    if (self->enough_ms == 0) {
        self->enough_ms = now_ms;
    }
    return now_ms < self->enough_ms + SETTLE_MS ? PSD_OK : replicate(self, err);
}

/* The first node that could be a member and is none. NULL: there is none. */
static const ps_node_t *candidate(const ps_control_t *self, const ps_quorum_members_t *members)
{
    for (size_t i = 0; i < ps_registry_n_nodes(self->is.registry); i++) {
        const ps_node_t *node = ps_registry_node_at(self->is.registry, i);

        if (member_on(members, node->name) == NULL && is_up(self, node)) {
            return node;
        }
    }
    return NULL;
}

static psd_status_t invite(ps_control_t *self, const ps_quorum_view_t *view, const ps_node_t *node,
                           psd_error_t *err)
{
    ps_node_message_t invite = {.member = view->member,
                                .lineage = *ps_registry_lineage(self->is.registry)};
    psd_status_t rc = PSD_OK;

    if (ps_id_is_zero(&self->token)) {
        rc = ps_random(&self->token, sizeof self->token, err);
    }
    if (rc == PSD_OK) {
        invite.token = self->token;
        (void)snprintf(invite.node.name, sizeof invite.node.name, "%s", self->is.node);
        (void)snprintf(invite.node.control, sizeof invite.node.control, "%s",
                       ps_quorum_thread_endpoint(ps_replica_thread(self->is.replica)));
        ps_fleet_invite(self->fleet, node->incarnation, &invite);
    }
    return rc;
}

/* An invited member has answered. */
static psd_status_t add(ps_control_t *self, const ps_quorum_view_t *view, psd_error_t *err)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, view->stranger.node);
    ps_quorum_thread_t *thread = ps_replica_thread(self->is.replica);
    psd_status_t rc = PSD_OK;

    if (node == NULL || ps_id_is_zero(&self->token) || !ps_id_equal(&self->token, &view->token) ||
        member_on(&view->members, node->name) != NULL) {
        return PSD_OK;
    }
    rc = ps_quorum_thread_change(thread, PS_QUORUM_ADD, view->stranger.id, node->name, err);
    if (rc == PSD_OK) {
        ps_quorum_thread_meet(thread, view->stranger.id, node->control, view->endpoint);
    }
    return rc;
}

/* A stand-by has all that is committed. */
static psd_status_t promote(ps_control_t *self, const ps_quorum_view_t *view, psd_error_t *err)
{
    ps_quorum_thread_t *thread = ps_replica_thread(self->is.replica);

    for (uint32_t i = 0; i < view->members.n; i++) {
        const ps_quorum_member_t *member = &view->members.at[i];
        ps_quorum_peer_info_t info;
        bool caught_up = false;

        if (member->role == PS_QUORUM_STANDBY &&
            ps_quorum_thread_peer(thread, member->id, &info, &caught_up) && caught_up) {
            return ps_quorum_thread_change(thread, PS_QUORUM_PROMOTE, member->id, member->node,
                                           err);
        }
    }
    return PSD_OK;
}

static psd_status_t tend(ps_control_t *self, psd_error_t *err)
{
    ps_quorum_thread_t *thread = ps_replica_thread(self->is.replica);
    const ps_node_t *node = NULL;
    ps_quorum_view_t view;
    psd_status_t rc = PSD_OK;

    if (thread == NULL) {
        return begin(self, err);
    }
    ps_quorum_thread_look(thread, &view);
    if (view.stranger.id != 0) {
        rc = add(self, &view, err);
    }
    if (rc == PSD_OK) {
        rc = promote(self, &view, err);
    }
    node =
        view.members.n < self->is.config->registry.voters ? candidate(self, &view.members) : NULL;
    return rc == PSD_OK && node != NULL ? invite(self, &view, node, err) : rc;
}

void ps_control_tend_members(ps_control_t *self)
{
    uint64_t now_ms = ps_now_ms();
    ps_seat_t seats[PS_SEATS_MAX];
    char leader[PS_NAME_MAX + 1];
    psd_status_t rc = PSD_OK;

    if (now_ms < self->members_ms || self->is.config->registry.voters < 3) {
        return;
    }
    self->members_ms = now_ms + LOOK_MS;
    ps_overseer_set_seats(self->overseer, seats, ps_replica_seats(self->is.replica, seats, leader),
                          leader);
    rc = tend(self, self->err);
    if (rc != PSD_OK) {
        ps_log(rc == PSD_BUSY ? PS_LOG_DEBUG : PS_LOG_WARN, "registry_members_not_changed",
               "status=%s reason=\"%s\" hint=\"retrying\"", psd_status_name(rc),
               psd_error_text(self->err));
        psd_error_clear(self->err);
    }
}
