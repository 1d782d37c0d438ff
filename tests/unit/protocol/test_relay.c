/* SPDX-License-Identifier: Apache-2.0 */
/* What a relay refuses, when it sends, and what it tells of what becomes of it. */
#include "relay_kit.h"

#include <float.h>

#include "support/fail_alloc.h"

#define NODES PS_OVERLAY_NODES

static ps_relay_t *relay;
static psd_error_t *why;
static ps_relay_deed_t deed;

/* 1 sends to 0, 3 to 2, 2 to 0. */
static const uint32_t TREE[] = {NODES, 0, 0, 2};

static void open_relay(uint32_t worker, uint64_t limit)
{
    const ps_relay_settings_t settings = {
        .worker = worker, .hold_ms = 25, .patience_ms = 1000, .limit_bytes = limit};
    ps_relay_plan_t plan = kit_plan(1, TREE, 4);

    ps_relay_destroy(&relay);
    cr_assert_eq(ps_relay_new(&settings, &relay, NULL), PSD_OK);
    cr_assert_eq(ps_relay_take_plan(relay, &plan, NULL), PSD_OK);
}

static void setup(void)
{
    why = psd_error_new();
    open_relay(0, 1 << 20);
}

static void teardown(void)
{
    ps_relay_destroy(&relay);
    psd_error_destroy(&why);
}

TestSuite(relay, .init = setup, .fini = teardown);

static uint64_t n_requests;

static psd_status_t give_as(uint64_t now_ms, ps_relay_giver_t giver, const ps_relay_key_t *key,
                            const kit_lot_t *lot)
{
    psd_error_clear(why);
    return ps_relay_give(relay, now_ms, &giver, key, &lot->lot, why);
}

/* By plan 1, with a new request. */
static psd_status_t give(uint64_t now_ms, uint32_t giver, const kit_lot_t *lot)
{
    return give_as(now_ms, (ps_relay_giver_t){.worker = giver, .request = ++n_requests, .plan = 1},
                   &KIT_KEY, lot);
}

static psd_status_t give_value(uint64_t now_ms, uint32_t worker, float value)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    kit_lot(&lot, worker, 5, true, value);
    return give(now_ms, worker, &lot);
}

static bool next(void)
{
    return ps_relay_next(relay, &deed);
}

static void expect_news(uint32_t to, ps_relay_news_t news)
{
    cr_assert(next());
    cr_assert_eq(deed.kind, PS_RELAY_TELL);
    cr_assert_eq(deed.to, to);
    cr_assert_eq(deed.news, news);
}

static void expect_send(uint32_t to, uint16_t n_from, uint16_t n_spans)
{
    cr_assert(next());
    cr_assert_eq(deed.kind, PS_RELAY_SEND);
    cr_assert_eq(deed.to, to);
    cr_assert_eq(deed.lot->n_from, n_from);
    cr_assert_eq(deed.lot->n_spans, n_spans);
}

#define EXPECT_REFUSED(call, status, text)           \
    do {                                             \
        cr_assert_eq((call), status);                \
        cr_assert_str_eq(psd_error_text(why), text); \
        cr_assert(ps_relay_is_empty(relay));         \
        cr_assert_not(next());                       \
    } while (0)

/* ---- plans that are wrong ---- */

static void expect_no_plan(const ps_relay_plan_t *plan, const char *text)
{
    psd_error_clear(why);
    cr_assert_eq(ps_relay_take_plan(relay, plan, why), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(why), text);
}

Test(relay, relays_that_name_each_other_are_no_plan)
{
    static const uint32_t circle[] = {1, 0, NODES, 2};
    ps_relay_plan_t plan = kit_plan(2, circle, 4);

    expect_no_plan(&plan, "plan 2: what worker 0 sends goes round in a circle");
    cr_assert_eq(give_value(0, 1, 1), PSD_OK, "plan 1 goes on");
}

Test(relay, a_plan_with_what_is_not_there_is_refused)
{
    static const uint32_t outside[] = {NODES, 0, 9, 2};
    static const uint32_t positions[] = {0, 2, 2, 3};
    static const uint32_t members[] = {1, 1, 0, 1};
    ps_relay_plan_t plan = kit_plan(2, outside, 4);

    expect_no_plan(&plan, "plan 2: worker 2 sends to worker 9 of 4");
    plan = kit_plan(2, TREE, 4);
    plan.positions = positions;
    expect_no_plan(&plan, "plan 2: position 2 of worker 2; allowed: ascending, below 4096");
    plan = kit_plan(2, TREE, 4);
    plan.members = members;
    expect_no_plan(&plan, "plan 2: the worker at position 2 has no member");
    plan = kit_plan(2, TREE, 0);
    expect_no_plan(&plan, "plan 2 has 0 workers; allowed: 1..512");
    plan = kit_plan(2, TREE, 4);
    plan.n_colours = 17;
    expect_no_plan(&plan, "plan 2 has 17 colours; allowed: 1..16");
    plan = kit_plan(0, TREE, 4);
    expect_no_plan(&plan, "plan 0; allowed: 1 and more");
}

