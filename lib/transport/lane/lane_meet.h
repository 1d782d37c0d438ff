/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_lane_meet - the handshake of a lane
 *
 * What     The server listens on a unix socket of records. It checks the user
 *          of a client that connects, and at once sends it the memory, or the
 *          reason why not; the client sends nothing. The connection stays open:
 *          it is the bell, and when it ends the lane ends.
 */
#ifndef PS_TRANSPORT_LANE_MEET_H
#define PS_TRANSPORT_LANE_MEET_H

#include "transport/lane/door.h"
#include "transport/lane/lane_share.h"

#define PS_LANE_PREFIX "lane://"

/* The path of a "lane://" endpoint. Errors: PSD_INVALID with what is allowed.
 */
PSD_MUST_CHECK psd_status_t ps_lane_path(const char *endpoint, const char **ret_path,
                                         psd_error_t *err);

/* Listens at path. Errors: those of ps_door_listen. */
PSD_MUST_CHECK psd_status_t ps_lane_listen_at(const char *path, ps_door_peers_t peers, int *ret_fd,
                                              psd_error_t *err);
/* The next client that connected; -1: there is none, or none can be accepted
 * now. */
int ps_lane_accept(int listener);
/* Sends the memory to the client. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_lane_hand_over(int fd, const ps_lane_sizes_t *sizes, int memory,
                                              psd_error_t *err);
/* Says why there is no lane. */
void ps_lane_turn_away(int fd, psd_status_t status, const char *text);

/* Connects and takes the memory. Errors: PSD_CONNECT (nobody listens there, or
 * nothing came within wait_ms), PSD_PROTO, PSD_VERSION, what the server says,
 * PSD_NOMEM, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_lane_meet(const char *path, uint32_t wait_ms, int *ret_fd,
                                         ps_lane_share_t **ret_share, psd_error_t *err);
#endif
