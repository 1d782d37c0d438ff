/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages as frames, for carriers that move frames
 *
 * What     Header, keys, index and values are a frame each; small messages are
 *          collected and go as batches of one frame (wire/messages/batch.h);
 *          large values go in pieces. A frame is memory that libzmq counts the
 *          holders of, also where another carrier moves it.
 * Threads  That of the socket; a frame is closed on any.
 */
#ifndef PS_TRANSPORT_FRAMES_H
#define PS_TRANSPORT_FRAMES_H

#include "transport/sockets/carrier.h"
#include "transport/sockets/socket_inner.h"

/* One message on its way out: all frames are made before the first one goes, so
 * that a message is never left half sent for want of memory. */
struct ps_departure {
    ps_frame_t frames[PS_FRAMES_MAX];
    size_t n_frames;
    uint64_t conn;
    ps_transit_t *transit; /* counts lent bytes; NULL: not tracked */
};

/* One message as it came. */
struct ps_arrival {
    uint64_t conn;
    ps_frame_t frames[PS_FRAMES_MAX];
    size_t n_frames;  /* kept in frames */
    size_t n_arrived; /* also those that were too many */
};

/* Closes the frames that were not taken. */
void ps_departure_done(ps_departure_t *self);
void ps_arrival_done(ps_arrival_t *self);

/* What a carrier of frames has in its table. */
PSD_MUST_CHECK psd_status_t ps_frames_send(ps_socket_t *self, uint64_t conn,
                                           const ps_message_t *message, ps_payload_t *payload,
                                           bool repeated, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_frames_send_text(ps_socket_t *self, uint64_t conn, ps_bytes_t text,
                                                psd_error_t *err);
/* Sends what was collected; what cannot be sent is counted. */
void ps_frames_flush(ps_socket_t *self);
/* From that carrier of the socket. */
PSD_MUST_CHECK psd_status_t ps_frames_receive(ps_socket_t *self, const ps_carrier_t *carrier,
                                              bool *ret_got, uint64_t *ret_conn,
                                              ps_message_t *ret_message, ps_payload_t **ret_payload,
                                              psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_frames_receive_text(ps_socket_t *self, const ps_carrier_t *carrier,
                                                   bool *ret_got, uint64_t *ret_conn,
                                                   ps_asker_t *ret_caller, ps_buffer_t *ret_text,
                                                   psd_error_t *err);
#endif
