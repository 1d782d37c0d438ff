/* SPDX-License-Identifier: Apache-2.0 */
/* Receiving: frames become a message and a payload that borrows them. */
#include <inttypes.h>
#include <zmq.h>

#include "base/alloc.h"
#include "transport/sockets/frames.h"
#include "transport/sockets/socket_parts.h"
#include "wire/messages/doc.h"

#define PIECES_AT_ONCE 1024 /* taken in before others have their turn */

void ps_arrival_done(ps_arrival_t *self)
{
    for (size_t i = 0; i < self->n_frames; i++) {
        (void)zmq_msg_close(&self->frames[i]);
    }
    self->n_frames = 0;
}

static ps_bytes_t frame_bytes(ps_frame_t *frame)
{
    return (ps_bytes_t){.data = zmq_msg_data(frame), .size = zmq_msg_size(frame)};
}

/* ---- data messages ------------------------------------------------------ */

/* The frames that a payload borrows from. */
typedef struct lease {
    ps_frame_t frames[PS_FRAMES_MAX];
    size_t n_frames;
} lease_t;

static void release_lease(void *owner)
{
    lease_t *self = owner;

    for (size_t i = 0; i < self->n_frames; i++) {
        (void)zmq_msg_close(&self->frames[i]);
    }
    ps_free(self);
}

/* Moves the frames of a message in several frames into a payload. A tiny frame
 * holds its bytes itself, so they are looked up again after the move. */
static ps_payload_t *lease_frames(ps_arrival_t *arrival, bool is_one_part)
{
    lease_t *lease = ps_alloc(1, sizeof *lease);
    ps_bytes_t parts[PS_FRAMES_MAX] = {{NULL, 0}};
    ps_payload_t *payload = NULL;

    if (lease == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < arrival->n_frames; i++) {
        (void)zmq_msg_init(&lease->frames[i]);
        (void)zmq_msg_move(&lease->frames[i], &arrival->frames[i]);
        parts[i] = frame_bytes(&lease->frames[i]);
    }
    lease->n_frames = arrival->n_frames;
    if (is_one_part) {
        parts[3] = parts[1];
        parts[1] = (ps_bytes_t){NULL, 0};
    }
    payload = ps_payload_new(parts[1], parts[2], parts[3], lease, release_lease);
    if (payload == NULL) {
        release_lease(lease);
    }
    return payload;
}

/* The payload of a decoded message: NULL when it has no body. A body in the
 * header's frame is copied: it is small, and the frame may be a corner of a
 * large buffer of ZeroMQ that it would keep alive. */
static psd_status_t take_body(ps_arrival_t *arrival, const ps_message_t *message,
                              const ps_body_t *body, ps_payload_t **ret_payload, psd_error_t *err)
{
    bool is_one_part = ps_message_is_one_part(message);
    ps_payload_t *payload = NULL;

    if (body->keys.size + body->index.size + body->values.size == 0) {
        return PSD_OK;
    }
    payload = arrival->n_frames == 1 ? ps_payload_copy(body->keys, body->index, body->values)
                                     : lease_frames(arrival, is_one_part);
    if (payload == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a message");
    }
    *ret_payload = payload;
    return PSD_OK;
}

static psd_status_t decode(ps_arrival_t *arrival, ps_message_t *ret_message,
                           ps_payload_t **ret_payload, psd_error_t *err)
{
    ps_bytes_t parts[PS_FRAMES_MAX];
    ps_body_t body = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    psd_status_t rc = PSD_OK;

    if (arrival->n_arrived < 1 || arrival->n_arrived > PS_FRAMES_MAX) {
        return psd_error_set(err, PSD_PROTO, "message has %zu frames; allowed: 1..%d",
                             arrival->n_arrived, PS_FRAMES_MAX);
    }
    for (size_t i = 0; i < arrival->n_frames; i++) {
        parts[i] = frame_bytes(&arrival->frames[i]);
    }
    rc = ps_message_decode(parts, arrival->n_frames, ret_message, &body, err);
    if (rc != PSD_OK) {
        return rc;
    }
    return take_body(arrival, ret_message, &body, ret_payload, err);
}

