/* SPDX-License-Identifier: Apache-2.0 */
/* How long a relay waits for who has its bundles: a bundle may travel for a while, after others.
 */
#include "relay_kit.h"

#define NODES PS_OVERLAY_NODES
#define PATIENCE_MS 1000
#define ROWS 32768 /* of KIT_COLS values: … */
#define TRAVEL_MS (ROWS * KIT_COLS * sizeof(float) * 1000 / PS_RELAY_SLOWEST)
#define BESIDE_MS 2 /* of lists and records */

static ps_relay_t *relay;
static ps_relay_deed_t deed;

static void open_relay(uint32_t worker)
{
    static const uint32_t tree[] = {NODES, 0};
    const ps_relay_settings_t settings = {
        .worker = worker, .hold_ms = 25, .patience_ms = PATIENCE_MS, .limit_bytes = 1 << 24};
    ps_relay_plan_t plan = kit_plan(1, tree, 2);

    plan.rates = NULL; /* nobody has measured them */
    ps_relay_destroy(&relay);
    cr_assert_eq(ps_relay_new(&settings, &relay, NULL), PSD_OK);
    cr_assert_eq(ps_relay_take_plan(relay, &plan, NULL), PSD_OK);
}

static void setup(void)
{
    open_relay(1);
}

static void teardown(void)
{
    ps_relay_destroy(&relay);
}

TestSuite(relay_patience, .init = setup, .fini = teardown);

static void give_rows(uint64_t now_ms, uint32_t worker, uint32_t partition, uint64_t n_rows)
{
    PSD_AUTO(kit_lot_done) kit_lot_t lot;
    const ps_relay_giver_t giver = {.worker = worker, .request = 1 + partition, .plan = 1};
    ps_relay_key_t key = KIT_KEY;
    uint8_t *bytes = NULL;

    kit_lot(&lot, worker, 5, true, 1);
    ps_payload_destroy(&lot.span.payload);
    lot.span.payload = ps_payload_room(0, 0, n_rows * KIT_COLS * sizeof(float), &bytes);
    cr_assert_not_null(lot.span.payload);
    memset(bytes, 0, n_rows * KIT_COLS * sizeof(float));
    lot.span.slice.n_rows = n_rows;
    lot.span.slice.n_values = n_rows * KIT_COLS;
    key.partition = partition;
    cr_assert_eq(ps_relay_give(relay, now_ms, &giver, &key, &lot.lot, NULL), PSD_OK);
}

/* Worker 1's own, which goes to relay 0 at once. Returns the bundle's number. */
static uint64_t send_rows(uint64_t now_ms, uint32_t partition, uint64_t n_rows)
{
    give_rows(now_ms, 1, partition, n_rows);
    cr_assert(ps_relay_next(relay, &deed));
    cr_assert_eq(deed.kind, PS_RELAY_SEND);
    cr_assert_eq(deed.to, 0);
    return deed.number;
}

/* The next deed that is no sign of life. */
static bool next(void)
{
    bool found = ps_relay_next(relay, &deed);

    while (found && deed.kind == PS_RELAY_TELL && deed.news == PS_RELAY_WAITS) {
        found = ps_relay_next(relay, &deed);
    }
    return found;
}

static void expect_nothing_at(uint64_t now_ms)
{
    ps_relay_tick(relay, now_ms);
    cr_assert_not(next());
}

Test(relay_patience, a_large_bundle_may_travel)
{
    (void)send_rows(0, 2, ROWS);
    expect_nothing_at(PATIENCE_MS + TRAVEL_MS - 1);
    ps_relay_tick(relay, PATIENCE_MS + TRAVEL_MS + BESIDE_MS);
    cr_assert(next());
    cr_assert_eq(deed.to, NODES, "a relay that has not taken it is passed by");
    expect_nothing_at(2 * (PATIENCE_MS + TRAVEL_MS));
    ps_relay_tick(relay, 2 * (PATIENCE_MS + TRAVEL_MS + BESIDE_MS));
    cr_assert(next());
    cr_assert_eq(deed.news, PS_RELAY_RETURNED);
}

