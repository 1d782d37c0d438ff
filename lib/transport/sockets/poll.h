/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_poll - sleeping on ZeroMQ sockets and descriptors with few system calls
 *
 * What     zmq_poll asks every socket before it sleeps and again afterwards,
 *          with two system calls each time. There is no need to ask a socket
 *          that had nothing when it was last asked and was not used since: its
 *          descriptor becomes readable with its next event. Any use of a
 *          socket, also a send, may consume that event; so the caller clears
 *          is_dry with every use.
 * Owner    The caller; nothing is kept.
 * Threads  That of the sockets.
 */
#ifndef PS_TRANSPORT_POLL_H
#define PS_TRANSPORT_POLL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct ps_poll_item {
    void *socket;  /* of ZeroMQ; NULL: the descriptor is all */
    int fd;        /* the socket's, see ps_poll_fd, or any other */
    bool is_dry;   /* in and out: the socket had nothing, and was not used since */
    bool is_ready; /* out: there is something to receive */
} ps_poll_item_t;

/* Asks the socket itself. An error counts as ready: a receive or the next wait
 * will return it. */
bool ps_poll_has_some(void *socket);
/* The socket's descriptor, the same for all its life; -1: the call failed, see
 * zmq_errno. */
int ps_poll_fd(void *socket);
/*
 * Waits until an item is ready, for timeout_ms at most (-1: forever). A signal
 * ends the wait early with nothing ready.
 *
 * fds  room for n descriptors; its content means nothing
 *
 * Returns 0, or -1 with an error that zmq_errno names.
 */
int ps_poll(ps_poll_item_t *items, struct pollfd *fds, size_t n, long timeout_ms);
#endif
