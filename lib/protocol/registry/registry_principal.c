/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what, as the cluster has it: principals, each planned, checked and applied. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry/registry_journal.h"

#define PRINCIPALS_SINCE 3 /* the machine version that has them … */
#define TWO_KEYS_SINCE 6   /* … and a second key of one */

uint64_t ps_registry_auth_epoch(const ps_registry_t *self)
{
    return self->auth_epoch;
}

size_t ps_registry_n_principals(const ps_registry_t *self)
{
    return self->n_principals;
}

const ps_principal_t *ps_registry_principal_at(const ps_registry_t *self, size_t i)
{
    return &self->principals[i];
}

static const ps_principal_t *by_id(const ps_registry_t *self, uint32_t id)
{
    return id > 0 && id <= self->n_principals ? &self->principals[id - 1] : NULL;
}

const ps_principal_t *ps_registry_principal(const ps_registry_t *self, const char *name)
{
    for (size_t i = 0; i < self->n_principals; i++) {
        if (strcmp(self->principals[i].name, name) == 0) {
            return &self->principals[i];
        }
    }
    return NULL;
}

const ps_principal_t *ps_registry_principal_by_key(const ps_registry_t *self, const char *key)
{
    for (size_t i = 0; i < self->n_principals; i++) {
        if (ps_principal_has_key(&self->principals[i], key)) {
            return &self->principals[i];
        }
    }
    return NULL;
}

const ps_principal_t *ps_registry_principal_by_uid(const ps_registry_t *self, uint32_t uid)
{
    for (size_t i = 0; uid != PS_NO_UID && i < self->n_principals; i++) {
        if (self->principals[i].uid == uid) {
            return &self->principals[i];
        }
    }
    return NULL;
}

const ps_principal_t *ps_registry_principal_overdue(const ps_registry_t *self, uint64_t unix_ms)
{
    for (size_t i = 0; i < self->n_principals; i++) {
        if (self->principals[i].old_key[0] != '\0' &&
            self->principals[i].old_until_unix_ms <= unix_ms) {
            return &self->principals[i];
        }
    }
    return NULL;
}

/* ---- rules between principals ---- */

static bool is_keeper(const ps_principal_t *self)
{
    return ps_trust_may(self, PS_VERB_CHANGE, PS_OBJECT_AUTH, NULL);
}

/* Somebody could change principals, and nobody could once `next` is as it shall be. */
static bool locks_out(const ps_registry_t *self, const ps_principal_t *next)
{
    const ps_principal_t *known = by_id(self, next->id);

    if (known == NULL || !is_keeper(known) || is_keeper(next)) {
        return false;
    }
    for (size_t i = 0; i < self->n_principals; i++) {
        if (self->principals[i].id != next->id && is_keeper(&self->principals[i])) {
            return false;
        }
    }
    return true;
}

/* Its name, key and uid are nobody else's. */
static psd_status_t check_alone(const ps_registry_t *self, const ps_principal_t *next,
                                psd_error_t *err)
{
    const ps_principal_t *same = ps_registry_principal(self, next->name);

    if (same != NULL && same->id != next->id) {
        return psd_error_set(err, PSD_INVALID, "name %s is that of principal %" PRIu32 " already",
                             next->name, same->id);
    }
    same = ps_registry_principal_by_key(self, next->key);
    if (same == NULL || same->id == next->id) {
        same = ps_registry_principal_by_key(self, next->old_key);
    }
    if (same != NULL && same->id != next->id) {
        return psd_error_set(err, PSD_INVALID, "the key of %s is that of %s already", next->name,
                             same->name);
    }
    same = ps_registry_principal_by_uid(self, next->uid);
    if (same != NULL && same->id != next->id) {
        return psd_error_set(err, PSD_INVALID, "uid %" PRIu32 " of %s is that of %s already",
                             next->uid, next->name, same->name);
    }
    return PSD_OK;
}

static psd_status_t check_fits(const ps_registry_t *self, const ps_principal_t *next,
                               psd_error_t *err)
{
    psd_status_t rc = ps_principal_check(next, err);

    if (rc == PSD_OK) {
        rc = check_alone(self, next, err);
    }
    if (rc == PSD_OK && locks_out(self, next)) {
        rc = psd_error_set(
            err, PSD_DENIED,
            "%s is the last one who may change principals; allow another admin first", next->name);
    }
    return rc;
}

/* ---- planned ---- */

/* Its keys alone are others than before. */
static bool is_other_in_keys(const ps_principal_t *known, const ps_principal_t *next)
{
    ps_principal_t same = *next;

    memcpy(same.key, known->key, sizeof same.key);
    memcpy(same.old_key, known->old_key, sizeof same.old_key);
    same.old_until_unix_ms = known->old_until_unix_ms;
    return ps_principal_equal(known, &same);
}

/* For the history: "principal alice is allowed: job of tables "a.*", jobs "a-*"". known: NULL: it
 * is new. */
