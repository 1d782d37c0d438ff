/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets to the shards, one for each link of the session. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "client/client_state.h"

/* The session's credits bound what is in flight; these bound what a peer that
 * does not keep to them can make us hold. */
#define HIGH_WATER 4096
#define FRAME_BYTES (UINT64_C(64) << 20)
#define ASSEMBLY_BYTES (UINT64_C(1) << 30)
#define CHUNK_BYTES (UINT32_C(1) << 20) /* before the WELCOME says */
#define LINGER_MS 100                   /* for the BYE */

static bool
can_reach(const char *ipc)
{
    const char *path = ipc + strlen("ipc://");

    return strncmp(ipc, "ipc://", strlen("ipc://")) == 0 &&
           access(path, R_OK | W_OK) == 0;
}

/* The endpoint of a route under the client's choice of transport; NULL when
 * the node has none. */
static const char *
choose(const psd_client_t *self, const ps_route_t *route)
{
    switch (self->options.transport) {
    case PS_TRANSPORT_TCP:
        return route->tcp;
    case PS_TRANSPORT_IPC:
        return route->ipc[0] == '\0' ? NULL : route->ipc;
    case PS_TRANSPORT_AUTO:
    default:
        return can_reach(route->ipc) ? route->ipc : route->tcp;
    }
}

static psd_status_t
connect_link(psd_client_t *self, ps_client_link_t *link, psd_error_t *err)
{
    const ps_socket_args_t args = {.context = self->context,
                                   .high_water = HIGH_WATER,
                                   .frame_bytes = FRAME_BYTES,
                                   .assembly_bytes = ASSEMBLY_BYTES,
                                   .chunk_bytes = CHUNK_BYTES,
                                   .linger_ms = LINGER_MS};

    link->welcomed = false;
    return ps_socket_connect(link->endpoint, &args, &link->socket, err);
}

static bool
make_room(psd_client_t *self)
{
    return ps_grow(&self->links, &self->links_capacity, self->n_links + 1,
                   sizeof *self->links) &&
           ps_grow(&self->polled, &self->polled_capacity, self->n_links + 2,
                   sizeof(ps_socket_t *)) &&
           ps_grow(&self->ready, &self->ready_capacity, self->n_links + 2,
                   sizeof *self->ready);
}

void
ps_links_open(psd_client_t *self, uint64_t link)
{
    const ps_route_t *route = ps_session_link(self->session, link);
    const char *endpoint = choose(self, route);
    ps_client_link_t *made = NULL;

    if (self->broken != PSD_OK) {
        return;
    }
    if (endpoint == NULL) {
        char text[PS_TEXT_MAX + 1] = "";

        (void)snprintf(text, sizeof text,
                       "the node at %s offers no ipc, which was asked for",
                       route->tcp);
        ps_client_break(self, PSD_CONNECT, text);
        return;
    }
    if (link != self->n_links || !make_room(self)) {
        ps_client_break(self, PSD_NOMEM, "no memory for a connection");
        return;
    }
    made = &self->links[self->n_links];
    *made = (ps_client_link_t){.socket = NULL};
    (void)snprintf(made->endpoint, sizeof made->endpoint, "%s", endpoint);
    psd_error_clear(self->scratch);
    if (connect_link(self, made, self->scratch) != PSD_OK) {
        ps_client_break(self, psd_error_status(self->scratch),
                        psd_error_text(self->scratch));
        return;
    }
    self->n_links++;
}

/* What the client itself wants to know of a message. */
static void
look_at(psd_client_t *self, uint64_t link, const ps_message_t *message)
{
    uint32_t chunk_bytes = 0;

    if (message->kind == PS_KIND_WELCOME) {
        self->credit_requests = message->welcome.credit_requests;
        self->credit_bytes = message->welcome.credit_bytes;
    }
    if (!self->links[link].welcomed) {
        chunk_bytes = ps_session_chunk_bytes(self->session, link);
    }
    if (chunk_bytes > 0) {
        ps_socket_set_chunk(self->links[link].socket, chunk_bytes);
        self->links[link].welcomed = true;
    }
}

bool
ps_links_receive(psd_client_t *self, uint64_t link)
{
    for (bool took = false;; took = true) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        ps_message_t message;
        ps_room_t room = {NULL, 0};
        uint64_t conn = 0;
        bool got = false;
        psd_status_t rc = PSD_OK;

        psd_error_clear(self->scratch);
        rc = ps_socket_receive(self->links[link].socket, &got, &conn, &message,
                               &payload, &room, self->scratch);
        if (rc == PSD_PROTO || rc == PSD_VERSION || rc == PSD_LIMIT) {
            /* As good as lost; it is said to the one who waits for it. Pieces
             * of answers that nobody wants any more may fill the room of the
             * link: they go, and what is wanted is asked for again. */
            if (rc == PSD_LIMIT) {
                ps_socket_forget(self->links[link].socket, conn);
            }
            (void)snprintf(self->trouble, sizeof self->trouble, "%.120s: %.*s",
                           self->links[link].endpoint, PS_TEXT_MAX / 2,
                           psd_error_text(self->scratch));
            continue;
        }
        if (rc != PSD_OK) {
            ps_client_break(self, rc, psd_error_text(self->scratch));
        }
        if (rc != PSD_OK || !got) {
            return took;
        }
        ps_session_received(self->session, self->now_ms, link, &message,
                            payload, &self->outbox);
        look_at(self, link, &message);
    }
}

bool
ps_links_are_welcome(const psd_client_t *self)
{
    for (size_t i = 0; i < self->n_links; i++) {
        if (!self->links[i].welcomed) {
            return false;
        }
    }
    return true;
}

void
ps_links_reset(psd_client_t *self)
{
    for (size_t i = 0; i < self->n_links; i++) {
        ps_client_link_t *link = &self->links[i];

        ps_socket_drop(&link->socket);
        psd_error_clear(self->scratch);
        if (connect_link(self, link, self->scratch) != PSD_OK) {
            ps_client_break(self, psd_error_status(self->scratch),
                            psd_error_text(self->scratch));
            continue; /* a broken client sends and receives nothing */
        }
        ps_session_relinked(self->session, ps_now_ms(), i, &self->outbox);
    }
}

void
ps_links_close(psd_client_t *self)
{
    const ps_message_t bye = {.kind = PS_KIND_BYE,
                              .bye = {.session = self->number}};

    for (size_t i = 0; i < self->n_links; i++) {
        if (self->links[i].socket != NULL && self->links[i].welcomed) {
            psd_status_t rc =
                ps_socket_send(self->links[i].socket, 0, &bye, NULL, NULL);

            (void)rc; /* a server that misses it forgets in time */
        }
        ps_socket_close(&self->links[i].socket);
    }
    ps_free(self->links);
    ps_free(self->polled);
    ps_free(self->ready);
}