/* Whether pieces of it are kept. A watched port keeps those of connections that
 * it has welcomed; a plug-in's peers are of the same job. */
static bool may_keep(const ps_socket_t *self, uint64_t conn)
{
    return !self->is_port || self->monitor == NULL || conn >> PS_CONN_BITS != 0 ||
           ps_port_conns_is_welcome(&self->conns, conn);
}

/* One connection always has room. */
static bool has_room(const ps_socket_t *self, uint64_t own_bytes, const ps_payload_t *piece)
{
    uint64_t bytes = self->unfinished_bytes;

    return bytes == own_bytes || (bytes <= self->unfinished_max &&
                                  ps_payload_size(piece) <= self->unfinished_max - bytes);
}

static psd_status_t keep_piece(ps_socket_t *self, uint64_t conn, ps_message_t *message,
                               ps_payload_t **payload_p, bool *ret_whole, psd_error_t *err)
{
    ps_unfinished_t *unfinished = ps_unfinished_of(self, conn);
    uint64_t before = 0;
    psd_status_t rc = PSD_OK;

    if (unfinished == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for pieces");
    }
    if (message->kind == PS_KIND_CHUNK || (message->flags & PS_FLAG_MORE) != 0) {
        unfinished->last_ms = ps_now_ms();
    }
    before = unfinished->assembly.bytes;
    if (!has_room(self, before, *payload_p)) {
        return psd_error_set(err, PSD_LIMIT,
                             "unfinished messages use all of the memory that is left");
    }
    rc = ps_assembly_add(&unfinished->assembly, message, payload_p, self->assembly_bytes, ret_whole,
                         err);
    self->unfinished_bytes += unfinished->assembly.bytes - before;
    if (unfinished->assembly.n_open == 0) {
        ps_unfinished_forget(self, conn);
    }
    return rc;
}

/* Puts messages in pieces together. */
static psd_status_t assemble(ps_socket_t *self, uint64_t conn, ps_message_t *message,
                             ps_payload_t **payload_p, bool *ret_whole, psd_error_t *err)
{
    const ps_unfinished_t *unfinished = ps_map_get(&self->unfinished, conn);
    bool is_chunk = message->kind == PS_KIND_CHUNK;
    bool is_first = (message->flags & PS_FLAG_MORE) != 0;

    if (!is_chunk && !is_first && unfinished == NULL) {
        *ret_whole = true;
        return PSD_OK;
    }
    if (is_chunk &&
        (unfinished == NULL || !ps_assembly_has(&unfinished->assembly, message->chunk.request))) {
        return PSD_OK; /* it follows a first piece that was refused */
    }
    if (is_first && !may_keep(self, conn)) {
        return psd_error_set(err, PSD_NO_SESSION, "say HELLO first");
    }
    return keep_piece(self, conn, message, payload_p, ret_whole, err);
}

/* Who sent it. false: the ZAP thread was not asked about that connection. Only ZeroMQ's
 * connections are asked about; other carriers let in whom their own door lets in. */
static bool read_caller(const ps_socket_t *self, uint64_t conn, ps_frame_t *frame,
                        ps_asker_t *ret_caller)
{
    if (!self->is_guarded || conn >> PS_CONN_BITS != 0) {
        *ret_caller = (ps_asker_t){.has_uid = false};
        return true;
    }
    return ps_asker_read(zmq_msg_gets(frame, "User-Id"), zmq_msg_gets(frame, "Peer-Address"),
                         ret_caller);
}

