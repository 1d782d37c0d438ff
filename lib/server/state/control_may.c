/* SPDX-License-Identifier: Apache-2.0 */
/* May who asks have that? The one place where requests of the control port are checked. */
#include "server/state/control_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TABLES_MAX 256 /* that one request names by their numbers */
#define TEXT_MAX 255   /* of a name as it came */

/* What is asked, by whom. */
typedef struct question {
    const ps_control_t *control;
    const ps_control_request_t *request;
    const ps_need_t *need;
    const ps_principal_t *who; /* NULL: nobody known */
} question_t;

/* ---- the refusal ---- */

/* shown: what the object is called, as it is printed; NULL: nothing. */
static psd_status_t refuse(const question_t *self, const char *shown, psd_error_t *err)
{
    char who[PS_CONTROL_WHO_SIZE];
    char reach[PS_REACH_TEXT_SIZE];

    (void)ps_control_print_who(self->control, &self->request->caller, who);
    if ((self->who == NULL || self->who->denied) && self->need->object == PS_OBJECT_NODE &&
        self->need->verb == PS_VERB_PEER) {
        return psd_error_set(err, PSD_DENIED,
                             "%s is %s; an admin makes a token, \"pscli node invite NAME\", and "
                             "\"psd --token-file FILE\" takes it",
                             who,
                             self->who == NULL ? "neither a node of this cluster nor a token that "
                                                 "counts here"
                                               : "denied");
    }
    if (self->who == NULL && self->request->op->trust == PS_TRUST_OP_auth_accept) {
        return psd_error_set(err, PSD_DENIED, "%s %s: pscli auth invite NAME", who,
                             self->request->caller.key[0] == '\0'
                                 ? "has no token; an admin makes one"
                                 : "is no token that counts here; an admin makes another one");
    }
    if (self->who == NULL && self->request->caller.key[0] != '\0') {
        return psd_error_set(err, PSD_DENIED,
                             "%s is no principal; an admin lets it in: pscli auth allow NAME "
                             "--role ROLE --tables 'GLOB' --jobs 'GLOB' --key='%s'",
                             who, self->request->caller.key);
    }
    if (self->who == NULL && self->request->caller.has_uid) {
        return psd_error_set(err, PSD_DENIED,
                             "%s is no principal; an admin lets it in: pscli auth allow NAME "
                             "--role ROLE --tables 'GLOB' --jobs 'GLOB' --uid %" PRIu32,
                             who, self->request->caller.uid);
    }
    if (self->who == NULL || self->who->denied) {
        return psd_error_set(err, PSD_DENIED, "%s is %s", who,
                             self->who == NULL ? "no principal" : "denied; an admin can allow it");
    }
    return psd_error_set(
        err, PSD_DENIED, "%s may not %s %s%s%s%s; %s", who, ps_verb_phrase(self->need->verb),
        ps_object_word(self->need->object), shown == NULL ? "" : " ", shown == NULL ? "" : shown,
        ps_trust_print_reach(self->who, self->need->verb, self->need->object, reach),
        ps_trust_may_give(self->need->verb, self->need->object) ? "an admin can allow it"
                                                                : "only nodes may");
}

static psd_status_t check(const question_t *self, const char *name, psd_error_t *err)
{
    char shown[2 * PS_NAME_MAX + 3];

    if (ps_trust_may(self->who, self->need->verb, self->need->object, name)) {
        return PSD_OK;
    }
    return refuse(self, name == NULL ? NULL : ps_log_quote(name, shown, sizeof shown), err);
}

/* As above, of a name that the caller did not say, but its number: who may not look at it does
 * not learn the name. */
static psd_status_t check_number(const question_t *self, const char *name, uint32_t number,
                                 psd_error_t *err)
{
    char shown[16];

    if (ps_trust_may(self->who, self->need->verb, self->need->object, name)) {
        return PSD_OK;
    }
    if (ps_trust_may(self->who, PS_VERB_LOOK, self->need->object, name)) {
        return check(self, name, err);
    }
    (void)snprintf(shown, sizeof shown, "%" PRIu32, number);
    return refuse(self, shown, err);
}

/* ---- where the object stands ---- */

static psd_status_t check_name(const question_t *self, const ps_doc_t *doc, psd_error_t *err)
{
    const char *name = NULL;

    if (ps_doc_get_text(doc, "name", TEXT_MAX, &name, NULL) != PSD_OK) {
        name = NULL; /* the operation says so */
    }
    return check(self, name, err);
}

static psd_status_t check_spec(const question_t *self, psd_error_t *err)
{
    const ps_doc_t *spec = NULL;

    return ps_doc_get_object(self->request->doc, "spec", &spec, NULL) == PSD_OK
               ? check_name(self, spec, err)
               : check(self, NULL, err);
}

