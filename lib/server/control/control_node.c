/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes say: a join in JSON, then messages of the agent. */
#include "server/state/control_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "server/quorum/replica.h"
#include "server/config/endpoint.h"
#include "transport/sockets/curve.h"
#include "protocol/placement/registry_decide.h"
#include "wire/messages/formats.h"

#define SIGNS_MS 5000 /* for nodes to hear of a new leader */

static psd_status_t check_node_name(const char *name, psd_error_t *err)
{
    return ps_text_is_name(name) ? PSD_OK
                                 : psd_error_set(err, PSD_INVALID,
                                                 "name of the node; allowed: 1..%d of letters, "
                                                 "digits, \"_\", \".\", \"-\"",
                                                 PS_NAME_MAX);
}

static psd_status_t read_name(const ps_doc_t *doc, const char **ret_name, psd_error_t *err)
{
    psd_status_t rc = ps_doc_get_text(doc, "name", PS_NAME_MAX, ret_name, err);

    return rc == PSD_OK ? check_node_name(*ret_name, err) : rc;
}

/* Two nodes under one name would take each other's partitions. */
static psd_status_t check_name(ps_control_t *self, const char *name, uint64_t incarnation,
                               psd_error_t *err)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, name);
    psd_status_t rc = PSD_OK;

    if (node == NULL || node->incarnation == incarnation ||
        ps_overseer_look(self->overseer, node, ps_now_ms()).state != PS_HEALTH_UP) {
        return PSD_OK;
    }
    rc =
        psd_error_set(err, PSD_DENIED, "a node \"%s\" is up at %s; give this one another node.name",
                      name, node->control);
    ps_control_note_denied(self, name, false, psd_error_text(err));
    return rc;
}

/* Only the process with the data directory of the node's first life speaks
 * for that node. */
static psd_status_t check_secret(ps_control_t *self, const char *name, const ps_id_t *secret,
                                 psd_error_t *err)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, name);
    psd_status_t rc = PSD_OK;

    if (node == NULL || ps_node_knows(node, secret)) {
        return PSD_OK;
    }
    self->n_denied++;
    ps_count_add(self->counts->denied, 1);
    if ((self->n_denied & (self->n_denied - 1)) == 0) { /* not every single one */
        ps_log(PS_LOG_WARN, "node_denied",
               "name=%s n=%" PRIu64 " hint=\"a node claims that name without its secret\"", name,
               self->n_denied);
    }
    rc = psd_error_set(
        err, PSD_DENIED,
        "node \"%s\" has another secret, stored in its data directory; start it there, or, if that "
        "is lost, remove the node (pscli node remove %s --force) before it joins again",
        name, name);
    ps_control_note_denied(self, name, true, psd_error_text(err));
    return rc;
}

/* The name of a node that speaks our version and means this cluster. Another
 * build's is logged, and shown as a problem; one of another cluster is not: it
 * may be anybody's. */
static psd_status_t read_speaker(ps_control_t *self, const ps_doc_t *doc, const char **ret_name,
                                 psd_error_t *err)
{
    const char *name = NULL;
    psd_status_t rc =
        ps_control_check_versions(doc, "node", PS_NODE_FORMAT, PS_NODE_FORMAT_HINT, err);

    if (rc == PSD_VERSION && ps_control_check_cluster(self, doc, NULL) == PSD_OK &&
        read_name(doc, &name, NULL) == PSD_OK) {
        ps_control_note_denied(self, name, true, psd_error_text(err));
    }
    if (rc == PSD_OK) {
        rc = ps_control_check_cluster(self, doc, err);
    }
    return rc == PSD_OK ? read_name(doc, ret_name, err) : rc;
}

/* Whether that life of a node may speak under that name. */
static psd_status_t check_who(ps_control_t *self, const char *name, uint64_t incarnation,
                              const ps_id_t *secret, psd_error_t *err)
{
    psd_status_t rc = check_name(self, name, incarnation, err);

    return rc == PSD_OK ? check_secret(self, name, secret, err) : rc;
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
    if (rc == PSD_OK) {
        rc = read_speaker(self, doc, &name, err);
    }
    if (rc == PSD_OK && (any_name || ps_doc_has(doc, "secret"))) {
        rc = ps_doc_get_id(doc, "secret", &secret, err);
    }
    if (rc == PSD_OK && any_name) {
        return ps_control_give_name(self, name, &secret, ret_name, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "incarnation", 1, INT64_MAX, &incarnation, err);
    }
    if (rc == PSD_OK) {
        rc = check_who(self, name, incarnation, &secret, err);
    }
    if (rc == PSD_OK) {
        memcpy(ret_name, name, strlen(name) + 1);
    }
    return rc;
}

