/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/facts/slow_log.h: parts of a request come together, and the slowest stay. */
#include "protocol/facts/slow_log.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

static ps_slow_log_t slow_log;

static ps_slow_t held(uint64_t request, uint64_t held_ms, uint64_t at_ms)
{
    return (ps_slow_t){.session = 7,
                       .request = request,
                       .table = 3,
                       .partition = 1,
                       .kind = PS_KIND_PUSH,
                       .rows = 2,
                       .bytes = 40,
                       .at_ms = at_ms,
                       .held_ms = held_ms,
                       .held_for = PS_HELD_ORDER};
}

static bool add(ps_slow_t slow)
{
    return ps_slow_log_add(&slow_log, &slow);
}

Test(slow_log, parts_of_a_request_are_one_entry)
{
    ps_slow_t part = held(1, 300, 1000);

    cr_expect(add(part));
    part.held_ms = 0;
    part.held_for = PS_HELD_NOT;
    part.work_us = 250000;
    cr_expect_not(add(part));
    part.work_us = 0;
    part.copies_ms = 400;
    part.at_ms = 1500;
    cr_expect_not(add(part));
    cr_assert_eq(slow_log.n, 1);
    cr_expect_eq(ps_slow_us(&slow_log.at[0]), 950000);
    cr_expect_eq(slow_log.at[0].held_for, PS_HELD_ORDER);
    cr_expect_eq(slow_log.at[0].at_ms, 1500);
    part.partition = 2;
    cr_expect(add(part), "of another partition it is another request");
}

Test(slow_log, a_slower_one_takes_the_place_of_the_fastest)
{
    for (uint64_t i = 0; i < PS_SLOW_MAX; i++) {
        cr_assert(add(held(i, 1000 + i, 5000)));
    }
    cr_assert(add(held(500, 999, 5001)));
    cr_assert_eq(slow_log.n, PS_SLOW_MAX);
    cr_assert(add(held(501, 1001, 5002)));
    for (uint64_t i = 0; i < PS_SLOW_MAX; i++) {
        cr_expect_neq(slow_log.at[i].request, 0, "the fastest had to go");
        cr_expect_neq(slow_log.at[i].request, 500, "it was faster than all");
    }
}

/* Every pull of a job may wait at its gate. */
Test(slow_log, time_at_a_gate_pushes_nothing_else_out)
{
    for (uint64_t i = 0; i < PS_SLOW_MAX; i++) {
        cr_assert(add(held(i, 300, 5000)));
    }
    for (uint64_t i = 0; i < PS_SLOW_MAX; i++) {
        ps_slow_t gated = held(1000 + i, 9000, 5001);

        gated.held_for = PS_HELD_CLOCK;
        cr_assert(add(gated));
    }
    for (uint64_t i = 0; i < PS_SLOW_MAX; i++) {
        cr_expect_lt(slow_log.at[i].request, 1000);
    }
}

Test(slow_log, one_that_is_older_than_a_minute_goes_first)
{
    for (uint64_t i = 0; i < PS_SLOW_MAX; i++) {
        cr_assert(add(held(i, 9000, i == 5 ? 1000 : 30000)));
    }
    cr_assert(add(held(500, 200, 1000 + PS_SLOW_KEPT_MS)));
    cr_expect_eq(slow_log.at[5].request, 500);
}

Test(slow_log, an_entry_is_printed_with_its_age_and_its_parts)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new_array();
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    ps_slow_t slow = held(1, 300, 1000);

    cr_assert(add(slow));
    slow.request = 2;
    slow.held_for = PS_HELD_CLOCK;
    slow.job = 9;
    slow.worker = 4;
    cr_assert(add(slow));
    cr_assert(ps_slow_log_print(&slow_log, 1200, doc) && ps_doc_print(doc, &text) &&
              ps_buffer_append(&text, "", 1));
    cr_expect_str_eq(
        (const char *)text.data,
        "[{\"ago_ms\":200,\"kind\":\"PUSH\",\"table\":3,\"partition\":1,\"session\":7,\"request\":"
        "1,"
        "\"rows\":2,\"bytes\":40,\"total_us\":300000,\"gate_us\":0,\"queue_us\":300000,"
        "\"work_us\":0,\"copies_us\":0,\"flush_us\":0,\"held_for\":\"order\"},"
        "{\"ago_ms\":200,\"kind\":\"PUSH\",\"table\":3,\"partition\":1,\"session\":7,\"request\":2,"
        "\"rows\":2,\"bytes\":40,\"job\":9,\"worker\":4,\"clock\":0,\"total_us\":300000,"
        "\"gate_us\":300000,\"queue_us\":0,\"work_us\":0,\"copies_us\":0,\"flush_us\":0,"
        "\"held_for\":\"clock\"}]");
}

Test(slow_log, without_memory_nothing_is_printed)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new_array();

    cr_assert(add(held(1, 300, 1000)));
    fail_alloc_at(0);
    cr_expect_not(ps_slow_log_print(&slow_log, 1200, doc));
    fail_alloc_off();
}