/* Both the name that is there and the job that the number means: operations read either. */
static psd_status_t check_job(const question_t *self, psd_error_t *err)
{
    const ps_doc_t *doc = self->request->doc;
    const ps_job_t *job = NULL;
    const char *name = NULL;
    psd_status_t rc = PSD_OK;

    if (ps_doc_get_text(doc, "job", TEXT_MAX, &name, NULL) != PSD_OK) {
        name = NULL;
    }
    if (ps_control_find_job(self->control, doc, &job, NULL) == PSD_OK) {
        rc = name != NULL && strcmp(name, job->name) == 0
                 ? check(self, name, err)
                 : check_number(self, job->name, job->id, err);
    }
    if (rc == PSD_OK && name != NULL) {
        return check(self, name, err);
    }
    return rc == PSD_OK && job == NULL ? check(self, NULL, err) : rc;
}

static psd_status_t check_numbers(const question_t *self, psd_error_t *err)
{
    const ps_registry_t *registry = self->control->is.registry;
    const ps_doc_t *array = NULL;
    psd_status_t rc = check(self, NULL, err);

    if (rc != PSD_OK ||
        ps_doc_get_array(self->request->doc, "tables", TABLES_MAX, &array, NULL) != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; rc == PSD_OK && i < ps_doc_count(array); i++) {
        const ps_table_t *table = NULL;
        uint64_t id = 0;

        if (ps_doc_at_u64(array, i, &id, NULL) == PSD_OK && id <= UINT32_MAX) {
            table = ps_registry_table_by_id(registry, (uint32_t)id);
        }
        rc = table == NULL ? PSD_OK : check_number(self, table->spec.name, table->id, err);
    }
    return rc;
}

/* ---- the check ---- */

psd_status_t ps_control_may(const ps_control_t *self, const ps_control_request_t *request,
                            psd_error_t *err)
{
    question_t question = {.control = self, .request = request};

    if (self->is.rights == NULL) {
        return PSD_OK;
    }
    question.need = ps_need_of_op(request->op->trust);
    question.who = ps_control_principal(self, &request->caller);
    if ((request->op->trust == PS_TRUST_OP_node_join ||
         request->op->trust == PS_TRUST_OP_auth_accept) &&
        question.who == NULL && ps_control_has_token(self, &request->caller)) {
        return PSD_OK; /* the operation looks at the token */
    }
    if (request->op->trust == PS_TRUST_OP_node_join && ps_doc_has(request->doc, "key") &&
        ps_trust_may(question.who, PS_VERB_CHANGE, PS_OBJECT_AUTH, NULL)) {
        return PSD_OK; /* who may make tokens lets a node in without one */
    }
    switch (question.need->scope) {
    case PS_SCOPE_NAME:
        return check_name(&question, request->doc, err);
    case PS_SCOPE_SPEC:
        return check_spec(&question, err);
    case PS_SCOPE_JOB:
        return check_job(&question, err);
    case PS_SCOPE_NUMBER:
        return check_numbers(&question, err);
    case PS_SCOPE_WHOLE:
    case PS_SCOPE_EACH: /* ps_control_sees chooses */
    default:
        return check(&question, NULL, err);
    }
}

bool ps_control_sees(const ps_control_t *self, const ps_control_request_t *request,
                     ps_object_t object, const char *name)
{
    return self->is.rights == NULL ||
           ps_trust_may(ps_control_principal(self, &request->caller), PS_VERB_LOOK, object, name);
}

psd_status_t ps_control_may_also(const ps_control_t *self, const ps_control_request_t *request,
                                 ps_verb_t verb, ps_object_t object, const char *name,
                                 psd_error_t *err)
{
    const ps_need_t need = {.kind = "", .verb = verb, .object = object};
    const question_t question = {
        .control = self,
        .request = request,
        .need = &need,
        .who = self->is.rights == NULL ? NULL : ps_control_principal(self, &request->caller)};

    return self->is.rights == NULL ? PSD_OK : check(&question, name, err);
}

psd_status_t ps_control_own_session(ps_control_t *self, const ps_control_request_t *request,
                                    uint64_t session, psd_error_t *err)
{
    const ps_principal_t *who = NULL;

    if (self->owners == NULL) {
        return PSD_OK;
    }
    who = ps_control_principal(self, &request->caller);
    return who != NULL && ps_owners_take(self->owners, session, who->id)
               ? PSD_OK
               : psd_error_set(err, PSD_DENIED, "session %" PRIu64 " is that of somebody else",
                               session);
}

/* ---- who is there at first ---- */

static psd_status_t add_admin(ps_control_t *self, const char *name, const char *key, uint32_t uid,
                              psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    ps_principal_t admin = {.uid = uid, .n_rules = 1};
    psd_status_t rc = PSD_OK;

    (void)snprintf(admin.name, sizeof admin.name, "%s", name);
    (void)snprintf(admin.key, sizeof admin.key, "%s", key);
    admin.rules[0] = (ps_rule_t){.role = PS_ROLE_ADMIN, .tables = "*", .jobs = "*"};
    rc = ps_registry_plan_principal(self->is.registry, &admin, ps_unix_ms(), &command, err);
    if (rc == PSD_OK && command.kind != 0) {
        rc = ps_control_commit(self, &command, PS_LOG_INFO, err);
    }
    return rc == PSD_OK ? PSD_OK : psd_error_wrap(err, rc, "principal %s", name);
}

