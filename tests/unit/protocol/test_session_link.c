/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/session/session.h: silence, lost connections, time. */
#include "session_fixture.h"
#include "support/fail_alloc.h"

Test(session_link, hello_is_said_again_ever_more_slowly)
{
    FIXTURE(f);
    static const uint64_t waits[] = {1, 2, 4, 8, 16, 16, 16};

    (void)push(f, 0);
    EXPECT(f, "open 0\n0 < HELLO\n");
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        uint64_t due_ms = f->now_ms + waits[i] * RESEND_MS;

        cr_assert_eq(ps_session_deadline(f->session), due_ms);
        tick_at(f, due_ms - 1);
        EXPECT(f, "");
        tick_at(f, due_ms);
        EXPECT(f, "0 < HELLO\n");
    }
}

Test(session_link, silence_asks_what_became_of_pushes_and_repeats_pulls)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)pull(f, 0, 0);
    (void)mark(f, 1);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n"
              "0 < PULL 3 p0 after 2 e5\n"
              "0 < MARK 4 p1 seq 1 e5\n");
    tick_at(f, f->now_ms + RESEND_MS - 1);
    EXPECT(f, "");
    tick_at(f, f->now_ms + 1);
    EXPECT(f, "0 < PROBE 2 p0 seq 2 e5\n"
              "0 < PULL 3 p0 after 2 e5\n"
              "0 < PROBE 4 p1 seq 1 e5\n");
    cr_assert_eq(ps_session_deadline(f->session), f->now_ms + 2 * RESEND_MS);
}

Test(session_link, asking_slows_down_to_sixteen_times)
{
    FIXTURE(f);
    static const uint64_t waits[] = {1, 2, 4, 8, 16, 16};

    get_ready(f);
    (void)push(f, 0);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n");
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
        uint64_t due_ms = f->now_ms + waits[i] * RESEND_MS;

        tick_at(f, due_ms - 1);
        EXPECT(f, "");
        tick_at(f, due_ms);
        EXPECT(f, "0 < PROBE 2 p0 seq 2 e5\n");
    }
}

Test(session_link, parked_is_a_sign_of_life)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n");
    f->now_ms += RESEND_MS - 1;
    parked(f, 0, 2, 0);
    tick_at(f, f->now_ms + RESEND_MS - 1);
    EXPECT(f, "");
    tick_at(f, f->now_ms + 1);
    EXPECT(f, "0 < PROBE 2 p0 seq 2 e5\n");
}

Test(session_link, relinked_says_hello_and_sends_everything_again)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)push(f, 1);
    (void)pull(f, 0, 0);
    (void)push(f, 0);
    ack(f, 0, 3, 1, 1);
    ps_outbox_clear(&f->outbox);
    ps_session_relinked(f->session, f->now_ms, 0, &f->outbox);
    (void)push(f, 0);
    EXPECT(f, "0 < HELLO\n");
    welcome(f, 0);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n"
              "0 < PULL 4 p0 after 2 e5\n"
              "0 < PUSH 5 p0 seq 3 e5\n"
              "0 < PUSH 6 p0 seq 4 e5\n");
}

Test(session_link, a_guest_goes_on_under_its_session)
{
    FIXTURE(f);

    (void)pull(f, 0, 0);
    EXPECT(f, "open 0\n0 < HELLO\n");
    welcome(f, 0);
    EXPECT(f, "0 < PULL 1 p0 after 0 e5\n");
    ps_session_settle(f->session, f->now_ms, 12, &f->outbox);
    cr_expect_eq(ps_session_number(f->session, 0), 12);
    EXPECT(f, "0 < HELLO\n");
    (void)push(f, 0);
    EXPECT(f, "");
    welcome(f, 0);
    EXPECT(f, "0 < PULL 1 p0 after 0 e5\n"
              "0 < PUSH 2 p0 seq 1 e5\n");
}