/* Keeps who has identified itself on a guarded port, as ps_socket_greeter tells. */
static psd_status_t keep_greeter(ps_socket_t *self, uint64_t conn, ps_frame_t *frame,
                                 psd_error_t *err)
{
    ps_asker_t caller;

    if (!read_caller(self, conn, frame, &caller)) {
        self->n_refused++;
        return psd_error_set(err, PSD_PROTO, "nobody was asked who the peer is");
    }
    if (self->is_guarded) {
        self->greeter_conn = conn;
        self->greeter = caller;
    }
    return PSD_OK;
}

/* From now on a connection that has identified itself to a shard is known by its
 * descriptor. */
static psd_status_t greet(ps_socket_t *self, uint64_t conn, const ps_message_t *message,
                          ps_frame_t *frame, psd_error_t *err)
{
    bool is_meet = message->kind == PS_KIND_MEET;
    uint64_t gone = 0;
    int fd = -1;
    psd_status_t rc = PSD_OK;

    if (!self->is_port ||
        (message->kind != PS_KIND_HELLO && message->kind != PS_KIND_PEER && !is_meet)) {
        return PSD_OK;
    }
    rc = keep_greeter(self, conn, frame, err);
    if (rc != PSD_OK || is_meet) {
        return rc;
    }
    fd = zmq_msg_get(frame, ZMQ_SRCFD);
    if (fd < 0) {
        return PSD_OK;
    }
    /* What the monitor has said by now is of connections before this one. */
    ps_socket_look_closed(self);
    if (!ps_port_conns_greet(&self->conns, conn, fd, &gone)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a connection");
    }
    if (gone != 0) {
        ps_unfinished_forget(self, gone);
    }
    return PSD_OK;
}

/* The next message of a batch: its body is copied as that of any small one. */
static psd_status_t next_of_batch(ps_socket_t *self, uint64_t *ret_conn, ps_message_t *ret_message,
                                  ps_payload_t **ret_payload, psd_error_t *err)
{
    ps_bytes_t frame = {NULL, 0};
    ps_body_t body = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
    psd_status_t rc = ps_batches_next(&self->batches, ret_conn, &frame, err);

    if (rc == PSD_OK) {
        rc = ps_message_decode(&frame, 1, ret_message, &body, err);
    }
    if (rc == PSD_OK) {
        rc = greet(self, *ret_conn, ret_message, &self->batches.frame, err);
    }
    if (rc == PSD_OK && body.keys.size + body.index.size + body.values.size > 0) {
        *ret_payload = ps_payload_copy(body.keys, body.index, body.values);
        if (*ret_payload == NULL) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for a message");
        }
    }
    ps_batches_settle(&self->batches);
    return rc;
}

/* The next message, whole or a piece. *ret_got false: there is none. */
static psd_status_t next_message(ps_socket_t *self, const ps_carrier_t *carrier, bool *ret_got,
                                 uint64_t *ret_conn, ps_message_t *ret_message,
                                 ps_payload_t **ret_payload, psd_error_t *err)
{
    PSD_AUTO(ps_arrival_done) ps_arrival_t arrival = {.conn = 0};
    psd_status_t rc = PSD_OK;

    *ret_got = true;
    if (ps_batches_is_open(&self->batches)) {
        return next_of_batch(self, ret_conn, ret_message, ret_payload, err);
    }
    rc = carrier->take(self, &arrival, ret_got, err);
    if (rc != PSD_OK || !*ret_got) {
        return rc;
    }
    *ret_conn = arrival.conn;
    if (arrival.n_arrived == 1 && ps_is_batch(frame_bytes(&arrival.frames[0]))) {
        rc = ps_batches_open(&self->batches, arrival.conn, &arrival.frames[0], err);
        return rc != PSD_OK ? rc : next_of_batch(self, ret_conn, ret_message, ret_payload, err);
    }
    rc = decode(&arrival, ret_message, ret_payload, err);
    return rc != PSD_OK ? rc : greet(self, arrival.conn, ret_message, &arrival.frames[0], err);
}

