/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/transport: what the carriers of one socket share. */
#ifndef PS_TRANSPORT_SOCKET_PARTS_H
#define PS_TRANSPORT_SOCKET_PARTS_H

#include "transport/sockets/socket_inner.h"

/* Keeps a copy of endpoint as the next one. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_socket_keep_endpoint(ps_socket_t *self, const char *endpoint,
                                                    psd_error_t *err);

/* The unfinished messages of a connection whose frames are received; made when
 * there are none. NULL: no memory. */
ps_unfinished_t *ps_unfinished_of(ps_socket_t *self, uint64_t conn);
/* Drops them. */
void ps_unfinished_forget(ps_socket_t *self, uint64_t conn);
/* The next connection that has stopped in the middle of a message. */
PSD_MUST_CHECK bool ps_unfinished_next_stale(const ps_socket_t *self, uint64_t now_ms,
                                             uint64_t *ret_conn);
/* Drops those of all. */
void ps_unfinished_done(ps_socket_t *self);
#endif
