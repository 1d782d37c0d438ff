/* SPDX-License-Identifier: Apache-2.0 */
/* Rows on their way out: who gets which, and what is refused, forgotten or tried again. */
#include "protocol/relay/relay_down.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

#define LIMIT 1000
#define SIZE 400
#define WAIT_MS 500

static ps_down_key_t key_of(uint32_t partition, uint64_t clock)
{
    return (ps_down_key_t){
        .table = 3, .partition = partition, .first_row = 10, .n_rows = 20, .clock = clock};
}

static ps_payload_t *rows_of(uint8_t value, size_t size)
{
    uint8_t *bytes = NULL;
    ps_payload_t *rows = ps_payload_room(0, 0, size, &bytes);

    cr_assert_not_null(rows);
    memset(bytes, value, size);
    return rows;
}

static void keep(ps_relay_down_t *down, uint32_t partition, uint64_t clock, uint8_t value,
                 size_t size)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *rows = rows_of(value, size);
    const ps_down_key_t key = key_of(partition, clock);

    ps_relay_down_keep(down, &key, rows);
}

/* The client had rows of that place; they are not here. */
static void had(ps_relay_down_t *down, uint32_t partition, uint64_t clock)
{
    const ps_down_key_t key = key_of(partition, clock);

    ps_relay_down_keep(down, &key, NULL);
}

static void want(ps_relay_down_t *down, uint64_t now_ms, uint32_t worker, uint64_t request,
                 uint32_t partition, uint64_t clock)
{
    const ps_down_key_t key = key_of(partition, clock);

    ps_relay_down_want(down, now_ms, worker, request, &key, WAIT_MS);
}

static void ask(ps_relay_down_t *down, uint32_t worker, uint64_t request, uint64_t clock)
{
    const ps_down_key_t key = key_of(1, clock);

    ps_relay_down_ask(down, 100, worker, request, &key, WAIT_MS);
}

/* The next deed, with rows of that value; -1: without rows. */
static void expect(ps_relay_down_t *down, ps_down_kind_t kind, uint32_t worker, uint64_t request,
                   int value)
{
    ps_down_deed_t deed = {.kind = 0};

    cr_assert(ps_relay_down_next(down, &deed), "nothing is done for %u", (unsigned)worker);
    cr_expect_eq(deed.kind, kind);
    cr_expect_eq(deed.worker, worker);
    cr_expect_eq(deed.request, request);
    cr_expect_eq(deed.payload == NULL ? -1 : deed.payload->spans[0].data[0], value);
    ps_payload_destroy(&deed.payload);
}

static void expect_nothing(ps_relay_down_t *down)
{
    ps_down_deed_t deed;

    cr_expect(!ps_relay_down_next(down, &deed));
}

#define DOWN(name)                                                \
    PSD_AUTO(ps_relay_down_destroy) ps_relay_down_t *name = NULL; \
    cr_assert_eq(ps_relay_down_new(LIMIT, &name, NULL), PSD_OK)

Test(relay_down, gives_rows_that_are_there)
{
    DOWN(down);

    keep(down, 1, 7, 9, SIZE);
    want(down, 100, 2, 55, 1, 7);
    expect(down, PS_DOWN_SEND, 2, 55, 9);
    want(down, 100, 3, 56, 1, 7);
    expect(down, PS_DOWN_SEND, 3, 56, 9);
    expect_nothing(down);
    cr_expect_eq(ps_relay_down_due(down), UINT64_MAX);
}

Test(relay_down, waits_for_rows_that_come)
{
    DOWN(down);

    had(down, 1, 6);
    had(down, 2, 6);
    want(down, 100, 2, 55, 1, 7);
    want(down, 100, 3, 56, 2, 7); /* of another partition */
    expect_nothing(down);
    keep(down, 1, 7, 9, SIZE);
    expect(down, PS_DOWN_SEND, 2, 55, 9);
    expect_nothing(down);
    cr_expect_eq(ps_relay_down_due(down), 600);
}

Test(relay_down, refuses_at_once_what_it_does_not_expect)
{
    DOWN(down);

    want(down, 100, 2, 55, 1, 7);
    expect(down, PS_DOWN_SEND, 2, 55, -1);
    had(down, 1, 5);
    want(down, 100, 2, 56, 1, 7); /* not in the clock before */
    expect(down, PS_DOWN_SEND, 2, 56, -1);
    had(down, 1, 7);
    want(down, 100, 2, 57, 1, 7); /* it had them, and did not keep them */
    expect(down, PS_DOWN_SEND, 2, 57, -1);
    ask(down, 0, 3, 9);
    want(down, 100, 2, 58, 1, 9); /* it waits for them itself */
    expect_nothing(down);
    had(down, 1, 9);
    expect(down, PS_DOWN_SEND, 2, 58, -1);
    expect_nothing(down);
}

