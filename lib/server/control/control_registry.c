/* SPDX-License-Identifier: Apache-2.0 */
/* pscli cluster registry: its members as they are, and changes of them. */
#include "server/state/control_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TIMEOUT_MS 10000
#define TIMEOUT_MAX_MS 86400000
#define HEAR_MS 5000 /* for a leader to hear nodes, before one counts as silent */

psd_status_t ps_control_registry_list(ps_control_t *self, ps_control_request_t *request,
                                      psd_error_t *err)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, self->is.node);

    return ps_replica_list(self->is.replica, self->is.node, node == NULL ? "" : node->control,
                           request->reply) &&
                   ps_doc_set_u64(request->reply, "wanted", self->is.config->registry.voters)
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* ---- changes ---- */

/* A change that pscli wants: NODE shall vote, stand by, or be no member. */
typedef struct wish {
    const char *node;
    enum { WISH_VOTER, WISH_STANDBY, WISH_NONE } role;
    bool dry_run;
} wish_t;

static const char *const ROLES[] = {"voter", "stand-by", "none"};

static bool is_replicated(const ps_control_t *self)
{
    return ps_replica_thread(self->is.replica) != NULL;
}

static psd_status_t check_replicated(const ps_control_t *self, psd_error_t *err)
{
    return is_replicated(self)
               ? PSD_OK
               : psd_error_set(err, PSD_UNSUPPORTED,
                               "the registry is on this node alone; it has members when "
                               "registry.voters is 3 or 5 and that many nodes are up");
}

/* The node of the request, which the cluster has. */
static psd_status_t read_node(const ps_control_t *self, const ps_doc_t *doc, const char **ret_name,
                              psd_error_t *err)
{
    char shown[128];
    psd_status_t rc = ps_doc_get_text(doc, "name", PS_NAME_MAX, ret_name, err);

    return rc != PSD_OK || ps_registry_node(self->is.registry, *ret_name) != NULL
               ? rc
               : psd_error_set(err, PSD_NO_NODE, "node %s does not exist",
                               ps_log_quote(*ret_name, shown, sizeof shown));
}

/* The request runs again soon. Errors: PSD_DEADLINE it has run for its timeout, but for
 * the time that the answer takes. */
static psd_status_t pause_for(ps_control_request_t *request, const char *what, psd_error_t *err)
{
    uint64_t timeout_ms = 0;
    psd_status_t rc = ps_doc_get_u64_or(request->doc, "timeout_ms", 1, TIMEOUT_MAX_MS, TIMEOUT_MS,
                                        &timeout_ms, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (request->until_ms == 0) {
        request->until_ms = ps_now_ms() + timeout_ms - timeout_ms / 10;
    }
    return ps_now_ms() < request->until_ms
               ? ps_control_pause(request)
               : psd_error_set(err, PSD_DEADLINE, "not within %" PRIu64 " ms: %s", timeout_ms,
                               what);
}

/* A step of a change. One that cannot be taken now is taken later. */
static psd_status_t change(ps_control_t *self, ps_control_request_t *request,
                           ps_quorum_change_t kind, const ps_care_member_t *member,
                           psd_error_t *err)
{
    psd_status_t rc = ps_control_check_flushed(self, err);

    if (rc == PSD_OK) {
        rc = ps_quorum_thread_change(ps_replica_thread(self->is.replica), kind, member->id,
                                     member->node, err);
    }
    if (rc != PSD_OK && rc != PSD_BUSY && rc != PSD_DENIED && rc != PSD_NOT_LEADER) {
        return rc;
    }
    psd_error_clear(err);
    return pause_for(request, "the members do not agree", err);
}

/* Another voter is to lead, and does the rest. */
static psd_status_t hand_over(ps_control_t *self, ps_control_request_t *request,
                              const ps_members_view_t *view, const ps_care_member_t *heir,
                              psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (heir == NULL && ps_care_check_leaves(&view->care, self->is.node, NULL) == PSD_OK) {
        return pause_for(request, "no other voter has caught up", err);
    }
    if (heir == NULL) {
        return psd_error_set(err, PSD_NODE_HELD,
                             "node \"%s\" leads the registry, and no other voter is up",
                             self->is.node);
    }
    rc = ps_control_check_flushed(self, err);
    if (rc == PSD_OK) {
        rc = ps_quorum_thread_transfer(ps_replica_thread(self->is.replica), heir->id, err);
    }
    if (rc != PSD_OK && rc != PSD_BUSY && rc != PSD_DENIED && rc != PSD_NOT_LEADER) {
        return rc;
    }
    psd_error_clear(err);
    return pause_for(request, "no other voter takes the lead", err);
}

/* The next leader knows it, too. A registry that cannot remember it yet, say because a member
 * that is gone for good has not said what it knows, fulfils the wish all the same. */
static psd_status_t note_wish(ps_control_t *self, const ps_control_request_t *request,
                              const wish_t *wish, psd_error_t *err)
{
    static const ps_hold_t HOLDS[] = {PS_HOLD_NOT, PS_HOLD_VOTE, PS_HOLD_OUT};
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    psd_status_t rc = ps_registry_plan_hold(self->is.registry, wish->node, HOLDS[wish->role],
                                            ps_unix_ms(), &command, err);

    if (rc == PSD_UNSUPPORTED) {
        if (request->until_ms == 0) { /* once */
            ps_log(PS_LOG_WARN, "registry_wish_not_kept", "node=%s reason=\"%s\"", wish->node,
                   psd_error_text(err));
        }
        psd_error_clear(err);
        return PSD_OK;
    }
    if (rc != PSD_OK || command.kind == 0) {
        return rc;
    }
    ps_control_sign(self, request, &command);
    return ps_control_commit(self, &command, PS_LOG_INFO, err);
}

static bool has_role(const ps_care_member_t *member, const wish_t *wish)
{
    return member == NULL                    ? wish->role == WISH_NONE
           : member->role == PS_QUORUM_VOTER ? wish->role == WISH_VOTER
                                             : wish->role == WISH_STANDBY;
}

/* Whether another member can be had, where this node is the only one so far. */
static psd_status_t check_first(const ps_control_t *self, const wish_t *wish, psd_error_t *err)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, wish->node);

    if (wish->role == WISH_NONE || self->is.config->registry.voters < 3) {
        return check_replicated(self, err);
    }
    if (!ps_quorum_is_possible()) {
        return psd_error_set(err, PSD_UNSUPPORTED,
                             "node \"%s\" keeps the registry alone: its psd was built without "
                             "libraft, and has no members beside it",
                             self->is.node);
    }
    if (wish->role == WISH_STANDBY && strcmp(wish->node, self->is.node) == 0) {
        return psd_error_set(err, PSD_NODE_HELD, "node \"%s\" has the only vote of the registry",
                             wish->node);
    }
    return ps_overseer_look(self->overseer, node, ps_now_ms()).state == PS_HEALTH_UP
               ? PSD_OK
               : psd_error_set(err, PSD_FEW_NODES, "node \"%s\" is silent", wish->node);
}

