/* SPDX-License-Identifier: Apache-2.0 */
/* Which nodes have the registry: steps towards the members that are wanted, one at a
 * time (quorum_care.h). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/config/endpoint.h"

#include "server/quorum/replica.h"
#include "server/state/control_inner.h"

#define LOOK_MS 500    /* between two looks */
#define SETTLE_MS 2000 /* that enough nodes must be up before the registry is replicated */
#define INVITES 20     /* of one node, before it is the next one's turn */
#define ASKED_MS 3000  /* that a wish of pscli counts after it was last uttered */

static bool is_up(const ps_control_t *self, const ps_node_t *node)
{
    return ps_overseer_look(self->overseer, node, ps_now_ms()).state == PS_HEALTH_UP &&
           !node->draining;
}

static size_t count_up(const ps_control_t *self)
{
    size_t n = 0;

    for (size_t i = 0; i < ps_registry_n_nodes(self->is.registry); i++) {
        const ps_node_t *node = ps_registry_node_at(self->is.registry, i);

        n += is_up(self, node) && node->held == PS_HOLD_NOT ? 1 : 0;
    }
    return n;
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

/* The greatest machine version that all members know; 0: not all of them have said it. */
static uint32_t known_by_all(ps_control_t *self)
{
    ps_quorum_thread_t *thread = ps_replica_thread(self->is.replica);
    ps_quorum_view_t view;
    uint32_t least = PS_SM_VERSION;

    if (thread == NULL) {
        return least;
    }
    ps_quorum_thread_look(thread, &view);
    for (uint32_t i = 0; i < view.members.n; i++) {
        uint32_t machine = ps_quorum_thread_machine(thread, view.members.at[i].id);

        least = machine < least ? machine : least;
    }
    return least;
}

/* From here on commands may be of a newer kind. */
static psd_status_t raise_machine(ps_control_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    psd_status_t rc = PSD_OK;

    if (ps_registry_machine(self->is.registry) >= PS_SM_VERSION ||
        (ps_replica_has_begun(self->is.replica) && ps_replica_thread(self->is.replica) == NULL)) {
        return PSD_OK;
    }
    rc = ps_registry_plan_machine(self->is.registry, known_by_all(self), ps_unix_ms(), &command,
                                  err);
    return rc == PSD_OK && command.kind != 0 ? ps_control_commit(self, &command, PS_LOG_INFO, err)
                                             : rc;
}

/* Without libraft nothing begins: its state as a member's could not be read again. */
static psd_status_t stay_alone(ps_control_t *self)
{
    if (!self->tending.is_alone) {
        self->tending.is_alone = true;
        ps_log(
            PS_LOG_WARN, "registry_not_replicated",
            "node=%s hint=\"this psd was built without libraft; set registry.voters: 1, or install "
            "one with it\"",
            self->is.node);
    }
    return PSD_OK;
}

/* Enough nodes have been up for a while: the registry gets a log. */
static psd_status_t begin(ps_control_t *self, psd_error_t *err)
{
    uint64_t now_ms = ps_now_ms();

    if (ps_replica_has_begun(self->is.replica)) { /* without room, say: it is a member already */
        return replicate(self, err);
    }
    if (self->tending.asked[0] != '\0' && now_ms < self->tending.asked_ms + ASKED_MS &&
        ps_quorum_is_possible()) {
        return replicate(self, err); /* pscli wants another member */
    }
    if (self->is.config->registry.voters < 3 || !self->is.config->registry.automatic ||
        count_up(self) < self->is.config->registry.voters) {
        self->tending.enough_ms = 0;
        return PSD_OK;
    }
    if (self->tending.enough_ms == 0) {
        self->tending.enough_ms = now_ms;
    }
    if (now_ms < self->tending.enough_ms + SETTLE_MS) {
        return PSD_OK;
    }
    return ps_quorum_is_possible() ? replicate(self, err) : stay_alone(self);
}

/* ---- looking ---- */

/* Its node may be shared: hosts fail together. */
static const char *domain_of(ps_members_view_t *view, size_t i, const ps_node_t *node)
{
    ps_endpoint_host(node == NULL ? "" : node->control, view->domains[i]);
    return view->domains[i];
}

/* When this leader first saw that member: it may not have been heard yet. */
static uint64_t seen_since(ps_tending_t *tending, uint64_t id, uint64_t now_ms)
{
    size_t at = 0;

    for (size_t i = 0; i < PS_QUORUM_MEMBERS_MAX; i++) {
        if (tending->known[i] == id) {
            return tending->since_ms[i];
        }
        at = tending->since_ms[i] < tending->since_ms[at] ? i : at;
    }
    tending->known[at] = id;
    tending->since_ms[at] = now_ms;
    return now_ms;
}

static void view_member(ps_control_t *self, ps_members_view_t *view, size_t i)
{
    const ps_member_sight_t *sight = &view->sights[i];
    const ps_node_t *node = ps_registry_node(self->is.registry, sight->node);
    const uint64_t now_ms = ps_now_ms();
    uint64_t since_ms = seen_since(&self->tending, sight->id, now_ms);

    since_ms = sight->heard_ms > since_ms ? sight->heard_ms : since_ms;
    view->members[i] = (ps_care_member_t){
        .id = sight->id,
        .node = sight->node,
        .domain = domain_of(view, i, node),
        .role = sight->role,
        .leads = sight->leads,
        .is_up = sight->is_up,
        .caught_up = sight->caught_up,
        .is_lost =
            !sight->is_self &&
            now_ms >= since_ms + ps_registry_setting(self->is.registry, PS_SETTING_REPAIR_AFTER),
        .is_node = node != NULL,
        .is_node_up = node != NULL && is_up(self, node),
        .drains = node != NULL && node->draining};
}

static uint64_t failed_of(const ps_tending_t *tending, uint64_t incarnation)
{
    uint64_t failed = 0;

    for (uint64_t i = 0; i < tending->n_failed && i < PS_FAILED_MAX; i++) {
        uint64_t number = tending->n_failed - i; /* from the newest on */

        if (tending->failed[(number - 1) % PS_FAILED_MAX] == incarnation) {
            failed = number;
            break;
        }
    }
    return failed;
}

void ps_control_view_members(ps_control_t *self, ps_members_view_t *ret_view)
{
    ps_members_view_t *view = ret_view;
    size_t n = 0;

    view->care = (ps_care_t){.members = view->members,
                             .nodes = view->nodes,
                             .voters = (uint32_t)self->is.config->registry.voters};
    view->care.n_members = ps_replica_look(self->is.replica, &view->view, view->sights);
    for (size_t i = 0; i < view->care.n_members; i++) {
        view_member(self, view, i);
    }
    for (size_t i = 0; i < ps_registry_n_nodes(self->is.registry) && n < PS_CANDIDATES_MAX; i++) {
        const ps_node_t *node = ps_registry_node_at(self->is.registry, i);

        if (is_up(self, node) && node->held != PS_HOLD_OUT &&
            ps_care_member(&view->care, node->name) == NULL) {
            view->nodes[n] =
                (ps_care_node_t){.node = node->name,
                                 .domain = domain_of(view, PS_QUORUM_MEMBERS_MAX + n, node),
                                 .failed = failed_of(&self->tending, node->incarnation)};
            n++;
        }
    }
    view->care.n_nodes = n;
}

/* ---- steps ---- */

static psd_status_t send_invite(ps_control_t *self, const ps_members_view_t *view,
                                const ps_node_t *node, psd_error_t *err)
{
    ps_node_message_t message = {.member = view->view.member};
    psd_status_t rc = PSD_OK;

    if (ps_id_is_zero(&self->tending.token)) {
        rc = ps_random(&self->tending.token, sizeof self->tending.token, err);
    }
    if (rc == PSD_OK) {
        message.token = self->tending.token;
        message.proof = *ps_quorum_thread_key(ps_replica_thread(self->is.replica));
        (void)snprintf(message.node.name, sizeof message.node.name, "%s", self->is.node);
        (void)snprintf(message.node.control, sizeof message.node.control, "%s",
                       ps_quorum_thread_endpoint(ps_replica_thread(self->is.replica)));
        ps_fleet_invite(self->fleet, node->incarnation, &message);
    }
    return rc;
}

/* Invites that node, or goes on with another one that was invited and has not had its
 * time. A node that does not come is noted: others are invited before it then. */
static psd_status_t invite(ps_control_t *self, const ps_members_view_t *view, const char *name,
                           psd_error_t *err)
{
    ps_tending_t *tending = &self->tending;
    const ps_node_t *node = ps_registry_node(self->is.registry, tending->invited);

    if (strcmp(tending->invited, name) != 0 &&
        (node == NULL || !is_up(self, node) || tending->n_invites >= INVITES ||
         ps_care_member(&view->care, tending->invited) != NULL)) {
        (void)snprintf(tending->invited, sizeof tending->invited, "%s", name);
        tending->n_invites = 0;
    }
    node = ps_registry_node(self->is.registry, tending->invited);
    if (node == NULL) {
        return PSD_OK;
    }
    if (++tending->n_invites >= INVITES) {
        ps_log(PS_LOG_WARN, "registry_member_missing",
               "node=%s hint=\"it was invited and does not come; its log says why\"", node->name);
        tending->failed[tending->n_failed++ % PS_FAILED_MAX] = node->incarnation;
        tending->invited[0] = '\0';
        tending->n_invites = 0;
    }
    return send_invite(self, view, node, err);
}

/* Who was to bring its state to a stand-by may have ended before: this leader invites it
 * again. One that has a state does not heed that. */
static psd_status_t remind(ps_control_t *self, const ps_members_view_t *view, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < view->care.n_members; i++) {
        const ps_care_member_t *member = &view->members[i];
        const ps_node_t *node = ps_registry_node(self->is.registry, member->node);

        if (member->role == PS_QUORUM_STANDBY && !member->is_up && member->is_node_up &&
            !member->drains && node != NULL) {
            rc = send_invite(self, view, node, err);
        }
    }
    return rc;
}

