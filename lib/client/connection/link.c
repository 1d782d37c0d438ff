/* SPDX-License-Identifier: Apache-2.0 */
/* The sockets to the shards, one for each link of the session. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "client/connection/client_state.h"
#include "transport/sockets/ranks.h"
#include "transport/sockets/reach.h"
#include "transport/threads/fork.h"

/* The session's credits bound the bytes in flight; these bound how much a peer
 * that ignores credits can make us buffer. */
#define HIGH_WATER 4096
#define FRAME_BYTES (UINT64_C(64) << 20)
#define ASSEMBLY_BYTES (UINT64_C(1) << 30)
#define CHUNK_BYTES (UINT32_C(1) << 20) /* before the WELCOME says */
#define LINGER_MS 100                   /* for the BYE */

/* The path of an ipc endpoint; NULL: it is none. */
static const char *path_of(const char *ipc)
{
    return strncmp(ipc, "ipc://", strlen("ipc://")) == 0 ? ipc + strlen("ipc://") : NULL;
}

/* A server accepts a client into a lane within a moment. A server that hangs
 * must not use up the timeout of the call that needs the lane. If another
 * transport is left, a short wait is enough. If there is none, the client fails
 * when the wait ends, so a server that is only busy gets half of the call's
 * timeout. */
static uint32_t lane_wait_ms(const psd_client_t *self)
{
    uint32_t wait_ms = self->options.timeout_ms / 4;

    if (self->options.transport == PS_TRANSPORT_LANE) {
        wait_ms = self->options.timeout_ms / 2;
    } else if (wait_ms > PS_LANE_WAIT_MS) {
        wait_ms = PS_LANE_WAIT_MS;
    }
    return wait_ms == 0 ? 1 : wait_ms;
}

static psd_status_t connect_to(psd_client_t *self, ps_client_link_t *link, const char *endpoint,
                               psd_error_t *err)
{
    const ps_socket_args_t args = {
        .context = self->context,
        .high_water = HIGH_WATER,
        .frame_bytes = FRAME_BYTES,
        .assembly_bytes = ASSEMBLY_BYTES,
        .chunk_bytes = CHUNK_BYTES,
        .linger_ms = LINGER_MS,
        .patience_ms = PS_PATIENCE_BODIES_MS,
        .keys = self->has_keys ? &self->keys : NULL,
        .lane = {.spin_us = self->options.spin_us, .wait_ms = lane_wait_ms(self)}};

    link->welcomed = false;
    (void)snprintf(link->endpoint, sizeof link->endpoint, "%s", endpoint);
    return ps_socket_connect(link->endpoint, &args, &link->socket, err);
}

/* The lane beside the node's ipc endpoint. */
static psd_status_t connect_lane(psd_client_t *self, ps_client_link_t *link,
                                 const ps_route_t *route, psd_error_t *err)
{
    char endpoint[PS_LINK_ENDPOINT_MAX + 1];

    if (path_of(route->ipc) == NULL) {
        return psd_error_set(err, PSD_CONNECT, "lane was asked for, but the node at %s offers none",
                             ps_route_any(route));
    }
    (void)snprintf(endpoint, sizeof endpoint, "lane://%s.lane", path_of(route->ipc));
    return connect_to(self, link, endpoint, err);
}

static psd_status_t connect_tcp(psd_client_t *self, ps_client_link_t *link, const ps_route_t *route,
                                psd_error_t *err)
{
    if (route->tcp[0] == '\0') {
        return psd_error_set(err, PSD_CONNECT, "tcp was asked for, but the node at %s offers none",
                             route->ipc);
    }
    return connect_to(self, link, route->tcp, err);
}

static psd_status_t connect_ipc(psd_client_t *self, ps_client_link_t *link, const ps_route_t *route,
                                psd_error_t *err)
{
    if (route->ipc[0] == '\0') {
        return psd_error_set(err, PSD_CONNECT, "ipc was asked for, but the node at %s offers none",
                             route->tcp);
    }
    return connect_to(self, link, route->ipc, err);
}

/* The nearest transport: a lane if there is one that accepts us, ipc if a
 * server listens there now, else tcp. Hosts that share a directory see each
 * other's socket files, but no process of this host listens at them. */