Test(relay, plans_of_this_version_and_the_one_before_are_taken_and_no_others)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;
    ps_relay_giver_t giver = {.worker = 1, .request = 1, .plan = 1};

    for (uint64_t version = 2; version <= 5; version++) {
        ps_relay_plan_t plan = kit_plan(version, TREE, 4);

        cr_assert_eq(ps_relay_take_plan(relay, &plan, NULL), PSD_OK);
    }
    kit_lot(&lot, 1, 5, true, 1);
    giver.plan = 2; /* of three versions ago */
    EXPECT_REFUSED(give_as(0, giver, &KIT_KEY, &lot), PSD_INVALID,
                   "plan 2; this relay knows plans 4 and 5");
    giver.plan = 6;
    EXPECT_REFUSED(give_as(0, giver, &KIT_KEY, &lot), PSD_INVALID,
                   "plan 6; this relay knows plans 4 and 5");
    giver.plan = 0;
    EXPECT_REFUSED(give_as(0, giver, &KIT_KEY, &lot), PSD_INVALID,
                   "plan 0; this relay knows plans 4 and 5");
    giver.plan = 4;
    cr_assert_eq(give_as(0, giver, &KIT_KEY, &lot), PSD_OK);
}

Test(relay, without_a_plan_it_is_busy)
{
    const ps_relay_settings_t settings = {
        .worker = 0, .hold_ms = 25, .patience_ms = 1000, .limit_bytes = 1000};

    ps_relay_destroy(&relay);
    cr_assert_eq(ps_relay_new(&settings, &relay, NULL), PSD_OK);
    EXPECT_REFUSED(give_value(0, 1, 1), PSD_BUSY, "the relay has no plan yet");
    cr_assert_eq(ps_relay_due(relay), UINT64_MAX);
    ps_relay_tick(relay, 1000000);
}

/* ---- lots that are wrong ---- */

Test(relay, its_own_deltas_that_come_back_are_a_loop)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    kit_lot(&lot, 0, 5, true, 1);
    EXPECT_REFUSED(give(0, 1, &lot), PSD_INVALID,
                   "loop: worker 1 brings worker 0 its own deltas back");
    cr_assert_eq(give(0, 0, &lot), PSD_OK, "its own client may");
}

/* Plans of two versions meet: 0 sends to 2 what 1 gave, and 2 sends it to 0. */
Test(relay, what_goes_round_meets_itself)
{
    static const uint32_t other[] = {2, 0, NODES, 2};
    ps_relay_plan_t plan = kit_plan(2, other, 4);
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    cr_assert_eq(ps_relay_take_plan(relay, &plan, NULL), PSD_OK);
    kit_lot(&lot, 1, 5, true, 1);
    cr_assert_eq(give(0, 1, &lot), PSD_OK);
    ps_relay_tick(relay, 100);
    expect_send(2, 1, 1);
    ps_relay_heard(relay, 100, 2, deed.number, PS_RELAY_TAKEN);
    cr_assert_eq(give(110, 2, &lot), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(why), "twice: seq 5 of worker 1 member 0 is here already");
    ps_relay_heard(relay, 120, 2, deed.number, PS_RELAY_DONE);
    expect_news(1, PS_RELAY_DONE);
    cr_assert(ps_relay_is_empty(relay));
    cr_assert_eq(ps_relay_bytes(relay), 0);
}

Test(relay, a_client_of_its_own_brings_its_own_only)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    kit_lot(&lot, 1, 5, true, 1);
    EXPECT_REFUSED(give(0, 0, &lot), PSD_INVALID, "a client of worker 0 brings deltas of worker 1");
}

Test(relay, a_contributor_is_there_once)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;
    ps_bundle_from_t twice[2];

    kit_lot(&lot, 1, 5, true, 1);
    twice[0] = lot.from;
    twice[1] = lot.from;
    lot.lot.from = twice;
    lot.lot.n_from = 2;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_INVALID,
                   "worker 1 member 0 comes twice, or after worker 1 member 0");
    twice[1].worker = 2;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_INVALID, "session 101 contributes twice");
    cr_assert_eq(ps_relay_bytes(relay), 0);
    lot.lot.n_from = 0;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_INVALID, "0 contributors; allowed: 1..4096");
}

Test(relay, seqs_must_be_seqs)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    kit_lot(&lot, 1, 0, true, 1);
    EXPECT_REFUSED(give(0, 1, &lot), PSD_INVALID,
                   "worker 1: session 101, seqs 0 to 0; allowed: 1 and more, ascending");
    lot.from.first_seq = 4;
    lot.from.last_seq = 3;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_INVALID,
                   "worker 1: session 101, seqs 4 to 3; allowed: 1 and more, ascending");
}

