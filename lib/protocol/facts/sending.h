/* SPDX-License-Identifier: Apache-2.0 */
/* ps_sending - values that a shard has sent and that are in flight. The shard's
 * owner, which knows the connections, tells the shard about them. */
#ifndef PS_PROTOCOL_SENDING_H
#define PS_PROTOCOL_SENDING_H

#include <stdint.h>

typedef struct ps_sending {
    uint64_t sent;  /* bytes that have arrived, of … */
    uint64_t bytes; /* … this total; 0: nothing is in flight */
} ps_sending_t;

/* Connections that a client may have to a shard: one, and one for bulk. */
#define PS_SENDING_CONNS 2
#endif
