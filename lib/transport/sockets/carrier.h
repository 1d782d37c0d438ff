/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_carrier - what moves messages below a socket
 *
 * What     One table of functions for each: ZeroMQ (tcp, ipc), the lane (shared
 *          memory of one host), and one for all plug-ins (carrier_plugin.h). A
 *          link has one carrier, that of its endpoint. A port has ZeroMQ, and
 *          more as they are bound.
 * Shape    A port's connection tells its carrier: conn >> PS_CONN_BITS is the
 *          carrier's slot. A link has its carrier in slot 0, for its conn is 0.
 * Threads  That of the socket.
 */
#ifndef PS_TRANSPORT_CARRIER_H
#define PS_TRANSPORT_CARRIER_H

#include "transport/sockets/poll.h"
#include "transport/sockets/socket.h"

#define PS_CONN_BITS 40
#define PS_CARRIER_SLOTS 3

/* The frames of one message, out and in; frames.h. */
typedef struct ps_departure ps_departure_t;
typedef struct ps_arrival ps_arrival_t;

typedef struct ps_carrier {
    size_t slot; /* of a port */

    /* ---- opening and closing. Errors: those of ps_socket_bind and _connect. */
    psd_status_t (*bind)(ps_socket_t *self, const char *endpoint, psd_error_t *err); /* puts it
                                                                  into its slot */
    psd_status_t (*connect)(ps_socket_t *self, const char *endpoint, psd_error_t *err);
    /* What is queued goes, for linger_ms at most. */
    void (*linger)(ps_socket_t *self, uint32_t linger_ms);
    void (*close)(ps_socket_t *self);

    /* ---- messages, as the functions of ps_socket that are named alike. A
     * receive that finds nothing sets *ret_got to false. */
    psd_status_t (*send)(ps_socket_t *self, uint64_t conn, const ps_message_t *message,
                         ps_payload_t *payload, bool repeated, psd_error_t *err);
    psd_status_t (*receive)(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                            ps_message_t *ret_message, ps_payload_t **ret_payload,
                            ps_room_t *ret_room, psd_error_t *err);
    psd_status_t (*send_text)(ps_socket_t *self, uint64_t conn, ps_bytes_t text, psd_error_t *err);
    psd_status_t (*receive_text)(ps_socket_t *self, bool *ret_got, uint64_t *ret_conn,
                                 ps_asker_t *ret_caller, ps_buffer_t *ret_text, psd_error_t *err);
    void (*flush)(ps_socket_t *self);

    /* ---- frames; NULL: it takes messages as they are, and needs none of
     * frames.h. put takes all of the parcel or nothing; take gives a whole
     * message. Errors: PSD_BUSY the queue is full or the peer is gone,
     * PSD_NOMEM, PSD_IO. */
    psd_status_t (*put)(ps_socket_t *self, ps_departure_t *parcel, psd_error_t *err);
    psd_status_t (*take)(ps_socket_t *self, ps_arrival_t *arrival, bool *ret_got, psd_error_t *err);

    /* ---- connections */
    bool (*next_gone)(ps_socket_t *self, uint64_t *ret_conn);
    bool (*is_gone)(ps_socket_t *self); /* of a link */
    bool (*is_up)(ps_socket_t *self);   /* of a link */
    void (*forget)(ps_socket_t *self, uint64_t conn);
    uint64_t (*n_refused)(const ps_socket_t *self);
    size_t (*n_unfinished)(const ps_socket_t *self);

    /* ---- waiting (wait.c). The carrier is one item of the poll. */
    void (*item)(const ps_socket_t *self, ps_poll_item_t *ret_item);
    /* What the poll has said of that item. true: there is something to
     * receive. */
    bool (*heard)(ps_socket_t *self, const ps_poll_item_t *item);
    /* Looks without a system call. NULL: it cannot, the poll asks; the functions
     * below are NULL then, too. */
    bool (*is_ready)(const ps_socket_t *self);
    /* Such looks may find something soon: some connection is open. */
    bool (*is_open)(const ps_socket_t *self);
    /* Announces that the thread sleeps until the item's descriptor is readable.
     * false: there is something to do already. get_up follows in both cases. */
    bool (*lie_down)(const ps_socket_t *self);
    void (*get_up)(const ps_socket_t *self);
    /* How long the peer may be busy with what it was asked. */
    uint32_t (*work_us)(const ps_socket_t *self);
} ps_carrier_t;

extern const ps_carrier_t ps_carrier_zmq;
extern const ps_carrier_t ps_carrier_lane;
extern const ps_carrier_t ps_carrier_plugin;

/* That of an endpoint; ZeroMQ for what no other one knows. */
const ps_carrier_t *ps_carrier_of(const char *endpoint);
#endif