Test(relay, positions_that_do_not_exist_are_refused)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    kit_lot(&lot, 4, 5, true, 1);
    EXPECT_REFUSED(give(0, 1, &lot), PSD_INVALID, "plan 1 has no worker at position 4");
    lot.from.worker = 5000;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_INVALID, "plan 1 has no worker at position 5000");
    lot.from.worker = 1;
    lot.span.first = 5000;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_INVALID,
                   "span 0 of 1 positions from 5000 on; allowed: aligned intervals with a "
                   "contributor, ascending, that do not meet");
    lot.span.first = 1;
    lot.span.n = 2;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_INVALID,
                   "span 0 of 2 positions from 1 on; allowed: aligned intervals with a "
                   "contributor, ascending, that do not meet");
    lot.span.first = 2;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_INVALID,
                   "span 0 of 2 positions from 2 on; allowed: aligned intervals with a "
                   "contributor, ascending, that do not meet");
}

Test(relay, values_must_be_the_partitions)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    kit_lot(&lot, 1, 5, true, 1);
    lot.span.slice.type = PS_TYPE_I32;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_TYPE, "values are i32, the table's are f32");
    lot.span.slice.type = PS_TYPE_F32;
    lot.span.slice.n_cols = KIT_COLS + 1;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_SHAPE, "rows have 5 values, the partition has 4 columns");
    lot.span.slice.n_cols = KIT_COLS;
    lot.span.slice.cols = PS_COLS_RANGE;
    lot.span.slice.first_col = 1;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_RANGE,
                   "column 4 is not in the partition, which holds columns 0..3");
    lot.span.slice.first_col = 9;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_RANGE,
                   "column 9 is not in the partition, which holds columns 0..3");
    lot.span.slice.first_col = 0;
    lot.span.slice.first_row = UINT64_MAX;
    lot.span.slice.n_rows = 2;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_RANGE, "2 rows from row 18446744073709551615 on");
    lot.span.slice.n_rows = 0;
    EXPECT_REFUSED(give(0, 1, &lot), PSD_INVALID,
                   "a span without rows, or with rows that it lacks");
}

/* ---- when it sends ---- */

Test(relay, it_sends_when_all_that_the_plan_leads_here_is_in)
{
    cr_assert_eq(give_value(0, 0, 1), PSD_OK);
    cr_assert_eq(give_value(1, 3, 8), PSD_OK);
    cr_assert_eq(give_value(1, 2, 4), PSD_OK);
    cr_assert_not(next());
    cr_assert_eq(give_value(2, 1, 2), PSD_OK);
    expect_send(NODES, 4, 1);
    cr_assert_eq(deed.lot->spans[0].first, 0);
    cr_assert_eq(deed.lot->spans[0].n, 4);
    cr_assert_eq(kit_value(&deed.lot->spans[0]), 15);
    for (uint32_t i = 0; i < 4; i++) {
        cr_assert_eq(deed.lot->from[i].session, 100 + i);
        cr_assert(deed.lot->from[i].marks);
    }
    ps_relay_heard(relay, 10, NODES, deed.number, PS_RELAY_DONE);
    expect_news(0, PS_RELAY_DONE);
    expect_news(3, PS_RELAY_DONE);
    expect_news(2, PS_RELAY_DONE);
    expect_news(1, PS_RELAY_DONE);
    cr_assert_not(next());
    cr_assert(ps_relay_is_empty(relay));
    cr_assert_eq(ps_relay_bytes(relay), 0);
}

/* 3 is not there: what 2 has cannot be added to what 0 and 1 have, and what 3 brings late
 * follows alone. */
Test(relay, a_straggler_is_waited_for_as_long_as_the_transfer_takes)
{
    uint64_t due = 0;

    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(give_value(0, i, 1), PSD_OK);
    }
    due = ps_relay_due(relay);
    cr_assert_eq(due, 25, "what is held takes less than hold_ms");
    ps_relay_tick(relay, due - 1);
    cr_assert_not(next());
    ps_relay_tick(relay, due);
    expect_send(NODES, 3, 2);
    cr_assert_eq(deed.lot->spans[0].n, 2);
    cr_assert_eq(deed.lot->spans[1].first, 2);
    cr_assert_eq(deed.lot->spans[1].n, 1);
    cr_assert_eq(give_value(300, 3, 1), PSD_OK);
    expect_send(NODES, 1, 1);
    cr_assert_not(next(), "nobody else is waited for");
}

/* One clock, in which 3 is there or not; true: it was sent at once. */
static bool clock_goes_at_once(uint64_t clock, bool with_3)
{
    ps_relay_key_t key = KIT_KEY;
    uint64_t now_ms = clock * 1000;
    size_t n_sent = 0;
    size_t n_late = 0;

    key.clock = clock;
    for (uint32_t i = 0; i < (with_3 ? 4 : 3); i++) {
        ps_relay_giver_t giver = {.worker = i, .request = ++n_requests, .plan = 1};
        PSD_AUTO(kit_lot_done) kit_lot_t lot;

        kit_lot(&lot, i, clock, true, 1);
        cr_assert_eq(give_as(now_ms, giver, &key, &lot), PSD_OK);
    }
    while (next()) {
        if (deed.kind == PS_RELAY_SEND) {
            n_sent += deed.lot->n_from;
            ps_relay_heard(relay, now_ms, NODES, deed.number, PS_RELAY_DONE);
        }
    }
    ps_relay_tick(relay, now_ms + 25);
    while (next()) {
        if (deed.kind == PS_RELAY_SEND) {
            n_late += deed.lot->n_from;
            ps_relay_heard(relay, now_ms, NODES, deed.number, PS_RELAY_DONE);
        }
    }
    cr_assert_eq(n_sent + n_late, with_3 ? 4 : 3);
    return n_late == 0;
}