Test(relay_patience, a_word_of_one_counts_for_those_behind_it)
{
    uint64_t first = send_rows(0, 2, ROWS);

    (void)send_rows(0, 3, ROWS);
    ps_relay_heard(relay, TRAVEL_MS, 0, first, PS_RELAY_TAKEN);
    ps_relay_heard(relay, TRAVEL_MS, 0, first, PS_RELAY_DONE);
    cr_assert(next());
    cr_assert_eq(deed.news, PS_RELAY_DONE);
    expect_nothing_at(PATIENCE_MS + 2 * TRAVEL_MS - 1);
    ps_relay_tick(relay, PATIENCE_MS + 2 * TRAVEL_MS + BESIDE_MS);
    cr_assert(next());
    cr_assert_eq(deed.to, NODES);
}

Test(relay_patience, words_of_others_hold_nothing_for_longer_than_all_may_travel)
{
    (void)send_rows(0, 2, ROWS);
    for (uint32_t i = 0; i < 8; i++) {
        uint64_t number = send_rows(PATIENCE_MS / 4 * i, 3 + i, 1);

        ps_relay_heard(relay, PATIENCE_MS / 4 * i, 0, number, PS_RELAY_DONE);
        cr_assert(next());
        cr_assert_eq(deed.news, PS_RELAY_DONE);
    }
    ps_relay_tick(relay, PATIENCE_MS + TRAVEL_MS + BESIDE_MS);
    cr_assert(next());
    cr_assert_eq(deed.to, NODES);
}

Test(relay_patience, who_has_taken_a_bundle_must_speak_of_it)
{
    uint64_t first = send_rows(0, 2, ROWS);
    uint64_t second = send_rows(0, 3, ROWS);

    ps_relay_heard(relay, 10, 0, first, PS_RELAY_TAKEN);
    ps_relay_heard(relay, PATIENCE_MS - 1, 0, second, PS_RELAY_WAITS);
    expect_nothing_at(PATIENCE_MS + 9);
    ps_relay_tick(relay, PATIENCE_MS + 10 + BESIDE_MS);
    cr_assert(next());
    cr_assert_eq(deed.news, PS_RELAY_RETURNED);
    cr_assert_eq(deed.key.partition, 2);
    cr_assert_not(next());
}

Test(relay_patience, deltas_wait_as_long_as_all_would_take_directly)
{
    const uint64_t guess_ms = 2 * ROWS * KIT_COLS * sizeof(float) * 1000 / PS_RELAY_GUESS;

    open_relay(0);
    give_rows(0, 0, 2, ROWS);
    expect_nothing_at(guess_ms - 1);
    ps_relay_tick(relay, guess_ms + BESIDE_MS);
    cr_assert(next());
    cr_assert_eq(deed.kind, PS_RELAY_SEND);
    cr_assert_eq(deed.lot->n_from, 1);
}

/* The first clock went directly: the relay has heard how much that was. */
Test(relay_patience, in_the_first_clock_they_wait_for_what_came_in_that_before)
{
    const uint64_t bytes = 9 * ROWS * KIT_COLS * sizeof(float);
    const uint64_t guess_ms = 2 * bytes * 1000 / PS_RELAY_GUESS;

    open_relay(0);
    ps_relay_set_own(relay, bytes);
    ps_relay_set_own(relay, 0);
    give_rows(0, 0, 2, ROWS);
    ps_relay_set_own(relay, 1);
    expect_nothing_at(guess_ms - 1);
    ps_relay_tick(relay, guess_ms + BESIDE_MS);
    cr_assert(next());
    cr_assert_eq(deed.kind, PS_RELAY_SEND);
    cr_assert_eq(deed.lot->n_from, 1);
}

Test(relay_patience, what_is_too_large_as_one_bundle_goes_alone)
{
    const uint64_t bytes = ROWS * KIT_COLS * sizeof(float);

    open_relay(0);
    ps_relay_set_most(relay, bytes);
    give_rows(0, 0, 2, ROWS);
    give_rows(0, 1, 2, ROWS);
    for (int i = 0; i < 2; i++) {
        cr_assert(next());
        cr_assert_eq(deed.kind, PS_RELAY_SEND);
        cr_assert_eq(deed.to, NODES);
        cr_assert_eq(deed.lot->n_from, 1);
    }
    cr_assert_not(next());
    ps_relay_set_most(relay, bytes + 1024);
    give_rows(0, 0, 3, ROWS);
    give_rows(0, 1, 3, ROWS);
    cr_assert(next());
    cr_assert_eq(deed.lot->n_from, 2);
}
