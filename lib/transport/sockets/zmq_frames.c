/* SPDX-License-Identifier: Apache-2.0 */
/* Frames through ZeroMQ. Those of a port have the peer's routing id before
 * them. */
#include <errno.h>
#include <zmq.h>

#include "transport/sockets/routing_id.h"
#include "transport/sockets/socket_parts.h"
#include "transport/sockets/zmq_socket.h"

/* ---- out ----------------------------------------------------------------- */

/* A HELLO may be read after its connection was closed, which the monitor had
 * said before: what was noted of it goes with the first answer. */
static void note_gone(ps_socket_t *self, uint64_t conn)
{
    if (self->is_port && ps_port_conns_lost(&self->conns, conn)) {
        ps_unfinished_forget(self, conn);
    }
}

static psd_status_t put_frame(ps_socket_t *self, ps_frame_t *frame, uint64_t conn, bool more,
                              psd_error_t *err)
{
    self->moved_bytes += zmq_msg_size(frame);
    while (zmq_msg_send(frame, self->handle, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) < 0) {
        if (zmq_errno() != EINTR) {
            bool gone = zmq_errno() == EHOSTUNREACH;
            psd_status_t rc = ps_zmq_status(err, "send");

            if (gone) {
                note_gone(self, conn);
            }
            return rc;
        }
    }
    return PSD_OK;
}

/* An id is so short that it needs no memory of its own. */
static psd_status_t put_routing_id(ps_socket_t *self, uint64_t conn, psd_error_t *err)
{
    ps_frame_t frame;
    psd_status_t rc = PSD_OK;

    if (zmq_msg_init_size(&frame, PS_ROUTING_ID_SIZE) != 0) {
        return ps_zmq_status(err, "send");
    }
    ps_routing_id_of(conn, zmq_msg_data(&frame));
    rc = put_frame(self, &frame, conn, true, err);
    (void)zmq_msg_close(&frame);
    return rc;
}

psd_status_t ps_zmq_put(ps_socket_t *self, ps_departure_t *parcel, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    self->is_dry = false; /* a send takes in signs of what came */
    if (self->is_port) {
        rc = put_routing_id(self, parcel->conn, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < parcel->n_frames; i++) {
        rc = put_frame(self, &parcel->frames[i], parcel->conn, i + 1 < parcel->n_frames, err);
    }
    return rc;
}

/* ---- in ------------------------------------------------------------------ */

/* The next frame without waiting. *ret_got false: there is none. */
static psd_status_t next_frame(ps_socket_t *self, ps_frame_t *ret_frame, bool *ret_got,
                               psd_error_t *err)
{
    (void)zmq_msg_init(ret_frame); /* never fails */
    self->is_dry = false;
    while (zmq_msg_recv(ret_frame, self->handle, ZMQ_DONTWAIT) < 0) {
        if (zmq_errno() == EAGAIN) {
            self->is_dry = true;
            *ret_got = false;
            return PSD_OK;
        }
        if (zmq_errno() != EINTR) {
            return ps_zmq_status(err, "receive");
        }
    }
    self->moved_bytes += zmq_msg_size(ret_frame);
    *ret_got = true;
    return PSD_OK;
}

/* Receives the frames after the first; a message always arrives as a whole. */
static psd_status_t rest_of_frames(ps_socket_t *self, ps_arrival_t *arrival, bool more,
                                   psd_error_t *err)
{
    while (more) {
        bool fits = arrival->n_frames < PS_FRAMES_MAX;
        ps_frame_t surplus = {{0}};
        ps_frame_t *frame = fits ? &arrival->frames[arrival->n_frames] : &surplus;
        bool got = false;
        psd_status_t rc = next_frame(self, frame, &got, err);

        if (rc != PSD_OK || !got) {
            (void)zmq_msg_close(frame);
            return rc;
        }
        more = zmq_msg_more(frame) != 0;
        arrival->n_arrived++;
        if (fits) {
            arrival->n_frames++;
        } else {
            (void)zmq_msg_close(frame);
        }
    }
    return PSD_OK;
}

/* One whole ZeroMQ message of a peer whose name we gave. */
psd_status_t ps_zmq_take(ps_socket_t *self, ps_arrival_t *arrival, bool *ret_got, psd_error_t *err)
{
    for (;;) {
        ps_frame_t first;
        bool more = false;
        bool known = true;
        psd_status_t rc = next_frame(self, &first, ret_got, err);

        if (rc != PSD_OK || !*ret_got) {
            self->zmq_is_ready = false;
            (void)zmq_msg_close(&first);
            return rc;
        }
        *arrival = (ps_arrival_t){.conn = 0};
        more = zmq_msg_more(&first) != 0;
        if (self->is_port) {
            known = ps_routing_id_conn((ps_bytes_t){zmq_msg_data(&first), zmq_msg_size(&first)},
                                       &arrival->conn);
            (void)zmq_msg_close(&first);
        } else {
            (void)zmq_msg_init(&arrival->frames[0]);
            (void)zmq_msg_move(&arrival->frames[0], &first);
            arrival->n_frames = 1;
            arrival->n_arrived = 1;
        }
        rc = rest_of_frames(self, arrival, more, err);
        if (rc == PSD_OK && known) {
            return PSD_OK;
        }
        ps_arrival_done(arrival);
        if (rc != PSD_OK) {
            self->zmq_is_ready = false;
            return rc;
        }
        self->n_refused++;
    }
}