/* A worker that sends elsewhere costs one wait, not one each clock. */
Test(relay, who_was_waited_for_in_vain_is_not_waited_for_again)
{
    uint64_t clock = 6;

    cr_assert(clock_goes_at_once(clock++, true));
    cr_assert_not(clock_goes_at_once(clock++, false), "hold_ms");
    cr_assert(clock_goes_at_once(clock++, false));
    cr_assert(clock_goes_at_once(clock++, false));
    cr_assert(clock_goes_at_once(clock++, true), "it is taken when it comes");
    cr_assert_not(clock_goes_at_once(clock++, false), "it came, and is waited for again");
    for (int i = 0; i < 8; i++) {
        cr_assert(clock_goes_at_once(clock++, false));
    }
}

/* Found by sim_overlay: relays of two lives of a worker counted from 1. Another relay that still
 * had a bundle of the first one said of the second one's, which it dropped, that it was taken. */
Test(relay, bundles_of_another_life_have_other_numbers)
{
    const ps_relay_settings_t settings = {.worker = 0,
                                          .hold_ms = 25,
                                          .patience_ms = 1000,
                                          .limit_bytes = 1 << 20,
                                          .numbers_after = UINT64_C(2) << 32};
    const ps_relay_plan_t plan = kit_plan(1, TREE, 4);

    ps_relay_destroy(&relay);
    cr_assert_eq(ps_relay_new(&settings, &relay, NULL), PSD_OK);
    cr_assert_eq(ps_relay_take_plan(relay, &plan, NULL), PSD_OK);
    cr_assert_eq(give_value(0, 1, 1), PSD_OK);
    ps_relay_tick(relay, 25);
    expect_send(NODES, 1, 1);
    cr_assert_eq(deed.number, (UINT64_C(2) << 32) + 1);
    ps_relay_heard(relay, 30, NODES, deed.number, PS_RELAY_DONE);
    expect_news(1, PS_RELAY_DONE);
}

/* Found by sim_overlay: a clock that came later, and waited for the same worker only, was sent
 * when its own time was over, not with the clock in which that one was waited for in vain. */
Test(relay, who_was_waited_for_in_vain_is_not_waited_for_in_a_clock_that_is_here_already)
{
    ps_relay_key_t key = KIT_KEY;

    for (uint32_t clock = 7; clock < 9; clock++) {
        for (uint32_t i = 0; i < 3; i++) {
            ps_relay_giver_t giver = {.worker = i, .request = ++n_requests, .plan = 1};
            PSD_AUTO(kit_lot_done) kit_lot_t lot;

            key.clock = clock;
            kit_lot(&lot, i, clock, true, 1);
            cr_assert_eq(give_as(clock == 7 ? 0 : 20, giver, &key, &lot), PSD_OK);
        }
    }
    ps_relay_tick(relay, 25);
    expect_send(NODES, 3, 2);
    cr_assert_eq(deed.key.clock, 7);
    expect_send(NODES, 3, 2);
    cr_assert_eq(deed.key.clock, 8);
}

Test(relay, more_bytes_wait_longer)
{
    static const uint64_t slow[] = {1000};
    ps_relay_plan_t plan = kit_plan(2, TREE, 4);

    plan.rates = slow;
    cr_assert_eq(ps_relay_take_plan(relay, &plan, NULL), PSD_OK);
    cr_assert_eq(give_value(0, 1, 1), PSD_OK);
    cr_assert_eq(ps_relay_due(relay), PS_RELAY_SAY_MS);
    plan.version = 3;
    plan.rates = NULL;
    cr_assert_eq(ps_relay_take_plan(relay, &plan, NULL), PSD_OK);
    cr_assert_eq(ps_relay_due(relay), 25, "hold_ms, when no rate is known");
}

Test(relay, what_is_urgent_waits_for_hold_ms)
{
    static const uint64_t slow[] = {1000};
    ps_relay_plan_t plan = kit_plan(2, TREE, 4);
    ps_relay_giver_t giver = {.worker = 1, .request = 1, .plan = 2, .is_urgent = true};
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    plan.rates = slow;
    cr_assert_eq(ps_relay_take_plan(relay, &plan, NULL), PSD_OK);
    kit_lot(&lot, 1, 5, false, 1);
    cr_assert_eq(give_as(100, giver, &KIT_KEY, &lot), PSD_OK);
    cr_assert_eq(ps_relay_due(relay), 125);
}