/* From the shard, too: those of this clock and of the next may wait. */
Test(relay_down, expects_what_its_client_pulls)
{
    const ps_down_key_t key = key_of(1, 7);

    DOWN(down);
    ps_relay_down_begin(down, &key);
    want(down, 100, 2, 55, 1, 7);
    want(down, 100, 3, 56, 1, 8);
    expect_nothing(down);
    want(down, 100, 4, 57, 1, 9);
    expect(down, PS_DOWN_SEND, 4, 57, -1);
    keep(down, 1, 7, 9, SIZE);
    expect(down, PS_DOWN_SEND, 2, 55, 9);
    keep(down, 1, 8, 10, SIZE);
    expect(down, PS_DOWN_SEND, 3, 56, 10);
    expect_nothing(down);
    cr_expect_eq(ps_relay_down_bytes(down), SIZE);
}

Test(relay_down, refuses_an_earlier_clock_and_waits_for_a_later_one)
{
    DOWN(down);

    had(down, 1, 5);
    want(down, 100, 4, 57, 1, 6);
    keep(down, 1, 7, 9, SIZE);
    expect(down, PS_DOWN_SEND, 4, 57, -1);
    want(down, 100, 2, 55, 1, 6);
    expect(down, PS_DOWN_SEND, 2, 55, -1);
    want(down, 100, 3, 56, 1, 8);
    expect_nothing(down);
    keep(down, 1, 6, 5, SIZE); /* it comes too late, and is ignored */
    expect_nothing(down);
    keep(down, 1, 8, 10, SIZE);
    expect(down, PS_DOWN_SEND, 3, 56, 10);
    expect_nothing(down);
}

Test(relay_down, refuses_other_numbers_of_rows)
{
    ps_down_key_t key = key_of(1, 7);

    DOWN(down);
    keep(down, 1, 7, 9, SIZE);
    key.n_rows = 19;
    ps_relay_down_want(down, 100, 2, 55, &key, WAIT_MS);
    expect(down, PS_DOWN_SEND, 2, 55, -1);
    key.first_row = 11; /* another place */
    ps_relay_down_want(down, 100, 2, 56, &key, 0);
    expect(down, PS_DOWN_SEND, 2, 56, -1);
    expect_nothing(down);
}

Test(relay_down, forgets_who_has_waited_too_long_or_is_gone)
{
    DOWN(down);

    had(down, 1, 6);
    want(down, 100, 2, 55, 1, 7);
    want(down, 200, 3, 56, 1, 7);
    want(down, 300, 4, 57, 1, 7);
    ps_relay_down_without(down, 4);
    ps_relay_down_tick(down, 600);
    cr_expect_eq(ps_relay_down_due(down), 700);
    keep(down, 1, 7, 9, SIZE);
    expect(down, PS_DOWN_SEND, 3, 56, 9);
    expect_nothing(down);
}

Test(relay_down, knows_the_last_question_of_a_worker_only)
{
    DOWN(down);

    had(down, 1, 6);
    want(down, 100, 2, 55, 1, 7);
    want(down, 100, 2, 56, 1, 7);
    keep(down, 1, 7, 9, SIZE);
    expect(down, PS_DOWN_SEND, 2, 56, 9);
    expect_nothing(down);
}

Test(relay_down, keeps_no_more_than_its_limit)
{
    DOWN(down);

    keep(down, 1, 7, 1, SIZE);
    keep(down, 2, 7, 2, SIZE);
    keep(down, 3, 7, 3, SIZE); /* the first one goes */
    cr_expect_eq(ps_relay_down_bytes(down), 2 * SIZE);
    ps_relay_down_want(down, 100, 9, 1, &(ps_down_key_t){3, 1, 10, 20, 7}, 0);
    expect(down, PS_DOWN_SEND, 9, 1, -1);
    want(down, 100, 9, 2, 2, 7);
    expect(down, PS_DOWN_SEND, 9, 2, 2);
    had(down, 4, 6);
    want(down, 100, 9, 3, 4, 7);
    keep(down, 4, 7, 4, LIMIT + 1); /* it is handed on, but not kept */
    expect(down, PS_DOWN_SEND, 9, 3, 4);
    cr_expect_eq(ps_relay_down_bytes(down), 2 * SIZE);
    keep(down, 2, 8, 5, SIZE / 2); /* instead of the ones before */
    cr_expect_eq(ps_relay_down_bytes(down), SIZE + SIZE / 2);
    expect_nothing(down);
}

Test(relay_down, the_oldest_rows_go_first)
{
    DOWN(down);

    for (uint32_t i = 1; i <= 3; i++) {
        keep(down, i, 7, (uint8_t)i, SIZE);
    }
    keep(down, 1, 8, 11, SIZE); /* instead of 2 */
    keep(down, 2, 8, 12, SIZE); /* instead of 3 */
    want(down, 100, 9, 1, 1, 8);
    expect(down, PS_DOWN_SEND, 9, 1, 11);
    want(down, 100, 9, 2, 2, 8);
    expect(down, PS_DOWN_SEND, 9, 2, 12);
    want(down, 100, 9, 3, 3, 7);
    expect(down, PS_DOWN_SEND, 9, 3, -1);
    cr_expect_eq(ps_relay_down_bytes(down), 2 * SIZE);
}

