/* SPDX-License-Identifier: Apache-2.0 */
/* endpoints.json: where this node is found; ADDRESS:PORT.json: the same, for programs of its user.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/config/place.h"
#include "server/server_inner.h"
#include "transport/discovery/discovery.h"
#include "wire/messages/doc.h"

static bool fill_announcement(const ps_server_t *self, const char *http, ps_doc_t *doc)
{
    ps_doc_t *shards = NULL;
    bool done = ps_doc_set_text(doc, "node", self->node) &&
                ps_doc_set_u64(doc, "incarnation", self->incarnation) &&
                ps_doc_set_text(doc, "control", self->endpoint) &&
                ps_doc_set_text(doc, "ipc", self->ipc) &&
                ps_doc_set_text(doc, "listens", self->listens);

    shards = done ? ps_doc_add_array(doc, "shards") : NULL;
    done = shards != NULL;
    for (uint32_t i = 0; done && i < ps_shards_n(self->shards); i++) {
        done = ps_doc_append_text(shards, ps_route_any(ps_shards_route(self->shards, i)));
    }
    return done && ps_doc_set_text(doc, "http", http) &&
           ps_doc_set_id(doc, "cluster", &self->cluster) && ps_doc_set_i64(doc, "pid", getpid()) &&
           ps_doc_set_text(doc, "version", PSD_RELEASE);
}

/* In the directory of the sockets, for the users that may use them; they
 * need not write it. */
static psd_status_t announce_to_peers(const ps_server_t *self, ps_bytes_t text, psd_error_t *err)
{
    mode_t mode = ps_peers_mode((ps_door_peers_t)self->config->lane.peers) & 0644;

    return ps_place_write(self->run_dir, PS_ANNOUNCEMENT, mode, text, err);
}

/* ---- ADDRESS:PORT.json ---- */

/* Programs of its user would not get in otherwise, and know no other place of it. */
static bool is_found_by_port(const ps_server_t *self)
{
    return self->rights != NULL && self->run_lock < 0 && self->ipc[0] != '\0' &&
           self->listens[0] != '\0';
}

static psd_status_t write_discovery(const ps_server_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t name = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(ps_free_at) char *path = NULL;
    ps_discovery_t found = {.cluster = self->cluster};
    char dir[PATH_MAX];
    psd_status_t rc = PSD_OK;

    memcpy(found.control, self->endpoint, sizeof found.control);
    memcpy(found.listens, self->listens, sizeof found.listens);
    (void)snprintf(found.ipc, sizeof found.ipc, "%s", self->ipc);
    if (self->admin_key[0] != '\0' &&
        snprintf(found.key_file, PATH_MAX, "%s/" PS_ADMIN_KEY_FILE, self->dir) >= PATH_MAX) {
        found.key_file[0] = '\0';
    }
    if (!ps_discovery_dir(dir)) {
        return psd_error_set(err, PSD_IO, "neither XDG_STATE_HOME nor HOME names a directory");
    }
    if (!ps_discovery_print(&found, &name, &text)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a document");
    }
    rc = ps_place_make(dir, S_IRWXU, &path, err);
    if (rc == PSD_OK) {
        ps_discovery_sweep(self->ipc, true);
        rc = ps_place_write(path, (const char *)name.data, S_IRUSR | S_IWUSR,
                            (ps_bytes_t){.data = text.data, .size = text.size}, err);
    }
    return rc;
}

/* Without it psd serves as well: its user names the endpoint with the key. */
static void announce_to_user(const ps_server_t *self)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    char quoted[512];

    if (is_found_by_port(self) && write_discovery(self, err) != PSD_OK) {
        ps_log(PS_LOG_WARN, "discovery_failed", "error=%s hint=\"use the endpoint with its key\"",
               ps_log_quote(psd_error_text(err), quoted, sizeof quoted));
    }
}

void ps_server_withdraw(const ps_server_t *self)
{
    if (is_found_by_port(self)) {
        ps_discovery_sweep(self->ipc, false);
    }
}

psd_status_t ps_server_announce(const ps_server_t *self, const char *http, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    ps_bytes_t bytes = {0};
    psd_status_t rc = PSD_OK;

    if (doc == NULL || !fill_announcement(self, http, doc) || !ps_doc_print(doc, &text) ||
        !ps_buffer_print(&text, "\n")) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %s", PS_ANNOUNCEMENT);
    }
    bytes = (ps_bytes_t){.data = text.data, .size = text.size};
    if (self->run_lock >= 0) {
        rc = announce_to_peers(self, bytes, err);
    }
    if (rc == PSD_OK) {
        rc = ps_place_write(self->dir, PS_ANNOUNCEMENT, 0600, bytes, err);
    }
    if (rc == PSD_OK) {
        announce_to_user(self);
    }
    return rc;
}