Test(relay, without_clocks_hold_ms_decides)
{
    ps_relay_key_t key = KIT_KEY;
    ps_relay_giver_t giver = {.worker = 1, .request = 1, .plan = 1};
    PSD_AUTO(kit_lot_done) kit_lot_t one;
    PSD_AUTO(kit_lot_done) kit_lot_t two;
    PSD_AUTO(kit_lot_done) kit_lot_t other;

    key.clock = 0;
    key.is_timed = true;
    key.any_order = true;
    kit_lot(&one, 1, 5, false, 1);
    kit_lot(&two, 1, 6, false, 2);
    kit_lot(&other, 3, 9, false, 4);
    cr_assert_eq(give_as(0, giver, &key, &one), PSD_OK);
    giver.request = 2;
    cr_assert_eq(give_as(0, giver, &key, &two), PSD_OK);
    giver.worker = 3;
    cr_assert_eq(give_as(0, giver, &key, &other), PSD_OK);
    cr_assert_not(next());
    ps_relay_tick(relay, 25);
    expect_send(NODES, 2, 1);
    cr_assert_eq(kit_value(&deed.lot->spans[0]), 7);
    cr_assert_eq(deed.lot->spans[0].first, 0);
    cr_assert_eq(deed.lot->spans[0].n, 4);
    cr_assert_eq(deed.lot->from[0].first_seq, 5);
    cr_assert_eq(deed.lot->from[0].last_seq, 6);
}

/* What comes while a bundle is on its way there is added up, over ends of clocks, too. */
Test(relay, without_clocks_one_bundle_goes_after_the_other)
{
    ps_relay_key_t key = KIT_KEY;
    ps_relay_giver_t giver = {.worker = 1, .plan = 1};
    uint64_t number = 0;

    key.clock = 0;
    key.is_timed = true;
    key.any_order = true;
    for (uint64_t seq = 5; seq < 8; seq++) {
        PSD_AUTO(kit_lot_done) kit_lot_t lot;

        kit_lot(&lot, 1, seq, true, (float)seq);
        giver.request = seq;
        cr_assert_eq(give_as(25 * (seq - 5), giver, &key, &lot), PSD_OK);
        ps_relay_tick(relay, 25 * (seq - 4));
        if (seq == 5) {
            expect_send(NODES, 1, 1);
            number = deed.number;
        }
        cr_assert_not(next());
    }
    ps_relay_heard(relay, 80, NODES, number, PS_RELAY_DONE);
    expect_news(1, PS_RELAY_DONE);
    ps_relay_tick(relay, 80);
    expect_send(NODES, 1, 1);
    cr_assert_eq(kit_value(&deed.lot->spans[0]), 13);
    cr_assert(deed.lot->from[0].first_seq == 6 && deed.lot->from[0].last_seq == 7);
    cr_assert_eq(deed.lot->from[0].marks, 2);
}

/* At that time: contributors of what is sent, which arrives at once. */
static uint16_t sends_at(uint64_t now_ms)
{
    uint16_t n = 0;

    ps_relay_tick(relay, now_ms);
    while (next()) {
        if (deed.kind == PS_RELAY_SEND) {
            n = (uint16_t)(n + deed.lot->n_from);
            ps_relay_heard(relay, now_ms, NODES, deed.number, PS_RELAY_DONE);
        }
    }
    return n;
}

static void give_timed(uint64_t now_ms, uint32_t worker, uint64_t seq)
{
    ps_relay_key_t key = KIT_KEY;
    ps_relay_giver_t giver = {.worker = worker, .request = ++n_requests, .plan = 1};
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    key.clock = 0;
    key.is_timed = true;
    key.any_order = true;
    kit_lot(&lot, worker, seq, false, 1);
    cr_assert_eq(give_as(now_ms, giver, &key, &lot), PSD_OK);
}

Test(relay, without_clocks_who_was_in_the_last_bundle_is_waited_for_once)
{
    static const uint64_t slow[] = {1};
    ps_relay_plan_t plan = kit_plan(2, TREE, 4);

    plan.rates = slow;
    cr_assert_eq(ps_relay_take_plan(relay, &plan, NULL), PSD_OK);
    give_timed(0, 1, 5);
    give_timed(0, 2, 5);
    cr_assert_eq(sends_at(24), 0);
    cr_assert_eq(sends_at(25), 2, "nobody was in a bundle before");
    give_timed(40, 1, 6);
    cr_assert_eq(sends_at(65), 0, "2 is missing");
    give_timed(100, 2, 6);
    cr_assert_eq(sends_at(100), 2);
    give_timed(200, 1, 7);
    cr_assert_eq(sends_at(1199), 0);
    cr_assert_eq(sends_at(1200), 1, "as long as the transfer takes, patience_ms at most");
    give_timed(1300, 1, 8);
    cr_assert_eq(sends_at(1325), 1, "2 was missing in the last bundle");
}

