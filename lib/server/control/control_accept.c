/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes with a token: whether it counts, and a client that is let in by it. */
#include <stdio.h>
#include <string.h>

#include "server/state/control_inner.h"
#include "server/state/history_text.h"

/* ---- does it count? ---- */

/* Who made it may still let somebody in. */
static bool may_invite(const ps_control_t *self, const ps_invite_t *invite)
{
    return ps_trust_may(ps_registry_principal(self->is.registry, invite->by), PS_VERB_CHANGE,
                        PS_OBJECT_AUTH, NULL);
}

/* Of a token that nobody with that key has used. */
static psd_status_t check_unused(const ps_control_t *self, const ps_invite_t *invite,
                                 psd_error_t *err)
{
    const bool is_node = ps_invite_is_node(invite);
    const char *noun = is_node ? "node" : "auth";
    char why[PS_NAME_MAX + 80] = "";

    if (invite->taken[0] != '\0') {
        (void)snprintf(why, sizeof why, "was used");
    } else if (!may_invite(self, invite)) {
        (void)snprintf(why, sizeof why, "was made by %s, who may not let anybody in now",
                       invite->by);
    } else if (invite->until_ms == 0) {
        (void)snprintf(why, sizeof why,
                       "counts no longer: another one was made, or it was taken back");
    } else if (ps_now_ms() >= invite->until_ms) {
        (void)snprintf(why, sizeof why, "has expired");
    }
    return why[0] == '\0' ? PSD_OK
                          : psd_error_set(err, PSD_DENIED,
                                          "the token for %s \"%s\" %s; an admin makes another one: "
                                          "pscli %s invite %s",
                                          is_node ? "node" : "principal", invite->name, why, noun,
                                          invite->name);
}

/* The answer to who came did not arrive. Whoever was denied since needs another token. */
static bool is_repeated(const ps_control_t *self, const ps_invite_t *invite, const char *key)
{
    const ps_principal_t *known = ps_registry_principal_by_key(self->is.registry, key);

    return strcmp(invite->taken, key) == 0 && known != NULL && !known->denied;
}

/* Two who have one secret are not to be one principal: who made the token has seen its key. */
static psd_status_t check_own_key(const ps_control_t *self, const char *key, psd_error_t *err)
{
    return ps_invites_find(&self->invites, key) == NULL
               ? PSD_OK
               : psd_error_set(err, PSD_DENIED,
                               "that is the key of a token; allowed: one that was made where it "
                               "is used");
}

psd_status_t ps_control_check_token(const ps_control_t *self, const ps_invite_t *invite,
                                    const char *node, const char *key, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (!ps_invite_is_node(invite)) {
        return psd_error_set(err, PSD_DENIED,
                             "the token lets in client \"%s\", and no node: \"pscli auth accept\" "
                             "takes it; an admin makes one for a node: pscli node invite %s",
                             invite->name, node);
    }
    if (is_repeated(self, invite, key)) {
        return PSD_OK;
    }
    if (strcmp(invite->name, node) != 0) {
        return psd_error_set(err, PSD_DENIED,
                             "the token lets in node \"%s\", and this one is \"%s\": set node.name",
                             invite->name, node);
    }
    rc = check_own_key(self, key, err);
    return rc == PSD_OK ? check_unused(self, invite, err) : rc;
}

psd_status_t ps_control_check_newcomer(const ps_control_t *self, const char *name, psd_error_t *err)
{
    const ps_principal_t *known = ps_registry_principal(self->is.registry, name);

    if (known != NULL && ps_principal_is_node(known)) {
        return psd_error_set(err, PSD_INVALID, "principal %s is a node; choose another name", name);
    }
    return known == NULL || known->denied
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID,
                               "there is a principal %s already: \"pscli auth allow %s\" changes "
                               "what it may do, \"pscli auth rotate\" its key; deny it first, if "
                               "another key is to be the only one",
                               name, name);
}

/* ---- auth_accept ---- */

