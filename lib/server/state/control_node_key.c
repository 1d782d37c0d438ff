/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes as principals: "node.NAME", known by the node's key, with the role node. */
#include "server/state/control_inner.h"

#include <stdio.h>
#include <string.h>

#include "server/quorum/replica.h"

/* request: who asked for it; NULL: nobody did. */
static psd_status_t commit(ps_control_t *self, const ps_control_request_t *request,
                           const ps_principal_t *next, psd_error_t *err)
{
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    psd_status_t rc =
        ps_registry_plan_principal(self->is.registry, next, ps_unix_ms(), &command, err);

    if (rc != PSD_OK || command.kind == 0) {
        return rc;
    }
    if (request != NULL) {
        ps_control_sign(self, request, &command);
    }
    return ps_control_commit(self, &command, PS_LOG_INFO, err);
}

/* false: it is too long. */
static bool name_of(const char *node, char ret[PS_NAME_MAX + 1])
{
    int n = snprintf(ret, PS_NAME_MAX + 1, PS_NODE_PRINCIPAL "%s", node);

    return n > 0 && n <= PS_NAME_MAX;
}

psd_status_t ps_control_check_node_name(const ps_control_t *self, const char *node,
                                        psd_error_t *err)
{
    char name[PS_NAME_MAX + 1];
    const ps_principal_t *known = NULL;

    if (!name_of(node, name)) {
        return psd_error_set(err, PSD_INVALID,
                             "node \"%s\" has a name of %zu bytes; allowed where nodes have keys: "
                             "1..%zu",
                             node, strlen(node), PS_NAME_MAX - strlen(PS_NODE_PRINCIPAL));
    }
    known = ps_registry_principal(self->is.registry, name);
    return known == NULL || ps_principal_is_node(known)
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID,
                               "principal %s is no node; choose another node.name", name);
}

psd_status_t ps_control_check_guest(const ps_control_t *self, const char *node, psd_error_t *err)
{
    if (ps_replica_role(self->is.replica, node)[0] != '\0') {
        return psd_error_set(err, PSD_DENIED,
                             "node %s has a part of the registry: pscli cluster registry remove %s "
                             "first",
                             node, node);
    }
    return strcmp(node, self->is.node) != 0
               ? PSD_OK
               : psd_error_set(err, PSD_DENIED, "node %s has the registry, which stays", node);
}

psd_status_t ps_control_check_no_member(const ps_control_t *self, const char *principal,
                                        psd_error_t *err)
{
    const ps_principal_t *known = ps_registry_principal(self->is.registry, principal);

    return known == NULL || known->denied || !ps_principal_is_node(known) ||
                   strncmp(principal, PS_NODE_PRINCIPAL, strlen(PS_NODE_PRINCIPAL)) != 0
               ? PSD_OK
               : ps_control_check_guest(self, principal + strlen(PS_NODE_PRINCIPAL), err);
}

psd_status_t ps_control_know_node(ps_control_t *self, ps_control_request_t *request,
                                  const char *node, const char *key, psd_error_t *err)
{
    ps_principal_t next = {.uid = PS_NO_UID, .n_rules = 1};
    psd_status_t rc = ps_control_check_node_name(self, node, err);

    if (rc != PSD_OK) {
        return rc;
    }
    (void)name_of(node, next.name);
    (void)snprintf(next.key, sizeof next.key, "%s", key);
    next.rules[0] = (ps_rule_t){.role = PS_ROLE_NODE, .tables = "*", .jobs = "*"};
    rc = commit(self, request, &next, err);
    if (rc == PSD_OK && request != NULL) {
        request->lets_in = true;
    }
    return rc == PSD_OK ? PSD_OK : psd_error_wrap(err, rc, "principal %s", next.name);
}

psd_status_t ps_control_deny_node(ps_control_t *self, const ps_control_request_t *request,
                                  const char *node, psd_error_t *err)
{
    char name[PS_NAME_MAX + 1];
    const ps_principal_t *known =
        name_of(node, name) ? ps_registry_principal(self->is.registry, name) : NULL;
    ps_principal_t next;
    psd_status_t rc = PSD_OK;

    (void)ps_invites_drop(&self->invites, node, true);
    if (known == NULL || known->denied || !ps_principal_is_node(known)) {
        return PSD_OK;
    }
    next = *known;
    ps_principal_deny(&next);
    rc = commit(self, request, &next, err);
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
