/* SPDX-License-Identifier: Apache-2.0 */
/* What is lent ends with the server's answer, and goes directly in the order of its seqs. */
#include "protocol/relay/lent.h"

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

static const ps_lent_place_t PLACE = {.table = 1, .partition = 2};
static const ps_lent_place_t OTHER = {.table = 1, .partition = 3};
static ps_lent_t *lent;
static ps_lent_deed_t deed;

static void setup(void)
{
    cr_assert_eq(ps_lent_new(1000, 4, &lent, NULL), PSD_OK);
}

static void teardown(void)
{
    ps_lent_destroy(&lent);
}

TestSuite(lent, .init = setup, .fini = teardown);

static void add(uint64_t now_ms, uint64_t seq)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0},
                                            (ps_bytes_t){(const uint8_t *)"abcdefgh", 8});

    cr_assert_eq(ps_lent_add(lent, now_ms, PLACE, seq, payload, NULL), PSD_OK);
}

static void expect(ps_lent_deed_kind_t kind, uint64_t seq)
{
    cr_assert(ps_lent_next(lent, &deed));
    cr_assert_eq(deed.kind, kind);
    cr_assert_eq(deed.seq, seq);
    cr_assert_eq(deed.place.table, 1);
    cr_assert_eq(deed.place.partition, 2);
}

static void expect_nothing(void)
{
    cr_assert_not(ps_lent_next(lent, &deed));
}

Test(lent, it_is_kept_until_the_server_answers)
{
    cr_assert_eq(ps_lent_way(lent, PLACE), PS_LENT_FREE);
    add(0, 5);
    cr_assert_eq(ps_lent_way(lent, PLACE), PS_LENT_LEND, "nothing goes past it");
    cr_assert_eq(ps_lent_way(lent, OTHER), PS_LENT_FREE);
    expect_nothing();
    ps_lent_end(lent, OTHER, 5);
    ps_lent_end(lent, PLACE, 4);
    cr_assert_eq(ps_lent_count(lent), 1);
    ps_lent_end(lent, PLACE, 5);
    cr_assert_eq(ps_lent_count(lent), 0);
    cr_assert_eq(ps_lent_way(lent, PLACE), PS_LENT_FREE);
    cr_assert_eq(ps_lent_due(lent), UINT64_MAX);
}

/* F1: the relay died, and the server has not got it. */
Test(lent, silence_asks_the_server_and_then_sends)
{
    add(0, 5);
    ps_lent_heard(lent, 700, PLACE, 5);
    cr_assert_eq(ps_lent_due(lent), 1700);
    ps_lent_tick(lent, 1699);
    expect_nothing();
    ps_lent_tick(lent, 1700);
    expect(PS_LENT_ASK, 5);
    expect_nothing();
    cr_assert_eq(ps_lent_way(lent, PLACE), PS_LENT_WAIT);
    ps_lent_heard(lent, 1800, PLACE, 5); /* too late: the server was asked */
    ps_lent_tick(lent, 2700);
    expect(PS_LENT_ASK, 5);
    ps_lent_back(lent, PLACE, 5);
    expect(PS_LENT_SEND, 5);
    cr_assert_eq(ps_payload_size(deed.payload), 8);
    expect_nothing();
    cr_assert_eq(ps_lent_way(lent, PLACE), PS_LENT_DIRECT, "nothing is lent past it");
    ps_lent_tick(lent, 99999);
    expect_nothing();
    ps_lent_end(lent, PLACE, 5);
    cr_assert_eq(ps_lent_count(lent), 0);
}

/* F2: it died after the server took it. */
Test(lent, an_answer_ends_the_doubt)
{
    add(0, 5);
    ps_lent_gone(lent, 10);
    expect(PS_LENT_ASK, 5);
    ps_lent_end(lent, PLACE, 5);
    ps_lent_tick(lent, 99999);
    expect_nothing();
}

/* F6: the relay gives it back. The server takes seqs in order. */
Test(lent, nothing_goes_directly_past_what_is_lent)
{
    add(0, 5);
    add(0, 6);
    add(0, 8);
    ps_lent_back(lent, PLACE, 6);
    ps_lent_back(lent, PLACE, 7);
    expect_nothing();
    cr_assert_eq(ps_lent_way(lent, PLACE), PS_LENT_WAIT);
    ps_lent_back(lent, PLACE, 5);
    expect(PS_LENT_SEND, 5);
    expect(PS_LENT_SEND, 6);
    expect_nothing();
    ps_lent_end(lent, PLACE, 5);
    ps_lent_end(lent, PLACE, 6);
    cr_assert_eq(ps_lent_way(lent, PLACE), PS_LENT_LEND);
    ps_lent_back(lent, PLACE, 8);
    ps_lent_back(lent, PLACE, 8);
    expect(PS_LENT_SEND, 8);
    ps_lent_back(lent, PLACE, 8);
    expect_nothing();
}

/* F3: the old bundle was taken after all. */
Test(lent, what_was_given_back_ends_by_an_answer_too)
{
    add(0, 5);
    add(0, 6);
    ps_lent_back(lent, PLACE, 6);
    ps_lent_end(lent, PLACE, 6);
    ps_lent_back(lent, PLACE, 5);
    expect(PS_LENT_SEND, 5);
    expect_nothing();
}

Test(lent, what_is_wrong_is_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_lent_t *none = NULL;

    cr_assert_eq(ps_lent_new(0, 1, &none, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "patience 0 ms, limit 1; allowed: from 1");
    add(0, 5);
    psd_error_clear(err);
    cr_assert_eq(ps_lent_add(lent, 0, PLACE, 5, NULL, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "seq 5 is lent after seq 5");
    add(0, 6);
    add(0, 7);
    add(0, 8);
    psd_error_clear(err);
    cr_assert_eq(ps_lent_add(lent, 0, PLACE, 9, NULL, err), PSD_LIMIT);
    cr_assert_str_eq(psd_error_text(err), "4 seqs are lent, as many as may be");
    ps_lent_end(lent, PLACE, 8);
    ps_lent_back(lent, PLACE, 5);
    psd_error_clear(err);
    cr_assert_eq(ps_lent_add(lent, 0, PLACE, 9, NULL, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "seq 9 is lent past one that goes directly");
    cr_assert_eq(ps_lent_add(lent, 0, OTHER, 1, NULL, NULL), PSD_OK, "a mark has no payload");
}

static psd_status_t add_one(void *fixture)
{
    PSD_AUTO(ps_lent_destroy) ps_lent_t *fresh = NULL;
    psd_status_t rc = ps_lent_new(1000, 4, &fresh, NULL);

    if (rc == PSD_OK) {
        rc = ps_lent_add(fresh, 0, PLACE, 1, fixture, NULL);
        cr_assert_eq(ps_lent_count(fresh), rc == PSD_OK ? 1 : 0);
    }
    return rc;
}

Test(lent, without_memory_nothing_is_lent)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0},
                                            (ps_bytes_t){(const uint8_t *)"abcdefgh", 8});

    cr_assert_null(fail_alloc_sweep(add_one, payload));
}