bool ps_socket_greeter(ps_socket_t *self, uint64_t conn, ps_asker_t *ret_asker)
{
    if (ps_socket_carrier(self, conn) == &ps_carrier_lane) {
        uint32_t uid = 0;

        if (!ps_socket_lane_user(self, conn, &uid)) {
            return false;
        }
        *ret_asker = (ps_asker_t){.has_uid = uid != PS_UID_OVERFLOW};
        ret_asker->uid = ret_asker->has_uid ? uid : 0;
        return true;
    }
    *ret_asker = self->greeter;
    return self->is_guarded && conn != 0 && self->greeter_conn == conn;
}

bool ps_socket_has_conn(ps_socket_t *self, uint64_t conn)
{
    const ps_carrier_t *carrier = ps_socket_carrier(self, conn);

    if (carrier == &ps_carrier_lane) {
        return ps_socket_lane_of(self, conn) != NULL;
    }
    return carrier == &ps_carrier_zmq && ps_port_conns_has(&self->conns, conn);
}

psd_status_t ps_frames_receive(ps_socket_t *self, const ps_carrier_t *carrier, bool *ret_got,
                               uint64_t *ret_conn, ps_message_t *ret_message,
                               ps_payload_t **ret_payload, psd_error_t *err)
{
    bool whole = false;

    *ret_got = false;
    for (int i = 0; i < PIECES_AT_ONCE && !whole; i++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        bool got = false;
        psd_status_t rc = PSD_OK;

        ret_message->kind = (ps_kind_t)0; /* nor that of the one before */
        rc = next_message(self, carrier, &got, ret_conn, ret_message, &payload, err);

        if (rc != PSD_OK || !got) {
            return rc;
        }
        rc = assemble(self, *ret_conn, ret_message, &payload, &whole, err);
        if (rc != PSD_OK) {
            return rc;
        }
        if (whole) {
            *ret_payload = payload;
            payload = NULL;
        }
    }
    *ret_got = whole;
    return PSD_OK;
}

/* ---- control text ------------------------------------------------------- */

/* The next message whose sender is known as far as the port wants it. */
static psd_status_t next_from(ps_socket_t *self, const ps_carrier_t *carrier, ps_arrival_t *arrival,
                              ps_asker_t *ret_caller, bool *ret_got, psd_error_t *err)
{
    for (;;) {
        psd_status_t rc = carrier->take(self, arrival, ret_got, err);

        if (rc != PSD_OK || !*ret_got || arrival->n_frames == 0 ||
            read_caller(self, arrival->conn, &arrival->frames[0], ret_caller)) {
            return rc;
        }
        ps_arrival_done(arrival);
        self->n_refused++;
    }
}

psd_status_t ps_frames_receive_text(ps_socket_t *self, const ps_carrier_t *carrier, bool *ret_got,
                                    uint64_t *ret_conn, ps_asker_t *ret_caller,
                                    ps_buffer_t *ret_text, psd_error_t *err)
{
    PSD_AUTO(ps_arrival_done) ps_arrival_t arrival = {.conn = 0};
    ps_bytes_t text = {NULL, 0};
    bool got = false;
    psd_status_t rc = PSD_OK;

    *ret_got = false;
    rc = next_from(self, carrier, &arrival, ret_caller, &got, err);
    if (rc != PSD_OK || !got) {
        return rc;
    }
    *ret_conn = arrival.conn;
    if (arrival.n_arrived != 1) {
        return psd_error_set(err, PSD_PROTO, "control message has %zu frames; allowed: 1",
                             arrival.n_arrived);
    }
    text = frame_bytes(&arrival.frames[0]);
    if (text.size > PS_DOC_BYTES_MAX) {
        return psd_error_set(err, PSD_PROTO, "control text is %zu bytes; allowed: 1..%" PRIu32,
                             text.size, PS_DOC_BYTES_MAX);
    }
    ret_text->size = 0;
    if (!ps_buffer_append(ret_text, text.data, text.size)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for control text");
    }
    *ret_got = true;
    return PSD_OK;
}
