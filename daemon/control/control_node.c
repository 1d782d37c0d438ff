/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of nodes without the registry: join, announce, beat, answer, and
 * reports about copies. */
#include "daemon/state/control_inner.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "daemon/nodes/commit.h"
#include "daemon/config/endpoint.h"
#include "daemon/nodes/fleet_doc.h"
#include "daemon/nodes/node_damage.h"
#include "daemon/nodes/sizes.h"
#include "protocol/placement/registry_decide.h"
#include "wire/messages/formats.h"

static psd_status_t read_name(const ps_doc_t *doc, const char **ret_name, psd_error_t *err)
{
    psd_status_t rc = ps_doc_get_text(doc, "name", PS_NAME_MAX, ret_name, err);

    if (rc == PSD_OK && !ps_text_is_name(*ret_name)) {
        rc = psd_error_set(err, PSD_INVALID,
                           "name of the node; allowed: 1..%d of letters, "
                           "digits, \"_\", \".\", \"-\"",
                           PS_NAME_MAX);
    }
    return rc;
}

static psd_status_t read_incarnation(const ps_doc_t *doc, uint64_t *ret, psd_error_t *err)
{
    return ps_doc_get_u64(doc, "incarnation", 1, INT64_MAX, ret, err);
}

/* Two nodes under one name would take each other's partitions. */
static psd_status_t check_name(ps_control_t *self, const char *name, uint64_t incarnation,
                               psd_error_t *err)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, name);
    psd_status_t rc = PSD_OK;

    if (node == NULL || node->incarnation == incarnation ||
        ps_fleet_look(self->fleet, node).state != PS_HEALTH_UP) {
        return PSD_OK;
    }
    rc = psd_error_set(err, PSD_DENIED,
                       "a node \"%s\" is alive at %s; give this one another "
                       "node.name",
                       name, node->control);
    ps_control_note_denied(self, name, false, psd_error_text(err));
    return rc;
}

/* Only the process with the data directory of the node's first life speaks
 * for that node. None speaks for the node with the registry. */
static psd_status_t check_secret(ps_control_t *self, const ps_doc_t *doc, const char *name,
                                 ps_id_t *ret_secret, psd_error_t *err)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, name);
    psd_status_t rc = PSD_OK;

    if (ps_doc_has(doc, "secret")) {
        rc = ps_doc_get_id(doc, "secret", ret_secret, err);
    }
    if (rc != PSD_OK || node == NULL ||
        (ps_node_knows(node, ret_secret) && strcmp(name, self->is.node) != 0)) {
        return rc;
    }
    self->n_denied++;
    if ((self->n_denied & (self->n_denied - 1)) == 0) { /* not every single one */
        ps_log(PS_LOG_WARN, "node_denied",
               "name=%s n=%" PRIu64 " hint=\"somebody says that name without "
               "the node's secret\"",
               name, self->n_denied);
    }
    rc = psd_error_set(err, PSD_DENIED,
                       "node \"%s\" is known with another secret, which is in "
                       "its data directory; start it there, or, if that is "
                       "lost, remove the node (pscli node remove %s --force) "
                       "before it joins again",
                       name, name);
    ps_control_note_denied(self, name, true, psd_error_text(err));
    return rc;
}

/* The name of a node that speaks our version and means this cluster. */
static psd_status_t read_speaker(ps_control_t *self, const ps_doc_t *doc, const char **ret_name,
                                 psd_error_t *err)
{
    psd_status_t rc = ps_control_check_versions(
        doc, "node", PS_NODE_FORMAT, "give all nodes of a cluster the same build of psd", err);

    if (rc == PSD_OK) {
        rc = ps_control_check_cluster(self, doc, err);
    }
    return rc == PSD_OK ? read_name(doc, ret_name, err) : rc;
}

static psd_status_t read_who(ps_control_t *self, const ps_doc_t *doc, const char **ret_name,
                             uint64_t *ret_incarnation, ps_id_t *ret_secret, psd_error_t *err)
{
    psd_status_t rc = read_speaker(self, doc, ret_name, err);

    if (rc == PSD_OK) {
        rc = read_incarnation(doc, ret_incarnation, err);
    }
    if (rc == PSD_OK) {
        rc = check_name(self, *ret_name, *ret_incarnation, err);
    }
    return rc == PSD_OK ? check_secret(self, doc, *ret_name, ret_secret, err) : rc;
}

