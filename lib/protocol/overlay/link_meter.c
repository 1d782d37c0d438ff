/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers that overlap share their time. */
#include "protocol/overlay/link_meter.h"

#include "protocol/overlay/rates.h"

void ps_link_meter_add(ps_link_meter_t *self, uint64_t bytes, uint64_t start_us, uint64_t end_us)
{
    uint64_t from_us = start_us > self->until_us ? start_us : self->until_us;

    self->bytes += bytes;
    if (end_us > from_us) {
        self->us += end_us - from_us;
        self->until_us = end_us;
    }
}

bool ps_link_meter_take(ps_link_meter_t *self, uint64_t *ret_bytes, uint64_t *ret_us)
{
    if (self->bytes < PS_RATES_MEASURE_BYTES) {
        return false;
    }
    *ret_bytes = self->bytes;
    *ret_us = self->us > 0 ? self->us : 1;
    self->bytes = 0;
    self->us = 0;
    return true;
}
