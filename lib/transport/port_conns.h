/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_port_conns - the connections over ZeroMQ that a port has greeted
 *
 * What     Who said HELLO or PEER, by which file descriptor, and whether
 *          WELCOME was the answer. A ROUTER does not say when a peer goes; its
 *          monitor names the descriptor.
 * Owner    The socket.
 * Threads  The socket's.
 */
#ifndef PS_TRANSPORT_PORT_CONNS_H
#define PS_TRANSPORT_PORT_CONNS_H

#include "base/map.h"

typedef struct ps_port_conns {
    ps_map_t by_conn; /* conn -> ps_port_conn_t, owned */
    ps_map_t by_fd;   /* fd + 1 -> the same, borrowed */
} ps_port_conns_t;

void ps_port_conns_done(ps_port_conns_t *self);
/* The connection says who it is, and is fd. One that was fd before is gone:
 * *ret_gone, else 0. false: no memory. */
PSD_MUST_CHECK bool ps_port_conns_greet(ps_port_conns_t *self,
                                        uint64_t conn,
                                        int fd,
                                        uint64_t *ret_gone);
/* It is answered WELCOME. */
void ps_port_conns_welcome(ps_port_conns_t *self, uint64_t conn);
bool ps_port_conns_is_welcome(const ps_port_conns_t *self, uint64_t conn);
/* The descriptor is closed: the connection that it was; 0: none we know. */
uint64_t ps_port_conns_closed(ps_port_conns_t *self, int fd);

/* Nothing can be sent to conn any more: it is forgotten as when it is closed.
 * false: it was not known. */
bool ps_port_conns_lost(ps_port_conns_t *self, uint64_t conn);
#endif