Test(relay, clocks_are_never_added_to_each_other)
{
    ps_relay_key_t later = KIT_KEY;
    ps_relay_giver_t giver = {.worker = 2, .request = 77, .plan = 1};
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    later.clock++;
    kit_lot(&lot, 2, 5, true, 1);
    cr_assert_eq(give_value(0, 1, 1), PSD_OK);
    cr_assert_eq(give_as(0, giver, &later, &lot), PSD_OK);
    ps_relay_tick(relay, 25);
    expect_send(NODES, 1, 1);
    expect_send(NODES, 1, 1);
    cr_assert_not(next());
}

/* It pushes twice: neither may be added before both are there, and none of them alone. */
Test(relay, a_worker_that_is_not_whole_goes_to_the_nodes_alone)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    open_relay(2, 1 << 20);
    kit_lot(&lot, 2, 5, false, 1);
    cr_assert_eq(give(0, 2, &lot), PSD_OK);
    cr_assert_eq(give_value(0, 3, 1), PSD_OK);
    ps_relay_tick(relay, 25);
    expect_send(0, 1, 1);
    cr_assert_eq(deed.lot->from[0].worker, 3);
    expect_send(NODES, 1, 1);
    cr_assert_eq(deed.lot->from[0].worker, 2);
    cr_assert_eq(give_value(30, 2, 1), PSD_INVALID, "seq 5 is there");
    kit_lot_done(&lot);
    kit_lot(&lot, 2, 6, true, 1);
    cr_assert_eq(give(30, 2, &lot), PSD_OK);
    expect_send(NODES, 1, 1);
    cr_assert_eq(deed.lot->from[0].first_seq, 6);
}

/* What was sent beside a sum was forgotten: its worker looked whole when its rest came. */
Test(relay, what_went_alone_beside_a_sum_is_remembered)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    open_relay(2, 1 << 20);
    cr_assert_eq(give_value(0, 3, 1), PSD_OK);
    kit_lot(&lot, 2, 5, false, 1);
    cr_assert_eq(give(0, 2, &lot), PSD_OK);
    ps_relay_tick(relay, 25 * 10);
    expect_send(0, 1, 1);
    expect_send(NODES, 1, 1);
    kit_lot_done(&lot);
    kit_lot(&lot, 2, 6, true, 1);
    cr_assert_eq(give(251, 2, &lot), PSD_OK);
    while (next() && deed.kind != PS_RELAY_SEND) {
    }
    cr_assert_eq(deed.to, NODES, "the rest of its clock cannot be added");
}

Test(relay, a_workers_own_pushes_are_added_when_all_are_there)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    open_relay(1, 1 << 20);
    kit_lot(&lot, 1, 5, false, 1);
    cr_assert_eq(give(0, 1, &lot), PSD_OK);
    kit_lot_done(&lot);
    kit_mark(&lot, 1, 7);
    cr_assert_eq(give(0, 1, &lot), PSD_OK, "its seq 6 is not there");
    expect_send(NODES, 1, 1);
    expect_send(NODES, 1, 0);
    open_relay(1, 1 << 20);
    kit_lot_done(&lot);
    kit_lot(&lot, 1, 5, false, 1);
    cr_assert_eq(give(0, 1, &lot), PSD_OK);
    kit_lot_done(&lot);
    kit_lot(&lot, 1, 6, true, 2);
    cr_assert_eq(give(0, 1, &lot), PSD_OK);
    expect_send(0, 1, 1);
    cr_assert_eq(deed.lot->from[0].first_seq, 5);
    cr_assert_eq(deed.lot->from[0].last_seq, 6);
    cr_assert_eq(kit_value(&deed.lot->spans[0]), 3);
}

Test(relay, marks_without_rows_are_a_bundle)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    for (uint32_t i = 0; i < 4; i++) {
        kit_mark(&lot, i, 5);
        cr_assert_eq(give(0, i, &lot), PSD_OK);
        kit_lot_done(&lot);
    }
    expect_send(NODES, 4, 0);
}

Test(relay, a_worker_with_rows_and_one_with_a_mark_are_one_span)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;

    kit_mark(&lot, 1, 5);
    cr_assert_eq(give(0, 1, &lot), PSD_OK);
    cr_assert_eq(give_value(0, 0, 1), PSD_OK);
    cr_assert_eq(give_value(0, 2, 2), PSD_OK);
    cr_assert_eq(give_value(0, 3, 3), PSD_OK);
    expect_send(NODES, 4, 1);
    cr_assert_eq(deed.lot->spans[0].n, 4);
    cr_assert_eq(kit_value(&deed.lot->spans[0]), 6);
}

/* F14: the server decides what becomes of the sum. */
Test(relay, a_sum_that_is_not_finite_is_not_made)
{
    cr_assert_eq(give_value(0, 0, FLT_MAX), PSD_OK);
    cr_assert_eq(give_value(0, 1, FLT_MAX), PSD_OK);
    cr_assert_eq(give_value(0, 2, 1), PSD_OK);
    cr_assert_eq(give_value(0, 3, 2), PSD_OK);
    expect_send(NODES, 4, 3);
    cr_assert_eq(deed.lot->spans[2].n, 2);
    cr_assert_eq(kit_value(&deed.lot->spans[2]), 3);
}

