/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens: made for nodes and clients; what nodes hear about principals. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/config/endpoint.h"
#include "server/state/control_inner.h"

#define TTL_MAX_S 86400
#define TTL_S 600
#define MS_IN_S 1000

/* ---- any token ---- */

/* Where who has the token is to come: to this node, by tcp. */
static const char *own_endpoint(const ps_control_t *self)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, self->is.node);

    return node != NULL && strchr(node->control, '#') != NULL ? node->control : NULL;
}

/* Name and key are such as may be. */
static psd_status_t check_any(const ps_control_t *self, const ps_invite_t *invite, psd_error_t *err)
{
    ps_principal_t would = {.uid = PS_NO_UID, .n_rules = 1};
    const ps_principal_t *known = ps_registry_principal_by_key(self->is.registry, invite->key);
    psd_status_t rc = PSD_OK;

    if (own_endpoint(self) == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "this psd has no tcp port that others could connect to; see "
                             "listen.endpoints");
    }
    memcpy(would.name, invite->name, sizeof would.name);
    memcpy(would.key, invite->key, sizeof would.key);
    would.rules[0] = invite->rule;
    rc = ps_principal_check(&would, err);
    return rc == PSD_OK && known != NULL
               ? psd_error_set(err, PSD_INVALID, "the key of the token is that of %s already",
                               known->name)
               : rc;
}

/* What requests for a token of either kind have. */
static psd_status_t read_invite(const ps_control_t *self, const ps_control_request_t *request,
                                ps_invite_t *invite, uint64_t *ret_ttl_s, psd_error_t *err)
{
    const ps_principal_t *by = ps_control_principal(self, &request->caller);
    const char *name = NULL;
    const char *key = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(request->doc, "key", PS_PUBLIC_KEY_SIZE, &key, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request->doc, "ttl_s", 1, TTL_MAX_S, TTL_S, ret_ttl_s, err);
    }
    if (rc == PSD_OK) {
        (void)snprintf(invite->name, sizeof invite->name, "%s", name);
        (void)snprintf(invite->key, sizeof invite->key, "%s", key);
        (void)snprintf(invite->by, sizeof invite->by, "%s", by == NULL ? "" : by->name);
    }
    return rc;
}

/* For the history: who let somebody in. */
static psd_status_t note_invite(ps_control_t *self, const ps_control_request_t *request,
                                const ps_invite_t *invite, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t note = {0};
    char text[sizeof note.text];

    (void)snprintf(text, sizeof text, "%s %s is invited: a token was made for it",
                   ps_invite_is_node(invite) ? "node" : "principal", invite->name);
    note = ps_registry_plan_note(self->is.registry, ps_unix_ms(), text);
    ps_control_sign(self, request, &note);
    return ps_control_commit(self, &note, PS_LOG_INFO, err);
}

static psd_status_t answer(const ps_control_t *self, ps_control_request_t *request,
                           const ps_invite_t *invite, uint64_t ttl_s, psd_error_t *err)
{
    return ps_doc_set_text(request->reply, "name", invite->name) &&
                   ps_doc_set_text(request->reply, "endpoint", own_endpoint(self)) &&
                   ps_doc_set_bool(request->reply, "local",
                                   ps_endpoint_is_local(own_endpoint(self))) &&
                   ps_doc_set_u64(request->reply, "ttl_s", ttl_s)
               ? PSD_OK
               : ps_control_no_memory(err);
}

static psd_status_t no_room(psd_error_t *err)
{
    return psd_error_set(err, PSD_LIMIT,
                         "%d tokens that nobody has used count yet, the most that may; wait until "
                         "one is used or expires",
                         PS_INVITES_MAX);
}

