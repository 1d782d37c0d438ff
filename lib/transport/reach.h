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

/*
 * endpoint  in   as of ps_socket_connect, over tcp or ipc
 * ret_why   out  "Connection refused", "host \"x\": Name or service not known",
 *                "somebody listens there and does not answer" …; "" when not
 *                even that can be told
 * Returns   whether somebody listens there
 */
bool ps_reach_why(const char *endpoint,
                  uint32_t wait_ms,
                  char ret_why[PS_REACH_TEXT]);
#endif
