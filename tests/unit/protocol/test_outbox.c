/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/core/outbox.h: the list of effects, and notes in words. */
#include "protocol/core/outbox.h"

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "base/log.h"
#include "support/fail_alloc.h"

static bool released;

static void release(void *owner)
{
    (void)owner;
    released = true;
}

Test(outbox, effects_keep_their_order_and_begin_zeroed)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    for (uint64_t i = 0; i < 100; i++) {
        ps_effect_t *effect = ps_outbox_add(&outbox, PS_EFFECT_SEND);

        cr_assert_not_null(effect);
        cr_assert_eq(effect->to, 0);
        cr_assert_null(effect->payload);
        effect->to = i;
    }
    cr_assert_eq(outbox.n_effects, 100);
    cr_assert_eq(outbox.effects[99].to, 99);
    ps_outbox_clear(&outbox);
    cr_assert_eq(outbox.n_effects, 0);
    cr_assert_geq(outbox.capacity, 100);
    cr_assert_eq(ps_outbox_add(&outbox, PS_EFFECT_NOTE)->to, 0);
}

Test(outbox, a_place_that_is_held_is_taken_by_no_other)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    cr_assert(ps_outbox_hold(&outbox));
    fail_alloc_at(0);
    while (ps_outbox_add(&outbox, PS_EFFECT_NOTE) != NULL) {
    }
    cr_assert(fail_alloc_happened());
    fail_alloc_at(0);
    cr_assert_not(ps_outbox_hold(&outbox));
    ps_outbox_give_up(&outbox);
    fail_alloc_at(0);
    cr_assert_not_null(ps_outbox_add(&outbox, PS_EFFECT_RECORD));
    cr_assert_not(fail_alloc_happened());
    fail_alloc_off();
    cr_assert_eq(outbox.n_effects, outbox.capacity);
}

Test(outbox, clear_lets_go_of_payloads)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    ps_effect_t *effect = ps_outbox_add(&outbox, PS_EFFECT_SEND);

    released = false;
    effect->payload =
        ps_payload_new((ps_bytes_t){0}, (ps_bytes_t){0}, (ps_bytes_t){0}, NULL, release);
    cr_assert_not_null(effect->payload);
    ps_outbox_clear(&outbox);
    cr_assert(released);
}

static psd_status_t reserve_and_add(void *fixture)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    (void)fixture;
    if (!ps_outbox_reserve(&outbox, 40)) {
        cr_assert_eq(outbox.n_effects, 0);
        return PSD_NOMEM;
    }
    for (int i = 0; i < 40; i++) {
        cr_assert_not_null(ps_outbox_add(&outbox, PS_EFFECT_NOTE));
    }
    return PSD_OK;
}

Test(outbox, what_is_reserved_cannot_fail)
{
    cr_assert_null(fail_alloc_sweep(reserve_and_add, NULL));
}

Test(outbox, add_without_memory_is_null)
{
    ps_outbox_t outbox = {0};

    fail_alloc_at(0);
    cr_assert_null(ps_outbox_add(&outbox, PS_EFFECT_NOTE));
    fail_alloc_off();
    cr_assert_eq(outbox.n_effects, 0);
    cr_assert_not(ps_outbox_reserve(&outbox, SIZE_MAX));
}

static void assert_words(ps_note_kind_t kind, int level, const char *wanted)
{
    ps_note_t note = {
        .kind = kind, .table = 8, .partition = 9, .a = 1, .b = 2, .c = 17, .d = 4, .e = 5};
    char text[256];
    int got = 0;

    if (kind == PS_NOTE_HELLO_REFUSED) {
        note.b = PSD_CLUSTER;
    }
    ps_note_print(&note, text, sizeof text, &got);
    cr_assert_str_eq(text, wanted);
    cr_assert_eq(got, level);
}

Test(outbox, each_note_has_its_words)
{
    assert_words(PS_NOTE_REFUSED, PS_LOG_INFO,
                 "push_refused table=8 partition=9 session=1 seq=2 "
                 "status=RANGE");
    assert_words(PS_NOTE_DUPLICATE, PS_LOG_DEBUG,
                 "push_duplicate table=8 partition=9 session=1 seq=2");
    assert_words(PS_NOTE_GAP, PS_LOG_DEBUG,
                 "push_gap table=8 partition=9 session=1 seq=2 expected=17");
    assert_words(PS_NOTE_APPLIED, PS_LOG_DEBUG,
                 "push_applied table=8 partition=9 session=1 seq=2 lsn=17 "
                 "worker=4 clock=5");
    assert_words(PS_NOTE_LOGGED, PS_LOG_DEBUG,
                 "push_logged table=8 partition=9 session=1 seq=2 lsn=17 "
                 "worker=4 clock=5");
    assert_words(PS_NOTE_MARKED, PS_LOG_DEBUG,
                 "clock_marked table=8 partition=9 job=1 worker=2 member=17 "
                 "clock=4");
    assert_words(PS_NOTE_CLOSED, PS_LOG_DEBUG,
                 "clock_closed table=8 partition=9 job=1 clock=2 pushes=17");
    assert_words(PS_NOTE_HELD, PS_LOG_DEBUG,
                 "request_held table=8 partition=9 session=1 worker=2 "
                 "clock=17 waits_for_worker=4 at_clock=5");
    assert_words(PS_NOTE_SERVED, PS_LOG_DEBUG,
                 "pull_served table=8 partition=9 session=1 worker=2 clock=17 "
                 "rows=4");
    assert_words(PS_NOTE_HELLO, PS_LOG_INFO, "session_hello session=1 connection=2");
    assert_words(PS_NOTE_HELLO_REFUSED, PS_LOG_WARN, "session_refused session=1 status=CLUSTER");
    assert_words(PS_NOTE_FORGOTTEN, PS_LOG_INFO, "session_forgotten table=8 partition=9 session=1");
    assert_words(PS_NOTE_WRONG, PS_LOG_WARN,
                 "overlay_wrong_sum table=8 partition=9 job=1 relay_of_worker=2 clock=17");
    assert_words((ps_note_kind_t)99, PS_LOG_WARN, "note_unknown table=8 partition=9");
}

Test(outbox, words_are_cut_to_fit)
{
    ps_note_t note = {.kind = PS_NOTE_GAP};
    char text[12];

    ps_note_print(&note, text, sizeof text, NULL);
    cr_assert_str_eq(text, "push_gap ta");
}