static psd_status_t answer(const ps_control_request_t *request, const wish_t *wish, bool is_so,
                           psd_error_t *err)
{
    ps_doc_t *reply = request->reply;

    return ps_doc_set_text(reply, "node", wish->node) &&
                   ps_doc_set_text(reply, "role", ROLES[wish->role]) &&
                   ps_doc_set_bool(reply, "dry_run", wish->dry_run) &&
                   ps_doc_set_bool(reply, "was_so", is_so)
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* Whether the change is possible now. */
static psd_status_t check_wish(const ps_control_t *self, const ps_members_view_t *view,
                               const ps_care_member_t *member, const wish_t *wish, psd_error_t *err)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, wish->node);
    uint64_t now_ms = ps_now_ms();

    if (member == NULL && wish->role != WISH_NONE &&
        (node == NULL || (ps_overseer_look(self->overseer, node, now_ms).state == PS_HEALTH_DOWN &&
                          now_ms >= self->begun_ms + HEAR_MS))) {
        return psd_error_set(err, PSD_FEW_NODES, "node \"%s\" is silent", wish->node);
    }
    return wish->role == WISH_VOTER ? PSD_OK : ps_care_check_leaves(&view->care, wish->node, err);
}

/* One step nearer to the wish. */
static psd_status_t approach(ps_control_t *self, ps_control_request_t *request,
                             const ps_members_view_t *view, const wish_t *wish, psd_error_t *err)
{
    const ps_care_member_t *member = ps_care_member(&view->care, wish->node);

    if (member == NULL) {
        (void)snprintf(self->tending.asked, sizeof self->tending.asked, "%s", wish->node);
        self->tending.asked_ms = ps_now_ms();
        return pause_for(request, "the node does not come; its log says why", err);
    }
    if (wish->role == WISH_VOTER) {
        return change(self, request, PS_QUORUM_PROMOTE, member, err);
    }
    if (member->leads) {
        return hand_over(self, request, view, ps_care_heir(&view->care), err);
    }
    return change(self, request, wish->role == WISH_NONE ? PS_QUORUM_REMOVE : PS_QUORUM_DEMOTE,
                  member, err);
}

/* Runs until the members are as they are wished. A repetition at the next leader finds
 * what is left to do. */
