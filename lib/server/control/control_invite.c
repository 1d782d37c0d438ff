/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes with keys: their tokens, and what they hear about principals. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/state/control_inner.h"

#define TTL_MAX_S 86400
#define TTL_S 600
#define MS_IN_S 1000

/* ---- node_invite ---- */

/* Where the node is to join: at this one, by tcp. */
static const char *own_endpoint(const ps_control_t *self)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, self->is.node);

    return node != NULL && strchr(node->control, '#') != NULL ? node->control : NULL;
}

static psd_status_t check_invite(ps_control_t *self, const char *name, const char *key,
                                 psd_error_t *err)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, name);
    ps_principal_t would = {.uid = PS_NO_UID};
    psd_status_t rc = PSD_OK;

    if (self->is.rights == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "this cluster asks no node for a key (security.level: plain): a node "
                             "joins by \"psd --join URL\" alone");
    }
    if (own_endpoint(self) == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "this psd has no tcp port that another node could join at; see "
                             "listen.endpoints");
    }
    (void)snprintf(would.name, sizeof would.name, "%s", name);
    (void)snprintf(would.key, sizeof would.key, "%s", key);
    rc = ps_principal_check(&would, err); /* name and key are such as may be */
    if (rc == PSD_OK) {
        rc = ps_control_check_node_name(self, name, err);
    }
    if (rc == PSD_OK && ps_registry_principal_by_key(self->is.registry, key) != NULL) {
        rc = psd_error_set(err, PSD_INVALID, "the key of the token is that of %s already",
                           ps_registry_principal_by_key(self->is.registry, key)->name);
    }
    if (rc == PSD_OK && node != NULL &&
        ps_overseer_look(self->overseer, node, ps_now_ms()).state == PS_HEALTH_UP) {
        rc = psd_error_set(err, PSD_DENIED,
                           "a node \"%s\" is up at %s; choose another name, or stop it", name,
                           node->control);
    }
    return rc;
}

/* For the history: who let somebody in. */
static psd_status_t note_invite(ps_control_t *self, const ps_control_request_t *request,
                                const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t note = {0};
    char text[sizeof note.text];

    (void)snprintf(text, sizeof text, "node %s is invited: a token was made for it", name);
    note = ps_registry_plan_note(self->is.registry, ps_unix_ms(), text);
    ps_control_sign(self, request, &note);
    return ps_control_commit(self, &note, PS_LOG_INFO, err);
}

psd_status_t ps_control_node_invite(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    char who[PS_CONTROL_WHO_SIZE];
    const char *name = NULL;
    const char *key = NULL;
    uint64_t ttl_s = 0;
    uint64_t now_ms = 0;
    psd_status_t rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(request->doc, "key", PS_PUBLIC_KEY_SIZE, &key, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request->doc, "ttl_s", 1, TTL_MAX_S, TTL_S, &ttl_s, err);
    }
    if (rc == PSD_OK) {
        rc = check_invite(self, name, key, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    now_ms = ps_now_ms();
    if (!ps_invites_add(&self->invites, key, name, now_ms, now_ms + ttl_s * MS_IN_S)) {
        return psd_error_set(err, PSD_LIMIT,
                             "%d tokens that nobody has used count yet, the most that may; wait "
                             "until one is used or expires",
                             PS_INVITES_MAX);
    }
    rc = note_invite(self, request, name, err);
    if (rc != PSD_OK) {
        return rc;
    }
    ps_log(PS_LOG_INFO, "node_invited", "node=%s seconds=%" PRIu64 " by=\"%s\"", name, ttl_s,
           ps_control_print_who(self, &request->caller, who));
    return ps_doc_set_text(request->reply, "name", name) &&
                   ps_doc_set_text(request->reply, "endpoint", own_endpoint(self)) &&
                   ps_doc_set_u64(request->reply, "ttl_s", ttl_s)
               ? PSD_OK
               : ps_control_no_memory(err);
}

psd_status_t ps_control_check_token(const ps_control_t *self, const ps_invite_t *invite,
                                    const char *node, const char *key, psd_error_t *err)
{
    const ps_principal_t *known = ps_registry_principal_by_key(self->is.registry, key);
    const char *why = NULL;

    if (strcmp(invite->taken, key) == 0 && known != NULL && !known->denied) {
        return PSD_OK; /* the answer did not arrive. Whoever was denied since needs another token */
    }
    if (strcmp(invite->node, node) != 0) {
        return psd_error_set(err, PSD_DENIED,
                             "the token lets in node \"%s\", and this one is \"%s\": set node.name",
                             invite->node, node);
    }
    if (invite->taken[0] != '\0') {
        why = "was used";
    } else if (ps_now_ms() >= invite->until_ms) {
        why = "has expired";
    }
    return why == NULL ? PSD_OK
                       : psd_error_set(err, PSD_DENIED,
                                       "the token for node \"%s\" %s; an admin makes another one: "
                                       "pscli node invite %s",
                                       invite->node, why, invite->node);
}

/* ---- node_rights ---- */

/* {"epoch":E,"principals":[…]}; without principals when the node has those of E. */
psd_status_t ps_control_node_rights(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    const ps_registry_t *registry = self->is.registry;
    const uint64_t epoch = ps_registry_auth_epoch(registry) + 1;
    ps_doc_t *array = NULL;
    uint64_t known = 0;
    bool ok = ps_doc_set_u64(request->reply, "epoch", epoch);
    psd_status_t rc = ps_doc_get_u64(request->doc, "epoch", 0, UINT64_MAX, &known, err);

    if (rc != PSD_OK || (ok && known == epoch)) {
        return rc;
    }
    array = ok ? ps_doc_add_array(request->reply, "principals") : NULL;
    for (size_t i = 0; array != NULL && i < ps_registry_n_principals(registry); i++) {
        ps_doc_t *doc = ps_doc_append_object(array);

        array = doc != NULL && ps_control_fill_principal(ps_registry_principal_at(registry, i), doc)
                    ? array
                    : NULL;
    }
    return array != NULL ? PSD_OK : ps_control_no_memory(err);
}