static size_t count_keepers(const ps_registry_t *registry)
{
    size_t n = 0;

    for (size_t i = 0; i < ps_registry_n_principals(registry); i++) {
        n += ps_trust_may(ps_registry_principal_at(registry, i), PS_VERB_CHANGE, PS_OBJECT_AUTH,
                          NULL)
                 ? 1
                 : 0;
    }
    return n;
}

/* Some principal is a node, denied or not. At level plain nobody can make one: without, this is
 * the first start at encrypt, whatever nodes there are. */
static bool has_nodes(const ps_registry_t *registry)
{
    bool found = false;

    for (size_t i = 0; !found && i < ps_registry_n_principals(registry); i++) {
        found = ps_principal_is_node(ps_registry_principal_at(registry, i));
    }
    return found;
}

/* Neither the key file of this node's data directory nor its owner is a principal, allowed or
 * denied: principals were made at level plain, by whom nobody knows. */
static bool is_owner_unknown(const ps_control_t *self)
{
    return ps_registry_principal_by_key(self->is.registry, self->is.admin_key) == NULL &&
           ps_registry_principal_by_uid(self->is.registry, self->is.owner) == NULL;
}

/* Both become one admin, and root another one. What is known of them stays as it is. */
static psd_status_t add_owner(ps_control_t *self, psd_error_t *err)
{
    const ps_registry_t *registry = self->is.registry;
    const char *name = ps_registry_principal(registry, "admin") == NULL ? "admin" : "owner";
    bool has_key = ps_registry_principal_by_key(registry, self->is.admin_key) != NULL;
    bool has_uid = ps_registry_principal_by_uid(registry, self->is.owner) != NULL;
    bool has_root = ps_registry_principal_by_uid(registry, 0) != NULL;
    psd_status_t rc = PSD_OK;

    if (ps_registry_principal(registry, name) == NULL && !(has_key && has_uid)) {
        rc = add_admin(self, name, has_key ? "" : self->is.admin_key,
                       has_uid ? PS_NO_UID : self->is.owner, err);
    }
    if (rc == PSD_OK && self->is.owner != 0 && !has_root &&
        ps_registry_principal(registry, "root") == NULL) {
        rc = add_admin(self, "root", "", 0, err);
    }
    return rc;
}

/* Other nodes know this one by its key; whoever was denied stays so. */
static psd_status_t add_own_node(ps_control_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (ps_registry_principal_by_key(self->is.registry, self->is.node_key) != NULL) {
        return PSD_OK;
    }
    rc = ps_control_know_node(self, NULL, self->is.node, self->is.node_key, err);
    if (rc == PSD_INVALID) { /* it leads all the same */
        ps_log(PS_LOG_WARN, "node_not_known",
               "node=%s reason=\"%s\" hint=\"other nodes do not hear it\"", self->is.node,
               psd_error_text(err));
        psd_error_clear(err);
        return PSD_OK;
    }
    return rc;
}

static void set_rights(ps_control_t *self)
{
    const ps_registry_t *registry = self->is.registry;

    if (!ps_rights_set(
            self->is.rights,
            ps_registry_n_principals(registry) == 0 ? NULL : ps_registry_principal_at(registry, 0),
            ps_registry_n_principals(registry), ps_registry_auth_epoch(registry) + 1)) {
        ps_log(PS_LOG_ERROR, "rights_not_told", "reason=no_memory hint=\"retrying\"");
    }
}

psd_status_t ps_control_begin_rights(ps_control_t *self, psd_error_t *err)
{
    const ps_registry_t *registry = self->is.registry;
    psd_status_t rc = PSD_OK;

    if (self->is.rights == NULL) {
        return PSD_OK;
    }
    if (count_keepers(registry) == 0 || (!has_nodes(registry) && is_owner_unknown(self))) {
        rc = add_owner(self, err);
    }
    if (rc == PSD_OK && count_keepers(registry) == 0) {
        rc = psd_error_set(err, PSD_CONFIG,
                           "security.level is encrypt, and nobody may change principals: at "
                           "level plain, \"pscli auth allow NAME --role admin\" makes an admin");
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rc = add_own_node(self, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (self->is.admin_key[0] != '\0' &&
        ps_registry_principal_by_key(registry, self->is.admin_key) == NULL) {
        ps_log(PS_LOG_WARN, "admin_key_unknown",
               "hint=\"no principal has the key of admin.key; an admin allows it: pscli auth "
               "allow NAME --role admin --key='%s'\"",
               self->is.admin_key);
    }
    ps_log(PS_LOG_INFO, "rights_checked",
           "principals=%zu admins=%zu hint=\"pscli auth list shows them\"",
           ps_registry_n_principals(registry), count_keepers(registry));
    set_rights(self); /* those of before may have the same epoch, and be others */
    return PSD_OK;
}

void ps_control_tell_rights(ps_control_t *self)
{
    if (self->is.rights != NULL &&
        ps_rights_epoch(self->is.rights) != ps_registry_auth_epoch(self->is.registry) + 1) {
        set_rights(self);
    }
}
