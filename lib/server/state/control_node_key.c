/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes as principals: "node.NAME", known by the node's key, with the role node. */
#include "server/state/control_inner.h"

#include <stdio.h>
#include <string.h>

#define PREFIX "node."

static psd_status_t commit(ps_control_t *self, const ps_principal_t *next, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    psd_status_t rc =
        ps_registry_plan_principal(self->is.registry, next, ps_unix_ms(), &command, err);

    return rc == PSD_OK && command.kind != 0 ? ps_control_commit(self, &command, PS_LOG_INFO, err)
                                             : rc;
}

/* false: it is too long. */
static bool name_of(const char *node, char ret[PS_NAME_MAX + 1])
{
    int n = snprintf(ret, PS_NAME_MAX + 1, PREFIX "%s", node);

    return n > 0 && n <= PS_NAME_MAX;
}

static bool is_of_node(const ps_principal_t *principal)
{
    return principal->n_rules == 1 && principal->rules[0].role == PS_ROLE_NODE;
}

psd_status_t ps_control_know_node(ps_control_t *self, const char *node, const char *key,
                                  psd_error_t *err)
{
    ps_principal_t next = {.uid = PS_NO_UID, .n_rules = 1};
    const ps_principal_t *known = NULL;
    psd_status_t rc = PSD_OK;

    if (!name_of(node, next.name)) {
        return psd_error_set(err, PSD_INVALID,
                             "node \"%s\" has a name of %zu bytes; allowed where nodes have keys: "
                             "1..%zu",
                             node, strlen(node), PS_NAME_MAX - strlen(PREFIX));
    }
    known = ps_registry_principal(self->is.registry, next.name);
    if (known != NULL && !is_of_node(known)) {
        return psd_error_set(err, PSD_INVALID, "principal %s is no node; choose another node.name",
                             next.name);
    }
    (void)snprintf(next.key, sizeof next.key, "%s", key);
    next.rules[0] = (ps_rule_t){.role = PS_ROLE_NODE, .tables = "*", .jobs = "*"};
    rc = commit(self, &next, err);
    return rc == PSD_OK ? PSD_OK : psd_error_wrap(err, rc, "principal %s", next.name);
}

psd_status_t ps_control_deny_node(ps_control_t *self, const char *node, psd_error_t *err)
{
    char name[PS_NAME_MAX + 1];
    const ps_principal_t *known =
        name_of(node, name) ? ps_registry_principal(self->is.registry, name) : NULL;
    ps_principal_t next;
    psd_status_t rc = PSD_OK;

    ps_invites_drop(&self->invites, node);
    if (known == NULL || known->denied || !is_of_node(known)) {
        return PSD_OK;
    }
    next = *known;
    next.denied = true;
    rc = commit(self, &next, err);
    return rc == PSD_OK ? PSD_OK : psd_error_wrap(err, rc, "principal %s", name);
}

bool ps_control_is_node(const ps_control_t *self, const ps_asker_t *caller)
{
    return self->is.rights == NULL ||
           ps_trust_may(ps_control_principal(self, caller), PS_VERB_PEER, PS_OBJECT_NODE, NULL);
}

bool ps_control_has_token(const ps_control_t *self, const ps_asker_t *caller)
{
    return self->is.rights != NULL && ps_invites_find(&self->invites, caller->key) != NULL;
}
