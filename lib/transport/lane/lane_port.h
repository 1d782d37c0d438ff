/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_lane_port - the lanes of a port
 *
 * What     Listens, checks each client that connects, gives it its own memory,
 *          and receives messages from all of them in turn. An error of one
 *          client ends its lane and no other.
 * Shape    conn: PS_LANE_CONN and above; never given twice
 * Owner    The port; ps_lane_port_close ends all lanes.
 * Threads  Confined to one thread.
 */
#ifndef PS_TRANSPORT_LANE_PORT_H
#define PS_TRANSPORT_LANE_PORT_H

#include "transport/lane/lane.h"
#include "transport/lane/lane_meet.h"

typedef struct ps_lane_port ps_lane_port_t;

typedef struct ps_lane_port_args {
    uint32_t most;        /* lanes at a time, 1 .. PS_LANES_MAX */
    uint64_t arena_bytes; /* of each */
    ps_door_peers_t peers;
    ps_lane_args_t lane;
} ps_lane_port_args_t;

#define PS_LANES_MAX 4096

/* Errors: PSD_NOMEM, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_lane_port_new(const ps_lane_port_args_t *args,
                                             ps_lane_port_t **ret_port, psd_error_t *err);
/* Takes NULL, nulls *self_p. */
void ps_lane_port_close(ps_lane_port_t **self_p);
/* Listens at one more path. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_lane_port_bind(ps_lane_port_t *self, const char *path,
                                              psd_error_t *err);
/* Readable when ps_lane_port_look has something to look at. */
int ps_lane_port_fd(const ps_lane_port_t *self);
/* Handles clients that connect or leave, and bells, without waiting. */
void ps_lane_port_look(ps_lane_port_t *self);
/* The lane of conn; NULL when it is gone. */
ps_lane_t *ps_lane_port_at(ps_lane_port_t *self, uint64_t conn);
/* The next whole message of any lane; as ps_lane_receive. Without one after
 * many records it comes back, so that others have their turn;
 * ps_lane_port_is_ready then. */
PSD_MUST_CHECK psd_status_t ps_lane_port_receive(ps_lane_port_t *self, bool *ret_got,
                                                 uint64_t *ret_conn, ps_message_t *ret_message,
                                                 ps_payload_t **ret_payload, ps_room_t *ret_room,
                                                 psd_error_t *err);
/* The next lane that has ended and was read to its end. Its memory is kept
 * until the next call. false: there is none. */
PSD_MUST_CHECK bool ps_lane_port_gone(ps_lane_port_t *self, uint64_t *ret_conn);
/* Any lane has something, or has ended. */
bool ps_lane_port_is_ready(ps_lane_port_t *self);
/* As for one lane, for all. */
void ps_lane_port_flush(ps_lane_port_t *self);
PSD_MUST_CHECK bool ps_lane_port_sleep(ps_lane_port_t *self);
void ps_lane_port_wake(ps_lane_port_t *self);
/* Lanes that are open. */
size_t ps_lane_port_n(const ps_lane_port_t *self);
/* Those that have sent the beginning of a message in pieces. */
size_t ps_lane_port_n_unfinished(const ps_lane_port_t *self);
/* The number of clients that were refused a lane. */
uint64_t ps_lane_port_n_refused(const ps_lane_port_t *self);
#endif
