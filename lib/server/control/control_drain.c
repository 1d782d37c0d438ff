/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes that leave, and copies that move: drain, remove, rebalance, repair. */
#include "server/state/control_inner.h"

#include <inttypes.h>

#include "server/quorum/replica.h"
#include "protocol/placement/registry_decide.h"

static psd_status_t read_node(const ps_control_t *self, const ps_control_request_t *request,
                              const ps_node_t **ret_node, psd_error_t *err)
{
    const char *name = NULL;
    char shown[128];
    psd_status_t rc = ps_doc_get_text(request->doc, "name", 255, &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    *ret_node = ps_registry_node(self->is.registry, name);
    return *ret_node != NULL ? PSD_OK
                             : psd_error_set(err, PSD_NO_NODE, "node %s does not exist",
                                             ps_log_quote(name, shown, sizeof shown));
}

static psd_status_t change_state(ps_control_t *self, const ps_control_request_t *request,
                                 const char *name, ps_node_state_t state, bool force,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    psd_status_t rc = ps_registry_plan_node_state(self->is.registry, name, state, force,
                                                  ps_unix_ms(), &command, err);

    if (rc == PSD_OK) {
        rc = ps_control_commit_for(self, request, &command, 0, PS_LOG_INFO, err);
    }
    if (rc == PSD_OK) {
        ps_control_tell_changes(self, &command);
        ps_control_end_jobs(self);
        ps_control_note_losses(self, &command);
    }
    return rc;
}

/* The progress of a drain. */
static bool add_left(const ps_control_t *self, const char *name, ps_doc_t *reply)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, name);
    ps_node_left_t left = {0};
    ps_doc_t *doc = ps_doc_add_object(reply, "left");
    char text[400] = "";

    if (doc == NULL || node == NULL || !ps_registry_node_left(self->is.registry, name, &left)) {
        return false;
    }
    if (left.n_stuck > 0) {
        ps_control_print_stuck(node, &left, text, sizeof text);
    }
    return ps_doc_set_text(reply, "why", text) && ps_doc_set_u64(doc, "copies", left.n_copies) &&
           ps_doc_set_u64(doc, "primaries", left.n_primaries) &&
           ps_doc_set_u64(doc, "last", left.last.n) && ps_doc_set_u64(doc, "bytes", left.bytes) &&
           ps_doc_set_u64(doc, "stuck", left.n_stuck);
}