Test(relay, a_lost_worker_is_not_waited_for)
{
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(give_value(0, i, 1), PSD_OK);
    }
    cr_assert_not(next());
    ps_relay_without(relay, 5, 3);
    expect_send(NODES, 3, 2);
}

/* ---- what becomes of it ---- */

/* The relay of worker 2 sends to 0 what it has and what 3 gave. */
static uint64_t send_to_0(void)
{
    open_relay(2, 1 << 20);
    cr_assert_eq(give_value(0, 2, 1), PSD_OK);
    cr_assert_eq(give_value(0, 3, 1), PSD_OK);
    expect_send(0, 2, 1);
    return deed.number;
}

Test(relay, a_relay_that_refuses_is_passed_by)
{
    uint64_t number = send_to_0();

    ps_relay_heard(relay, 5, 3, number, PS_RELAY_DONE);
    cr_assert_not(next(), "not from who has it");
    ps_relay_heard(relay, 5, 0, number + 1, PS_RELAY_DONE);
    cr_assert_not(next(), "no such bundle");
    ps_relay_heard(relay, 5, 0, number, PS_RELAY_RETURNED);
    expect_send(NODES, 2, 1);
    cr_assert_eq(deed.number, number);
    ps_relay_heard(relay, 6, 0, number, PS_RELAY_TAKEN);
    ps_relay_heard(relay, 6, NODES, number, PS_RELAY_RETURNED);
    expect_news(2, PS_RELAY_RETURNED);
    cr_assert_str_eq(deed.reason, "split");
    expect_news(3, PS_RELAY_RETURNED);
    cr_assert(ps_relay_is_empty(relay));
    cr_assert_eq(ps_relay_bytes(relay), 0);
}

Test(relay, a_relay_that_dies_is_passed_by_until_it_has_taken_it)
{
    uint64_t number = send_to_0();

    ps_relay_lost(relay, 5, 1);
    cr_assert_not(next());
    ps_relay_lost(relay, 5, 0);
    expect_send(NODES, 2, 1);
    number = send_to_0();
    ps_relay_heard(relay, 5, 0, number, PS_RELAY_TAKEN);
    ps_relay_lost(relay, 6, 0);
    expect_news(2, PS_RELAY_RETURNED);
    cr_assert_str_eq(deed.reason, "the relay that had it is lost");
    expect_news(3, PS_RELAY_RETURNED);
    cr_assert(ps_relay_is_empty(relay));
}

Test(relay, patience_counts_from_the_last_sign_of_life)
{
    uint64_t number = send_to_0();

    ps_relay_heard(relay, 900, 0, number, PS_RELAY_WAITS);
    ps_relay_tick(relay, 1899);
    for (int i = 0; i < 2; i++) {
        cr_assert(next());
        cr_assert_eq(deed.news, PS_RELAY_WAITS);
        cr_assert_eq(deed.waits_for, 0);
    }
    cr_assert_not(next());
    ps_relay_tick(relay, 1900);
    expect_send(NODES, 2, 1);
    ps_relay_tick(relay, 2900);
    cr_assert(next());
    while (deed.news == PS_RELAY_WAITS) {
        cr_assert(next());
    }
    cr_assert_eq(deed.news, PS_RELAY_RETURNED);
    cr_assert_str_eq(deed.reason, "who had it was silent");
}

Test(relay, it_says_whom_it_waits_for)
{
    char text[80];
    ps_relay_view_t views[2];
    static const uint64_t slow[] = {100};
    ps_relay_plan_t plan = kit_plan(2, TREE, 4);

    plan.rates = slow;
    cr_assert_eq(ps_relay_take_plan(relay, &plan, NULL), PSD_OK);
    cr_assert_eq(give_value(0, 0, 1), PSD_OK);
    cr_assert_eq(give_value(0, 1, 1), PSD_OK);
    ps_relay_tick(relay, PS_RELAY_SAY_MS - 1);
    cr_assert_not(next());
    ps_relay_tick(relay, PS_RELAY_SAY_MS);
    for (uint32_t i = 0; i < 2; i++) {
        expect_news(1 - i, PS_RELAY_WAITS);
        cr_assert_eq(deed.waits_for, 2);
    }
    cr_assert_not(next());
    cr_assert_eq(ps_relay_due(relay), 2 * PS_RELAY_SAY_MS);
    cr_assert_eq(ps_relay_look(relay, views, 2), 1);
    cr_assert_eq(views[0].n_lots, 2);
    cr_assert_gt(views[0].bytes, 2 * KIT_COLS * sizeof(float));
    ps_relay_view_text(&views[0], 300, text, sizeof text);
    cr_assert_str_eq(text, "held for 300 ms, waits for worker 2");
    ps_relay_leave(relay, 300);
    expect_send(NODES, 2, 1);
    cr_assert_eq(ps_relay_look(relay, views, 2), 1);
    ps_relay_view_text(&views[0], 340, text, sizeof text);
    cr_assert_str_eq(text, "with the nodes for 40 ms");
    cr_assert_eq(ps_relay_look(relay, NULL, 0), 1);
}

