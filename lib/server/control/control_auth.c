/* SPDX-License-Identifier: Apache-2.0 */
/* Principals: shown, allowed, denied, and what one may do. */
#include <stdio.h>
#include <string.h>

#include "server/state/control_inner.h"

#define WORD_MAX 31 /* bytes of a role, verb or object */

/* ---- shown ---- */

static bool add_rule(ps_doc_t *array, const ps_rule_t *rule)
{
    ps_doc_t *doc = ps_doc_append_object(array);

    return doc != NULL && ps_doc_set_text(doc, "role", ps_role_word(rule->role)) &&
           ps_doc_set_text(doc, "tables", rule->tables) && ps_doc_set_text(doc, "jobs", rule->jobs);
}

/* Of all rules, in their order, with commas between them: roles, tables, jobs. */
static bool add_joined(const ps_principal_t *principal, ps_doc_t *doc)
{
    static const char *const NAMES[] = {"roles", "tables", "jobs"};
    bool ok = true;

    for (size_t k = 0; ok && k < sizeof NAMES / sizeof *NAMES; k++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

        for (uint32_t i = 0; ok && i < principal->n_rules; i++) {
            const ps_rule_t *rule = &principal->rules[i];
            const char *const PARTS[] = {ps_role_word(rule->role), rule->tables, rule->jobs};

            ok = ps_buffer_print(&text, "%s%s", i == 0 ? "" : ",", PARTS[k]);
        }
        ok = ok && ps_buffer_append(&text, "", 1) &&
             ps_doc_set_text(doc, NAMES[k], (const char *)text.data);
    }
    return ok;
}

static bool add_old_key(const ps_principal_t *principal, ps_doc_t *doc)
{
    if (principal->old_key[0] == '\0') {
        return ps_doc_set_null(doc, "old_key") && ps_doc_set_null(doc, "old_until_unix_ms");
    }
    return ps_doc_set_text(doc, "old_key", principal->old_key) &&
           ps_doc_set_u64(doc, "old_until_unix_ms", principal->old_until_unix_ms);
}

/* {"name":…,"state":"allowed" or "denied","key":… or null,"old_key":… or null,
 * "old_until_unix_ms":… or null,"uid":… or null,"roles":"job,reader","tables":"a.*,*","jobs":"*,*",
 * "rules":[{"role":…,"tables":…,"jobs":…},…],"epoch":…} */
bool ps_control_fill_principal(const ps_principal_t *principal, ps_doc_t *doc)
{
    ps_doc_t *array = NULL;
    bool ok = ps_doc_set_text(doc, "name", principal->name) &&
              ps_doc_set_text(doc, "state", principal->denied ? "denied" : "allowed") &&
              (principal->key[0] == '\0' ? ps_doc_set_null(doc, "key")
                                         : ps_doc_set_text(doc, "key", principal->key)) &&
              add_old_key(principal, doc) &&
              (principal->uid == PS_NO_UID ? ps_doc_set_null(doc, "uid")
                                           : ps_doc_set_u64(doc, "uid", principal->uid));

    ok = ok && add_joined(principal, doc);
    array = ok ? ps_doc_add_array(doc, "rules") : NULL;
    for (uint32_t i = 0; array != NULL && i < principal->n_rules; i++) {
        array = add_rule(array, &principal->rules[i]) ? array : NULL;
    }
    return array != NULL && ps_doc_set_u64(doc, "epoch", principal->epoch);
}

