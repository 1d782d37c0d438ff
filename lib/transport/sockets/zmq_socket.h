/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/transport: the carrier ZeroMQ, over tcp and ipc. */
#ifndef PS_TRANSPORT_ZMQ_SOCKET_H
#define PS_TRANSPORT_ZMQ_SOCKET_H

#include "transport/sockets/frames.h"

/* Opens the handle of a new socket. Errors: PSD_NOMEM, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_zmq_open(ps_socket_t *self, const ps_socket_args_t *args,
                                        psd_error_t *err);
/* What is queued is dropped at the close. */
void ps_zmq_drop(ps_socket_t *self);

/* zmq_frames.c; as in ps_carrier_t */
PSD_MUST_CHECK psd_status_t ps_zmq_put(ps_socket_t *self, ps_departure_t *parcel, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_zmq_take(ps_socket_t *self, ps_arrival_t *arrival, bool *ret_got,
                                        psd_error_t *err);
#endif