Test(relay, leaving_drains_it)
{
    cr_assert_eq(give_value(0, 1, 1), PSD_OK);
    ps_relay_leave(relay, 1);
    expect_send(NODES, 1, 1);
    cr_assert_eq(give_value(2, 2, 1), PSD_BUSY);
    cr_assert_str_eq(psd_error_text(why), "the relay is leaving");
    cr_assert_not(ps_relay_is_empty(relay));
    ps_relay_heard(relay, 3, NODES, deed.number, PS_RELAY_DONE);
    expect_news(1, PS_RELAY_DONE);
    cr_assert(ps_relay_is_empty(relay));
}

Test(relay, the_same_request_is_the_same_lot)
{
    ps_relay_giver_t giver = {.worker = 1, .request = 500, .plan = 1};
    PSD_AUTO(kit_lot_done) kit_lot_t lot;
    uint64_t bytes = 0;

    kit_lot(&lot, 1, 5, true, 1);
    cr_assert_eq(give_as(0, giver, &KIT_KEY, &lot), PSD_OK);
    bytes = ps_relay_bytes(relay);
    cr_assert_eq(give_as(1, giver, &KIT_KEY, &lot), PSD_OK);
    cr_assert_eq(ps_relay_bytes(relay), bytes);
    ps_relay_leave(relay, 2);
    cr_assert_eq(give_as(3, giver, &KIT_KEY, &lot), PSD_OK, "also while it is under way");
    expect_send(NODES, 1, 1);
    cr_assert_not(next());
}

/* ---- memory ---- */

Test(relay, memory_is_bounded_and_asks_for_sending)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;
    uint64_t one = 0;

    cr_assert_eq(give_value(0, 0, 1), PSD_OK);
    one = ps_relay_bytes(relay);
    open_relay(0, one - 1);
    kit_lot(&lot, 0, 5, true, 1);
    cr_assert_eq(give(0, 0, &lot), PSD_LIMIT);
    open_relay(0, 2 * one);
    cr_assert_eq(give_value(0, 0, 1), PSD_OK);
    cr_assert_eq(give_value(0, 1, 1), PSD_OK);
    cr_assert_not(next());
    cr_assert_eq(give_value(0, 2, 1), PSD_BUSY);
    expect_send(NODES, 2, 1);
    ps_relay_heard(relay, 1, NODES, deed.number, PS_RELAY_DONE);
    expect_news(0, PS_RELAY_DONE);
    expect_news(1, PS_RELAY_DONE);
    cr_assert_eq(give_value(2, 2, 1), PSD_OK);
}

/* Once the next relay has it, only who gave it is kept. */
Test(relay, what_was_taken_takes_no_memory_but_its_names)
{
    uint64_t number = send_to_0();
    uint64_t bytes = ps_relay_bytes(relay);

    ps_relay_heard(relay, 1, 0, number, PS_RELAY_TAKEN);
    cr_assert_eq(ps_relay_bytes(relay), bytes - KIT_COLS * sizeof(float) - sizeof(ps_relay_span_t));
}

/* Whatever allocation fails: each lot is sent, given back or refused, and all memory is freed. */
Test(relay, without_memory_it_gives_back)
{
    kit_lot_t lots[4];
    bool failed = true;

    for (uint32_t i = 0; i < 4; i++) {
        kit_lot(&lots[i], i, 5, true, 1);
    }
    for (size_t at = 0; failed; at++) {
        unsigned n_given = 0;
        unsigned n_told = 0;

        open_relay(0, 1 << 20);
        fail_alloc_at(at);
        for (uint32_t i = 0; i < 4; i++) {
            psd_status_t rc =
                ps_relay_give(relay, 0, &(ps_relay_giver_t){.worker = i, .request = i, .plan = 1},
                              &KIT_KEY, &lots[i].lot, NULL);

            cr_assert(rc == PSD_OK || rc == PSD_NOMEM);
            n_given += rc == PSD_OK ? 1 : 0;
        }
        ps_relay_tick(relay, 500);
        failed = fail_alloc_happened();
        fail_alloc_off();
        while (next()) {
            if (deed.kind == PS_RELAY_SEND) {
                ps_relay_heard(relay, 500, deed.to, deed.number, PS_RELAY_DONE);
            } else {
                n_told += deed.news != PS_RELAY_WAITS ? 1 : 0;
            }
        }
        cr_assert_eq(n_told, n_given);
        cr_assert(ps_relay_is_empty(relay));
        cr_assert_eq(ps_relay_bytes(relay), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        kit_lot_done(&lots[i]);
    }
}
