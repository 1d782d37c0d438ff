/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_patience - how long a member of the registry waits for the next message of another
 *
 * What     Members that hear each other late, because the machine or the network is
 *          busy, would take a leader that lives for dead, over and over. So a member
 *          waits four times the longest gap that it has seen lately between two
 *          messages of one that lives.
 * Shape    least_ms .. most_ms, in steps of 100 ms. A gap counts for 5 to 10 s. One of more than
 *          four times most_ms does not: somebody was away.
 * Units    ms of a clock that never goes back
 * Owner    A plain value; least_ms and most_ms are set by the caller.
 */
#ifndef PS_PROTOCOL_QUORUM_PATIENCE_H
#define PS_PROTOCOL_QUORUM_PATIENCE_H

#include <stdint.h>

typedef struct ps_patience {
    uint32_t least_ms;
    uint32_t most_ms;
    uint64_t since_ms;    /* when this window began … */
    uint64_t worst_ms[2]; /* … the longest gap in it, and in the one before */
} ps_patience_t;

/* One that lives was not heard for so long. */
void ps_patience_note(ps_patience_t *self, uint64_t gap_ms, uint64_t now_ms);
/* How long to wait now. */
uint32_t ps_patience_ms(ps_patience_t *self, uint64_t now_ms);
#endif
