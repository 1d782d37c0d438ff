/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a node that asks for keys: its own, and that of its first admin. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "server/quorum/replica.h"
#include "server/server_inner.h"
#include "transport/sockets/curve.h"

#define NODE_KEY "node.key"
#define ADMIN_KEY PS_ADMIN_KEY_FILE

/* Reads the file, or makes it at the first start. */
static psd_status_t settle(const ps_server_t *self, const char *file, const char *name,
                           ps_key_pair_t *ret_pair, psd_error_t *err)
{
    char path[PATH_MAX];
    char quoted[512];
    int n = snprintf(path, sizeof path, "%s/%s", self->dir, file);
    psd_status_t rc = PSD_OK;

    if (n < 0 || (size_t)n >= sizeof path) {
        return psd_error_set(err, PSD_CONFIG, "the path of %s is too long", file);
    }
    if (access(path, F_OK) == 0 || errno != ENOENT) {
        return ps_key_file_read(path, ret_pair, err);
    }
    rc = ps_key_pair_make(name, ret_pair, err);
    if (rc == PSD_OK) {
        rc = ps_key_file_write(path, ret_pair, err);
    }
    if (rc == PSD_OK) {
        ps_log(PS_LOG_INFO, "key_made", "file=%s", ps_log_quote(path, quoted, sizeof quoted));
    }
    return rc;
}

/* node.key is made before admin.key: where only that one is, node.key was lost. */
static psd_status_t check_lost(const ps_server_t *self, psd_error_t *err)
{
    char node[PATH_MAX];
    char admin[PATH_MAX];

    (void)snprintf(node, sizeof node, "%s/" NODE_KEY, self->dir);
    (void)snprintf(admin, sizeof admin, "%s/" ADMIN_KEY, self->dir);
    if (access(node, F_OK) == 0 || access(admin, F_OK) != 0) {
        return PSD_OK;
    }
    return psd_error_set(
        err, PSD_CONFIG,
        "%s is missing, and %s is there: clients know this psd by it. Put it back; "
        "or move " ADMIN_KEY " away, and psd makes both, under which no client "
        "knows it",
        node, admin);
}

psd_status_t ps_server_open_keys(ps_server_t *self, psd_error_t *err)
{
    char path[PATH_MAX];
    psd_status_t rc = PSD_OK;

    if (self->config->security.level != PS_SECURITY_ENCRYPT) {
        return PSD_OK;
    }
    (void)snprintf(path, sizeof path, "%s/" NODE_KEY, self->dir);
    rc = check_lost(self, err);
    if (rc == PSD_OK && access(path, F_OK) == 0) {
        rc = ps_key_file_read(path, &self->keys, err);
    }
    if (rc == PSD_OK) {
        rc = ps_rights_new(&self->rights, err);
    }
    if (rc == PSD_OK && self->config->security.allow_plaintext) {
        ps_log(PS_LOG_WARN, "plaintext_allowed",
               "hint=\"beside encrypt security.allow_plaintext counts for http.listen alone\"");
    }
    return rc;
}

psd_status_t ps_server_make_key(ps_server_t *self, psd_error_t *err)
{
    return self->rights == NULL || self->keys.public_key[0] != '\0'
               ? PSD_OK
               : settle(self, NODE_KEY, "node", &self->keys, err);
}

/* Members of a registry must know each other before one of them can lead, so none could let the
 * others in: the level changes while one node alone has it. */
static psd_status_t check_members(const ps_server_t *self, psd_error_t *err)
{
    return ps_registry_principal_by_key(ps_replica_registry(self->replica),
                                        self->keys.public_key) != NULL
               ? PSD_OK
               : psd_error_set(err, PSD_CONFIG,
                               "security.level is encrypt, and the other members of the registry "
                               "do not know the key of this one: at level plain let one node alone "
                               "have the registry (pscli cluster registry remove, then registry "
                               "single), then set encrypt there, and invite the others (pscli "
                               "node invite)");
}

psd_status_t ps_server_settle_keys(ps_server_t *self, bool joins, psd_error_t *err)
{
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t admin = {.name = ""};
    psd_status_t rc = PSD_OK;

    if (self->rights == NULL || joins) {
        return PSD_OK;
    }
    rc = ps_server_make_key(self, err);
    if (rc == PSD_OK && ps_replica_is_member(self->replica)) {
        rc = check_members(self, err);
    } else if (rc == PSD_OK) {
        rc = settle(self, ADMIN_KEY, "admin", &admin, err);
        memcpy(self->admin_key, admin.public_key, sizeof self->admin_key);
    }
    if (rc == PSD_OK) {
        ps_server_tell_rights(self);
    }
    return rc;
}

void ps_server_tell_rights(ps_server_t *self)
{
    const ps_registry_t *registry = self->rights == NULL || self->replica == NULL ||
                                            self->control != NULL ||
                                            ps_replica_is_ahead(self->replica)
                                        ? NULL
                                        : ps_replica_registry(self->replica);
    size_t n = registry == NULL ? 0 : ps_registry_n_principals(registry);
    uint64_t epoch = n == 0 ? 0 : ps_registry_auth_epoch(registry) + 1;

    if (n == 0 || (self->member != NULL && ps_member_is_shut_out(self->member)) ||
        (epoch <= ps_rights_epoch(self->rights) && !self->rights_are_old)) {
        return;
    }
    self->rights_are_old =
        !ps_rights_set(self->rights, ps_registry_principal_at(registry, 0), n, epoch);
    if (self->rights_are_old) {
        ps_log(PS_LOG_ERROR, "rights_not_told", "reason=no_memory hint=\"retrying\"");
    }
}

bool ps_server_knows_member(void *of, const ps_asker_t *asker)
{
    return ps_rights_may(((const ps_server_t *)of)->rights, asker, PS_VERB_PEER, PS_OBJECT_REGISTRY,
                         NULL);
}

psd_status_t ps_server_name_key(const ps_server_t *self, char endpoint[PS_ENDPOINT_MAX + 1],
                                psd_error_t *err)
{
    char named[PS_ENDPOINT_MAX + 1];

    if (self->rights == NULL) {
        return PSD_OK;
    }
    if (!ps_curve_join(endpoint, self->keys.public_key, named)) {
        return psd_error_set(err, PSD_CONFIG, "%s is too long for its key", endpoint);
    }
    memcpy(endpoint, named, sizeof named);
    return PSD_OK;
}
