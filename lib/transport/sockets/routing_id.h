/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/transport: the names that ZeroMQ gives to a port's peers, as
 * numbers: a 0 byte and a counter of 32 bits, high byte first. Connections are
 * numbered from 1, because 0 names the peer of a link. */
#ifndef PS_TRANSPORT_ROUTING_ID_H
#define PS_TRANSPORT_ROUTING_ID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define PS_ROUTING_ID_SIZE 5

static inline void ps_routing_id_of(uint64_t conn, uint8_t ret_id[PS_ROUTING_ID_SIZE])
{
    uint32_t number = (uint32_t)(conn - 1);

    ret_id[0] = 0;
    ret_id[1] = (uint8_t)(number >> 24);
    ret_id[2] = (uint8_t)(number >> 16);
    ret_id[3] = (uint8_t)(number >> 8);
    ret_id[4] = (uint8_t)number;
}

/* False when the peer has chosen its name by itself. */
static inline bool ps_routing_id_conn(ps_bytes_t id, uint64_t *ret_conn)
{
    uint32_t number = 0;

    if (id.size != PS_ROUTING_ID_SIZE || id.data[0] != 0) {
        return false;
    }
    for (int i = 1; i < PS_ROUTING_ID_SIZE; i++) {
        number = number << 8 | id.data[i];
    }
    *ret_conn = (uint64_t)number + 1;
    return true;
}
#endif
