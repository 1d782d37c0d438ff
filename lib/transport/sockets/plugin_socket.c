/* SPDX-License-Identifier: Apache-2.0 */
/* The carrier of sockets that a plug-in carries. Frames are libzmq's memory here
 * too, so that messages are made and read as for ZeroMQ. */
#include "transport/sockets/plugin_socket.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "base/alloc.h"
#include "base/handover.h"
#include "transport/sockets/frames.h"
#include "transport/sockets/ranks.h"
#include "transport/sockets/socket_parts.h"
#include "transport/threads/fork.h"

#define OTHERS_AFTER 64 /* messages, before the other carriers of a port */
#define BOUND_SIZE 512
#define REOPEN_MS 100 /* at least, between two attempts to open a lost link again */

/* The least of them; a plug-in's numbers are added. */
#define FIRST_CONN ((uint64_t)2 << PS_CONN_BITS)

static psd_status_t status_of(int code, const char *doing, psd_error_t *err)
{
    switch (code) {
    case EAGAIN:
        return psd_error_set(err, PSD_BUSY, "%s: queue is full", doing);
    case EHOSTUNREACH:
        return psd_error_set(err, PSD_BUSY, "%s: peer is gone", doing);
    case ENOMEM:
        return psd_error_set(err, PSD_NOMEM, "%s: no memory", doing);
    default:
        return psd_error_set(err, PSD_IO, "%s: %s", doing, strerror(code));
    }
}

/* ---- opening ------------------------------------------------------------- */

static psd_status_t load(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    if (self->plugin.end != NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "\"%.300s\" is a second endpoint of a plug-in; allowed: one",
                             endpoint);
    }
    return ps_plugin_load(ps_plugin_name_of(endpoint), &self->plugin.functions, err);
}

static psd_status_t refused(int code, const char *doing, const char *endpoint, const char *reason,
                            psd_error_t *err)
{
    psd_status_t rc = code == EINVAL ? PSD_INVALID : code == ENOMEM ? PSD_NOMEM : PSD_IO;

    return psd_error_set(err, rc, "%s \"%.300s\": %s", doing, endpoint,
                         reason[0] == '\0' ? strerror(code) : reason);
}

static psd_status_t bind_plugin(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    char reason[PS_CARRIER_REASON] = "";
    char bound[BOUND_SIZE] = "";
    int code = 0;
    psd_status_t rc = load(self, endpoint, err);

    if (rc != PSD_OK) {
        return rc;
    }
    code = self->plugin.functions->bind(endpoint, &self->plugin.setup, &self->plugin.end, bound,
                                        sizeof bound, reason);
    if (code != 0) {
        self->plugin.end = NULL;
        return refused(code, "bind", endpoint, reason, err);
    }
    ps_socket_use_carrier(self, ps_carrier_plugin.slot, &ps_carrier_plugin);
    return ps_socket_keep_endpoint(self, bound, err);
}

/* A link has nothing of ZeroMQ's, from which a port hears that its context was stopped. */
static void hear_stop(ps_socket_t *self)
{
    self->has_stop = self->context != NULL && !self->is_port;
    self->stop_fd = self->has_stop ? ps_context_stop_fd(self->context) : -1;
}

static psd_status_t look_stopped(const ps_socket_t *self, const char *doing, psd_error_t *err)
{
    return self->has_stop && ps_context_is_stopped(self->context)
               ? psd_error_set(err, PSD_IO, "%s: the context was stopped", doing)
               : PSD_OK;
}

static psd_status_t connect_plugin(ps_socket_t *self, const char *endpoint, psd_error_t *err)
{
    char reason[PS_CARRIER_REASON] = "";
    int code = 0;
    psd_status_t rc = load(self, endpoint, err);

    if (rc != PSD_OK) {
        return rc;
    }
    code =
        self->plugin.functions->connect(endpoint, &self->plugin.setup, &self->plugin.end, reason);
    if (code != 0) {
        self->plugin.end = NULL;
        return refused(code, "connect", endpoint, reason, err);
    }
    hear_stop(self);
    return ps_socket_keep_endpoint(self, endpoint, err);
}