psd_status_t ps_control_auth_list(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    ps_doc_t *array = ps_doc_add_array(request->reply, "principals");

    for (size_t i = 0; array != NULL && i < ps_registry_n_principals(self->is.registry); i++) {
        ps_doc_t *doc = ps_doc_append_object(array);

        array = doc != NULL && ps_control_fill_principal(
                                   ps_registry_principal_at(self->is.registry, i), doc)
                    ? array
                    : NULL;
    }
    return array != NULL && ps_doc_set_u64(request->reply, "epoch",
                                           ps_registry_auth_epoch(self->is.registry))
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* ---- changed ---- */

psd_status_t ps_control_find_principal(const ps_control_t *self, const ps_doc_t *doc,
                                       const char *key, const ps_principal_t **ret_principal,
                                       psd_error_t *err)
{
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(doc, key, PS_NAME_MAX, &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    *ret_principal = ps_registry_principal(self->is.registry, name);
    if (*ret_principal == NULL) {
        char shown[2 * PS_NAME_MAX + 3];

        (void)ps_log_quote(name, shown, sizeof shown);
        return psd_error_set(err, PSD_INVALID,
                             "there is no principal %s; \"pscli auth list\" shows those that "
                             "there are",
                             shown);
    }
    return PSD_OK;
}

psd_status_t ps_control_put_principal(ps_control_t *self, const ps_control_request_t *request,
                                      const ps_principal_t *next, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    psd_status_t rc =
        ps_registry_plan_principal(self->is.registry, next, ps_unix_ms(), &command, err);

    return rc == PSD_OK && command.kind != 0
               ? ps_control_commit_for(self, request, &command, 0, PS_LOG_INFO, err)
               : rc;
}

/* As it is now: also for a repetition, whose change was made before. */
psd_status_t ps_control_answer_principal(const ps_control_t *self, ps_control_request_t *request,
                                         const char *name, psd_error_t *err)
{
    const ps_principal_t *principal = ps_registry_principal(self->is.registry, name);

    return principal != NULL && ps_control_fill_principal(principal, request->reply) &&
                   ps_doc_set_bool(request->reply, "checked", self->is.rights != NULL)
               ? PSD_OK
               : ps_control_no_memory(err);
}

static psd_status_t copy_text(const ps_doc_t *doc, const char *key, const char *fallback, char *to,
                              size_t size, psd_error_t *err)
{
    const char *text = NULL;
    psd_status_t rc = ps_doc_get_text_or(doc, key, size - 1, fallback, &text, err);

    if (rc == PSD_OK && text != to) {
        (void)snprintf(to, size, "%s", text);
    }
    return rc;
}

/* "role", and of which tables and jobs; without: all. */
psd_status_t ps_control_read_rule(const ps_doc_t *doc, ps_rule_t *ret_rule, psd_error_t *err)
{
    ps_rule_t rule = {.role = PS_ROLE_END};
    const char *word = NULL;
    psd_status_t rc = ps_doc_get_text(doc, "role", WORD_MAX, &word, err);

    if (rc == PSD_OK && (!ps_role_of_word(word, &rule.role) || rule.role == PS_ROLE_NODE)) {
        rc = psd_error_set(err, PSD_INVALID,
                           "role \"%s\"; allowed: admin, operator, job, reader, metrics", word);
    }
    if (rc == PSD_OK) {
        rc = copy_text(doc, "tables", "*", rule.tables, sizeof rule.tables, err);
    }
    if (rc == PSD_OK) {
        rc = copy_text(doc, "jobs", "*", rule.jobs, sizeof rule.jobs, err);
    }
    if (rc == PSD_OK) {
        *ret_rule = rule;
    }
    return rc;
}

/* What is not named stays: key and uid of one that is known; with "add" its rules, too,
 * but not of one that is denied. */
static psd_status_t read_principal(const ps_control_t *self, const ps_doc_t *doc,
                                   ps_principal_t *next, psd_error_t *err)
{
    ps_rule_t rule = {.role = PS_ROLE_END};
    const ps_principal_t *known = NULL;
    const char *name = NULL;
    bool adds = false;
    uint64_t uid = 0;
    psd_status_t rc = ps_doc_get_text(doc, "name", PS_NAME_MAX, &name, err);

    if (rc == PSD_OK) {
        rc = ps_control_read_rule(doc, &rule, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_switch(doc, "add", &adds, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    known = ps_registry_principal(self->is.registry, name);
    if (known != NULL) {
        *next = *known;
    } else {
        (void)snprintf(next->name, sizeof next->name, "%s", name);
    }
    rc = copy_text(doc, "key", next->key, next->key, sizeof next->key, err);
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(doc, "uid", 0, PS_NO_UID, next->uid, &uid, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (uid == PS_UID_OVERFLOW) {
        return psd_error_set(err, PSD_INVALID,
                             "uid is %d, by which the kernel shows all users that it cannot name; "
                             "allowed: one that stands for one user",
                             PS_UID_OVERFLOW);
    }
    if (ps_doc_has(doc, "key") && next->key[0] == '\0') {
        return psd_error_set(err, PSD_INVALID,
                             "key is \"\"; allowed: the 40 characters of a public key");
    }
    next->uid = (uint32_t)uid;
    if (ps_doc_has(doc, "key")) { /* it is the only one that counts */
        ps_principal_end_old_key(next);
    }
    next->n_rules = adds && !next->denied ? next->n_rules : 0;
    next->denied = false;
    if (next->n_rules >= PS_RULES_MAX) {
        return psd_error_set(err, PSD_LIMIT, "%s has %d rules, the most that one may have",
                             next->name, PS_RULES_MAX);
    }
    next->rules[next->n_rules++] = rule;
    return PSD_OK;
}

/* What a principal that may let nobody in has made lets nobody in, also when it may again. */
static void drop_made_tokens(ps_control_t *self, const char *name)
{
    if (!ps_trust_may(ps_registry_principal(self->is.registry, name), PS_VERB_CHANGE,
                      PS_OBJECT_AUTH, NULL)) {
        ps_invites_drop_by(&self->invites, name);
    }
}

psd_status_t ps_control_auth_allow(ps_control_t *self, ps_control_request_t *request,
                                   psd_error_t *err)
{
    ps_principal_t next = {.uid = PS_NO_UID};
    psd_status_t rc = read_principal(self, request->doc, &next, err);

    if (rc == PSD_OK) {
        rc = ps_control_check_no_member(self, next.name, err);
    }
    if (rc == PSD_OK && request->outcome.kind != PS_COMMAND_PRINCIPAL) {
        rc = ps_control_put_principal(self, request, &next, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    drop_made_tokens(self, next.name);
    return ps_control_answer_principal(self, request, next.name, err);
}

/* Of one that was invited, and has not come. */
static psd_status_t answer_nobody(const ps_control_t *self, ps_control_request_t *request,
                                  const char *name, psd_error_t *err)
{
    return ps_doc_set_text(request->reply, "name", name) &&
                   ps_doc_set_text(request->reply, "state", "unknown") &&
                   ps_doc_set_bool(request->reply, "checked", self->is.rights != NULL)
               ? PSD_OK
               : ps_control_no_memory(err);
}

psd_status_t ps_control_auth_deny(ps_control_t *self, ps_control_request_t *request,
                                  psd_error_t *err)
{
    const ps_principal_t *principal = NULL;
    ps_principal_t next = {.uid = PS_NO_UID};
    const char *name = NULL;
    bool has_token = false;
    psd_status_t rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    has_token = ps_invites_drop(&self->invites, name, false);
    if (strncmp(name, PS_NODE_PRINCIPAL, strlen(PS_NODE_PRINCIPAL)) == 0) {
        has_token |= ps_invites_drop(&self->invites, name + strlen(PS_NODE_PRINCIPAL), true);
    }
    if (has_token && ps_registry_principal(self->is.registry, name) == NULL) {
        return answer_nobody(self, request, name, err);
    }
    rc = ps_control_find_principal(self, request->doc, "name", &principal, err);
    if (rc != PSD_OK) {
        return rc;
    }
    next = *principal;
    ps_principal_deny(&next);
    if (request->outcome.kind != PS_COMMAND_PRINCIPAL) {
        rc = ps_control_check_no_member(self, next.name, err);
        if (rc == PSD_OK) {
            rc = ps_control_put_principal(self, request, &next, err);
        }
    }
    if (rc != PSD_OK) {
        return rc;
    }
    drop_made_tokens(self, next.name);
    return ps_control_answer_principal(self, request, next.name, err);
}

/* ---- asked ---- */

static psd_status_t read_need(const ps_doc_t *doc, ps_verb_t *ret_verb, ps_object_t *ret_object,
                              psd_error_t *err)
{
    const char *verb = NULL;
    const char *object = NULL;
    psd_status_t rc = ps_doc_get_text(doc, "verb", WORD_MAX, &verb, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(doc, "object", WORD_MAX, &object, err);
    }
    if (rc == PSD_OK && !ps_verb_of_word(verb, ret_verb)) {
        rc = psd_error_set(err, PSD_INVALID, "there is no verb \"%s\"; docs/security.md lists them",
                           verb);
    }
    if (rc == PSD_OK && !ps_object_of_word(object, ret_object)) {
        rc = psd_error_set(err, PSD_INVALID,
                           "there is no object \"%s\"; docs/security.md lists them", object);
    }
    return rc;
}

/* The principal "as", which takes the right to look at principals unless it is who asks; without:
 * who asks. */
static psd_status_t find_asked(const ps_control_t *self, const ps_control_request_t *request,
                               const ps_principal_t **ret_principal, psd_error_t *err)
{
    const ps_principal_t *own = ps_control_principal(self, &request->caller);
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text_or(request->doc, "as", PS_NAME_MAX, "", &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (own != NULL && (!ps_doc_has(request->doc, "as") || strcmp(own->name, name) == 0)) {
        *ret_principal = own;
        return PSD_OK;
    }
    if (!ps_doc_has(request->doc, "as")) {
        return psd_error_set(err, PSD_INVALID,
                             "who asks is no principal; allowed: --as, the name of the one that is "
                             "asked about");
    }
    rc = ps_control_may_also(self, request, PS_VERB_LOOK, PS_OBJECT_AUTH, NULL, err);
    return rc == PSD_OK ? ps_control_find_principal(self, request->doc, "as", ret_principal, err)
                        : rc;
}

psd_status_t ps_control_auth_can(ps_control_t *self, ps_control_request_t *request,
                                 psd_error_t *err)
{
    char reach[PS_REACH_TEXT_SIZE];
    const ps_principal_t *principal = NULL;
    ps_verb_t verb = PS_VERB_END;
    ps_object_t object = PS_OBJECT_END;
    const char *name = NULL;
    bool may = false;
    psd_status_t rc = find_asked(self, request, &principal, err);

    if (rc == PSD_OK) {
        rc = read_need(request->doc, &verb, &object, err);
    }
    if (rc == PSD_OK && ps_doc_has(request->doc, "name")) {
        rc = ps_doc_get_text(request->doc, "name", PS_NAME_MAX, &name, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    may = ps_trust_may(principal, verb, object, name);
    return ps_doc_set_bool(request->reply, "may", may) &&
                   ps_doc_set_text(request->reply, "as", principal->name) &&
                   ps_doc_set_text(request->reply, "verb", ps_verb_word(verb)) &&
                   ps_doc_set_text(request->reply, "object", ps_object_word(object)) &&
                   (name == NULL ? ps_doc_set_null(request->reply, "name")
                                 : ps_doc_set_text(request->reply, "name", name)) &&
                   ps_doc_set_bool(request->reply, "denied", principal->denied) &&
                   ps_doc_set_text(request->reply, "reach",
                                   may ? "" : ps_trust_print_reach(principal, verb, object, reach))
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* {"principal":… or null,"state":…,"uid":… or null,"key":… or null,"address":…} of who asks. */
psd_status_t ps_control_auth_whoami(ps_control_t *self, ps_control_request_t *request,
                                    psd_error_t *err)
{
    const ps_asker_t *caller = &request->caller;
    const ps_principal_t *principal = ps_control_principal(self, caller);
    ps_doc_t *reply = request->reply;
    char who[PS_CONTROL_WHO_SIZE];
    bool ok = (principal == NULL ? ps_doc_set_null(reply, "principal")
                                 : ps_doc_set_text(reply, "principal", principal->name)) &&
              ps_doc_set_text(reply, "state",
                              principal == NULL   ? "unknown"
                              : principal->denied ? "denied"
                                                  : "allowed") &&
              (caller->has_uid ? ps_doc_set_u64(reply, "uid", caller->uid)
                               : ps_doc_set_null(reply, "uid")) &&
              (caller->key[0] == '\0' ? ps_doc_set_null(reply, "key")
                                      : ps_doc_set_text(reply, "key", caller->key)) &&
              ps_doc_set_text(reply, "address", caller->address) &&
              ps_doc_set_text(reply, "who", ps_control_print_who(self, caller, who));

    return ok ? PSD_OK : ps_control_no_memory(err);
}
