/* SPDX-License-Identifier: Apache-2.0 */
/* There are few links, so searches are linear. */
#include "server/shards/peer_links.h"

#include "base/alloc.h"
#include "base/log.h"

#define LOOK_MS 50   /* interval of the check for lost connections */
#define AGAIN_MS 200 /* least time between two openings of a link */

void ps_peer_links_init(ps_peer_links_t *self, const ps_socket_args_t *args)
{
    *self = (ps_peer_links_t){.args = *args};
    self->args.is_watched = true;
    self->args.linger_ms = 0; /* lost messages are sent again, or not needed */
}

void ps_peer_links_done(ps_peer_links_t *self)
{
    for (size_t i = 0; i < self->n_links; i++) {
        ps_socket_drop(&self->links[i].socket);
    }
    ps_free(self->links);
    ps_free(self->sockets);
    ps_free(self->ready);
    *self = (ps_peer_links_t){.links = NULL};
}

static ps_peer_link_t *find(const ps_peer_links_t *self, uint64_t conn)
{
    for (size_t i = 0; i < self->n_links; i++) {
        if (self->links[i].conn == conn) {
            return &self->links[i];
        }
    }
    return NULL;
}

static void log_reason(const char *event, psd_status_t status, psd_error_t *err)
{
    char quoted[512];

    ps_log(PS_LOG_WARN, event, "status=%s reason=%s", psd_status_name(status),
           ps_log_quote(psd_error_text(err), quoted, sizeof quoted));
    psd_error_clear(err);
}

void ps_peer_links_open(ps_peer_links_t *self, uint64_t conn, const char *endpoint, uint64_t now_ms,
                        psd_error_t *err)
{
    ps_peer_link_t *link = NULL;
    psd_status_t rc = PSD_OK;

    if (!ps_grow(&self->links, &self->capacity, self->n_links + 1, sizeof *self->links) ||
        !ps_grow(&self->sockets, &self->sockets_capacity, self->n_links + 2,
                 sizeof *self->sockets) ||
        !ps_grow(&self->ready, &self->ready_capacity, self->n_links + 2, sizeof *self->ready)) {
        return; /* it is unknown, and reported as gone when it is used */
    }
    link = &self->links[self->n_links++];
    *link = (ps_peer_link_t){.conn = conn, .opened_ms = now_ms};
    rc = ps_socket_connect(endpoint, &self->args, &link->socket, err);
    if (rc != PSD_OK) {
        log_reason("peer_not_reached", rc, err);
    }
}

static void forget(ps_peer_links_t *self, ps_peer_link_t *link)
{
    ps_socket_drop(&link->socket);
    *link = self->links[--self->n_links];
}

void ps_peer_links_close(ps_peer_links_t *self, uint64_t conn)
{
    ps_peer_link_t *link = find(self, conn);

    if (link != NULL) {
        forget(self, link);
    }
}

psd_status_t ps_peer_links_send(ps_peer_links_t *self, uint64_t conn, const ps_message_t *message,
                                ps_payload_t *payload, psd_error_t *err)
{
    ps_peer_link_t *link = find(self, conn);

    if (link == NULL) {
        self->unknown = conn;
    }
    if (link == NULL || link->socket == NULL) {
        return psd_error_set(err, PSD_BUSY, "send: peer is gone");
    }
    if (!link->is_up) {
        link->is_up = ps_socket_is_up(link->socket);
    }
    if (!link->is_up && link->has_said) {
        return psd_error_set(err, PSD_BUSY, "send: peer is not connected yet");
    }
    link->has_said = true;
    return ps_socket_send(link->socket, 0, message, payload, err);
}

void ps_peer_links_flush(ps_peer_links_t *self)
{
    for (size_t i = 0; i < self->n_links; i++) {
        if (self->links[i].socket != NULL) {
            ps_socket_flush(self->links[i].socket);
        }
    }
}

bool ps_peer_links_receive(ps_peer_links_t *self, uint64_t *ret_conn, ps_message_t *ret_message,
                           ps_payload_t **ret_payload, psd_error_t *err)
{
    for (size_t i = 0; i < self->n_links; i++) {
        ps_peer_link_t *link = &self->links[self->next++ % self->n_links];
        ps_room_t room = {NULL, 0};
        uint64_t none = 0;
        bool got = false;
        psd_status_t rc = PSD_OK;

        if (link->socket == NULL || !link->is_ready) {
            continue;
        }
        rc = ps_socket_receive(link->socket, &got, &none, ret_message, ret_payload, &room, err);
        if (rc != PSD_OK) {
            /* Rubbish, or no memory: what it sends after that would be out
             * of order. */
            log_reason("peer_cut_off", rc, err);
            ps_socket_drop(&link->socket);
        } else if (got) {
            *ret_conn = link->conn;
            return true;
        }
        link->is_ready = false;
    }
    return false;
}

/* Closes links whose connection was lost, now and then. */
static void look(ps_peer_links_t *self, uint64_t now_ms)
{
    if (now_ms - self->looked_ms < LOOK_MS) {
        return;
    }
    self->looked_ms = now_ms;
    for (size_t i = 0; i < self->n_links; i++) {
        ps_peer_link_t *link = &self->links[i];

        if (link->socket != NULL && ps_socket_is_gone(link->socket)) {
            ps_socket_drop(&link->socket);
        }
    }
}

bool ps_peer_links_next_gone(ps_peer_links_t *self, uint64_t now_ms, uint64_t *ret_conn)
{
    look(self, now_ms);
    if (self->unknown != 0) {
        *ret_conn = self->unknown;
        self->unknown = 0;
        return true;
    }
    for (size_t i = 0; i < self->n_links; i++) {
        ps_peer_link_t *link = &self->links[i];

        if (link->socket == NULL && now_ms - link->opened_ms >= AGAIN_MS) {
            *ret_conn = link->conn;
            forget(self, link);
            return true;
        }
    }
    return false;
}

/* With links, a check is due now and then. */
static uint64_t bounded(const ps_peer_links_t *self, uint64_t timeout_ms)
{
    return self->n_links > 0 && timeout_ms > LOOK_MS ? LOOK_MS : timeout_ms;
}

psd_status_t ps_peer_links_wait(ps_peer_links_t *self, ps_socket_t *port, void *zmq_socket,
                                uint64_t timeout_ms, bool *ret_port, bool *ret_beside,
                                psd_error_t *err)
{
    size_t n = 1;
    size_t at = 1;
    psd_status_t rc = PSD_OK;

    if (self->n_links == 0) {
        return ps_socket_wait_beside(&port, 1, zmq_socket, timeout_ms, ret_port, ret_beside, err);
    }
    self->sockets[0] = port; /* room for all was made when they were opened */
    for (size_t i = 0; i < self->n_links; i++) {
        if (self->links[i].socket != NULL) {
            self->sockets[n++] = self->links[i].socket;
        }
    }
    rc = ps_socket_wait_beside(self->sockets, n, zmq_socket, bounded(self, timeout_ms), self->ready,
                               ret_beside, err);
    *ret_port = rc == PSD_OK && self->ready[0];
    for (size_t i = 0; i < self->n_links; i++) {
        if (self->links[i].socket != NULL) {
            self->links[i].is_ready = rc == PSD_OK && self->ready[at++];
        }
    }
    return rc;
}
