/* SPDX-License-Identifier: Apache-2.0 */
/* Which groups of contributors are taken, answered again, or split. */
#include <criterion/criterion.h>

#include "base/alloc.h"
#include "protocol/partition/bundle_turn.h"

static ps_table_spec_t spec;
static ps_table_use_t use;
static ps_partition_t *partition;
static size_t n_in;

static void setup(void)
{
    ps_table_spec_init(&spec);
    memcpy(spec.name, "w", 2);
    spec.n_rows = 4;
    spec.n_partitions = 1;
    spec.n_col_slices = 1;
    cr_assert_eq(ps_partition_new(&spec, &use, 1, 0, 1, &partition, NULL), PSD_OK);
}

static void teardown(void)
{
    ps_partition_destroy(&partition);
}

TestSuite(bundle_turn, .init = setup, .fini = teardown);

/* The session's first seqs are finished here. */
static void finish(uint64_t session, uint64_t n)
{
    ps_window_t *window = ps_map_get(&partition->windows, session);

    if (window == NULL) {
        window = ps_window_new(session);
        cr_assert(window != NULL && ps_map_put(&partition->windows, session, window));
    }
    while (window->next <= n) {
        ps_window_finish(window, window->next);
    }
}

static ps_bundle_turn_t turn_of(const ps_bundle_from_t *from, size_t n)
{
    return ps_bundle_turn(partition, from, n, &n_in);
}

/* Two origins: session 7 of worker 0 at seqs 3 and 4, session 8 of worker 1 at
 * its first. */
static const ps_bundle_from_t PAIR[] = {
    {.session = 7, .first_seq = 3, .last_seq = 4, .worker = 0, .marks = true},
    {.session = 8, .first_seq = 1, .last_seq = 1, .worker = 1, .marks = true},
};

Test(bundle_turn, each_range_that_is_next_is_taken)
{
    finish(7, 2);
    cr_assert_eq(turn_of(PAIR, 2), PS_BUNDLE_TAKE);
    cr_assert_eq(n_in, 0);
}

/* F2: the relay died behind the server's taking, and it comes once more. */
Test(bundle_turn, what_is_finished_is_answered_again)
{
    finish(7, 4);
    finish(8, 1);
    cr_assert_eq(turn_of(PAIR, 2), PS_BUNDLE_AGAIN);
    cr_assert_eq(n_in, 2);
    finish(8, 9);
    cr_assert_eq(turn_of(PAIR, 2), PS_BUNDLE_AGAIN, "long ago");
}

/* F3: one origin went directly, and the bundle comes late. */
Test(bundle_turn, one_that_is_in_already_splits_the_others)
{
    finish(7, 4);
    cr_assert_eq(turn_of(PAIR, 2), PS_BUNDLE_SPLIT);
    cr_assert_eq(n_in, 1);
    cr_assert_eq(turn_of(&PAIR[1], 1), PS_BUNDLE_TAKE, "the other one by itself");
}

/* A part of its range is in: the rest cannot be told from the sum. */
Test(bundle_turn, half_a_range_splits)
{
    finish(7, 3);
    cr_assert_eq(turn_of(PAIR, 2), PS_BUNDLE_SPLIT);
    cr_assert_eq(n_in, 0);
}

Test(bundle_turn, a_gap_splits)
{
    finish(7, 1);
    cr_assert_eq(turn_of(PAIR, 2), PS_BUNDLE_SPLIT);
    cr_assert_eq(turn_of(PAIR, 1), PS_BUNDLE_SPLIT);
}

/* Its seq 3 waits at the gate, sent directly. */
Test(bundle_turn, one_that_waits_here_splits)
{
    finish(7, 2);
    ps_window_hold(ps_map_get(&partition->windows, 7));
    cr_assert_eq(turn_of(PAIR, 2), PS_BUNDLE_SPLIT);
}

/* F4, and whoever has said BYE. */
Test(bundle_turn, a_session_that_is_refused_splits)
{
    finish(7, 2);
    cr_assert(ps_session_set_add(&partition->retired, 8, 8));
    cr_assert_eq(turn_of(PAIR, 2), PS_BUNDLE_SPLIT);
}

/* ---- whole clocks ---- */

static ps_worker_t workers[] = {
    {.worker = 0, .state = PS_WORKER_RUNNING, .n_members = 2, .joins = 1},
    {.worker = 1, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1},
};

static const ps_bundle_from_t WHOLE[] = {
    {.session = 7, .first_seq = 1, .last_seq = 2, .worker = 0, .member = 0, .marks = true},
    {.session = 9, .first_seq = 1, .last_seq = 1, .worker = 0, .member = 1, .marks = true},
    {.session = 8, .first_seq = 1, .last_seq = 1, .worker = 1, .member = 0, .marks = true},
};

static void open_job(ps_job_place_t *place)
{
    const ps_job_t job = {.id = 1, .version = 1, .workers = workers, .n_workers = 2};

    *place = (ps_job_place_t){.applied = 0};
    cr_assert_eq(ps_gate_new(&job, &place->gate, NULL), PSD_OK);
}

static void close_job(ps_job_place_t *place)
{
    ps_gate_destroy(&place->gate);
    ps_open_clock_done(&place->open);
}

Test(bundle_turn, all_of_a_clock_is_whole)
{
    PSD_AUTO(close_job) ps_job_place_t place;

    open_job(&place);
    cr_assert(ps_bundle_is_whole(&place, WHOLE, 3, 0));
    cr_assert_not(ps_bundle_is_whole(&place, WHOLE, 1, 0), "its other member may push");
    cr_assert_not(ps_bundle_is_whole(&place, &WHOLE[1], 2, 0));
    cr_assert(ps_bundle_is_whole(&place, &WHOLE[2], 1, 0));
}

Test(bundle_turn, one_that_goes_on_pushing_is_not_whole)
{
    PSD_AUTO(close_job) ps_job_place_t place;
    ps_bundle_from_t from[3];

    open_job(&place);
    memcpy(from, WHOLE, sizeof from);
    from[2].marks = false;
    cr_assert_not(ps_bundle_is_whole(&place, from, 3, 0));
    from[2].marks = true;
    from[2].worker = 5;
    cr_assert_not(ps_bundle_is_whole(&place, from, 3, 0), "no such worker");
}

/* It pushed directly before, in the same clock. */
Test(bundle_turn, one_that_has_pushed_beside_is_not_whole)
{
    PSD_AUTO(close_job) ps_job_place_t place;
    const ps_logged_t push = {.worker = 1, .n = 1, .clock = 3};

    open_job(&place);
    cr_assert(ps_open_clock_add(&place.open, &push));
    cr_assert_not(ps_bundle_is_whole(&place, WHOLE, 3, 3));
    cr_assert(ps_bundle_is_whole(&place, WHOLE, 3, 4), "in another one");
    cr_assert(ps_bundle_is_whole(&place, WHOLE, 2, 3), "another worker");
}
