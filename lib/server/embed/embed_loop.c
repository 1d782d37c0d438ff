/* SPDX-License-Identifier: Apache-2.0 */
/* One wait, what came, one look at the deadlines; and again. */
#include "server/embed/embed_loop.h"

#include <string.h>

#include "base/alloc.h"
#include "transport/sockets/poll.h"

#define KNOWN_WAIT_MS 5000 /* for the registry to know the node */

/* Places among the sockets. */
enum { AT_PORT, AT_LINK, SOCKETS_MAX };
/* Places among the items beside them; the pipes of the shards follow. */
enum { AT_END, AT_QUORUM, AT_PIPES };

typedef struct loop {
    ps_server_t *server;
    ps_embed_on_ready_t *on_ready;
    void *user;
    ps_turn_t *turn;
    uint64_t known_by_ms; /* without the registry it is ready then */
    bool is_ready;
    ps_socket_t *sockets[SOCKETS_MAX]; /* borrowed for one turn */
    bool ready[SOCKETS_MAX];           /* of those that there are */
    size_t n_sockets;
    ps_poll_item_t *items; /* owned, as many as there are places */
    size_t n_items;
} loop_t;

/* The link, and this node's member of the registry, come and go. poll() ignores
 * what has the descriptor -1. */
static void fill(loop_t *self)
{
    self->sockets[AT_PORT] = ps_server_port(self->server);
    self->sockets[AT_LINK] = ps_server_link(self->server);
    self->n_sockets = self->sockets[AT_LINK] == NULL ? AT_LINK : SOCKETS_MAX;
    self->ready[AT_LINK] = false;
    self->items[AT_QUORUM] = (ps_poll_item_t){.fd = ps_server_quorum_fd(self->server)};
    for (size_t i = AT_PIPES; i < self->n_items; i++) {
        void *pipe = ps_server_pipe_handle(self->server, (uint32_t)(i - AT_PIPES));

        self->items[i] = (ps_poll_item_t){.socket = pipe, .fd = ps_poll_fd(pipe)};
    }
}

static uint64_t time_left(const loop_t *self)
{
    uint64_t now_ms = ps_now_ms();
    uint64_t due_ms = ps_server_deadline(self->server);
    uint64_t left_ms = due_ms > now_ms ? due_ms - now_ms : 0;

    if (!self->is_ready && self->known_by_ms < due_ms) {
        left_ms = self->known_by_ms > now_ms ? self->known_by_ms - now_ms : 0;
    }
    return left_ms < PS_TURN_WAIT_MS ? left_ms : PS_TURN_WAIT_MS;
}

static void take_in(loop_t *self)
{
    bool has_pipe = false;

    if (self->ready[AT_PORT]) {
        ps_server_receive(self->server);
    }
    if (self->ready[AT_LINK]) {
        ps_server_receive_link(self->server);
    }
    if (self->items[AT_QUORUM].is_ready) {
        ps_server_receive_quorum(self->server);
    }
    for (size_t i = AT_PIPES; i < self->n_items; i++) {
        has_pipe = has_pipe || self->items[i].is_ready;
    }
    if (has_pipe) {
        ps_server_receive_shards(self->server);
    }
    if (ps_server_deadline(self->server) <= ps_now_ms()) {
        ps_server_tick(self->server);
    }
}

static psd_status_t look_ready(loop_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->is_ready || (!ps_server_is_known(self->server) && ps_now_ms() < self->known_by_ms)) {
        return PSD_OK;
    }
    rc = ps_server_announce(self->server, "", err);
    if (rc == PSD_OK) {
        self->is_ready = true;
        self->on_ready(self->user);
    }
    return rc;
}

/* *ret_ends: end_fd says so. */
static psd_status_t turn(loop_t *self, bool *ret_ends, psd_error_t *err)
{
    psd_status_t rc = look_ready(self, err);

    if (rc != PSD_OK) {
        return rc;
    }
    fill(self);
    ps_turn_waits(self->turn);
    rc = ps_socket_wait_with(self->sockets, self->n_sockets, self->items, self->n_items,
                             time_left(self), self->ready, err);
    if (rc != PSD_OK) {
        return rc;
    }
    ps_turn_works(self->turn);
    *ret_ends = self->items[AT_END].is_ready;
    if (!*ret_ends) {
        take_in(self);
    }
    return ps_server_failure(self->server, err);
}

psd_status_t ps_embed_loop(ps_server_t *server, int end_fd, ps_embed_on_ready_t *on_ready,
                           void *user, psd_error_t *err)
{
    loop_t self = {.server = server,
                   .on_ready = on_ready,
                   .user = user,
                   .known_by_ms = ps_now_ms() + KNOWN_WAIT_MS,
                   .n_items = AT_PIPES + ps_server_n_pipes(server)};
    bool ends = false;
    psd_status_t rc = PSD_OK;

    self.items = ps_alloc(self.n_items, sizeof *self.items);
    if (self.items == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory to wait");
    } else {
        self.items[AT_END] = (ps_poll_item_t){.fd = end_fd};
    }
    self.turn = ps_turns_enter(ps_server_turns(server), "control");
    while (rc == PSD_OK && !ends) {
        rc = turn(&self, &ends, err);
    }
    ps_turn_leave(&self.turn);
    ps_free(self.items);
    return rc;
}
