/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/session/session.h: pushes and marks that a relay has. */
#include "session_fixture.h"

Test(session_lent, the_shard_is_not_asked_while_a_relay_has_it)
{
    FIXTURE(f);
    uint64_t op = 0;
    uint64_t until_ms = 0;

    get_ready(f);
    op = push(f, 0);
    until_ms = f->now_ms + 10 * RESEND_MS;
    ps_outbox_clear(&f->outbox);
    ps_session_lent(f->session, op, until_ms);
    ps_session_lent(f->session, 99, until_ms);
    tick_at(f, until_ms - 1);
    EXPECT(f, "");
    tick_at(f, until_ms);
    EXPECT(f, "0 < PROBE 2 p0 seq 2 e5\n");
}

/* The relay's bundle had it: the answer names no request. */
Test(session_lent, the_shard_s_own_answer_ends_it)
{
    FIXTURE(f);
    uint64_t op = 0;

    get_ready(f);
    op = push(f, 0);
    ps_session_lent(f->session, op, f->now_ms + 1000);
    ps_outbox_clear(&f->outbox);
    ack(f, 0, 0, 0, 2);
    EXPECT(f, "end 2 ACK\n");
    cr_assert_eq(ps_session_pending(f->session, false), 0);
}

Test(session_lent, what_is_given_back_goes_from_here_at_once)
{
    FIXTURE(f);
    uint64_t op = 0;

    get_ready(f);
    op = push(f, 0);
    ps_session_lent(f->session, op, f->now_ms + 1000);
    ps_outbox_clear(&f->outbox);
    ps_session_given_back(f->session, f->now_ms, op, &f->outbox);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n");
    ack(f, 0, op, 0, 2);
    ps_outbox_clear(&f->outbox);
    ps_session_given_back(f->session, f->now_ms, op, &f->outbox);
    ps_session_given_back(f->session, f->now_ms, 99, &f->outbox);
    EXPECT(f, "");
}

Test(session_lent, pulls_are_not_lent)
{
    FIXTURE(f);
    uint64_t op = 0;

    get_ready(f);
    op = pull(f, 0, 0);
    ps_outbox_clear(&f->outbox);
    ps_session_lent(f->session, op, f->now_ms + 10 * RESEND_MS);
    ps_session_given_back(f->session, f->now_ms, op, &f->outbox);
    EXPECT(f, "");
    tick_at(f, f->now_ms + RESEND_MS);
    cr_assert_gt(f->outbox.n_effects, 0);
}

Test(session_lent, signs_of_an_operation_have_a_time)
{
    FIXTURE(f);
    uint64_t op = 0;
    uint64_t start_ms = 0;

    get_ready(f);
    op = push(f, 0);
    start_ms = f->now_ms;
    cr_assert_eq(ps_session_heard_ms(f->session, op), start_ms);
    f->now_ms += 40;
    parked(f, 0, op, 0);
    cr_assert_eq(ps_session_heard_ms(f->session, op), start_ms + 40);
    cr_assert_eq(ps_session_heard_ms(f->session, 99), 0);
}

/* The relay's bundle may be on its way yet. */
Test(session_lent, one_refusal_does_not_take_back_what_was_lent_and_sent)
{
    FIXTURE(f);
    uint64_t op = 0;

    get_ready(f);
    op = push(f, 0);
    ps_session_lent(f->session, op, f->now_ms + 1000);
    ps_session_given_back(f->session, f->now_ms, op, &f->outbox);
    refused(f, 0, op, 0, PSD_CLOSED, PS_CLOSED_NOT_TAKEN);
    cr_assert_eq(ps_session_broken(f->session, NULL), PSD_CLOSED);
}
