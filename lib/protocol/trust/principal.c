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
        self->uid != other->uid || self->denied != other->denied ||
        self->n_rules != other->n_rules) {
        return false;
    }
    for (uint32_t i = 0; i < self->n_rules; i++) {
        if (!rules_equal(&self->rules[i], &other->rules[i])) {
            return false;
        }
    }
    return true;
}