psd_status_t ps_control_node_drain(ps_control_t *self, ps_control_request_t *request,
                                   psd_error_t *err)
{
    PSD_AUTO(ps_free_at) ps_move_t *moves = NULL;
    const ps_node_t *node = NULL;
    bool dry_run = false;
    bool stay = false;
    size_t n = 0;
    psd_status_t rc = read_node(self, request, &node, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_switch(request->doc, "dry_run", &dry_run, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_switch(request->doc, "stay", &stay, err);
    }
    request->was_dry = dry_run;
    if (rc == PSD_OK) {
        ps_control_learn_bytes(self, request->answers);
        rc = ps_registry_plan_drain(self->is.registry, node->name, &moves, &n, err);
    }
    if (rc == PSD_OK && !dry_run && request->outcome.kind != PS_COMMAND_NODE_STATE) {
        rc = change_state(self, request, node->name, stay ? PS_NODE_UP : PS_NODE_DRAINING, false,
                          err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return ps_doc_set_text(request->reply, "node", node->name) &&
                   ps_doc_set_bool(request->reply, "draining", node->draining) &&
                   add_left(self, node->name, request->reply) &&
                   ps_control_add_moves(self, moves, n, request->answers, request->reply)
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* The user confirmed the loss as it was then, not a loss of more partitions. */
static psd_status_t check_confirmed(const ps_control_t *self, const ps_control_request_t *request,
                                    const ps_node_t *node, psd_error_t *err)
{
    ps_node_left_t left = {0};
    uint64_t confirmed = 0;
    psd_status_t rc =
        ps_doc_get_u64_or(request->doc, "last", 0, UINT32_MAX, UINT32_MAX, &confirmed, err);

    if (rc != PSD_OK || !ps_registry_node_left(self->is.registry, node->name, &left) ||
        left.last.n <= confirmed) {
        return rc;
    }
    return psd_error_set(err, PSD_NODE_HELD,
                         "node %s has the last copies of %u partitions now, %" PRIu64
                         " were confirmed; check again",
                         node->name, left.last.n, confirmed);
}

static psd_status_t say_removed(const ps_control_request_t *request, psd_error_t *err)
{
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "name", 255, &name, err);

    return rc != PSD_OK || (ps_doc_set_text(request->reply, "node", name) &&
                            ps_doc_set_bool(request->reply, "removed", true))
               ? rc
               : ps_control_no_memory(err);
}

/* It joins again with a token only. */
static psd_status_t deny_key(ps_control_t *self, const ps_control_request_t *request,
                             psd_error_t *err)
{
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);

    return rc == PSD_OK && self->is.rights != NULL ? ps_control_deny_node(self, request, name, err)
                                                   : rc;
}

psd_status_t ps_control_node_remove(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    const ps_node_t *node = NULL;
    bool force = false;
    psd_status_t rc = PSD_OK;

    if (request->outcome.kind == PS_COMMAND_NODE_STATE) {
        ps_control_end_jobs(self); /* that had lost rows by it */
        rc = say_removed(request, err);
        return rc == PSD_OK ? deny_key(self, request, err) : rc;
    }
    rc = read_node(self, request, &node, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_switch(request->doc, "force", &force, err);
    }
    if (rc == PSD_OK && force && !node->up) { /* else it is refused anyway */
        rc = check_confirmed(self, request, node, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (node->incarnation == self->is.incarnation) {
        return psd_error_set(err, PSD_DENIED,
                             ps_control_n_voters(self) < 2
                                 ? "node \"%s\" has the registry, which stays"
                                 : "node \"%s\" leads the registry; hand the lead over first "
                                   "(pscli cluster registry transfer)",
                             node->name);
    }
    rc = self->is.rights == NULL ? PSD_OK : ps_control_check_guest(self, node->name, err);
    if (rc == PSD_OK) {
        rc = say_removed(request, err);
    }
    if (rc == PSD_OK) {
        rc = change_state(self, request, node->name, PS_NODE_REMOVED, force, err);
    }
    return rc == PSD_OK ? deny_key(self, request, err) : rc;
}

psd_status_t ps_control_cluster_rebalance(ps_control_t *self, ps_control_request_t *request,
                                          psd_error_t *err)
{
    PSD_AUTO(ps_free_at) ps_move_t *moves = NULL;
    bool dry_run = false;
    size_t n = 0;
    psd_status_t rc = ps_doc_get_switch(request->doc, "dry_run", &dry_run, err);

    request->was_dry = dry_run;
    if (rc == PSD_OK) {
        ps_control_learn_bytes(self, request->answers);
        rc = ps_registry_plan_rebalance(self->is.registry, &moves, &n, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (!dry_run) {
        ps_registry_even_out(self->is.registry);
    }
    return ps_doc_set_u64(request->reply, "moving", ps_registry_n_moving(self->is.registry)) &&
                   ps_control_add_moves(self, moves, n, request->answers, request->reply)
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* The repair goes on by itself: this only reports its progress. */
psd_status_t ps_control_cluster_repair(ps_control_t *self, ps_control_request_t *request,
                                       psd_error_t *err)
{
    PSD_AUTO(ps_free_at) ps_move_t *moves = NULL;
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    ps_control_learn_bytes(self, request->answers);
    rc = ps_registry_plan_repair(self->is.registry, &moves, &n, err);
    if (rc != PSD_OK) {
        return rc;
    }
    return ps_control_add_moves(self, moves, n, request->answers, request->reply)
               ? PSD_OK
               : ps_control_no_memory(err);
}