static void say(const ps_principal_t *known, const ps_principal_t *next, char *text, size_t size)
{
    const ps_rule_t *rule = &next->rules[0];

    if (known != NULL && is_other_in_keys(known, next)) {
        (void)snprintf(text, size, "principal %s has %s", next->name,
                       next->old_key[0] != '\0' ? "a new key, and the old key for a while"
                       : strcmp(known->key, next->key) != 0
                           ? "another key"
                           : "its new key alone: the old key does not count any more");
        return;
    }
    if (next->denied || next->n_rules == 0) {
        (void)snprintf(text, size, "principal %s is %s", next->name,
                       next->denied ? "denied" : "known, without a rule");
        return;
    }
    (void)snprintf(text, size, "principal %s is allowed: %s of tables \"%s\", jobs \"%s\"%s",
                   next->name, ps_role_word(rule->role), rule->tables, rule->jobs,
                   next->n_rules > 1 ? ", and more" : "");
}

psd_status_t ps_registry_plan_principal(const ps_registry_t *self, const ps_principal_t *principal,
                                        uint64_t unix_ms, ps_command_t *ret_command,
                                        psd_error_t *err)
{
    PSD_AUTO(ps_command_done)
    ps_command_t command = ps_registry_command(self, PS_COMMAND_PRINCIPAL, unix_ms);
    const ps_principal_t *known = ps_registry_principal(self, principal->name);
    ps_principal_t *next = NULL;
    psd_status_t rc = PSD_OK;

    if (self->cluster.sm_version < PRINCIPALS_SINCE) {
        return psd_error_set(
            err, PSD_UNSUPPORTED,
            "the cluster has no principals yet: its registry is of machine version "
            "%" PRIu32 ", as a node that has a part of it runs an older psd",
            self->cluster.sm_version);
    }
    if (principal->old_key[0] != '\0' && self->cluster.sm_version < TWO_KEYS_SINCE) {
        return psd_error_set(
            err, PSD_UNSUPPORTED,
            "principals cannot have two keys yet: a node that has the registry runs an older psd "
            "(machine version %" PRIu32 " of %d)",
            self->cluster.sm_version, TWO_KEYS_SINCE);
    }
    if (known != NULL && ps_principal_equal(known, principal)) {
        *ret_command = (ps_command_t){0};
        return PSD_OK;
    }
    if (known == NULL && self->n_principals >= PS_PRINCIPALS_MAX) {
        return psd_error_set(err, PSD_LIMIT,
                             "there are %d principals already, the most there may be",
                             PS_PRINCIPALS_MAX);
    }
    next = ps_alloc(1, sizeof *next);
    if (next == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a principal");
    }
    command.principals = next;
    command.n_principals = 1;
    *next = *principal;
    next->id = known == NULL ? (uint32_t)self->n_principals + 1 : known->id;
    next->epoch = self->auth_epoch + 1;
    rc = check_fits(self, next, err);
    if (rc != PSD_OK) {
        return rc;
    }
    say(known, next, command.text, sizeof command.text);
    *ret_command = command; /* ownership moves to the caller */
    command = (ps_command_t){0};
    return PSD_OK;
}

/* ---- applied ---- */

static bool has_epoch(const ps_registry_t *self, uint64_t epoch)
{
    for (size_t i = 0; i < self->n_principals; i++) {
        if (self->principals[i].epoch == epoch) {
            return true;
        }
    }
    return false;
}

/* A load brings them by id, with the epochs that they have. */
psd_status_t ps_command_check_principal(const ps_registry_t *self, const ps_command_t *command,
                                        psd_error_t *err)
{
    const ps_principal_t *next = command->principals;
    const ps_principal_t *known = NULL;

    if (self->cluster.sm_version < PRINCIPALS_SINCE || command->n_principals != 1) {
        return psd_error_set(err, PSD_DAMAGED, "%zu principals, and machine version %" PRIu32,
                             command->n_principals, self->cluster.sm_version);
    }
    if (next->old_key[0] != '\0' && self->cluster.sm_version < TWO_KEYS_SINCE) {
        return psd_error_set(err, PSD_DAMAGED,
                             "a principal with two keys, and machine version "
                             "%" PRIu32,
                             self->cluster.sm_version);
    }
    if (next->id == 0 || next->id > self->n_principals + 1 || next->id > PS_PRINCIPALS_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "principal %" PRIu32 " after %zu", next->id,
                             self->n_principals);
    }
    known = by_id(self, next->id);
    if (next->epoch == 0 || next->epoch > PS_STORED_MAX || has_epoch(self, next->epoch) ||
        (known != NULL && next->epoch <= self->auth_epoch)) {
        return psd_error_set(err, PSD_DAMAGED,
                             "principal %" PRIu32 " is of epoch %" PRIu64 " after %" PRIu64,
                             next->id, next->epoch, self->auth_epoch);
    }
    if (known != NULL && strncmp(known->name, next->name, sizeof known->name) != 0) {
        return psd_error_set(err, PSD_DAMAGED, "principal %" PRIu32 " has another name", next->id);
    }
    return check_fits(self, next, err);
}

psd_status_t ps_command_apply_principal(ps_registry_t *self, const ps_command_t *command,
                                        psd_error_t *err)
{
    const ps_principal_t *next = command->principals;
    size_t at = next->id - 1;

    if (at < self->n_principals &&
        !ps_journal_save(self, &self->principals[at], sizeof self->principals[at])) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a principal");
    }
    self->principals[at] = *next; /* a command begins with room for one more */
    self->n_principals += at == self->n_principals ? 1 : 0;
    self->auth_epoch = next->epoch > self->auth_epoch ? next->epoch : self->auth_epoch;
    ps_touch(self, PS_ROW_PRINCIPAL, next->id);
    return PSD_OK;
}