static psd_status_t connect_nearest(psd_client_t *self, ps_client_link_t *link,
                                    const ps_route_t *route, psd_error_t *err)
{
    /* Who is known by a key is not to be known by a uid as well. */
    if (self->has_keys && strchr(route->tcp, '#') != NULL &&
        path_of(ps_finder_endpoint(&self->finder)) == NULL) {
        return connect_tcp(self, link, route, err);
    }
    /* Names the user that is not allowed only if "lane" is set: a lookup of
     * names may ask other hosts. */
    if (!link->lane_failed && path_of(route->ipc) != NULL &&
        faccessat(AT_FDCWD, path_of(route->ipc), W_OK, AT_EACCESS) == 0) {
        psd_status_t rc = connect_lane(self, link, route, err);

        if (rc == PSD_OK || rc == PSD_NOMEM) {
            return rc;
        }
        psd_error_clear(err);
    }
    return connect_to(self, link,
                      ps_reach_ipc_listens(route->ipc) ? route->ipc : ps_route_any(route), err);
}

static psd_status_t connect_by_word(psd_client_t *self, ps_client_link_t *link,
                                    const ps_route_t *route, psd_error_t *err)
{
    switch (self->options.transport) {
    case PS_TRANSPORT_MPI: /* "tcp://…" is the name of a rank's port (ranks.h) */
    case PS_TRANSPORT_TCP:
        return connect_tcp(self, link, route, err);
    case PS_TRANSPORT_IPC:
        return connect_ipc(self, link, route, err);
    case PS_TRANSPORT_LANE:
        return connect_lane(self, link, route, err);
    case PS_TRANSPORT_MPI_AUTO:
        return ps_ranks_own(route->tcp) ? connect_tcp(self, link, route, err)
                                        : connect_nearest(self, link, route, err);
    case PS_TRANSPORT_UNSAID:
    case PS_TRANSPORT_AUTO:
    default:
        return connect_nearest(self, link, route, err);
    }
}

/* Opens link `number` of the session. */
static psd_status_t connect_link(psd_client_t *self, ps_client_link_t *link, uint64_t number,
                                 psd_error_t *err)
{
    psd_status_t rc = connect_by_word(self, link, ps_session_link(self->session, number), err);

    if (rc == PSD_OK) {
        ps_session_link_goes(self->session, number, link->endpoint);
    }
    return rc;
}

static bool make_room(psd_client_t *self)
{
    return ps_grow(&self->links, &self->links_capacity, self->n_links + 1, sizeof *self->links) &&
           ps_grow(&self->polled, &self->polled_capacity, self->n_links + 2,
                   sizeof(ps_socket_t *)) &&
           ps_grow(&self->ready, &self->ready_capacity, self->n_links + 2, sizeof *self->ready);
}

/* Beside a connection over a network, large bodies may have one of their own.
 */
static void allow_bulk(psd_client_t *self, uint64_t link)
{
    if (!ps_socket_is_lane(self->links[link].socket) &&
        !ps_session_link_is_bulk(self->session, link)) {
        ps_session_allow_bulk(self->session, link);
    }
}

void ps_links_open(psd_client_t *self, uint64_t link)
{
    ps_client_link_t *made = NULL;

    if (self->broken != PSD_OK) {
        return;
    }
    if (link != self->n_links || !make_room(self)) {
        ps_client_break(self, PSD_NOMEM, "no memory for a connection");
        return;
    }
    made = &self->links[self->n_links];
    *made = (ps_client_link_t){.socket = NULL};
    /* Large bodies lie beside the messages of a lane; it needs no second. */
    made->lane_failed = ps_session_link_is_bulk(self->session, link);
    psd_error_clear(self->scratch);
    if (connect_link(self, made, link, self->scratch) != PSD_OK) {
        ps_client_break(self, psd_error_status(self->scratch), psd_error_text(self->scratch));
        return;
    }
    self->n_links++;
    allow_bulk(self, link);
}

/* Drops a connection with all that waits in it, and opens it again. */
static void relink(psd_client_t *self, uint64_t link)
{
    ps_client_link_t *old = &self->links[link];

    ps_socket_drop(&old->socket);
    psd_error_clear(self->scratch);
    if (connect_link(self, old, link, self->scratch) != PSD_OK) {
        ps_client_break(self, psd_error_status(self->scratch), psd_error_text(self->scratch));
        return; /* a broken client sends and receives nothing */
    }
    allow_bulk(self, link);
    ps_session_relinked(self->session, self->now_ms, link, &self->outbox);
}