static psd_status_t fulfil(ps_control_t *self, ps_control_request_t *request, const wish_t *wish,
                           psd_error_t *err)
{
    ps_members_view_t view;
    const ps_care_member_t *member = NULL;
    bool is_so = false;
    psd_status_t rc = PSD_OK;

    ps_control_view_members(self, &view);
    member = ps_care_member(&view.care, wish->node);
    is_so = has_role(member, wish);
    if (!is_so) {
        rc = check_wish(self, &view, member, wish, err);
    }
    if (rc != PSD_OK || wish->dry_run) {
        return rc == PSD_OK ? answer(request, wish, is_so, err) : rc;
    }
    if (member != NULL || wish->role != WISH_STANDBY) { /* else when it has come */
        rc = note_wish(self, request, wish, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (is_so) {
        return view.view.is_changing ? pause_for(request, "the members do not agree", err)
                                     : answer(request, wish, request->until_ms == 0, err);
    }
    return approach(self, request, &view, wish, err);
}

/* The registry is on this node alone, and gets its log and a second member by hand. */
static psd_status_t begin(ps_control_t *self, ps_control_request_t *request, const wish_t *wish,
                          psd_error_t *err)
{
    bool is_self = strcmp(wish->node, self->is.node) == 0;
    psd_status_t rc = check_first(self, wish, err);

    if (rc != PSD_OK || wish->dry_run || is_self) {
        return rc == PSD_OK ? answer(request, wish, is_self, err) : rc;
    }
    (void)snprintf(self->tending.asked, sizeof self->tending.asked, "%s", wish->node);
    self->tending.asked_ms = ps_now_ms();
    return pause_for(request, "the registry gets no log; the log of this node says why", err);
}

psd_status_t ps_control_registry_set(ps_control_t *self, ps_control_request_t *request,
                                     psd_error_t *err)
{
    wish_t wish = {.node = NULL};
    const char *role = NULL;
    psd_status_t rc = read_node(self, request->doc, &wish.node, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(request->doc, "role", PS_NAME_MAX, &role, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_switch(request->doc, "dry_run", &wish.dry_run, err);
    }
    request->was_dry = wish.dry_run;
    if (rc != PSD_OK) {
        return rc;
    }
    while (wish.role <= WISH_NONE && strcmp(ROLES[wish.role], role) != 0) {
        wish.role++;
    }
    if (wish.role > WISH_NONE) {
        return psd_error_set(err, PSD_PROTO, "role; allowed: voter, stand-by, none");
    }
    return is_replicated(self) ? fulfil(self, request, &wish, err)
                               : begin(self, request, &wish, err);
}

/* ---- the lead ---- */

/* Who is to lead. *ret_done: somebody else than `from` leads already, or the one that is
 * wanted. *ret_heir NULL: anybody, and there is nobody now. */
static psd_status_t read_heir(const ps_control_t *self, const ps_control_request_t *request,
                              const ps_members_view_t *view, const ps_care_member_t **ret_heir,
                              bool *ret_done, psd_error_t *err)
{
    const char *name = NULL;
    psd_status_t rc = PSD_OK;

    *ret_heir = NULL;
    *ret_done = false;
    if (!ps_doc_has(request->doc, "name")) {
        rc = ps_doc_get_text(request->doc, "from", PS_NAME_MAX, &name, err);
        *ret_done = rc == PSD_OK && strcmp(name, self->is.node) != 0;
        *ret_heir = ps_care_heir(&view->care);
        return rc;
    }
    rc = read_node(self, request->doc, &name, err);
    *ret_done = rc == PSD_OK && strcmp(name, self->is.node) == 0;
    if (rc != PSD_OK || *ret_done) {
        return rc;
    }
    *ret_heir = ps_care_member(&view->care, name);
    if (*ret_heir == NULL || (*ret_heir)->role != PS_QUORUM_VOTER) {
        return psd_error_set(err, PSD_INVALID, "node \"%s\" does not vote in the registry", name);
    }
    return (*ret_heir)->is_up ? PSD_OK
                              : psd_error_set(err, PSD_FEW_NODES, "node \"%s\" is silent", name);
}

psd_status_t ps_control_registry_transfer(ps_control_t *self, ps_control_request_t *request,
                                          psd_error_t *err)
{
    ps_members_view_t view;
    const ps_care_member_t *heir = NULL;
    bool dry_run = false;
    bool done = false;
    psd_status_t rc = check_replicated(self, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_switch(request->doc, "dry_run", &dry_run, err);
    }
    if (rc == PSD_OK) {
        ps_control_view_members(self, &view);
        rc = read_heir(self, request, &view, &heir, &done, err);
    }
    if (rc == PSD_OK && !done && (!dry_run || heir == NULL)) {
        return hand_over(self, request, &view, heir, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    request->was_dry = dry_run;
    return ps_doc_set_text(request->reply, "leader", done ? self->is.node : heir->node) &&
                   ps_doc_set_bool(request->reply, "dry_run", dry_run)
               ? PSD_OK
               : ps_control_no_memory(err);
}
