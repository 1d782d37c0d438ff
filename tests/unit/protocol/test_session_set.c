/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/facts/session_set.h: what is over stays over, in little memory. */
#include "protocol/facts/session_set.h"

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/fail_alloc.h"

#define MOST PS_SESSION_RUNS_MAX

static void add(ps_session_set_t *set, uint64_t first, uint64_t last)
{
    cr_assert(ps_session_set_add(set, first, last));
}

Test(session_set, neighbours_become_one)
{
    PSD_AUTO(ps_session_set_done) ps_session_set_t set = {0};

    add(&set, 5, 5);
    add(&set, 7, 9);
    cr_expect_eq(set.n, 2);
    cr_expect_not(ps_session_set_has(&set, 4));
    cr_expect(ps_session_set_has(&set, 5));
    cr_expect_not(ps_session_set_has(&set, 6));
    cr_expect(ps_session_set_has(&set, 9));
    add(&set, 6, 6);
    cr_expect_eq(set.n, 1, "5 .. 9");
    add(&set, 1, 20);
    cr_expect_eq(set.n, 1, "1 .. 20 has it all");
    cr_expect(ps_session_set_has(&set, 1) && ps_session_set_has(&set, 20));
    add(&set, 3, 4);
    cr_expect_eq(set.n, 1, "it was there");
}

Test(session_set, the_ends_of_the_numbers)
{
    PSD_AUTO(ps_session_set_done) ps_session_set_t set = {0};

    add(&set, 0, 0);
    add(&set, UINT64_MAX, UINT64_MAX);
    add(&set, 1, 1);
    add(&set, UINT64_MAX - 1, UINT64_MAX - 1);
    cr_expect_eq(set.n, 2);
    cr_expect(ps_session_set_has(&set, UINT64_MAX));
    cr_expect_not(ps_session_set_has(&set, 2));
    add(&set, 0, UINT64_MAX);
    cr_expect_eq(set.n, 1);
}

/* Compared with a plain table of all numbers. */
Test(session_set, it_is_the_set_of_what_was_added)
{
    bool plain[400] = {false};
    ps_rng_t rng = {22};
    PSD_AUTO(ps_session_set_done) ps_session_set_t set = {0};

    for (int i = 0; i < 150; i++) {
        uint64_t first = ps_rng_below(&rng, 390);
        uint64_t last = first + ps_rng_below(&rng, 4);

        add(&set, first, last);
        for (uint64_t k = first; k <= last; k++) {
            plain[k] = true;
        }
        for (uint64_t k = 0; k < 400; k++) {
            cr_assert_eq(ps_session_set_has(&set, k), plain[k]);
        }
        for (size_t k = 1; k < set.n; k++) {
            cr_assert_gt(set.runs[k].first, set.runs[k - 1].last + 1);
        }
    }
}

Test(session_set, when_there_are_too_many_the_nearest_are_joined)
{
    PSD_AUTO(ps_session_set_done) ps_session_set_t set = {0};

    for (uint64_t i = 0; i < MOST; i++) {
        add(&set, 1000 + 10 * i, 1000 + 10 * i);
    }
    add(&set, 1000 + 10 * MOST + 3, 1000 + 10 * MOST + 3);
    cr_expect_eq(set.n, MOST);
    cr_expect(ps_session_set_has(&set, 1005), "the lowest of the nearest");
    cr_expect_not(ps_session_set_has(&set, 1015));
    cr_expect_not(ps_session_set_has(&set, 7), "the oldest client lives on");
    for (uint64_t i = 0; i < MOST; i++) {
        cr_assert(ps_session_set_has(&set, 1000 + 10 * i));
    }
}

Test(session_set, bytes_and_back)
{
    PSD_AUTO(ps_session_set_done) ps_session_set_t set = {0};
    PSD_AUTO(ps_session_set_done) ps_session_set_t back = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_cursor_t cursor;

    add(&set, 3, 4);
    add(&set, 9, 9);
    cr_assert(ps_session_set_put(&set, &bytes));
    cr_assert_eq(bytes.size, 4 + 2 * 16);
    for (size_t cut = 0; cut < bytes.size; cut++) {
        PSD_AUTO(ps_session_set_done) ps_session_set_t part = {0};

        cursor = ps_cursor_over((ps_bytes_t){bytes.data, cut});
        if (ps_session_set_take(&cursor, &part, NULL) == PSD_OK) {
            cr_expect(cursor.failed, "cut at %zu", cut);
        }
    }
    cursor = ps_cursor_over((ps_bytes_t){bytes.data, bytes.size});
    cr_assert_eq(ps_session_set_take(&cursor, &back, NULL), PSD_OK);
    cr_expect(ps_session_set_equal(&set, &back));
}

static psd_status_t take_runs(uint32_t n, const uint64_t *runs, psd_error_t *err)
{
    PSD_AUTO(ps_session_set_done) ps_session_set_t set = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_cursor_t cursor;

    cr_assert(ps_buffer_u32(&bytes, n));
    for (uint32_t i = 0; i < 2 * n && n < 10; i++) {
        cr_assert(ps_buffer_u64(&bytes, runs[i]));
    }
    cursor = ps_cursor_over((ps_bytes_t){bytes.data, bytes.size});
    return ps_session_set_take(&cursor, &set, err);
}

Test(session_set, runs_that_are_none_are_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();

    cr_expect_eq(take_runs(1, (uint64_t[]){4, 3}, err), PSD_PROTO);
    psd_error_clear(err);
    cr_expect_eq(take_runs(2, (uint64_t[]){1, 2, 3, 4}, err), PSD_PROTO, "no session between");
    psd_error_clear(err);
    cr_expect_eq(take_runs(2, (uint64_t[]){7, 8, 1, 2}, err), PSD_PROTO);
    psd_error_clear(err);
    cr_expect_eq(take_runs(PS_SESSION_RUNS_MAX + 1, NULL, err), PSD_PROTO);
    cr_expect_str_eq(psd_error_text(err), "a state has 4097 runs of forgotten sessions; allowed: "
                                          "4096");
}

Test(session_set, without_memory_nothing_changes)
{
    PSD_AUTO(ps_session_set_done) ps_session_set_t set = {0};

    fail_alloc_at(0);
    cr_expect_not(ps_session_set_add(&set, 1, 1));
    fail_alloc_off();
    cr_expect_eq(set.n, 0);
    ps_session_set_drop_lowest(&set);
    add(&set, 1, 1);
    ps_session_set_drop_lowest(&set);
    cr_expect_not(ps_session_set_has(&set, 1));
}
