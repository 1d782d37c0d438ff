/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_ucx_process - the UCX of the process, and the thread that calls it
 *
 * What     The first call begins UCX and starts the thread, which sleeps on UCX's
 *          descriptors while nothing comes and nothing is to be sent. At exit it sends for
 *          a while what is queued.
 * Threads  Any. A forked child has none of it.
 */
#ifndef PS_UCX_PROCESS_H
#define PS_UCX_PROCESS_H

#include <sys/socket.h>

#include "hall/hall.h"

/* The hall of the process. ret_reason: why not. Returns 0 or an errno. */
int ps_ucx_enter(ps_hall_t **ret_hall, char ret_reason[PS_CARRIER_REASON]);
/* Others may connect to a port of the hall from now on; ret_at: where. Waits for the thread.
 * Returns 0 or an errno. */
int ps_ucx_listen(const struct sockaddr_storage *at, uint32_t port,
                  struct sockaddr_storage *ret_at);
/* Waits for the thread, so that the address is free. */
void ps_ucx_unlisten(uint32_t port);
/* Makes the way to a peer that the hall has added. Returns 0 or an errno. */
int ps_ucx_connect(int peer, const struct sockaddr_storage *at);
/* Bytes that went through UCX; 0 where it has not begun. */
void ps_ucx_count(uint64_t *ret_sent, uint64_t *ret_received);
#endif
