/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and closing a port or a link, and what each of its carriers
 * (carrier.h) does in its own way. */
#include "transport/sockets/socket.h"

#include <assert.h>

#include "base/alloc.h"
#include "transport/sockets/carrier.h"
#include "transport/sockets/plugin_socket.h"
#include "transport/sockets/ranks.h"
#include "transport/sockets/socket_parts.h"
#include "transport/sockets/zmq_socket.h"
#include "transport/threads/fork.h"

#define STALE_LOOK_MS 1000

static ps_socket_t *new_socket(bool is_port, const ps_socket_args_t *args)
{
    ps_socket_t *self = ps_alloc(1, sizeof *self);

    assert(args->high_water > 0 && args->chunk_bytes > 0);
    if (self == NULL) {
        return NULL;
    }
    self->is_port = is_port;
    self->n_forks = ps_fork_count();
    self->chunk_bytes = args->chunk_bytes;
    self->assembly_bytes = args->assembly_bytes;
    self->unfinished_max = UINT64_MAX;
    self->linger_ms = args->linger_ms < 0 ? 0 : (uint32_t)args->linger_ms;
    self->peers = args->peers;
    self->keys = args->keys;
    self->context = args->context;
    self->lane_options = args->lane;
    self->lane_args = (ps_lane_args_t){.high_water = (uint32_t)args->high_water,
                                       .assembly_bytes = args->assembly_bytes};
    self->plugin.setup = (ps_carrier_setup_t){.high_water = (uint32_t)args->high_water,
                                              .frame_bytes = args->frame_bytes};
    self->plugin.is_watched = args->is_watched;
    ps_spin_init(&self->spin, args->lane.spin_us);
    return self;
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a socket");
}

psd_status_t ps_socket_bind(const char *const *endpoints, size_t n_endpoints,
                            const ps_socket_args_t *args, ps_socket_t **ret_socket,
                            psd_error_t *err)
{
    PSD_AUTO(ps_socket_close) ps_socket_t *self = new_socket(true, args);
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return no_memory(err);
    }
    ps_socket_use_carrier(self, ps_carrier_zmq.slot, &ps_carrier_zmq);
    rc = ps_zmq_open(self, args, err);
    for (size_t i = 0; rc == PSD_OK && i < n_endpoints; i++) {
        rc = ps_socket_bind_more(self, endpoints[i], err);
    }
    if (rc == PSD_OK) {
        *ret_socket = self;
        self = NULL;
    }
    return rc;
}

psd_status_t ps_socket_bind_more(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    const ps_carrier_t *carrier = ps_carrier_of(endpoint);
    psd_status_t rc = carrier->bind(self, endpoint, err);

    return rc == PSD_OK && carrier != &ps_carrier_plugin ? ps_plugin_bind_beside(self, err) : rc;
}

const char *ps_socket_endpoint(const ps_socket_t *self, size_t i)
{
    assert(i < self->n_endpoints);
    return self->endpoints[i];
}

