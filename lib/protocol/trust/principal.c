/* SPDX-License-Identifier: Apache-2.0 */
/* What may be stored of a principal. */
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "protocol/trust/trust.h"

static bool is_z85(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && strchr(".-:+=^!/*?&<>()[]{}@%$#", c) != NULL);
}

static bool is_key(const char *text)
{
    size_t n = strnlen(text, PS_PUBLIC_KEY_SIZE + 1);

    for (size_t i = 0; i < n; i++) {
        if (!is_z85(text[i])) {
            return false;
        }
    }
    return n == PS_PUBLIC_KEY_SIZE;
}

bool ps_text_is_glob(const char *text)
{
    char plain[PS_NAME_MAX + 1];
    size_t n = strnlen(text, sizeof plain);

    if (n == sizeof plain) {
        return false;
    }
    for (size_t i = 0; i <= n; i++) {
        plain[i] = '*' == text[i] || '?' == text[i] ? 'x' : text[i];
    }
    return ps_text_is_name(plain);
}

static psd_status_t check_rule(const ps_rule_t *rule, psd_error_t *err)
{
    if (rule->role < PS_ROLE_ADMIN || rule->role >= PS_ROLE_END) {
        return psd_error_set(err, PSD_INVALID, "role %d; there is no such one", (int)rule->role);
    }
    if (!ps_text_is_glob(rule->tables) || !ps_text_is_glob(rule->jobs)) {
        return psd_error_set(err, PSD_INVALID,
                             "glob of %s; allowed: 1..%d of letters, digits, \"_\", \".\", \"-\", "
                             "\"*\", \"?\", not beginning with \".\" or \"-\"",
                             ps_text_is_glob(rule->tables) ? "jobs" : "tables", PS_NAME_MAX);
    }
    return PSD_OK;
}

bool ps_principal_has_key(const ps_principal_t *self, const char *key)
{
    return key[0] != '\0' && (strcmp(self->key, key) == 0 || strcmp(self->old_key, key) == 0);
}

void ps_principal_end_old_key(ps_principal_t *self)
{
    memset(self->old_key, 0, sizeof self->old_key);
    self->old_until_unix_ms = 0;
}

void ps_principal_deny(ps_principal_t *self)
{
    self->denied = true;
    ps_principal_end_old_key(self);
}

/* The old key is there with its end or not at all, beside another key, of one that is not
 * denied. */
static psd_status_t check_old_key(const ps_principal_t *self, psd_error_t *err)
{
    bool has_old = self->old_key[0] != '\0';

    if (has_old && !is_key(self->old_key)) {
        return psd_error_set(err, PSD_INVALID, "the old key of %s is no key", self->name);
    }
    if (has_old != (self->old_until_unix_ms != 0) || self->old_until_unix_ms > INT64_MAX) {
        return psd_error_set(err, PSD_INVALID, "the old key of %s ends at %" PRIu64, self->name,
                             self->old_until_unix_ms);
    }
    if (has_old &&
        (self->denied || self->key[0] == '\0' || strcmp(self->key, self->old_key) == 0)) {
        return psd_error_set(err, PSD_INVALID, "%s has an old key, and %s", self->name,
                             self->denied           ? "is denied"
                             : self->key[0] == '\0' ? "no key"
                                                    : "it is the same as its key");
    }
    return PSD_OK;
}

psd_status_t ps_principal_check(const ps_principal_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (memchr(self->name, '\0', sizeof self->name) == NULL || !ps_text_is_name(self->name)) {
        return psd_error_set(err, PSD_INVALID,
                             "name of the principal; allowed: 1..%d of letters, digits, \"_\", "
                             "\".\", \"-\", not beginning with \".\" or \"-\"",
                             PS_NAME_MAX);
    }
    if (self->key[0] != '\0' && !is_key(self->key)) {
        return psd_error_set(err, PSD_INVALID,
                             "key of %s; allowed: the %d characters that pscli "
                             "auth keygen prints",
                             self->name, PS_PUBLIC_KEY_SIZE);
    }
    if (self->key[0] == '\0' && self->uid == PS_NO_UID) {
        return psd_error_set(err, PSD_INVALID, "%s needs a key or a uid, by which it is known",
                             self->name);
    }
    if (self->n_rules > PS_RULES_MAX) {
        return psd_error_set(err, PSD_INVALID, "%" PRIu32 " rules; at most %d", self->n_rules,
                             PS_RULES_MAX);
    }
    rc = check_old_key(self, err);
    for (uint32_t i = 0; i < self->n_rules && rc == PSD_OK; i++) {
        rc = check_rule(&self->rules[i], err);
    }
    return rc;
}

static bool rules_equal(const ps_rule_t *self, const ps_rule_t *other)
{
    return self->role == other->role && strcmp(self->tables, other->tables) == 0 &&
           strcmp(self->jobs, other->jobs) == 0;
}

bool ps_principal_equal(const ps_principal_t *self, const ps_principal_t *other)
{
    if (strcmp(self->name, other->name) != 0 || strcmp(self->key, other->key) != 0 ||
        strcmp(self->old_key, other->old_key) != 0 ||
        self->old_until_unix_ms != other->old_until_unix_ms || self->uid != other->uid ||
        self->denied != other->denied || self->n_rules != other->n_rules) {
        return false;
    }
    for (uint32_t i = 0; i < self->n_rules; i++) {
        if (!rules_equal(&self->rules[i], &other->rules[i])) {
            return false;
        }
    }
    return true;
}