/* The member of that node answers as another one: it has lost its part, and begins again.
 * A voter is replaced first (quorum_care.h). */
static psd_status_t part_from(ps_control_t *self, const ps_care_member_t *member, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (member->role != PS_QUORUM_STANDBY || member->is_up) {
        return PSD_OK;
    }
    rc = ps_quorum_thread_change(ps_replica_thread(self->is.replica), PS_QUORUM_REMOVE, member->id,
                                 member->node, err);
    if (rc == PSD_OK) {
        ps_log(PS_LOG_WARN, "registry_member_removed",
               "node=%s reason=\"it has lost its part of the registry, and begins again\"",
               member->node);
    }
    return rc;
}

/* It would stop at the first command of a newer kind. */
static psd_status_t refuse_old(ps_control_t *self, const char *node, uint32_t machine)
{
    ps_tending_t *tending = &self->tending;

    if (strcmp(tending->too_old, node) != 0) {
        (void)snprintf(tending->too_old, sizeof tending->too_old, "%s", node);
        ps_log(PS_LOG_WARN, "registry_member_too_old",
               "node=%s machine=%" PRIu32 " wanted=%" PRIu32
               " hint=\"it runs an older psd, which does not know all of the registry's commands; "
               "install this one there\"",
               node, machine, ps_registry_machine(self->is.registry));
    }
    return PSD_OK;
}