psd_status_t ps_socket_connect(const char *endpoint, const ps_socket_args_t *args,
                               ps_socket_t **ret_socket, psd_error_t *err)
{
    PSD_AUTO(ps_socket_close) ps_socket_t *self = new_socket(false, args);
    char address[PS_CARRIER_TEXT];
    const ps_carrier_t *carrier = NULL;
    psd_status_t rc = ps_ranks_way(endpoint, address, err);

    if (self == NULL) {
        return no_memory(err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    carrier = ps_carrier_of(address[0] == '\0' ? endpoint : address);
    ps_socket_use_carrier(self, 0, carrier);
    if (carrier == &ps_carrier_zmq) {
        rc = ps_zmq_open(self, args, err);
    }
    if (rc == PSD_OK) {
        rc = address[0] == '\0' ? carrier->connect(self, endpoint, err)
                                : ps_plugin_connect_by(self, address, err);
    }
    if (rc == PSD_OK) {
        *ret_socket = self;
        self = NULL;
    }
    return rc;
}

void ps_socket_close(ps_socket_t **self_p)
{
    ps_socket_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    for (size_t i = self->n_carriers; i-- > 0 && !ps_fork_is_since(self->n_forks);) {
        if (self->carriers[i] != NULL) {
            self->carriers[i]->linger(self, self->linger_ms);
        }
    }
    for (size_t i = self->n_carriers; i-- > 0;) {
        if (self->carriers[i] != NULL) {
            self->carriers[i]->close(self);
        }
    }
    ps_batches_done(&self->batches);
    ps_unfinished_done(self);
    ps_port_conns_done(&self->conns);
    for (size_t i = 0; i < self->n_endpoints; i++) {
        ps_free(self->endpoints[i]);
    }
    ps_free(self->endpoints);
    ps_free(self);
}

void ps_socket_drop(ps_socket_t **self_p)
{
    if (*self_p != NULL) {
        (*self_p)->linger_ms = 0;
        ps_zmq_drop(*self_p);
    }
    ps_socket_close(self_p);
}

void *ps_socket_handle(ps_socket_t *self)
{
    self->is_lent = true;
    return self->handle;
}

uint64_t ps_socket_n_refused(const ps_socket_t *self)
{
    uint64_t n = 0;

    for (size_t i = 0; i < self->n_carriers; i++) {
        n += self->carriers[i] == NULL ? 0 : self->carriers[i]->n_refused(self);
    }
    return n;
}

uint32_t ps_socket_n_collected(const ps_socket_t *self)
{
    uint32_t n = 0;

    for (size_t i = 0; i < self->batches.n_out; i++) {
        n += self->batches.out[i].batch.n;
    }
    return n;
}

uint64_t ps_socket_n_lost(const ps_socket_t *self)
{
    return self->n_lost;
}

size_t ps_socket_n_unfinished(const ps_socket_t *self)
{
    size_t n = 0;

    for (size_t i = 0; i < self->n_carriers; i++) {
        n += self->carriers[i] == NULL ? 0 : self->carriers[i]->n_unfinished(self);
    }
    return n;
}

uint64_t ps_socket_unfinished_bytes(const ps_socket_t *self)
{
    return self->unfinished_bytes;
}

void ps_socket_set_unfinished_max(ps_socket_t *self, uint64_t bytes)
{
    self->unfinished_max = bytes;
}

bool ps_socket_find_answer(ps_socket_t *self, uint64_t conn, uint64_t request, uint64_t epoch,
                           uint64_t now_ms, uint64_t *ret_sent, uint64_t *ret_bytes)
{
    return ps_port_conns_find(&self->conns, conn, request, epoch, now_ms, ret_sent, ret_bytes);
}

bool ps_socket_next_piece(ps_socket_t *self, uint64_t *ret_request)
{
    ps_unfinished_t *unfinished = ps_map_get(&self->unfinished, 0);

    return unfinished != NULL && ps_assembly_next_fresh(&unfinished->assembly, ret_request);
}

void ps_socket_set_chunk(ps_socket_t *self, uint32_t chunk_bytes)
{
    assert(chunk_bytes > 0);
    self->chunk_bytes = chunk_bytes;
}

void ps_socket_forget(ps_socket_t *self, uint64_t conn)
{
    const ps_carrier_t *carrier = ps_socket_carrier(self, conn);

    if (carrier != NULL) {
        carrier->forget(self, conn);
    }
}

void ps_socket_drop_stale(ps_socket_t *self, uint64_t now_ms)
{
    uint64_t conn = 0;

    if (self->unfinished.count == 0 || now_ms < self->stale_due_ms) {
        return;
    }
    self->stale_due_ms = now_ms + STALE_LOOK_MS;
    while (ps_unfinished_next_stale(self, now_ms, &conn)) {
        ps_unfinished_forget(self, conn);
    }
}

/* ---- messages: each carrier has its own way ------------------------------ */

psd_status_t ps_socket_send(ps_socket_t *self, uint64_t conn, const ps_message_t *message,
                            ps_payload_t *payload, psd_error_t *err)
{
    const ps_carrier_t *carrier = ps_socket_carrier(self, conn);

    return carrier == NULL ? psd_error_set(err, PSD_BUSY, "send: peer is gone")
                           : carrier->send(self, conn, message, payload, false, err);
}

psd_status_t ps_socket_send_again(ps_socket_t *self, const ps_message_t *message,
                                  ps_payload_t *payload, psd_error_t *err)
{
    return self->carriers[0]->send(self, 0, message, payload, true, err);
}

/* Those of shared memory first: a look at them is free. */
static psd_status_t receive_any(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                                ps_message_t *ret_message, ps_payload_t **ret_payload,
                                ps_room_t *ret_room, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = self->n_carriers; rc == PSD_OK && !*ret_got && i-- > 0;) {
        if (self->carriers[i] != NULL) {
            rc = self->carriers[i]->receive(self, ret_got, ret_conn, ret_message, ret_payload,
                                            ret_room, err);
        }
    }
    return rc;
}

psd_status_t ps_socket_receive(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                               ps_message_t *ret_message, ps_payload_t **ret_payload,
                               ps_room_t *ret_room, psd_error_t *err)
{
    *ret_got = false;
    *ret_room = (ps_room_t){NULL, 0};
    ret_message->kind = (ps_kind_t)0;
    return self->n_carriers == 1 /* every link */
               ? self->carriers[0]->receive(self, ret_got, ret_conn, ret_message, ret_payload,
                                            ret_room, err)
               : receive_any(self, ret_got, ret_conn, ret_message, ret_payload, ret_room, err);
}

psd_status_t ps_socket_send_text(ps_socket_t *self, uint64_t conn, ps_bytes_t text,
                                 psd_error_t *err)
{
    const ps_carrier_t *carrier = ps_socket_carrier(self, conn);

    return carrier == NULL ? psd_error_set(err, PSD_BUSY, "send: peer is gone")
                           : carrier->send_text(self, conn, text, err);
}

psd_status_t ps_socket_receive_from(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                                    ps_asker_t *ret_caller, ps_buffer_t *ret_text, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *ret_got = false;
    *ret_caller = (ps_asker_t){.has_uid = false};
    for (size_t i = self->n_carriers; rc == PSD_OK && !*ret_got && i-- > 0;) {
        if (self->carriers[i] != NULL) {
            rc =
                self->carriers[i]->receive_text(self, ret_got, ret_conn, ret_caller, ret_text, err);
        }
    }
    return rc;
}

psd_status_t ps_socket_receive_text(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                                    ps_buffer_t *ret_text, psd_error_t *err)
{
    ps_asker_t caller;

    return ps_socket_receive_from(self, ret_got, ret_conn, &caller, ret_text, err);
}

void ps_socket_flush(ps_socket_t *self)
{
    if (self->n_carriers == 1) { /* every link */
        self->carriers[0]->flush(self);
        return;
    }
    for (size_t i = self->n_carriers; i-- > 0;) {
        if (self->carriers[i] != NULL) {
            self->carriers[i]->flush(self);
        }
    }
}

/* ---- connections --------------------------------------------------------- */

bool ps_socket_next_gone(ps_socket_t *self, uint64_t *ret_conn)
{
    for (size_t i = 0; i < self->n_carriers; i++) {
        if (self->carriers[i] != NULL && self->carriers[i]->next_gone(self, ret_conn)) {
            return true;
        }
    }
    return false;
}

bool ps_socket_is_gone(ps_socket_t *self)
{
    return self->carriers[0]->is_gone(self);
}

bool ps_socket_is_up(ps_socket_t *self)
{
    return self->carriers[0]->is_up(self);
}

bool ps_socket_is_lane(const ps_socket_t *self)
{
    return self->carriers[0] == &ps_carrier_lane;
}