Test(relay_down, sends_again_what_could_not_be_sent)
{
    ps_down_deed_t deed = {.kind = 0};

    DOWN(down);
    keep(down, 1, 7, 9, SIZE);
    want(down, 100, 2, 55, 1, 7);
    cr_assert(ps_relay_down_next(down, &deed));
    ps_relay_down_unsent(down, 100, &deed);
    cr_expect_null(deed.payload);
    cr_expect_eq(ps_relay_down_due(down), 100 + PS_DOWN_AGAIN_MS);
    ps_relay_down_tick(down, 100 + PS_DOWN_AGAIN_MS);
    cr_assert(ps_relay_down_next(down, &deed));
    cr_expect_not_null(deed.payload);
    ps_relay_down_unsent(down, 600, &deed); /* nobody waits for it now */
    cr_expect_null(deed.payload);
    cr_expect_eq(ps_relay_down_due(down), UINT64_MAX);
    expect_nothing(down);
}

Test(relay_down, hands_the_client_what_it_has_asked_for)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *rows = rows_of(9, SIZE);
    const ps_down_key_t key = key_of(1, 7);
    const ps_down_key_t old = key_of(1, 6);

    DOWN(down);
    ask(down, 0, 55, 7);
    ps_relay_down_heard(down, 1, 55, &key, rows); /* of a worker that was not asked */
    ps_relay_down_heard(down, 0, 54, &key, rows); /* of another question */
    ps_relay_down_heard(down, 0, 55, &old, rows); /* of another clock */
    expect_nothing(down);
    ps_relay_down_heard(down, 0, 55, &key, rows);
    expect(down, PS_DOWN_GIVE, 0, 55, 9);
    ps_relay_down_heard(down, 0, 55, &key, rows); /* twice */
    expect_nothing(down);
    ask(down, 0, 56, 7);
    ps_relay_down_heard(down, 0, 56, &key, NULL);
    expect(down, PS_DOWN_GIVE, 0, 56, -1);
}

Test(relay_down, a_worker_that_is_gone_gives_nothing)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *rows = rows_of(9, SIZE);
    const ps_down_key_t key = key_of(1, 7);

    DOWN(down);
    ask(down, 0, 55, 7);
    ask(down, 1, 56, 7);
    ps_relay_down_lost(down, 0);
    expect(down, PS_DOWN_GIVE, 0, 55, -1);
    expect_nothing(down);
    ps_relay_down_heard(down, 1, 56, &key, rows);
    expect(down, PS_DOWN_GIVE, 1, 56, 9);
    ask(down, 1, 57, 7);
    ps_relay_down_tick(down, 100 + WAIT_MS);
    ps_relay_down_heard(down, 1, 57, &key, rows); /* nobody waits for it now */
    expect_nothing(down);
}

Test(relay_down, has_places_for_so_many_and_no_more)
{
    DOWN(down);

    for (uint32_t i = 0; i < PS_DOWN_MAX; i++) {
        had(down, i, 6);
        want(down, 100, 2, i + 1, i, 7);
        ask(down, 0, i + 1, 7);
    }
    expect_nothing(down);
    had(down, PS_DOWN_MAX, 6);
    want(down, 100, 2, 5000, PS_DOWN_MAX, 7);
    expect(down, PS_DOWN_SEND, 2, 5000, -1);
    ask(down, 0, 5001, 7);
    expect(down, PS_DOWN_GIVE, 0, 5001, -1);
    for (uint32_t i = 0; i <= PS_DOWN_MAX; i++) {
        keep(down, i, 6, 0, 0); /* empty, and of an earlier clock */
    }
    expect_nothing(down);
}

/* Without memory rows are not kept, or nothing is said of them. */
static void story(ps_relay_down_t *down, ps_payload_t *rows)
{
    const ps_down_key_t key = key_of(1, 7);
    ps_down_deed_t deed;

    ask(down, 0, 55, 7);
    want(down, 100, 2, 56, 1, 7);
    ps_relay_down_heard(down, 0, 55, &key, rows);
    ps_relay_down_keep(down, &key, rows);
    while (ps_relay_down_next(down, &deed)) {
        if (deed.kind == PS_DOWN_SEND) {
            ps_relay_down_unsent(down, 100, &deed);
        }
        ps_payload_destroy(&deed.payload);
    }
}

Test(relay_down, goes_on_without_memory)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *rows = rows_of(9, SIZE);
    ps_relay_down_t *none = NULL;
    bool failed = true;

    fail_alloc_at(0);
    cr_expect_eq(ps_relay_down_new(LIMIT, &none, NULL), PSD_NOMEM);
    for (size_t i = 0; failed; i++) {
        DOWN(down);
        fail_alloc_at(i);
        story(down, rows);
        failed = fail_alloc_happened();
        fail_alloc_off();
        cr_expect_leq(ps_relay_down_bytes(down), SIZE);
    }
}
