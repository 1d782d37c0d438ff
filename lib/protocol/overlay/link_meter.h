/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_link_meter - how fast one end sends to another, from its transfers
 *
 * What     Bytes, and the time in which any of them were under way. Transfers that overlap share
 *          their time: many small ones count as one large one.
 * Units    Bytes; microseconds of any clock that does not go back.
 * Owner    A plain value; zero it first.
 * Threads  One at a time.
 */
#ifndef PS_PROTOCOL_OVERLAY_LINK_METER_H
#define PS_PROTOCOL_OVERLAY_LINK_METER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ps_link_meter {
    uint64_t bytes;
    uint64_t us;
    uint64_t until_us; /* the time up to this is counted */
} ps_link_meter_t;

/* A transfer has ended. Transfers are added in the order of their ends. */
void ps_link_meter_add(ps_link_meter_t *self, uint64_t bytes, uint64_t start_us, uint64_t end_us);
/* Takes out what was measured. false: it is less than PS_RATES_MEASURE_BYTES, and stays. */
bool ps_link_meter_take(ps_link_meter_t *self, uint64_t *ret_bytes, uint64_t *ret_us);
#endif