/* Whose token it is, and what is to come of it. Nothing changes. */
static psd_status_t show(const ps_control_t *self, ps_control_request_t *request,
                         const ps_invite_t *invite, psd_error_t *err)
{
    psd_status_t rc = invite->taken[0] != '\0' ? PSD_OK : check_unused(self, invite, err);

    if (rc != PSD_OK) {
        return rc;
    }
    request->was_dry = true;
    return ps_doc_set_text(request->reply, "name", invite->name) &&
                   (invite->taken[0] == '\0'
                        ? ps_doc_set_null(request->reply, "taken")
                        : ps_doc_set_text(request->reply, "taken", invite->taken))
               ? PSD_OK
               : ps_control_no_memory(err);
}

static psd_status_t let_in(ps_control_t *self, const ps_invite_t *invite, const char *key,
                           psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    ps_principal_t next = {.uid = PS_NO_UID, .n_rules = 1};
    const ps_principal_t *known = ps_registry_principal(self->is.registry, invite->name);
    char by[PS_CONTROL_WHO_SIZE];
    psd_status_t rc = ps_control_check_newcomer(self, invite->name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (known != NULL && ps_registry_principal_by_key(self->is.registry, key) == known) {
        return psd_error_set(err, PSD_DENIED,
                             "that is the key with which %s was denied; move its file away, and "
                             "another key is made",
                             invite->name);
    }
    memcpy(next.name, invite->name, sizeof next.name);
    (void)snprintf(next.key, sizeof next.key, "%s", key);
    next.rules[0] = invite->rule;
    rc = ps_registry_plan_principal(self->is.registry, &next, ps_unix_ms(), &command, err);
    if (rc != PSD_OK || command.kind == 0) {
        return rc;
    }
    (void)snprintf(by, sizeof by, "a token of %s", invite->by);
    ps_history_sign(command.text, sizeof command.text, by);
    return ps_control_commit(self, &command, PS_LOG_INFO, err);
}

/* The key of who has the token counts from now on. */
static psd_status_t accept_key(ps_control_t *self, const ps_control_request_t *request,
                               const ps_invite_t *invite, psd_error_t *err)
{
    const char *name = NULL;
    const char *key = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(request->doc, "key", PS_PUBLIC_KEY_SIZE, &key, err);
    }
    if (rc == PSD_OK && strcmp(name, invite->name) != 0) {
        rc = psd_error_set(err, PSD_DENIED, "the token lets in client \"%s\", and not \"%s\"",
                           invite->name, name);
    }
    if (rc != PSD_OK || is_repeated(self, invite, key)) {
        return rc;
    }
    rc = check_own_key(self, key, err);
    if (rc == PSD_OK) {
        rc = check_unused(self, invite, err);
    }
    if (rc == PSD_OK) {
        rc = let_in(self, invite, key, err);
    }
    if (rc == PSD_OK) {
        ps_log(PS_LOG_INFO, "client_let_in", "principal=%s invited_by=%s", invite->name,
               invite->by);
        ps_invites_take(&self->invites, invite, key);
    }
    return rc;
}

psd_status_t ps_control_auth_accept(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    const ps_invite_t *invite =
        self->is.rights == NULL ? NULL : ps_invites_find(&self->invites, request->caller.key);
    psd_status_t rc = PSD_OK;

    if (invite == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "who asks has no token; \"pscli auth invite NAME\" makes one where "
                             "security.level is encrypt");
    }
    if (ps_invite_is_node(invite)) {
        return psd_error_set(err, PSD_DENIED,
                             "the token lets in node \"%s\", and no client: \"psd --token-file "
                             "FILE\" takes it; an admin makes one for a client: pscli auth invite "
                             "NAME",
                             invite->name);
    }
    if (!ps_doc_has(request->doc, "key")) {
        return show(self, request, invite, err);
    }
    rc = accept_key(self, request, invite, err);
    return rc == PSD_OK ? ps_control_answer_principal(self, request, invite->name, err) : rc;
}
