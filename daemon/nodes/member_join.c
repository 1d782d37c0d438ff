/* SPDX-License-Identifier: Apache-2.0 */
/* How a node joins a cluster. */
#include <signal.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/nodes/member_inner.h"
#include "wire/messages/doc.h"
#include "wire/messages/formats.h"

#define ANSWER_MS 1000   /* timeout for one registry's answer */
#define COMING_MS 30000  /* for a registry that starts at the same time */
#define PATIENCE_MS 5000 /* for an earlier life of the node to be forgotten */
#define AGAIN_MS 100     /* between two tries of that */
#define STATUS_MAX 64

/* {"v":1,"id":…,"op":"node_join","versions":…,…}: in JSON, so that two builds of
 * different format can name that. NULL: no memory. */
static ps_doc_t *new_join(ps_member_t *self)
{
    ps_doc_t *doc = ps_doc_new();
    ps_doc_t *versions = NULL;

    if (doc == NULL || !ps_doc_set_u64(doc, "v", 1) ||
        !ps_doc_set_u64(doc, "id", ++self->last_id) || !ps_doc_set_text(doc, "op", "node_join")) {
        ps_doc_destroy(&doc);
        return NULL;
    }
    versions = ps_doc_add_array(doc, "versions");
    if (versions == NULL || !ps_doc_append_u64(versions, PS_NODE_FORMAT) ||
        !ps_doc_append_u64(versions, PS_NODE_FORMAT) || !ps_doc_set_text(doc, "name", self->name) ||
        !ps_doc_set_u64(doc, "incarnation", self->incarnation) ||
        !ps_doc_set_id(doc, "secret", &self->secret) ||
        (self->any_name && !ps_doc_set_bool(doc, "any_name", true))) {
        ps_doc_destroy(&doc);
    }
    return doc;
}

static psd_status_t send_join(ps_member_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = new_join(self);
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    if (doc == NULL || !ps_doc_print(doc, &text)) {
        return psd_error_set(err, PSD_NOMEM, "no memory to join a cluster");
    }
    return ps_socket_send_text(self->link, 0, (ps_bytes_t){.data = text.data, .size = text.size},
                               err);
}

/* PSD_OK, or the error in an answer of the registry. */
static psd_status_t status_of(const ps_doc_t *doc, psd_error_t *err)
{
    const char *name = NULL;
    const char *text = NULL;
    const ps_doc_t *error = NULL;
    psd_status_t rc = ps_doc_get_text(doc, "status", STATUS_MAX, &name, err);

    if (rc != PSD_OK || strcmp(name, "OK") == 0) {
        return rc;
    }
    if (ps_doc_get_object(doc, "error", &error, NULL) != PSD_OK ||
        ps_doc_get_text(error, "message", 2000, &text, NULL) != PSD_OK) {
        text = name;
    }
    for (int status = PSD_FAILED; status <= PSD_INTERRUPTED; status++) {
        if (strcmp(psd_status_name((psd_status_t)status), name) == 0) {
            return psd_error_set(err, (psd_status_t)status, "%s", text);
        }
    }
    return psd_error_set(err, PSD_PROTO, "%s", text);
}