/* Who has a token: its node's key counts from now on. */
static psd_status_t read_invited(ps_control_t *self, ps_control_request_t *request,
                                 const ps_invite_t *invite, char ret_name[PS_NAME_MAX + 1],
                                 psd_error_t *err)
{
    const ps_doc_t *doc = request->doc;
    const char *name = NULL;
    const char *key = NULL;
    uint64_t incarnation = 0;
    ps_id_t secret = {{0}};
    bool any_name = false;
    psd_status_t rc = read_speaker(self, doc, &name, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_switch(doc, "any_name", &any_name, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(doc, "key", PS_PUBLIC_KEY_SIZE, &key, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_check_token(self, invite, any_name ? invite->name : name, key, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "incarnation", 1, INT64_MAX, &incarnation, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_id(doc, "secret", &secret, err);
    }
    if (rc == PSD_OK) {
        rc = check_who(self, invite->name, incarnation, &secret, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_know_node(self, request, invite->name, key, err);
    }
    if (rc == PSD_OK) {
        ps_invites_take(&self->invites, invite, key);
        memcpy(ret_name, invite->name, PS_NAME_MAX + 1);
    }
    return rc;
}

/* An admin starts it, and shows its key: that counts from now on. */
static psd_status_t read_brought(ps_control_t *self, ps_control_request_t *request,
                                 char ret_name[PS_NAME_MAX + 1], psd_error_t *err)
{
    const ps_doc_t *doc = request->doc;
    const ps_principal_t *known = NULL;
    const char *key = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(doc, "key", PS_PUBLIC_KEY_SIZE, &key, err);

    if (rc != PSD_OK) {
        return rc;
    }
    known = ps_registry_principal_by_key(self->is.registry, key);
    if (known != NULL && ps_principal_is_node(known) && !known->denied) { /* it asks again */
        (void)snprintf(ret_name, PS_NAME_MAX + 1, "%s", known->name + strlen(PS_NODE_PRINCIPAL));
        return read_speaker(self, doc, &name, err);
    }
    rc = read_joining(self, doc, ret_name, err);
    if (rc == PSD_OK) {
        rc = ps_control_check_guest(self, ret_name, err);
    }
    return rc == PSD_OK ? ps_control_know_node(self, request, ret_name, key, err) : rc;
}

static psd_status_t settle_joining(ps_control_t *self, ps_control_request_t *request,
                                   char ret_name[PS_NAME_MAX + 1], psd_error_t *err)
{
    const ps_invite_t *invite = NULL;

    if (self->is.rights == NULL || ps_control_is_node(self, &request->caller)) {
        return read_joining(self, request->doc, ret_name, err);
    }
    invite = ps_invites_find(&self->invites, request->caller.key);
    return invite == NULL ? read_brought(self, request, ret_name, err)
                          : read_invited(self, request, invite, ret_name, err);
}

/* What the node must know before it starts its shards. Changes nothing but who is known. */
psd_status_t ps_control_node_join(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    char name[PS_NAME_MAX + 1];
    ps_doc_t *cluster = NULL;
    ps_id_t uuid;
    const char *cluster_name = ps_registry_cluster(self->is.registry, &uuid);
    uint64_t session = ps_registry_old_sessions(self->is.registry);
    psd_status_t rc = settle_joining(self, request, name, err);

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
        !ps_doc_set_u64(request->reply, "session", session) ||
        !ps_control_add_members(self, request->reply)) {
        return ps_control_no_memory(err);
    }
    return PSD_OK;
}

/* ---- announce ---- */

static psd_status_t check_endpoint(const char *what, const char *text, bool may_lack,
                                   psd_error_t *err)
{
    char address[PS_ENDPOINT_MAX + 1] = "";
    char key[PS_KEY_SIZE + 1];

    return (may_lack && text[0] == '\0') || (ps_curve_split(text, address, key, NULL) == PSD_OK &&
                                             ps_endpoint_is_valid(address))
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID,
                               "%s is not an address; allowed: tcp://HOST:PORT, ipc://PATH", what);
}

static psd_status_t check_node(const ps_node_t *node, psd_error_t *err)
{
    psd_status_t rc = check_node_name(node->name, err);

    if (rc == PSD_OK) {
        rc = check_endpoint("control", node->control, false, err);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < node->n_shards; i++) {
        rc = check_endpoint("tcp", node->shards[i].tcp, true, err);
        if (rc == PSD_OK) {
            rc = check_endpoint("ipc", node->shards[i].ipc, true, err);
        }
    }
    if (rc == PSD_OK && node->weight > PS_NODE_SHARDS_MAX) {
        rc = psd_error_set(err, PSD_INVALID, "weight is %" PRIu32 "; allowed: 0..%d", node->weight,
                           PS_NODE_SHARDS_MAX);
    }
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
               : psd_error_set(err, PSD_DENIED, "this incarnation of a node is known as \"%s\"",
                               known->name);
}

static psd_status_t take_announcement(ps_control_t *self, uint64_t conn, ps_node_message_t *message,
                                      psd_error_t *err)
{
    ps_node_t *node = &message->node;
    bool is_new = ps_registry_node_by_incarnation(self->is.registry, message->incarnation) == NULL;
    psd_status_t rc = check_node(node, err);

    node->incarnation = message->incarnation;
    node->lost = message->lost;
    node->n_lost = message->n_lost;
    if (rc == PSD_OK) {
        rc = check_who(self, node->name, node->incarnation, &node->secret, err);
    }
    if (rc == PSD_OK) {
        rc = settle_life(self, node, err);
    }
    if (rc == PSD_OK) {
        rc = ps_overseer_add(self->overseer, node, conn, err);
    }
    if (rc == PSD_OK) {
        ps_overseer_set_damage(self->overseer, node->incarnation, message->text);
        ps_control_note_damage(self, node->name, is_new ? message->text : "");
        rc = ps_overseer_beat(self->overseer, node->incarnation, message->epoch, ps_now_ms(), err);
    }
    return rc;
}

/* ---- live ---- */

static void end_node(ps_control_t *self, uint64_t incarnation)
{
    const ps_node_t *node = ps_registry_node_by_incarnation(self->is.registry, incarnation);

    if (node != NULL &&
        ps_registry_node_ends(self->is.registry, node->name, incarnation, ps_now_ms())) {
        ps_log(PS_LOG_INFO, "node_ends", "node=%s", node->name);
    }
}

/* Whether the message may be read at all: a stranger's lists are not. */
static psd_status_t check_head(ps_control_t *self, uint64_t conn, const ps_node_message_t *head,
                               psd_error_t *err)
{
    psd_status_t rc = ps_control_check_uuid(self, &head->cluster, err);

    if (rc == PSD_OK && head->kind >= PS_NODE_HEARD) {
        rc = psd_error_set(err, PSD_UNSUPPORTED, "\"%s\" is a message of the registry",
                           ps_node_message_name(head->kind));
    }
    return rc == PSD_OK && head->kind != PS_NODE_ANNOUNCE
               ? ps_overseer_hear(self->overseer, head->incarnation, conn, err)
               : rc;
}

static psd_status_t take_message(ps_control_t *self, uint64_t conn, ps_node_message_t *message,
                                 psd_error_t *err)
{
    ps_tell_view_t refused;
    psd_status_t rc = PSD_OK;

    if (message->kind == PS_NODE_ANNOUNCE) {
        return take_announcement(self, conn, message, err);
    }
    rc = ps_overseer_take(self->overseer, conn, message, ps_now_ms(), &refused, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (refused.kind != PS_TELL_COUNT) {
        ps_fleet_log_refusal(&refused, message->status, message->text);
    }
    for (size_t i = 0; i < message->n_reports; i++) {
        ps_control_take_report(self, message->incarnation, &message->reports[i]);
    }
    if (message->kind == PS_NODE_END) {
        end_node(self, message->incarnation);
    }
    return PSD_OK;
}

/* Of a node that takes this member for one that does not lead: it lives, and will
 * hear of this leader by the answer. */
static void take_sign(ps_control_t *self, const ps_node_message_t *head)
{
    const ps_node_t *node = ps_registry_node_by_incarnation(self->is.registry, head->incarnation);
    uint64_t conn = 0;

    if (node != NULL && ps_now_ms() < self->begun_ms + SIGNS_MS &&
        !ps_overseer_find(self->overseer, head->incarnation, &conn) &&
        ps_control_check_uuid(self, &head->cluster, NULL) == PSD_OK) {
        (void)!ps_registry_node_beat(self->is.registry, node->name, head->incarnation, 0,
                                     ps_now_ms(), NULL);
    }
}

void ps_control_take_node(ps_control_t *self, uint64_t conn, ps_bytes_t bytes)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = {.incarnation = 0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t heard = {0};
    ps_node_message_t head = {.kind = 0};
    psd_status_t rc = ps_node_message_head(bytes, &head, self->err);

    if (rc == PSD_OK && head.kind == PS_NODE_MEMBER) {
        ps_replica_hear(self->is.replica, bytes);
        return;
    }
    if (rc == PSD_OK && head.kind == PS_NODE_BEAT && head.serial == 0) {
        take_sign(self, &head);
    }
    if (rc == PSD_OK) {
        rc = check_head(self, conn, &head, self->err);
    }
    if (rc == PSD_OK) {
        rc = ps_node_message_decode(bytes, &message, self->err);
    }
    if (rc == PSD_OK) {
        rc = take_message(self, conn, &message, self->err);
    }
    if (rc == PSD_OK && head.kind != PS_NODE_ANNOUNCE && head.kind != PS_NODE_BEAT) {
        return;
    }
    if (rc != PSD_OK) {
        ps_log(PS_LOG_DEBUG, "node_message_refused", "conn=%" PRIu64 " what=%s status=%s", conn,
               ps_node_message_name(head.kind), psd_status_name(rc));
    }
    if (ps_overseer_encode_heard(self->overseer, &head, rc, psd_error_text(self->err), &heard)) {
        /* When it does not arrive, the node says it again. */
        (void)ps_fleet_say(self->fleet, conn, (ps_bytes_t){.data = heard.data, .size = heard.size});
    }
    psd_error_clear(self->err);
}

psd_status_t ps_control_node_old(ps_control_t *self, ps_control_request_t *request,
                                 psd_error_t *err)
{
    const char *name = NULL;
    psd_status_t rc = read_speaker(self, request->doc, &name, err);

    return rc == PSD_OK ? psd_error_set(err, PSD_PROTO, "nodes speak in bytes after the join") : rc;
}