/* The other end of a lane has closed it. */
static void lane_ended(psd_client_t *self, uint64_t link)
{
    char text[PS_TEXT_MAX + 1] = "";

    if (self->options.transport == PS_TRANSPORT_LANE) {
        (void)snprintf(text, sizeof text, "the server has closed %.300s",
                       self->links[link].endpoint);
        ps_client_break(self, PSD_CONNECT, text);
        return;
    }
    self->links[link].lane_failed = true;
    relink(self, link);
}

/* The parts of a message that the client itself needs. */
static void look_at(psd_client_t *self, uint64_t link, const ps_message_t *message)
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

/* Answers in flight: their requests are not retried. */
static void hear_pieces(psd_client_t *self, uint64_t link)
{
    uint64_t request = 0;

    while (ps_socket_next_piece(self->links[link].socket, &request)) {
        ps_session_heard(self->session, self->now_ms, link, request);
    }
}

bool ps_links_receive(psd_client_t *self, uint64_t link)
{
    for (bool took = false;; took = true) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        ps_message_t message;
        ps_room_t room = {NULL, 0};
        uint64_t conn = 0;
        bool got = false;
        psd_status_t rc = PSD_OK;

        psd_error_clear(self->scratch);
        rc = ps_socket_receive(self->links[link].socket, &got, &conn, &message, &payload, &room,
                               self->scratch);
        if (rc == PSD_OK && got && ps_link_is_filtered(&message)) {
            rc = ps_link_receive_filtered(self, link, &message, &payload, self->scratch);
        }
        if (rc == PSD_PROTO || rc == PSD_VERSION || rc == PSD_LIMIT) {
            /* As good as lost; the call that waits for it gets the reason.
             * Pieces of stale answers may fill the link's buffer: they are
             * dropped, and the session retries the requests that are still
             * open. */
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
        } else if (!got && ps_socket_is_gone(self->links[link].socket)) {
            lane_ended(self, link);
        }
        if (rc == PSD_OK && self->broken == PSD_OK) {
            hear_pieces(self, link);
        }
        if (rc != PSD_OK || !got) {
            return took;
        }
        ps_session_received(self->session, self->now_ms, link, &message, payload, &self->outbox);
        look_at(self, link, &message);
    }
}

bool ps_links_are_welcome(const psd_client_t *self)
{
    for (size_t i = 0; i < self->n_links; i++) {
        if (!self->links[i].welcomed && ps_session_link_is_used(self->session, i)) {
            return false;
        }
    }
    return true;
}

void ps_links_reset(psd_client_t *self)
{
    for (size_t i = 0; i < self->n_links; i++) {
        relink(self, i);
    }
}

void ps_links_rekey(psd_client_t *self)
{
    for (size_t i = 0; i < self->n_links && self->broken == PSD_OK; i++) {
        if (strchr(self->links[i].endpoint, '#') != NULL) {
            relink(self, i);
        }
    }
}

/* The sender was using ZeroMQ sockets when this child was forked. */
static void keep_sockets(psd_client_t *self)
{
    for (size_t i = 0; i < self->n_links; i++) {
        ps_socket_t **socket = &self->links[i].socket;

        if (*socket != NULL && !ps_socket_is_lane(*socket)) {
            ps_fork_keep(*socket);
            *socket = NULL;
        }
    }
}

void ps_links_close(psd_client_t *self)
{
    if (!ps_sender_stop(&self->sender)) {
        keep_sockets(self);
    }
    for (size_t i = 0; i < self->n_links; i++) {
        if (self->links[i].socket != NULL && self->links[i].welcomed &&
            !ps_client_is_forked(self)) {
            const ps_message_t bye = {.kind = PS_KIND_BYE,
                                      .bye = {.session = ps_session_number(self->session, i)}};
            psd_status_t rc = ps_socket_send(self->links[i].socket, 0, &bye, NULL, NULL);

            (void)rc; /* a server that misses it forgets in time */
        }
        ps_socket_close(&self->links[i].socket);
        ps_link_filter_done(&self->links[i]);
    }
    ps_coder_destroy(&self->coder);
    ps_free(self->links);
    ps_free(self->polled);
    ps_free(self->ready);
}
