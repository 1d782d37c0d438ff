/* SPDX-License-Identifier: Apache-2.0 */
/* What a node knows of itself without its registry: member.json. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "server/config/sealed.h"
#include "server/server_inner.h"
#include "wire/messages/doc.h"

#define MEMBERSHIP "member.json"

static psd_status_t copy_name(const ps_doc_t *doc, const char *key, char *ret, psd_error_t *err)
{
    const char *text = NULL;
    psd_status_t rc = ps_doc_get_text(doc, key, PS_NAME_MAX, &text, err);

    if (rc == PSD_OK && !ps_text_is_name(text)) {
        rc = psd_error_set(err, PSD_INVALID, "%s is not a node name", key);
    }
    if (rc == PSD_OK) {
        memcpy(ret, text, strlen(text) + 1);
    }
    return rc;
}

static psd_status_t read_membership(const char *dir, ps_belonging_t *ret, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    psd_status_t rc = ps_sealed_read(dir, MEMBERSHIP, &doc, err);

    if (rc == PSD_OK && doc == NULL) {
        return PSD_OK;
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_id(doc, "cluster", &ret->cluster, err);
    }
    if (rc == PSD_OK) {
        rc = copy_name(doc, "cluster_name", ret->name, err);
    }
    if (rc == PSD_OK) {
        rc = copy_name(doc, "node", ret->node, err);
    }
    if (rc == PSD_OK && ps_doc_has(doc, "secret")) {
        rc = ps_doc_get_id(doc, "secret", &ret->secret, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_switch(doc, "own_registry", &ret->own_registry, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_switch(doc, "began_here", &ret->began_here, err);
    }
    if (rc != PSD_OK) {
        return doc == NULL ? rc : ps_sealed_blame(dir, MEMBERSHIP, rc, err);
    }
    ps_members_from_doc(&ret->members, doc);
    ret->is_there = true;
    return PSD_OK;
}

static psd_status_t write_membership(const char *dir, const ps_belonging_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();

    if (doc == NULL || !ps_doc_set_id(doc, "cluster", &self->cluster) ||
        !ps_doc_set_text(doc, "cluster_name", self->name) ||
        !ps_doc_set_text(doc, "node", self->node) || !ps_doc_set_id(doc, "secret", &self->secret) ||
        (self->own_registry && !ps_doc_set_bool(doc, "own_registry", true)) ||
        (self->began_here && !ps_doc_set_bool(doc, "began_here", true)) ||
        !ps_members_to_doc(&self->members, doc)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %s", MEMBERSHIP);
    }
    return ps_sealed_write(dir, MEMBERSHIP, doc, err);
}

psd_status_t ps_server_write_membership(const ps_server_t *self, const ps_joined_t *joined,
                                        const ps_id_t *secret, psd_error_t *err)
{
    ps_belonging_t known = {
        .cluster = joined->cluster, .secret = *secret, .members = joined->members};

    memcpy(known.name, joined->cluster_name, sizeof known.name);
    memcpy(known.node, self->node, sizeof known.node);
    return write_membership(self->dir, &known, err);
}

static bool has(const ps_server_t *self, const char *name)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};

    return ps_buffer_print(&path, "%s/%s", self->dir, name) &&
           access((const char *)path.data, F_OK) == 0;
}

bool ps_server_has_registry(const ps_server_t *self)
{
    return has(self, "registry.db");
}

bool ps_server_has_log(const ps_server_t *self)
{
    return has(self, "log-0");
}

psd_status_t ps_server_read_membership(const ps_server_t *self, ps_belonging_t *ret,
                                       psd_error_t *err)
{
    return read_membership(self->dir, ret, err);
}

psd_status_t ps_server_own_registry(const ps_server_t *self, const ps_id_t *cluster,
                                    const char *cluster_name, psd_error_t *err)
{
    ps_belonging_t known = {.is_there = false};
    psd_status_t rc = read_membership(self->dir, &known, err);

    if (rc != PSD_OK || (!known.is_there && cluster == NULL)) {
        return rc; /* of a node that never joined another: the registry has its name */
    }
    if (!known.is_there) {
        known.cluster = *cluster;
        (void)snprintf(known.name, sizeof known.name, "%s", cluster_name);
        (void)snprintf(known.node, sizeof known.node, "%.*s", PS_NAME_MAX, self->config->node.name);
        rc = ps_random(&known.secret, sizeof known.secret, err);
    }
    known.own_registry = true;
    known.members = (ps_members_t){.n = 0};
    return rc == PSD_OK ? write_membership(self->dir, &known, err) : rc;
}

/* Without its registry it could not prove later who it is. */
psd_status_t ps_server_note_first(const ps_server_t *self, const ps_id_t *secret, psd_error_t *err)
{
    ps_belonging_t known = {.is_there = false};
    psd_status_t rc = read_membership(self->dir, &known, err);

    if (rc != PSD_OK || known.is_there) {
        return rc;
    }
    known = (ps_belonging_t){.cluster = self->cluster, .secret = *secret, .began_here = true};
    memcpy(known.name, self->cluster_name, sizeof known.name);
    memcpy(known.node, self->node, sizeof known.node);
    return write_membership(self->dir, &known, err);
}

/* A joined node whose directory got a registry of its own (--force-new-registry,
 * --rebuild-registry). */
static bool has_own(const ps_server_t *self, const ps_belonging_t *known)
{
    return known->own_registry && ps_server_has_registry(self);
}

psd_status_t ps_server_look_own(const ps_server_t *self, bool *ret_own, psd_error_t *err)
{
    ps_belonging_t known = {.is_there = false};
    psd_status_t rc = read_membership(self->dir, &known, err);

    *ret_own = rc == PSD_OK && has_own(self, &known);
    return rc;
}

/* A joined node may have the registry: as a member, or alone, when it was one
 * (pscli cluster registry single). */
psd_status_t ps_server_check_own(const ps_server_t *self, psd_error_t *err)
{
    ps_belonging_t known = {.is_there = false};
    psd_status_t rc = read_membership(self->dir, &known, err);

    if (rc != PSD_OK || !known.is_there || known.began_here || ps_server_has_registry(self) ||
        ps_replica_has_log(self->dir)) {
        return rc;
    }
    return psd_error_set(err, PSD_FOREIGN,
                         "data directory %s belongs to node \"%s\" of cluster \"%s\", whose "
                         "registry is on another node; start it with --join",
                         self->dir, known.node, known.name);
}

psd_status_t ps_server_read_name(const ps_server_t *self, char ret_name[PS_NAME_MAX + 1],
                                 ps_id_t *ret_secret, psd_error_t *err)
{
    ps_belonging_t known = {.is_there = false};
    psd_status_t rc = read_membership(self->dir, &known, err);

    if (rc == PSD_OK && known.is_there) {
        memcpy(ret_name, known.node, sizeof known.node);
        *ret_secret = known.secret;
    }
    return rc;
}