/* The shard was frozen: it welcomes the guest late, and does not know the session yet. */
Test(session_link, a_late_welcome_of_the_guest_costs_no_push)
{
    FIXTURE(f);

    (void)pull(f, 0, 0);
    EXPECT(f, "open 0\n0 < HELLO\n");
    ps_session_settle(f->session, f->now_ms, 12, &f->outbox);
    EXPECT(f, "0 < HELLO\n");
    (void)push(f, 0);
    welcome(f, 0); /* of the first HELLO; the second is refused with BUSY */
    EXPECT(f, "0 < PULL 1 p0 after 0 e5\n"
              "0 < PUSH 2 p0 seq 1 e5\n");
    refused(f, 0, 2, 0, PSD_NO_SESSION, 0);
    EXPECT(f, "0 < HELLO\n");
    cr_expect_eq(ps_session_broken(f->session, NULL), PSD_OK);
    welcome(f, 0);
    EXPECT(f, "0 < PULL 1 p0 after 0 e5\n"
              "0 < PUSH 2 p0 seq 1 e5\n");
}

Test(session_link, pull_ends_here_when_the_server_is_silent)
{
    FIXTURE(f);

    get_ready(f);
    (void)pull(f, 0, 2 * RESEND_MS);
    EXPECT(f, "0 < PULL 2 p0 after 1 e5\n");
    tick_at(f, f->now_ms + 3 * RESEND_MS - 1);
    EXPECT(f, "0 < HELLO\n0 < PULL 2 p0 after 1 e5\n");
    tick_at(f, f->now_ms + 1);
    EXPECT(f, "end 2 DEADLINE: no answer from tcp://node:7000 for 0 s\n");
    values(f, 0, 2, 0, 0); /* too late */
    EXPECT(f, "");
    cr_assert_eq(ps_session_pending(f->session, true), 0);
}

Test(session_link, silent_shard_is_in_doubt_until_it_says_anything)
{
    FIXTURE(f);
    uint32_t tables[PS_DOUBT_MAX];
    size_t n = 0;

    get_ready(f);
    cr_assert_eq(ps_session_doubt(f->session, tables, &n), UINT64_MAX);
    (void)push(f, 0);
    cr_assert_eq(ps_session_doubt(f->session, tables, &n), UINT64_MAX);
    tick_at(f, f->now_ms + RESEND_MS);
    cr_assert_eq(ps_session_doubt(f->session, tables, &n), f->now_ms);
    cr_assert_eq(n, 1);
    cr_assert_eq(tables[0], 1);
    parked(f, 0, 2, 0);
    cr_assert_eq(ps_session_doubt(f->session, tables, &n), UINT64_MAX);
}

Test(session_link, silent_shard_is_named)
{
    FIXTURE(f);
    ps_silent_t silent[PS_SILENT_MAX];

    get_ready(f);
    (void)push(f, 0);
    cr_assert_eq(ps_session_silent(f->session, silent), 0);
    tick_at(f, f->now_ms + RESEND_MS);
    cr_assert_eq(ps_session_silent(f->session, silent), 1);
    cr_assert_eq(silent[0].incarnation, 77);
    cr_assert_eq(silent[0].shard, 0);
    cr_assert_eq(silent[0].since_ms, f->now_ms);
    ack(f, 0, 2, 0, 2);
    cr_assert_eq(ps_session_silent(f->session, silent), 0);
}

/* The silence of an earlier time passed for that of a link just used again. */
Test(session_link, silence_begins_with_what_is_asked)
{
    FIXTURE(f);
    uint32_t tables[PS_DOUBT_MAX];
    size_t n = 0;

    get_ready(f);
    (void)pull(f, 0, 2 * RESEND_MS);
    tick_at(f, f->now_ms + 3 * RESEND_MS);
    cr_assert_eq(ps_session_pending(f->session, true), 0, "it has ended");
    tick_at(f, f->now_ms + 100 * RESEND_MS);
    (void)push(f, 0);
    cr_assert_eq(ps_session_doubt(f->session, tables, &n), UINT64_MAX);
    tick_at(f, f->now_ms + RESEND_MS);
    cr_assert_eq(ps_session_doubt(f->session, tables, &n), f->now_ms);
}