/* A node that allows it gets another name when its own is taken. */
static psd_status_t read_joining(ps_control_t *self, const ps_doc_t *doc,
                                 char ret_name[PS_NAME_MAX + 1], psd_error_t *err)
{
    const char *name = NULL;
    uint64_t incarnation = 0;
    ps_id_t secret = {{0}};
    bool any_name = false;
    psd_status_t rc = PSD_OK;

    if (ps_doc_has(doc, "any_name")) {
        rc = ps_doc_get_bool(doc, "any_name", &any_name, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (!any_name) {
        rc = read_who(self, doc, &name, &incarnation, &secret, err);
        if (rc == PSD_OK) {
            memcpy(ret_name, name, strlen(name) + 1);
        }
        return rc;
    }
    rc = read_speaker(self, doc, &name, err);
    if (rc == PSD_OK) {
        rc = ps_doc_get_id(doc, "secret", &secret, err);
    }
    return rc == PSD_OK ? ps_control_give_name(self, name, &secret, ret_name, err) : rc;
}

/* What the node must know before it starts its shards. Changes nothing. */
psd_status_t ps_control_node_join(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    char name[PS_NAME_MAX + 1];
    ps_doc_t *cluster = NULL;
    ps_id_t uuid;
    const char *cluster_name = ps_registry_cluster(self->is.registry, &uuid);
    uint64_t session = ps_registry_old_sessions(self->is.registry);
    psd_status_t rc = read_joining(self, request->doc, name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (session < self->last_session) {
        session = self->last_session;
    }
    cluster = ps_doc_add_object(request->reply, "cluster");
    if (cluster == NULL || !ps_doc_set_text(cluster, "name", cluster_name) ||
        !ps_doc_set_id(cluster, "uuid", &uuid) ||
        !ps_doc_set_text(request->reply, "node", self->is.node) ||
        !ps_doc_set_text(request->reply, "name", name) ||
        !ps_doc_set_u64(request->reply, "epoch", ps_registry_epoch(self->is.registry)) ||
        !ps_doc_set_u64(request->reply, "session", session)) {
        return ps_control_no_memory(err);
    }
    return PSD_OK;
}

/* ---- announce ---- */

static psd_status_t read_endpoint(const ps_doc_t *doc, const char *key, bool may_lack,
                                  char ret[PS_ENDPOINT_MAX + 1], psd_error_t *err)
{
    const char *text = NULL;
    psd_status_t rc = ps_doc_get_text(doc, key, PS_ENDPOINT_MAX, &text, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_endpoint_is_valid(text) && !(may_lack && text[0] == '\0')) {
        return psd_error_set(err, PSD_INVALID,
                             "%s is no address; allowed: tcp://HOST:PORT, "
                             "ipc://PATH",
                             key);
    }
    memcpy(ret, text, strlen(text) + 1);
    return PSD_OK;
}

static psd_status_t read_shards(const ps_doc_t *doc, ps_node_t *node, psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    psd_status_t rc = ps_doc_get_array(doc, "shards", PS_NODE_SHARDS_MAX, &array, err);

    if (rc != PSD_OK) {
        return rc;
    }
    node->n_shards = (uint32_t)ps_doc_count(array);
    node->shards = ps_alloc(node->n_shards, sizeof *node->shards);
    if (node->shards == NULL) {
        return ps_control_no_memory(err);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < node->n_shards; i++) {
        const ps_doc_t *shard = NULL;

        rc = ps_doc_at_object(array, i, &shard, err);
        if (rc == PSD_OK) {
            rc = read_endpoint(shard, "tcp", true, node->shards[i].tcp, err);
        }
        if (rc == PSD_OK) {
            rc = read_endpoint(shard, "ipc", true, node->shards[i].ipc, err);
        }
    }
    return rc;
}

static psd_status_t read_weight(const ps_doc_t *doc, ps_node_t *node, psd_error_t *err)
{
    uint64_t weight = 0;
    psd_status_t rc = ps_doc_get_u64_or(doc, "weight", 0, PS_NODE_SHARDS_MAX, 0, &weight, err);

    node->weight = (uint32_t)weight;
    return rc;
}

/* Stores the node and sends the tables whose copies have changed to all nodes. */
static psd_status_t take_node(ps_control_t *self, const ps_node_t *node, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    psd_status_t rc = ps_registry_plan_node(self->is.registry, node, ps_unix_ms(), &command, err);

    if (rc == PSD_OK) {
        rc = ps_control_commit(self, &command, PS_LOG_INFO, err);
    }
    if (rc == PSD_OK) {
        ps_control_tell_changes(self, &command);
        ps_control_end_jobs(self);
        ps_control_note_losses(self, &command);
    }
    return rc;
}

/* The registry knows this incarnation already: the registry was restarted,
 * or the node uses a new connection. An incarnation has one name. */
static psd_status_t settle_life(ps_control_t *self, const ps_node_t *node, psd_error_t *err)
{
    const ps_node_t *known = ps_registry_node_by_incarnation(self->is.registry, node->incarnation);

    if (known == NULL) {
        return take_node(self, node, err);
    }
    return strcmp(known->name, node->name) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_DENIED, "this life of a node is known as \"%s\"",
                               known->name);
}

psd_status_t ps_control_node_announce(ps_control_t *self, ps_control_request_t *request,
                                      psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t owner = {0};
    PSD_AUTO(ps_node_damage_done) ps_node_damage_t damage = {0};
    ps_node_t *node = &owner.node;
    const char *name = NULL;
    uint64_t max_epoch = 0;
    bool is_new = false;
    psd_status_t rc = read_who(self, request->doc, &name, &node->incarnation, &node->secret, err);

    if (rc == PSD_OK) {
        memcpy(node->name, name, strlen(name) + 1);
        rc = read_endpoint(request->doc, "control", false, node->control, err);
    }
    if (rc == PSD_OK) {
        rc = read_shards(request->doc, node, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request->doc, "epoch", 0, INT64_MAX, 0, &max_epoch, err);
    }
    if (rc == PSD_OK) {
        rc = read_weight(request->doc, node, err);
    }
    if (rc == PSD_OK && ps_doc_has(request->doc, "kept")) {
        rc = ps_doc_get_bool(request->doc, "kept", &node->kept, err);
    }
    if (rc == PSD_OK) {
        rc = ps_node_damage_from_doc(&damage, request->doc, err);
    }
    if (rc == PSD_OK) {
        ps_node_damage_fill(&damage, node);
        is_new = ps_registry_node_by_incarnation(self->is.registry, node->incarnation) == NULL;
        rc = settle_life(self, node, err);
    }
    if (rc == PSD_OK) {
        rc = ps_fleet_add(self->fleet, node, request->conn, err);
    }
    if (rc == PSD_OK) {
        ps_fleet_set_damage(self->fleet, node->incarnation, damage.text);
        ps_control_note_damage(self, node->name, is_new ? damage.text : "");
        rc = ps_fleet_beat(self->fleet, node->incarnation, max_epoch, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return ps_doc_set_u64(request->reply, "epoch", ps_registry_epoch(self->is.registry))
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* ---- live ---- */

void ps_control_set_files_out(ps_control_t *self, bool is_out)
{
    ps_fleet_set_files_out(self->fleet, self->is.incarnation, is_out);
}

psd_status_t ps_control_hear_node(ps_control_t *self, const ps_control_request_t *request,
                                  uint64_t *ret_incarnation, psd_error_t *err)
{
    psd_status_t rc = read_incarnation(request->doc, ret_incarnation, err);

    return rc == PSD_OK ? ps_fleet_hear(self->fleet, *ret_incarnation, request->conn, err) : rc;
}

psd_status_t ps_control_node_beat(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    uint64_t incarnation = 0;
    uint64_t max_epoch = 0;
    bool files_out = false;
    psd_status_t rc = ps_control_check_cluster(self, request->doc, err);

    if (rc == PSD_OK) {
        rc = ps_control_hear_node(self, request, &incarnation, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(request->doc, "epoch", 0, INT64_MAX, &max_epoch, err);
    }
    if (rc == PSD_OK) {
        rc = ps_fleet_beat(self->fleet, incarnation, max_epoch, err);
    }
    if (rc == PSD_OK && ps_doc_has(request->doc, "files_out")) {
        rc = ps_doc_get_bool(request->doc, "files_out", &files_out, err);
    }
    if (rc == PSD_OK) {
        ps_fleet_set_files_out(self->fleet, incarnation, files_out);
    }
    if (rc == PSD_OK && ps_doc_has(request->doc, "sizes")) {
        rc = ps_sizes_from_doc(request->doc, incarnation, self->is.registry, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return ps_doc_set_u64(request->reply, "epoch", ps_registry_epoch(self->is.registry))
               ? PSD_OK
               : ps_control_no_memory(err);
}

psd_status_t ps_control_node_answer(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    uint64_t incarnation = 0;
    psd_status_t rc = ps_control_hear_node(self, request, &incarnation, err);

    if (rc == PSD_OK) {
        rc = ps_fleet_take_answer(self->fleet, incarnation, request->doc, err);
    }
    request->parked = rc == PSD_OK; /* an answer gets no answer */
    return rc;
}

psd_status_t ps_control_node_report(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    uint64_t incarnation = 0;
    size_t n = 0;
    psd_status_t rc = ps_control_hear_node(self, request, &incarnation, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_array(request->doc, "reports", PS_REPORTS_MAX * 8, &array, err);
    }
    if (rc == PSD_OK) {
        rc = ps_reports_count(array, &n, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        ps_report_t report;

        rc = ps_report_from_doc(array, i, &report, err);
        if (rc == PSD_OK) {
            ps_control_take_report(self, incarnation, &report);
        }
    }
    request->parked = rc == PSD_OK; /* a report gets no answer */
    return rc;
}

psd_status_t ps_control_node_end(ps_control_t *self, ps_control_request_t *request,
                                 psd_error_t *err)
{
    const ps_node_t *node = NULL;
    uint64_t incarnation = 0;
    psd_status_t rc = ps_control_hear_node(self, request, &incarnation, err);

    if (rc != PSD_OK) {
        return rc;
    }
    request->parked = true; /* it does not wait for an answer */
    node = ps_registry_node_by_incarnation(self->is.registry, incarnation);
    if (node != NULL &&
        ps_registry_node_ends(self->is.registry, node->name, incarnation, ps_now_ms())) {
        ps_log(PS_LOG_INFO, "node_ends", "node=%s", node->name);
    }
    return PSD_OK;
}