/* The answer to the last question. Errors: PSD_CONNECT none in time. */
static psd_status_t wait_answer(ps_member_t *self, ps_doc_t **ret_doc, psd_error_t *err)
{
    uint64_t deadline_ms = ps_now_ms() + ANSWER_MS;

    for (;;) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
        uint64_t now_ms = ps_now_ms();
        uint64_t conn = 0;
        bool ready = false;
        bool got = false;
        psd_status_t rc = PSD_OK;

        if (now_ms >= deadline_ms) {
            return psd_error_set(err, PSD_CONNECT, "no answer within %d ms", ANSWER_MS);
        }
        rc = ps_socket_wait(&self->link, 1, deadline_ms - now_ms, &ready, err);
        if (rc == PSD_OK) {
            rc = ps_socket_receive_text(self->link, &got, &conn, &text, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
        if (got) {
            return ps_doc_parse((ps_bytes_t){.data = text.data, .size = text.size}, ret_doc, err);
        }
    }
}

static psd_status_t read_joined(const ps_doc_t *doc, ps_joined_t *joined, psd_error_t *err)
{
    const ps_doc_t *cluster = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_object(doc, "cluster", &cluster, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_text(cluster, "name", PS_NAME_MAX, &name, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_id(cluster, "uuid", &joined->cluster, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "session", 0, INT64_MAX, &joined->session, err);
    }
    if (rc == PSD_OK) {
        memcpy(joined->cluster_name, name, strlen(name) + 1);
    }
    if (rc == PSD_OK && ps_doc_has(doc, "name")) {
        rc = ps_doc_get_text(doc, "name", PS_NAME_MAX, &name, err);
        if (rc == PSD_OK) {
            (void)snprintf(joined->node, sizeof joined->node, "%s", name);
        }
    }
    return rc;
}

/* One question and its answer. */
static psd_status_t ask_join(ps_member_t *self, ps_joined_t *joined, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    psd_status_t rc = send_join(self, err);

    if (rc == PSD_OK) {
        rc = wait_answer(self, &reply, err);
    }
    if (rc == PSD_OK) {
        rc = status_of(reply, err);
    }
    return rc == PSD_OK ? read_joined(reply, joined, err) : rc;
}

/* Registries of builds before PS_NODE_FORMAT 4 do not say what to do. */
static psd_status_t refuse_join(const char *url, psd_status_t rc, psd_error_t *err)
{
    return psd_error_wrap(err, rc, "cannot join the cluster at %s%s", url,
                          rc == PSD_VERSION && strstr(psd_error_text(err), "stop all") == NULL
                              ? " (" PS_NODE_FORMAT_HINT ")"
                              : "");
}

static psd_status_t join_one(ps_member_t *self, const char *url, const ps_socket_args_t *socket,
                             ps_joined_t *joined, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    psd_status_t rc = ps_socket_connect(url, socket, &self->link, err);

    if (rc == PSD_OK) {
        rc = ask_join(self, joined, err);
    }
    /* After a quick restart the registry still takes the earlier life for alive. */
    while (rc == PSD_DENIED && ps_now_ms() < until_ms) {
        bool ready = false;

        psd_error_clear(err);
        rc = ps_socket_wait(&self->link, 1, AGAIN_MS, &ready, err);
        if (rc == PSD_OK) {
            rc = ask_join(self, joined, err);
        }
    }
    if (rc != PSD_OK) {
        ps_socket_drop(&self->link);
        return refuse_join(url, rc, err);
    }
    (void)snprintf(self->registry, sizeof self->registry, "%s", url);
    return PSD_OK;
}

/* The signals that end psd are blocked; run.c reads them. */
static bool shall_end(void)
{
    sigset_t set;

    return sigpending(&set) == 0 &&
           (sigismember(&set, SIGTERM) == 1 || sigismember(&set, SIGINT) == 1);
}

/* The first that answers. Machines that are switched on together start in
 * any order, so there may be none yet. */
static psd_status_t join_any(ps_member_t *self, const ps_text_list_t *urls,
                             const ps_socket_args_t *socket, ps_joined_t *joined, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + COMING_MS;
    psd_status_t rc = PSD_CONNECT;
    bool told = false;

    while (rc == PSD_CONNECT && ps_now_ms() < until_ms && !shall_end()) {
        for (size_t i = 0; rc == PSD_CONNECT && i < urls->n_items; i++) {
            psd_error_clear(err);
            rc = join_one(self, urls->items[i], socket, joined, err);
        }
        if (rc == PSD_CONNECT && !told) {
            told = true;
            ps_log(PS_LOG_WARN, "registry_silent", "reason=\"%s\" hint=\"retrying for %d s\"",
                   psd_error_text(err), COMING_MS / 1000);
        }
    }
    return rc;
}

psd_status_t ps_member_join(const ps_config_t *config, const ps_socket_args_t *socket,
                            const ps_member_self_t *who, ps_member_t **ret_member,
                            ps_joined_t *ret_joined, psd_error_t *err)
{
    PSD_AUTO(ps_member_destroy) ps_member_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self != NULL) {
        self->err = psd_error_new();
    }
    if (self == NULL || self->err == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to join a cluster");
    }
    (void)snprintf(self->name, sizeof self->name, "%s", who->name);
    self->incarnation = who->incarnation;
    self->secret = who->secret;
    self->any_name = who->any_name;
    self->heartbeat_ms = config->cluster.heartbeat;
    self->weight = (uint32_t)config->node.weight;
    rc = join_any(self, &config->cluster.join, socket, ret_joined, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->cluster = ret_joined->cluster;
    if (ret_joined->node[0] == '\0') {
        (void)snprintf(ret_joined->node, sizeof ret_joined->node, "%s", self->name);
    }
    memcpy(self->name, ret_joined->node, sizeof self->name);
    *ret_member = self;
    self = NULL;
    return PSD_OK;
}