/* It counts from now on, once the history has it. Whose answer was lost asks again. */
static psd_status_t keep(ps_control_t *self, ps_control_request_t *request, ps_invite_t *invite,
                         uint64_t ttl_s, psd_error_t *err)
{
    const ps_invite_t *known = ps_invites_find(&self->invites, invite->key);
    char who[PS_CONTROL_WHO_SIZE];
    const bool is_node = ps_invite_is_node(invite);
    uint64_t now_ms = ps_now_ms();
    psd_status_t rc = PSD_OK;

    if (known != NULL && !ps_invite_equal(known, invite)) {
        return psd_error_set(err, PSD_INVALID,
                             "key is that of another token; allowed: one of its own for each "
                             "token");
    }
    if (known != NULL && !ps_invite_counts(known, now_ms)) {
        return psd_error_set(err, PSD_DENIED,
                             "the token was made, and counts no longer: it was used, has expired "
                             "or was taken back; make another one");
    }
    if (known != NULL) {
        return answer(self, request, invite, (known->until_ms - now_ms) / MS_IN_S, err);
    }
    if (!ps_invites_has_room(&self->invites, invite, now_ms)) {
        return no_room(err);
    }
    rc = note_invite(self, request, invite, err);
    if (rc != PSD_OK) {
        return rc;
    }
    invite->until_ms = now_ms + ttl_s * MS_IN_S;
    if (!ps_invites_add(&self->invites, invite, now_ms)) {
        return no_room(err);
    }
    ps_log(PS_LOG_INFO, is_node ? "node_invited" : "client_invited",
           "%s=%s seconds=%" PRIu64 " by=\"%s\"", is_node ? "node" : "principal", invite->name,
           ttl_s, ps_control_print_who(self, &request->caller, who));
    return answer(self, request, invite, ttl_s, err);
}

/* ---- node_invite ---- */

static psd_status_t check_node(ps_control_t *self, const ps_invite_t *invite, psd_error_t *err)
{
    const ps_node_t *node = ps_registry_node(self->is.registry, invite->name);
    psd_status_t rc = check_any(self, invite, err);

    if (rc == PSD_OK) {
        rc = ps_control_check_node_name(self, invite->name, err);
    }
    if (rc == PSD_OK && node != NULL &&
        ps_overseer_look(self->overseer, node, ps_now_ms()).state == PS_HEALTH_UP) {
        rc = psd_error_set(err, PSD_DENIED,
                           "a node \"%s\" is up at %s; choose another name, or stop it",
                           invite->name, node->control);
    }
    return rc;
}

psd_status_t ps_control_node_invite(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    ps_invite_t invite = {.rule = {.role = PS_ROLE_NODE, .tables = "*", .jobs = "*"}};
    uint64_t ttl_s = 0;
    psd_status_t rc = read_invite(self, request, &invite, &ttl_s, err);

    if (rc == PSD_OK && self->is.rights == NULL) {
        rc = psd_error_set(err, PSD_INVALID,
                           "this cluster asks no node for a key (security.level: plain): a node "
                           "joins by \"psd --join URL\" alone");
    }
    if (rc == PSD_OK) {
        rc = check_node(self, &invite, err);
    }
    return rc == PSD_OK ? keep(self, request, &invite, ttl_s, err) : rc;
}

/* ---- auth_invite ---- */

psd_status_t ps_control_auth_invite(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    ps_invite_t invite = {.key = ""};
    uint64_t ttl_s = 0;
    psd_status_t rc = ps_control_read_rule(request->doc, &invite.rule, err);

    if (rc == PSD_OK) {
        rc = read_invite(self, request, &invite, &ttl_s, err);
    }
    if (rc == PSD_OK && self->is.rights == NULL) {
        rc = psd_error_set(err, PSD_INVALID,
                           "this cluster asks no client for a key (security.level: plain): "
                           "nobody needs a token");
    }
    if (rc == PSD_OK) {
        rc = ps_control_check_newcomer(self, invite.name, err);
    }
    if (rc == PSD_OK) {
        rc = check_any(self, &invite, err);
    }
    return rc == PSD_OK ? keep(self, request, &invite, ttl_s, err) : rc;
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