/* An invited member has answered. */
static psd_status_t add(ps_control_t *self, const ps_members_view_t *view, psd_error_t *err)
{
    const ps_quorum_view_t *now = &view->view;
    const ps_node_t *node = ps_registry_node(self->is.registry, now->stranger.node);
    ps_quorum_thread_t *thread = ps_replica_thread(self->is.replica);
    const ps_care_member_t *member = NULL;
    psd_status_t rc = PSD_OK;

    if (node == NULL || ps_id_is_zero(&self->tending.token) ||
        !ps_id_equal(&self->tending.token, &now->token)) {
        return PSD_OK;
    }
    if (now->stranger_machine < ps_registry_machine(self->is.registry)) {
        return refuse_old(self, node->name, now->stranger_machine);
    }
    member = ps_care_member(&view->care, node->name);
    if (member != NULL) {
        return part_from(self, member, err);
    }
    rc = ps_quorum_thread_change(thread, PS_QUORUM_ADD, now->stranger.id, node->name, err);
    if (rc == PSD_OK) {
        ps_quorum_thread_meet(thread, now->stranger.id, node->name, node->control, now->endpoint);
    }
    return rc;
}

/* What pscli made a stand-by stays one. */
static void hold(const ps_control_t *self, ps_members_view_t *view)
{
    for (size_t i = 0; i < view->care.n_members; i++) {
        const ps_node_t *node = ps_registry_node(self->is.registry, view->members[i].node);

        if (node != NULL && node->held != PS_HOLD_NOT) {
            view->members[i].caught_up = false;
        }
    }
}