psd_status_t ps_plugin_connect_by(ps_socket_t *self, const char *address, psd_error_t *err)
{
    psd_status_t rc = connect_plugin(self, address, err);

    if (rc == PSD_OK) {
        (void)snprintf(self->plugin.address, sizeof self->plugin.address, "%s", address);
    }
    return rc;
}

psd_status_t ps_plugin_bind_beside(ps_socket_t *self, psd_error_t *err)
{
    const char *port = ps_ranks_port();
    char reason[PS_CARRIER_REASON] = "";
    psd_status_t rc = PSD_OK;

    if (port == NULL) {
        return PSD_OK;
    }
    if (self->keys != NULL) { /* frames of MPI prove nothing */
        return psd_error_set(err, PSD_UNSUPPORTED,
                             "security.level encrypt is not supported with PSD_TRANSPORT=mpi");
    }
    if (self->plugin.end == NULL) {
        int code = 0;

        rc = load(self, port, err);
        if (rc != PSD_OK) {
            return rc;
        }
        code =
            self->plugin.functions->bind(port, &self->plugin.setup, &self->plugin.end,
                                         self->plugin.address, sizeof self->plugin.address, reason);
        if (code != 0) {
            self->plugin.end = NULL;
            return refused(code, "bind", port, reason, err);
        }
        ps_socket_use_carrier(self, ps_carrier_plugin.slot, &ps_carrier_plugin);
    }
    return ps_ranks_say(self->endpoints[self->n_endpoints - 1], self->plugin.address, err);
}

/* A link that opens itself again, and whose peer is gone. */
static bool is_lost(const ps_socket_t *self)
{
    uint64_t conn = 0;

    return !self->is_port && self->plugin.address[0] != '\0' &&
           self->plugin.functions->next_gone(self->plugin.end, &conn) != 0;
}

/* It is too early to open it again: the peer may live and not have the port any more. */
static bool rests(const ps_socket_t *self)
{
    return is_lost(self) && ps_now_ms() < self->plugin.reopen_ms;
}

/* A link whose peer is gone goes there again. What was on its way is lost. */
static void look_reopen(ps_socket_t *self)
{
    char reason[PS_CARRIER_REASON] = "";
    void *end = NULL;

    if (!is_lost(self) || rests(self)) {
        return;
    }
    self->plugin.was_lost = true;
    self->plugin.reopen_ms = ps_now_ms() + REOPEN_MS;
    ps_unfinished_forget(self, 0);
    if (self->plugin.functions->connect(self->plugin.address, &self->plugin.setup, &end, reason) ==
        0) { /* else it stays gone */
        self->plugin.functions->close(self->plugin.end, 0);
        self->plugin.end = end;
    }
}

/* The plug-in lingers in its close. */
static void linger(ps_socket_t *self, uint32_t linger_ms)
{
    (void)linger_ms;
    ps_frames_flush(self);
}

/* A forked child has none of the plug-in's threads. */
static void close_plugin(ps_socket_t *self)
{
    if (self->plugin.end != NULL && ps_fork_is_since(self->n_forks)) {
        ps_fork_keep(self->plugin.end);
    } else if (self->plugin.end != NULL) {
        self->plugin.functions->close(self->plugin.end, self->linger_ms);
    }
    self->plugin.end = NULL;
}

/* ---- frames -------------------------------------------------------------- */

/* Runs on a thread of the plug-in. */
static void free_sent(void *owner)
{
    ps_frame_t *frame = owner;

    ps_handover_take(frame);
    (void)zmq_msg_close(frame);
    ps_free(frame);
}

/* Moves the parcel's frames into memory of their own, which the plug-in may
 * hold. false: no memory. */
