/* SPDX-License-Identifier: Apache-2.0 */
/* Rules against the table of rights. */
#include "protocol/trust/trust.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define BIT_ANY(role) (UINT32_C(1) << PS_ROLE_##role)
#define BIT_ALL(role) (UINT32_C(1) << (PS_ROLE_##role + ALL_SHIFT))
#define ALL_SHIFT 16 /* the roles that need rules for all stand above the others */
static_assert(PS_ROLE_END <= ALL_SHIFT, "a bit for each role");

#define RIGHT_ROW(OBJECT, VERB, roles) [PS_OBJECT_##OBJECT][PS_VERB_##VERB] = (roles),
static const uint32_t rights[PS_OBJECT_END][PS_VERB_END] = {
    PS_RIGHT_MAP(RIGHT_ROW, BIT_ANY, BIT_ALL)};
#undef RIGHT_ROW

bool ps_glob_matches(const char *glob, const char *name)
{
    const char *star = NULL; /* after the last "*" … */
    const char *from = NULL; /* … which stands for what is before this */

    while (*name != '\0') {
        if (*glob == '*') {
            star = ++glob;
            from = name;
        } else if (*glob == '?' || *glob == *name) {
            glob++;
            name++;
        } else if (star != NULL) {
            glob = star;
            name = ++from;
        } else {
            return false;
        }
    }
    while (*glob == '*') {
        glob++;
    }
    return *glob == '\0';
}

static bool is_all(const char *glob)
{
    return strcmp(glob, "*") == 0;
}

static bool rule_gives(const ps_rule_t *rule, ps_verb_t verb, ps_object_t object, const char *name)
{
    uint32_t right = rights[object][verb];
    uint32_t any = UINT32_C(1) << rule->role;

    if ((right & any << ALL_SHIFT) != 0) {
        return is_all(rule->tables) && is_all(rule->jobs);
    }
    if ((right & any) == 0) {
        return false;
    }
    if (name == NULL || (object != PS_OBJECT_TABLE && object != PS_OBJECT_JOB)) {
        return true;
    }
    return ps_glob_matches(object == PS_OBJECT_TABLE ? rule->tables : rule->jobs, name);
}

bool ps_principal_is_node(const ps_principal_t *self)
{
    for (uint32_t i = 0; i < self->n_rules; i++) {
        if (self->rules[i].role == PS_ROLE_NODE) {
            return true;
        }
    }
    return false;
}

bool ps_trust_may(const ps_principal_t *who, ps_verb_t verb, ps_object_t object, const char *name)
{
    if (who == NULL || who->denied || (unsigned)verb >= PS_VERB_END ||
        (unsigned)object >= PS_OBJECT_END) {
        return false;
    }
    for (uint32_t i = 0; i < who->n_rules; i++) {
        if (rule_gives(&who->rules[i], verb, object, name)) {
            return true;
        }
    }
    return false;
}

bool ps_trust_may_give(ps_verb_t verb, ps_object_t object)
{
    const uint32_t node = UINT32_C(1) << PS_ROLE_NODE;

    return (unsigned)verb < PS_VERB_END && (unsigned)object < PS_OBJECT_END &&
           (rights[object][verb] & ~(node | node << ALL_SHIFT)) != 0;
}

const char *ps_trust_print_reach(const ps_principal_t *who, ps_verb_t verb, ps_object_t object,
                                 char ret[PS_REACH_TEXT_SIZE])
{
    const bool is_table = object == PS_OBJECT_TABLE;
    size_t n = 0;

    ret[0] = '\0';
    if (who == NULL || (!is_table && object != PS_OBJECT_JOB)) {
        return ret;
    }
    for (uint32_t i = 0; i < who->n_rules && n < PS_REACH_TEXT_SIZE; i++) {
        const ps_rule_t *rule = &who->rules[i];

        if (rule_gives(rule, verb, object, NULL)) {
            n += (size_t)snprintf(ret + n, PS_REACH_TEXT_SIZE - n, "%s\"%s\"",
                                  n > 0      ? ", "
                                  : is_table ? ": its rules cover tables "
                                             : ": its rules cover jobs ",
                                  is_table ? rule->tables : rule->jobs);
        }
    }
    if (n >= PS_REACH_TEXT_SIZE) {
        memcpy(ret + PS_REACH_TEXT_SIZE - sizeof "…", "…", sizeof "…");
    }
    return ret;
}
