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
#define ADMIN_KEY "admin.key"

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

static psd_status_t refuse_several(psd_error_t *err)
{
    return psd_error_set(err, PSD_CONFIG,
                         "security.level is encrypt, and this node belongs to a cluster of "
                         "several, whose nodes do not know each other's keys yet; allowed here: "
                         "plain");
}

psd_status_t ps_server_check_alone(const ps_server_t *self, psd_error_t *err)
{
    bool is_one_of_many = self->config->security.level == PS_SECURITY_ENCRYPT &&
                          (ps_server_has_left(self) || ps_replica_has_log(self->dir));

    return is_one_of_many ? refuse_several(err) : PSD_OK;
}

psd_status_t ps_server_open_keys(ps_server_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t admin = {.name = ""};
    psd_status_t rc = PSD_OK;

    if (self->config->security.level != PS_SECURITY_ENCRYPT) {
        return PSD_OK;
    }
    if (self->replica == NULL || ps_replica_is_member(self->replica) ||
        ps_registry_n_nodes(ps_replica_registry(self->replica)) > 1) {
        return refuse_several(err);
    }
    rc = check_lost(self, err);
    if (rc == PSD_OK) {
        rc = settle(self, NODE_KEY, "node", &self->keys, err);
    }
    if (rc == PSD_OK) {
        rc = settle(self, ADMIN_KEY, "admin", &admin, err);
    }
    if (rc == PSD_OK) {
        rc = ps_rights_new(&self->rights, err);
    }
    memcpy(self->admin_key, admin.public_key, sizeof self->admin_key);
    if (rc == PSD_OK && self->config->security.allow_plaintext) {
        ps_log(PS_LOG_WARN, "plaintext_allowed",
               "hint=\"security.allow_plaintext counts for http.listen alone beside encrypt: token "
               "and answers are not encrypted there\"");
    }
    return rc;
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
