/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/sockets/carrier.h"

#include <string.h>

#include "transport/lane/lane_meet.h"
#include "transport/sockets/plugin_socket.h"

const ps_carrier_t *ps_carrier_of(const char *endpoint)
{
    if (strncmp(endpoint, PS_LANE_PREFIX, strlen(PS_LANE_PREFIX)) == 0) {
        return &ps_carrier_lane;
    }
    return ps_plugin_name_of(endpoint) == NULL ? &ps_carrier_zmq : &ps_carrier_plugin;
}