/* A worker waited at each clock for the WELCOME of a node that was gone. */
Test(session_link, one_without_operations_is_not_used)
{
    FIXTURE(f);

    get_ready(f);
    cr_assert_not(ps_session_link_is_used(f->session, 0));
    (void)push(f, 0);
    cr_assert(ps_session_link_is_used(f->session, 0));
    ack(f, 0, 2, 0, 2);
    cr_assert_not(ps_session_link_is_used(f->session, 0));
}

Test(session_link, held_pull_asks_for_a_sign_of_life_that_costs_nothing)
{
    FIXTURE(f);
    uint32_t tables[PS_DOUBT_MAX];
    size_t n = 0;

    get_ready(f);
    (void)pull(f, 0, 0);
    EXPECT(f, "0 < PULL 2 p0 after 1 e5\n");
    tick_at(f, f->now_ms + RESEND_MS);
    EXPECT(f, "0 < HELLO\n0 < PULL 2 p0 after 1 e5\n");
    cr_assert_eq(ps_session_doubt(f->session, tables, &n), f->now_ms);
    welcome(f, 0);
    EXPECT(f, "");
    cr_assert_eq(ps_session_doubt(f->session, tables, &n), UINT64_MAX);
}

Test(session_link, pull_that_was_never_sent_ends_too)
{
    FIXTURE(f);

    (void)pull(f, 0, 2000);
    EXPECT(f, "open 0\n0 < HELLO\n");
    tick_at(f, f->now_ms + 2000 + RESEND_MS);
    EXPECT(f, "0 < HELLO\n"
              "end 1 DEADLINE: no welcome from tcp://node:7000 for 2 s\n");
}

Test(session_link, push_never_ends_by_time)
{
    FIXTURE(f);

    (void)push(f, 0);
    tick_at(f, f->now_ms + 1000000);
    EXPECT(f, "open 0\n0 < HELLO\n0 < HELLO\n");
    cr_assert_eq(ps_session_pending(f->session, false), 1);
}

Test(session_link, nothing_to_do_is_no_deadline)
{
    FIXTURE(f);

    cr_assert_eq(ps_session_deadline(f->session), UINT64_MAX);
    get_ready(f);
    tick_at(f, ps_session_deadline(f->session));
    cr_assert_eq(ps_session_deadline(f->session), UINT64_MAX);
}

/* Answers and ticks return nothing: without memory they must leave a session
 * that gets there later. */
static psd_status_t answer_all(void *fixture)
{
    PSD_AUTO(fixture_done) fixture_t f = {.now_ms = 1};
    const ps_op_start_t wanted = {
        .kind = PS_KIND_PULL, .table = 1, .slice = a_slice(), .timeout_ms = 50};
    ps_message_t message = a_welcome(0);
    uint64_t op = 0;
    size_t n_ended = 0;
    psd_status_t rc = fixture_open(&f);

    (void)fixture;
    for (int i = 0; i < 4 && rc == PSD_OK; i++) {
        rc = try_start(&f, wanted, &op, NULL);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_outbox_done(&f.outbox); /* the next effect needs memory */
    receive(&f, 0, &message, NULL);
    for (uint64_t now_ms = 2; n_ended < 4; now_ms += 10) {
        cr_assert_lt(now_ms, 100000);
        ps_session_tick(f.session, now_ms, &f.outbox);
        for (size_t i = 0; i < f.outbox.n_effects; i++) {
            n_ended += f.outbox.effects[i].kind == PS_EFFECT_DONE;
        }
        ps_outbox_done(&f.outbox);
    }
    return fail_alloc_happened() ? PSD_NOMEM : PSD_OK;
}

Test(session_link, out_of_memory_ends_every_operation_later)
{
    cr_assert_null(fail_alloc_sweep(answer_all, NULL));
}
