/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_reach - why nobody answers at an endpoint
 *
 * What     ZeroMQ tries to connect for ever and keeps to itself what fails. Who
 *          has waited in vain asks here, once: the system looks the host up and
 *          connects, beside ZeroMQ.
 * Time     wait_ms at most, for a resolver too: that one goes on in a thread of
 *          its own and is forgotten
 * Threads  any
 */
#ifndef PS_TRANSPORT_REACH_H
#define PS_TRANSPORT_REACH_H

#include <stdbool.h>
#include <stdint.h>

#define PS_REACH_TEXT 192

typedef enum ps_reach {
    PS_REACH_UNKNOWN = 0,     /* it takes longer, or cannot be told */
    PS_REACH_LISTENS = 1,     /* somebody does there, and does not answer */
    PS_REACH_REFUSED = 2,     /* another host says that nobody does, or
                                 there is no host of that name */
    PS_REACH_REFUSED_HERE = 3 /* nobody does, at an address of this host */
} ps_reach_t;

/*
 * endpoint  in   as of ps_socket_connect, over tcp or ipc
 * ret_why   out  "Connection refused", "host \"x\": Name or service not known",
 *                "somebody listens there and does not answer as psd does: …";
 * "" when not even that can be told
 */
ps_reach_t ps_reach_why(const char *endpoint, uint32_t wait_ms, char ret_why[PS_REACH_TEXT]);
/* Whether connecting to an ipc endpoint succeeds now. A socket file alone does
 * not tell: who listened there may be gone, or on another host that shares the
 * directory. Waits for nothing. */
bool ps_reach_ipc_listens(const char *endpoint);
#endif
