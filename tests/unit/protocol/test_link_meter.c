/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/overlay/link_meter.h: bytes, and the time in which any were under way. */
#include "protocol/overlay/link_meter.h"

#include <criterion/criterion.h>

#include "protocol/overlay/rates.h"

#define PART (PS_RATES_MEASURE_BYTES / 2)

Test(link_meter, transfers_that_overlap_share_their_time)
{
    ps_link_meter_t meter = {.bytes = 0};
    uint64_t bytes = 0;
    uint64_t us = 0;

    ps_link_meter_add(&meter, PART, 1000, 1100);
    ps_link_meter_add(&meter, PART, 1000, 1200);
    ps_link_meter_add(&meter, PART, 1150, 1250);
    ps_link_meter_add(&meter, PART, 5000, 5010);
    cr_assert(ps_link_meter_take(&meter, &bytes, &us));
    cr_assert_eq(bytes, 4 * PART);
    cr_assert_eq(us, 260);
    cr_assert_not(ps_link_meter_take(&meter, &bytes, &us));
}

Test(link_meter, a_little_waits_for_more)
{
    ps_link_meter_t meter = {.bytes = 0};
    uint64_t bytes = 7;
    uint64_t us = 7;

    ps_link_meter_add(&meter, PART, 10, 20);
    cr_assert_not(ps_link_meter_take(&meter, &bytes, &us));
    cr_assert_eq(bytes, 7);
    ps_link_meter_add(&meter, PART, 15, 19);
    cr_assert(ps_link_meter_take(&meter, &bytes, &us));
    cr_assert_eq(us, 10, "the second ended within the first");
}

Test(link_meter, no_transfer_takes_no_time)
{
    ps_link_meter_t meter = {.bytes = 0};
    uint64_t bytes = 0;
    uint64_t us = 0;

    ps_link_meter_add(&meter, 2 * PART, 10, 10);
    cr_assert(ps_link_meter_take(&meter, &bytes, &us));
    cr_assert_eq(us, 1);
}