static bool lend(ps_departure_t *parcel, ps_carrier_frame_t *ret_frames)
{
    ps_frame_t *owners[PS_FRAMES_MAX] = {NULL};

    for (size_t i = 0; i < parcel->n_frames; i++) {
        owners[i] = ps_alloc(1, sizeof *owners[i]);
        if (owners[i] == NULL) {
            for (size_t k = 0; k < i; k++) {
                ps_free(owners[k]);
            }
            return false;
        }
    }
    for (size_t i = 0; i < parcel->n_frames; i++) {
        (void)zmq_msg_init(owners[i]);
        (void)zmq_msg_move(owners[i], &parcel->frames[i]);
        ret_frames[i] = (ps_carrier_frame_t){.data = zmq_msg_data(owners[i]),
                                             .size = zmq_msg_size(owners[i]),
                                             .free_frame = free_sent,
                                             .owner = owners[i]};
        ps_handover_give(owners[i]);
    }
    return true;
}

static psd_status_t put(ps_socket_t *self, ps_departure_t *parcel, psd_error_t *err)
{
    ps_carrier_frame_t frames[PS_FRAMES_MAX];
    int code = 0;
    psd_status_t rc = look_stopped(self, "send", err);

    if (rc != PSD_OK) {
        return rc;
    }
    look_reopen(self);
    if (!lend(parcel, frames)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a message to send");
    }
    code = self->plugin.functions->send(
        self->plugin.end, self->is_port ? parcel->conn - FIRST_CONN : 0, frames, parcel->n_frames);
    if (code == 0) {
        return PSD_OK;
    }
    for (size_t i = 0; i < parcel->n_frames; i++) {
        free_sent(frames[i].owner);
    }
    return status_of(code, "send", err);
}

/* libzmq is done with a frame that a plug-in made. */
static void free_received(void *data, void *hint)
{
    ps_carrier_frame_t *frame = hint;

    (void)data;
    frame->free_frame(frame->owner);
    ps_free(frame);
}

/* Frame i as libzmq's. false: no memory. */
static bool adopt(ps_arrival_t *arrival, const ps_carrier_frame_t *frame)
{
    ps_frame_t *mine = &arrival->frames[arrival->n_frames];
    ps_carrier_frame_t *owner = ps_alloc(1, sizeof *owner);

    if (owner == NULL) {
        return false;
    }
    *owner = *frame;
    /* It is only read; libzmq's interface does not know const. */
    if (zmq_msg_init_data(mine, (void *)frame->data, frame->size, free_received, owner) != 0) {
        ps_free(owner);
        return false;
    }
    arrival->n_frames++;
    arrival->n_arrived++;
    return true;
}

static psd_status_t take(ps_socket_t *self, ps_arrival_t *arrival, bool *ret_got, psd_error_t *err)
{
    ps_carrier_frame_t frames[PS_CARRIER_FRAMES];
    uint64_t conn = 0;
    size_t n = 0;
    bool ok = true;
    int code = 0;
    psd_status_t rc = look_stopped(self, "receive", err);

    *ret_got = false;
    *arrival = (ps_arrival_t){.conn = 0};
    if (rc != PSD_OK) {
        return rc;
    }
    code = self->plugin.functions->receive(self->plugin.end, &conn, frames, &n);
    arrival->conn = self->is_port ? FIRST_CONN + conn : 0;
    if (code != 0) {
        return code == EAGAIN ? PSD_OK : status_of(code, "receive", err);
    }
    assert(n >= 1 && n <= PS_CARRIER_FRAMES);
    for (size_t i = 0; i < n; i++) {
        ok = ok && adopt(arrival, &frames[i]);
        if (!ok) {
            frames[i].free_frame(frames[i].owner);
        }
    }
    if (!ok) {
        ps_arrival_done(arrival);
        return psd_error_set(err, PSD_NOMEM, "no memory for a message");
    }
    *ret_got = true;
    return PSD_OK;
}

/* ---- messages ------------------------------------------------------------ */