static psd_status_t take_step(ps_control_t *self, const ps_members_view_t *view,
                              const ps_care_step_t *step, psd_error_t *err)
{
    ps_quorum_thread_t *thread = ps_replica_thread(self->is.replica);
    psd_status_t rc = PSD_OK;

    switch (step->kind) {
    case PS_CARE_INVITE:
        return invite(self, view, step->node, err);
    case PS_CARE_PROMOTE:
        return ps_quorum_thread_change(thread, PS_QUORUM_PROMOTE, step->member, step->node, err);
    case PS_CARE_REMOVE:
        rc = ps_quorum_thread_change(thread, PS_QUORUM_REMOVE, step->member, step->node, err);
        if (rc == PSD_OK) {
            ps_log(PS_LOG_WARN, "registry_member_removed",
                   "node=%s reason=\"it is silent, drains, or was removed from the cluster\"",
                   step->node);
        }
        return rc;
    case PS_CARE_TRANSFER:
        return ps_quorum_thread_transfer(thread, step->member, err);
    case PS_CARE_NONE:
    default:
        return PSD_OK;
    }
}

static psd_status_t tend(ps_control_t *self, psd_error_t *err)
{
    ps_tending_t *tending = &self->tending;
    ps_members_view_t view;
    ps_care_step_t step = {.kind = PS_CARE_NONE};
    psd_status_t rc = raise_machine(self, err);

    if (rc != PSD_OK || ps_replica_thread(self->is.replica) == NULL) {
        return rc == PSD_OK ? begin(self, err) : rc;
    }
    rc = ps_control_check_flushed(self, err); /* before a change of members */
    ps_control_view_members(self, &view);
    hold(self, &view);
    if (rc == PSD_OK && view.view.stranger.id != 0) {
        rc = add(self, &view, err);
    }
    if (rc == PSD_OK && self->is.config->registry.automatic) {
        rc = remind(self, &view, err);
    }
    if (rc == PSD_OK && tending->asked[0] != '\0' && ps_now_ms() < tending->asked_ms + ASKED_MS &&
        ps_care_member(&view.care, tending->asked) == NULL) {
        return invite(self, &view, tending->asked, err);
    }
    if (rc == PSD_OK && self->is.config->registry.automatic) {
        step = ps_care_next(&view.care);
        rc = take_step(self, &view, &step, err);
    }
    return rc;
}

void ps_control_tell_seats(ps_control_t *self)
{
    ps_seat_t seats[PS_SEATS_MAX];
    char leader[PS_NAME_MAX + 1];
    size_t n = ps_replica_seats(self->is.replica, seats, leader);

    ps_overseer_set_seats(self->overseer, seats, n, leader);
}

void ps_control_tend_members(ps_control_t *self)
{
    uint64_t now_ms = ps_now_ms();
    psd_status_t rc = PSD_OK;

    if (now_ms < self->tending.look_ms) {
        return;
    }
    self->tending.look_ms = now_ms + LOOK_MS;
    ps_control_tell_seats(self);
    rc = tend(self, self->err);
    if (rc != PSD_OK) {
        ps_log(rc == PSD_BUSY ? PS_LOG_DEBUG : PS_LOG_WARN, "registry_members_not_changed",
               "status=%s reason=\"%s\" hint=\"retrying\"", psd_status_name(rc),
               psd_error_text(self->err));
        psd_error_clear(self->err);
    }
}
