/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_reach - why there is no answer at an endpoint
 *
 * What     ZeroMQ retries a connection forever and does not report why it
 *          fails. A caller that got no answer asks here, once: it resolves the
 *          host and connects by itself, beside ZeroMQ.
 * Time     wait_ms at most, even for a slow resolver: that one goes on in its
 *          own thread and is forgotten
 * Threads  any
 */
#ifndef PS_TRANSPORT_REACH_H
#define PS_TRANSPORT_REACH_H

#include <stdbool.h>
#include <stdint.h>

#define PS_REACH_TEXT 192

typedef enum ps_reach {
    PS_REACH_UNKNOWN = 0,     /* it takes longer, or is unknown */
    PS_REACH_LISTENS = 1,     /* a process listens there, but does not answer */
    PS_REACH_REFUSED = 2,     /* another host refuses the connection, or
                                 there is no host of that name */
    PS_REACH_REFUSED_HERE = 3 /* refused at an address of this host */
} ps_reach_t;

/*
 * endpoint  in   as of ps_socket_connect, over tcp or ipc
 * ret_why   out  "Connection refused", "host \"x\": Name or service not known",
 *                "somebody listens there and does not answer as psd does: …";
 * "" when not even that can be told
 */
ps_reach_t ps_reach_why(const char *endpoint, uint32_t wait_ms, char ret_why[PS_REACH_TEXT]);
/* Whether a connection to an ipc endpoint succeeds now. A socket file alone
 * proves nothing: its listener may be gone, or on another host that shares the
 * directory. Does not wait. */
bool ps_reach_ipc_listens(const char *endpoint);
/* The same: 0, or the system's number of why not; EINVAL: it is not of ipc. */
int ps_reach_ipc(const char *endpoint);
#endif
