/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "base/alloc.h"
#include "protocol/partition/open_clock.h"
#include "support/fail_alloc.h"

static bool add(ps_open_clock_t *clock, uint32_t worker, uint32_t member, uint64_t seq)
{
    static const uint8_t value[8];
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0}, (ps_bytes_t){value, sizeof value});

    return payload != NULL && ps_open_clock_add(clock, &(ps_logged_t){.worker = worker,
                                                                      .n = 1,
                                                                      .member = member,
                                                                      .session = 10 + worker,
                                                                      .seq = seq,
                                                                      .payload = payload});
}

Test(open_clock, applies_in_the_order_worker_member_seq)
{
    static const uint32_t expected[][3] = {{0, 0, 1}, {0, 0, 2}, {0, 1, 1}, {1, 0, 1}, {1, 0, 2}};
    PSD_AUTO(ps_open_clock_done) ps_open_clock_t clock = {0};

    cr_assert(add(&clock, 1, 0, 1));
    cr_assert(add(&clock, 0, 1, 1));
    cr_assert(add(&clock, 0, 0, 1));
    cr_assert(add(&clock, 1, 0, 2));
    cr_assert(add(&clock, 0, 0, 2));
    cr_expect_eq(clock.bytes, 5 * (sizeof(ps_logged_t) + 8));
    ps_open_clock_sort(&clock);
    for (size_t i = 0; i < 5; i++) {
        cr_expect_eq(clock.pushes[i].worker, expected[i][0]);
        cr_expect_eq(clock.pushes[i].member, expected[i][1]);
        cr_expect_eq(clock.pushes[i].seq, expected[i][2]);
    }
}

Test(open_clock, drops_what_was_applied)
{
    PSD_AUTO(ps_open_clock_done) ps_open_clock_t clock = {0};

    cr_assert(add(&clock, 0, 0, 1));
    cr_assert(add(&clock, 0, 0, 2));
    ps_open_clock_drop(&clock, 1);
    cr_expect_eq(clock.n_pushes, 1);
    cr_expect_eq(clock.pushes[0].seq, 2);
    cr_expect_eq(clock.bytes, sizeof(ps_logged_t) + 8);
}

static psd_status_t add_two(void *fixture)
{
    PSD_AUTO(ps_open_clock_done) ps_open_clock_t clock = {0};

    (void)fixture;
    return add(&clock, 0, 0, 1) && add(&clock, 0, 0, 2) ? PSD_OK : PSD_NOMEM;
}

Test(open_clock, survives_every_failed_allocation)
{
    cr_assert_null(fail_alloc_sweep(add_two, NULL));
}

Test(open_clock, sorts_by_clock_and_changes_in_place_first)
{
    static const uint64_t expected[] = {3, 2, 4, 1, 5};
    PSD_AUTO(ps_open_clock_done) ps_open_clock_t clock = {0};

    cr_assert(add(&clock, 1, 0, 1) && add(&clock, 0, 0, 2) && add(&clock, 7, 0, 3) &&
              add(&clock, 0, 1, 4) && add(&clock, 0, 0, 5));
    clock.pushes[2].op.op = 1;
    clock.pushes[4].clock = 1;
    ps_open_clock_sort_by_clock(&clock);
    for (size_t i = 0; i < 5; i++) {
        cr_expect_eq(clock.pushes[i].seq, expected[i]);
    }
}