static psd_status_t receive(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                            ps_message_t *ret_message, ps_payload_t **ret_payload,
                            ps_room_t *ret_room, psd_error_t *err)
{
    (void)ret_room; /* none is offered */
    look_reopen(self);
    if (self->is_port && ++self->plugin.n_received % OTHERS_AFTER == 0) {
        *ret_got = false;
        return PSD_OK;
    }
    return ps_frames_receive(self, &ps_carrier_plugin, ret_got, ret_conn, ret_message, ret_payload,
                             err);
}

static psd_status_t receive_text(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                                 ps_asker_t *ret_caller, ps_buffer_t *ret_text, psd_error_t *err)
{
    look_reopen(self);
    return ps_frames_receive_text(self, &ps_carrier_plugin, ret_got, ret_conn, ret_caller, ret_text,
                                  err);
}

static void flush(ps_socket_t *self)
{
    ps_frames_flush(self);
    self->plugin.functions->flush(self->plugin.end);
}

/* ---- connections --------------------------------------------------------- */

static bool next_gone(ps_socket_t *self, uint64_t *ret_conn)
{
    uint64_t conn = 0;

    if (!self->is_port || self->plugin.functions->next_gone(self->plugin.end, &conn) == 0) {
        return false;
    }
    ps_unfinished_forget(self, FIRST_CONN + conn);
    *ret_conn = FIRST_CONN + conn;
    return true;
}

static bool is_gone(ps_socket_t *self)
{
    uint64_t conn = 0;

    if (self->plugin.address[0] != '\0') { /* as one of ZeroMQ */
        return self->plugin.is_watched && self->plugin.was_lost;
    }
    return self->plugin.functions->next_gone(self->plugin.end, &conn) != 0;
}

static bool is_up(ps_socket_t *self)
{
    return !is_gone(self);
}

static void forget(ps_socket_t *self, uint64_t conn)
{
    ps_unfinished_forget(self, conn);
}

static uint64_t n_refused(const ps_socket_t *self)
{
    (void)self;
    return 0;
}

/* A port counts them with ZeroMQ's. */
static size_t n_unfinished(const ps_socket_t *self)
{
    return self->is_port ? 0 : self->unfinished.count;
}

/* ---- waiting ------------------------------------------------------------- */

static void item(const ps_socket_t *self, ps_poll_item_t *ret_item)
{
    *ret_item =
        (ps_poll_item_t){.fd = rests(self) ? -1 : self->plugin.functions->fd(self->plugin.end)};
}

static bool is_ready(const ps_socket_t *self)
{
    return ps_batches_is_open(&self->batches) ||
           (self->plugin.functions->is_ready(self->plugin.end) != 0 && !rests(self));
}

static bool heard(ps_socket_t *self, const ps_poll_item_t *said)
{
    (void)self;
    (void)said;
    return false; /* is_ready looks */
}

static bool is_open(const ps_socket_t *self)
{
    return self->plugin.end != NULL;
}

static bool lie_down(const ps_socket_t *self)
{
    return rests(self) || self->plugin.functions->lie_down(self->plugin.end) != 0;
}

static void get_up(const ps_socket_t *self)
{
    self->plugin.functions->get_up(self->plugin.end);
}

static uint32_t work_us(const ps_socket_t *self)
{
    (void)self;
    return 0;
}

const ps_carrier_t ps_carrier_plugin = {
    .slot = 2,
    .bind = bind_plugin,
    .connect = connect_plugin,
    .linger = linger,
    .close = close_plugin,
    .send = ps_frames_send,
    .receive = receive,
    .send_text = ps_frames_send_text,
    .receive_text = receive_text,
    .flush = flush,
    .put = put,
    .take = take,
    .next_gone = next_gone,
    .is_gone = is_gone,
    .is_up = is_up,
    .forget = forget,
    .n_refused = n_refused,
    .n_unfinished = n_unfinished,
    .item = item,
    .heard = heard,
    .is_ready = is_ready,
    .is_open = is_open,
    .lie_down = lie_down,
    .get_up = get_up,
    .work_us = work_us,
};
