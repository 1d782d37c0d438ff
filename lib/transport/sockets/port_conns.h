/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_port_conns - the connections over ZeroMQ that a port has greeted
 *
 * What     Which connections sent HELLO or PEER, their file descriptors,
 *          whether the answer was WELCOME, and which answers with large bodies
 *          are in flight to them. A ROUTER does not report that a peer is gone;
 *          its monitor names the descriptor.
 * Units    bytes; sent is what the kernel at the other end has acknowledged
 * Owner    The socket.
 * Threads  The socket's; ZeroMQ's threads only count what they are done with.
 */
#ifndef PS_TRANSPORT_PORT_CONNS_H
#define PS_TRANSPORT_PORT_CONNS_H

#include "base/map.h"

typedef struct ps_port_conns {
    ps_map_t by_conn; /* conn -> ps_port_conn_t, owned */
    ps_map_t by_fd;   /* fd + 1 -> the same, borrowed */
} ps_port_conns_t;

/* How many bytes of one lent answer ZeroMQ is done with. */
typedef struct ps_transit ps_transit_t;

void ps_port_conns_done(ps_port_conns_t *self);
/* The connection has identified itself, and its descriptor is fd. An older
 * connection with the same fd is gone: *ret_gone, else 0. Of two, the one with
 * the higher ZeroMQ number lives: an older one that identifies itself only now
 * is gone, and is not added. false: no memory. */
PSD_MUST_CHECK bool ps_port_conns_greet(ps_port_conns_t *self, uint64_t conn, int fd,
                                        uint64_t *ret_gone);
/* It was greeted, and is not known to be closed. */
bool ps_port_conns_has(const ps_port_conns_t *self, uint64_t conn);
/* It is answered WELCOME. */
void ps_port_conns_welcome(ps_port_conns_t *self, uint64_t conn);
bool ps_port_conns_is_welcome(const ps_port_conns_t *self, uint64_t conn);
/* The descriptor is closed: the connection that it was; 0: none we know. */
uint64_t ps_port_conns_closed(ps_port_conns_t *self, int fd);

/* Messages cannot be sent to conn any more: removes it as if it were closed,
 * with the answers in flight to it. false: it was not known. */
bool ps_port_conns_lost(ps_port_conns_t *self, uint64_t conn);

/* Begins to send the answer to a request to conn; a call of ps_transit_lend for
 * each of its frames follows. NULL: the connection is not known, or there is no
 * memory: the answer is not tracked. Borrowed until the next call for conn. */
ps_transit_t *ps_port_conns_begin(ps_port_conns_t *self, uint64_t conn, uint64_t request,
                                  uint64_t epoch, uint64_t bytes);
/* Lends these bytes of it to ZeroMQ; when they come back, on any thread, call
 * ps_transit_done. */
void ps_transit_lend(ps_transit_t *self, uint64_t bytes);
void ps_transit_done(ps_transit_t *self, uint64_t bytes);
/* The answer that began last was cut off: it is not on its way. */
void ps_port_conns_fail(ps_port_conns_t *self, uint64_t conn);
/*
 * How far the answer to a request has been sent to conn. false: there is none,
 * or it is of an epoch before `epoch`, which is of no use to the client.
 * An answer that has arrived is found for one more second: a retry may have
 * crossed it, or the client's process does not get to run.
 */
PSD_MUST_CHECK bool ps_port_conns_find(ps_port_conns_t *self, uint64_t conn, uint64_t request,
                                       uint64_t epoch, uint64_t now_ms, uint64_t *ret_sent,
                                       uint64_t *ret_bytes);
#endif
