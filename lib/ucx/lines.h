/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/ucx: the carrier in the plug-in libpsd-ucx.so
 *
 * It is       Messages between processes over UCX, which meet at an address of tcp. One thread
 *             of the process calls UCX; the others speak to it through the hall.
 * It uses     lib/hall, lib/transport/threads, lib/base; ucx.
 * It ignores  What is in a frame, sockets, sessions, retries.
 * Start at    this page, then process.h; plugin.c is the table.
 */
/*
 * ps_ucx_lines - the ways to other processes, one line for each link
 *
 * What     A line is an endpoint of UCX between two processes, over the transports that UCX
 *          chooses among those that tell when the other one is gone; of shared memory UCX
 *          1.13 has none. Both sides first say which number the line has there.
 * Shape    A line's number is that of its peer in the hall. Cargo has numbers of its
 *          line, and is taken in their order, for UCX promises none. Who has
 *          connected and has no channel left says so; the other one closes the line
 *          when it has taken all.
 * Threads  One, that of process.c; the counts may be read by any.
 */
#ifndef PS_UCX_LINES_H
#define PS_UCX_LINES_H

#include <sys/socket.h>

#include "hall/hall.h"

#define PS_UCX_MOST 64 /* sends on one line at a time */

typedef struct ps_ucx_lines ps_ucx_lines_t;

/* Begins UCX. ret_reason: why not. NULL: it did not. */
ps_ucx_lines_t *ps_ucx_lines_new(ps_hall_t *hall, char ret_reason[PS_CARRIER_REASON]);
/* Takes NULL. */
void ps_ucx_lines_destroy(ps_ucx_lines_t **self_p);
/* Lets others connect to a port of the hall, at an address, whose own port may be 0. ret_at: the
 * whole address. Returns 0 or an errno. */
int ps_ucx_lines_listen(ps_ucx_lines_t *self, const struct sockaddr_storage *at, uint32_t port,
                        struct sockaddr_storage *ret_at);
void ps_ucx_lines_unlisten(ps_ucx_lines_t *self, uint32_t port);
/* Makes the line to a peer of the hall. One that cannot be made is lost. */
void ps_ucx_lines_connect(ps_ucx_lines_t *self, int peer, const struct sockaddr_storage *at);
/* Sends, and takes in what came. true: something moved. */
bool ps_ucx_lines_turn(ps_ucx_lines_t *self);
/* The thread will sleep on that descriptor. false: there is something to do. */
bool ps_ucx_lines_lie_down(ps_ucx_lines_t *self, int *ret_fd);
/* Some line is there. */
bool ps_ucx_lines_are_open(const ps_ucx_lines_t *self);
/* Bytes that were sent and received; from any thread. */
void ps_ucx_lines_count(const ps_ucx_lines_t *self, uint64_t *ret_sent, uint64_t *ret_received);
#endif
