/* SPDX-License-Identifier: Apache-2.0 */
/* This node's part of a replicated registry: it leads, follows, or waits for a
 * leader. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/alloc.h"
#include "server/quorum/quorum_steps.h"
#include "server/quorum/replica.h"
#include "server/server_inner.h"

ps_replica_net_t ps_server_net(ps_server_t *self)
{
    return (ps_replica_net_t){.node = self->node,
                              .host = self->host,
                              .advertise = self->advertise,
                              .run_dir = self->run_dir,
                              .cluster = self->cluster,
                              .incarnation = self->incarnation,
                              .secret = *ps_member_secret(self->member),
                              .socket = ps_server_socket_args(self),
                              .knows = self->rights == NULL ? NULL : ps_server_knows_member,
                              .knows_of = self,
                              .turns = self->turns};
}

/* ---- leading and following ---- */

/* The node of a member; NULL: the registry does not know it. */
static const ps_node_t *node_of(const ps_server_t *self, const ps_quorum_members_t *members,
                                uint64_t id)
{
    const ps_quorum_member_t *member = ps_quorum_members_find(members, id);

    return member == NULL ? NULL
                          : ps_registry_node(ps_replica_registry(self->replica), member->node);
}

/* From here on this node's registry answers. */
static psd_status_t lead(ps_server_t *self, const ps_quorum_view_t *view, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    psd_status_t rc = ps_registry_plan_term(ps_replica_registry(self->replica), view->term,
                                            view->leader, ps_unix_ms(), &command, err);

    ps_replica_lead(self->replica, view->term);
    if (rc == PSD_OK) {
        rc = ps_replica_commit(self->replica, &command, PS_LOG_INFO, err);
    }
    if (rc == PSD_OK) {
        rc = ps_replica_flush(self->replica, err);
    }
    if (rc == PSD_OK) {
        rc = ps_server_start_control(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_member_move(self->member, NULL, NULL, err);
    }
    if (rc == PSD_OK) {
        ps_server_exchange(self);
        rc = ps_control_start(self->control, err);
    }
    if (rc == PSD_OK) {
        ps_server_exchange(self);
        self->led_term = view->term;
        ps_log(PS_LOG_INFO, "registry_leads", "term=%" PRIu64 " node=%s", view->term, self->node);
    }
    return rc;
}

static void stop_leading(ps_server_t *self)
{
    ps_replica_lead(self->replica, 0);
    if (self->control != NULL) {
        ps_log(PS_LOG_WARN, "registry_leads_no_more", "term=%" PRIu64 " node=%s", self->led_term,
               self->node);
        ps_control_unsay(self->control);
        ps_control_end_all(self->control, PSD_NOT_LEADER, "another node has the registry now");
        ps_control_destroy(&self->control);
        self->rights_are_old = true;
    }
}

static psd_status_t follow(ps_server_t *self, const ps_quorum_view_t *view, psd_error_t *err)
{
    const ps_socket_args_t socket = ps_server_socket_args(self);
    const ps_node_t *leader = node_of(self, &view->members, view->leader);

    stop_leading(self);
    if (leader == NULL || view->leader == view->member ||
        strcmp(leader->control, ps_member_registry(self->member)) == 0) {
        return PSD_OK;
    }
    ps_log(PS_LOG_INFO, "registry_follows", "term=%" PRIu64 " leader=%s endpoint=%s", view->term,
           leader->name, leader->control);
    if (ps_member_move(self->member, leader->control, &socket, err) != PSD_OK) {
        ps_log(PS_LOG_WARN, "registry_not_reached", "endpoint=%s reason=\"%s\" hint=\"retrying\"",
               leader->control, psd_error_text(err));
        psd_error_clear(err);
    }
    return PSD_OK;
}

/* In which it leads, and knows what became of each command; 0: none. */
static uint64_t led_term(const ps_server_t *self)
{
    bool is_sure = ps_replica_led_term(self->replica) == self->led_term;

    return self->control != NULL && is_sure ? self->led_term : 0;
}

static psd_status_t take(ps_server_t *self, psd_error_t *err)
{
    ps_quorum_view_t view;
    psd_status_t rc = PSD_OK;
    ps_duty_t duty = PS_DUTY_STAY;

    ps_quorum_thread_look(ps_replica_thread(self->replica), &view);
    if (view.state != PS_QUORUM_LEADER || ps_replica_is_ahead(self->replica)) {
        stop_leading(self); /* before the state may be replaced */
    }
    rc = ps_replica_take(self->replica, &view, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (view.state == PS_QUORUM_LEADER && self->control != NULL && self->led_term == 0) {
        self->led_term = view.term; /* it was alone, and is the first member now */
    }
    duty =
        ps_quorum_duty(view.state, view.term, view.last,
                       ps_registry_db_applied(ps_replica_db(self->replica)).index, led_term(self));
    if (duty == PS_DUTY_FOLLOW) {
        return follow(self, &view, err);
    }
    if (duty == PS_DUTY_STAY) {
        return PSD_OK;
    }
    stop_leading(self);
    if (duty == PS_DUTY_WAIT) {
        return PSD_OK;
    }
    rc = lead(self, &view, err);
    if (rc == PSD_NOT_LEADER) { /* the thread has news of that */
        stop_leading(self);
        psd_error_clear(err);
        return PSD_OK;
    }
    return rc;
}

int ps_server_quorum_fd(const ps_server_t *self)
{
    ps_quorum_thread_t *thread = self->replica == NULL ? NULL : ps_replica_thread(self->replica);

    return thread == NULL ? -1 : ps_quorum_thread_fd(thread);
}

void ps_server_receive_quorum(ps_server_t *self)
{
    if (ps_server_quorum_fd(self) < 0 || self->failed != PSD_OK) {
        return;
    }
    self->failed = take(self, self->err);
    if (self->failed != PSD_OK) {
        ps_log(PS_LOG_ERROR, "registry_failed", "status=%s reason=\"%s\"",
               psd_status_name(self->failed), psd_error_text(self->err));
    }
}

/* ---- becoming a member ---- */

/* Its database comes from the leader. */
psd_status_t ps_server_accept(ps_server_t *self, const ps_node_message_t *invite, psd_error_t *err)
{
    const ps_replica_net_t net = ps_server_net(self);
    psd_status_t rc = PSD_OK;

    if (self->replica != NULL) {
        ps_replica_accept(self->replica, invite);
        return PSD_OK;
    }
    if (!ps_replica_has_log(self->dir)) {
        rc = ps_replica_prepare(self->dir, invite, err);
    }
    if (rc == PSD_OK && self->lock >= 0) {
        (void)close(self->lock); /* the database takes it */
        self->lock = -1;
    }
    if (rc == PSD_OK) {
        rc = ps_server_open_replica(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_replica_start(self->replica, &net, err);
    }
    if (rc != PSD_OK) {
        ps_replica_close(&self->replica);
        return rc;
    }
    if (invite != NULL) {
        ps_replica_accept(self->replica, invite);
        ps_log(PS_LOG_INFO, "registry_joined", "node=%s leader=%s", self->node, invite->node.name);
    }
    return PSD_OK;
}

psd_status_t ps_server_look(ps_server_t *self, bool *ret_joins, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (!ps_replica_has_log(self->dir)) {
        bool is_own = false;

        rc = ps_server_look_own(self, &is_own, err);
        *ret_joins = !is_own;
        return rc;
    }
    rc = ps_server_open_replica(self, err);
    *ret_joins = rc == PSD_OK && !ps_replica_is_member(self->replica);
    if (*ret_joins) {
        ps_replica_close(&self->replica);
    }
    return rc;
}

/* A node that has joined another one to leave the registry there becomes no member: so does one
 * inside a worker, which goes when the worker does (private_server.c). */
static bool declines(const ps_server_t *self)
{
    return self->replica == NULL && self->config->cluster.join.n_items > 0 &&
           self->config->registry.voters == 1 && !self->config->registry.automatic;
}

void ps_server_take_invite(ps_server_t *self)
{
    ps_node_message_t invite;

    if (!ps_member_take_invite(self->member, &invite) || self->failed != PSD_OK) {
        return;
    }
    if (declines(self)) {
        ps_log(PS_LOG_WARN, "registry_not_joined",
               "leader=%s reason=\"registry.voters is 1 and registry.automatic false here\"",
               invite.node.name);
        return;
    }
    if (ps_server_accept(self, &invite, self->err) != PSD_OK) { /* it is invited again */
        ps_log(PS_LOG_ERROR, "registry_not_joined", "leader=%s reason=\"%s\"", invite.node.name,
               psd_error_text(self->err));
        psd_error_clear(self->err);
    }
}
