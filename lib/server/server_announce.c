/* SPDX-License-Identifier: Apache-2.0 */
/* endpoints.json: where this node is found. */
#include <unistd.h>

#include "base/alloc.h"
#include "server/config/place.h"
#include "server/server_inner.h"
#include "wire/messages/doc.h"

static bool fill_announcement(const ps_server_t *self, const char *http, ps_doc_t *doc)
{
    ps_doc_t *shards = NULL;
    bool done = ps_doc_set_text(doc, "node", self->node) &&
                ps_doc_set_u64(doc, "incarnation", self->incarnation) &&
                ps_doc_set_text(doc, "control", self->endpoint) &&
                ps_doc_set_text(doc, "ipc", self->ipc);

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
    return rc;
}
