/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/session/session.h: how long a session waits for an answer over a link that
 * takes its time. */
#include "session_fixture.h"

#define SLOW_MS 90 /* less than RESEND_MS: HELLO is said once */

/* Link 0, on which WELCOME took that long, with a pull that is unanswered. */
static uint64_t pull_slowly(fixture_t *f)
{
    uint64_t op = pull(f, 0, 0);

    f->now_ms += SLOW_MS;
    welcome(f, 0);
    EXPECT(f, "open 0\n"
              "0 < HELLO\n"
              "0 < PULL 1 p0 after 0 e5\n");
    return op;
}

Test(session_pace, an_answer_may_take_twice_what_welcome_took)
{
    FIXTURE(f);
    uint32_t tables[PS_DOUBT_MAX];
    size_t n = 0;

    (void)pull_slowly(f);
    tick_at(f, 1090 + 2 * SLOW_MS - 1);
    EXPECT(f, "");
    tick_at(f, 1090 + 2 * SLOW_MS);
    EXPECT(f, "0 < HELLO\n0 < PULL 1 p0 after 0 e5\n");
    cr_expect_eq(ps_session_doubt(f->session, tables, &n), f->now_ms + SLOW_MS,
                 "the shard is missed when HELLO had its time, too");
}

/* Or a shard that was slow at its start would be missed late when it dies. */
Test(session_pace, quick_answers_end_a_slow_pace)
{
    FIXTURE(f);
    uint32_t tables[PS_DOUBT_MAX];
    size_t n = 0;
    uint64_t op = pull_slowly(f);

    for (int i = 0; i < 20; i++) {
        values(f, 0, op, 0, 0);
        op = pull(f, 0, 0);
    }
    ps_outbox_clear(&f->outbox);
    tick_at(f, f->now_ms + RESEND_MS);
    EXPECT(f, "0 < HELLO\n0 < PULL 21 p0 after 0 e5\n");
    cr_expect_leq(ps_session_doubt(f->session, tables, &n), f->now_ms + 1);
}

/* What answers a repetition says nothing of how long an answer takes. */
Test(session_pace, answers_to_repetitions_change_nothing)
{
    FIXTURE(f);
    uint64_t op = pull_slowly(f);

    tick_at(f, f->now_ms + 2 * SLOW_MS);
    values(f, 0, op, 0, 0);
    (void)pull(f, 0, 0);
    ps_outbox_clear(&f->outbox);
    tick_at(f, f->now_ms + 2 * SLOW_MS - 1);
    EXPECT(f, "");
}

/* How long after its doubt a shard is missed. */
static uint64_t missed_after(fixture_t *f)
{
    uint32_t tables[PS_DOUBT_MAX];
    size_t n = 0;

    return ps_session_doubt(f->session, tables, &n) - f->now_ms;
}

/* A pull is asked again so long after it was sent. */
static void expect_pull_waits(fixture_t *f, uint64_t op, uint64_t ms)
{
    char wanted[80];

    ps_outbox_clear(&f->outbox);
    tick_at(f, f->now_ms + ms - 1);
    EXPECT(f, "");
    tick_at(f, f->now_ms + 1);
    (void)snprintf(wanted, sizeof wanted, "0 < HELLO\n0 < PULL %" PRIu64 " p0 after 1 e5\n", op);
    EXPECT(f, wanted);
}

/* Its HELLO, which asks whether the shard lives, waits as long as the node
 * stands still: that passed for the pace of the link. */
Test(session_pace, a_node_that_stood_still_is_no_slow_link)
{
    FIXTURE(f);
    uint64_t op = 0;

    get_ready(f);
    op = pull(f, 0, 0);
    tick_at(f, f->now_ms + RESEND_MS);
    f->now_ms += 8000;
    values(f, 0, op, 0, 0);
    f->now_ms++;
    welcome(f, 0);
    expect_pull_waits(f, pull(f, 0, 0), RESEND_MS);
}

/* HELLO waits in the queue of a slow link, too, but there something comes. */
Test(session_pace, what_comes_before_welcome_shows_a_slow_link)
{
    FIXTURE(f);
    uint64_t op = 0;

    get_ready(f);
    op = pull(f, 0, 0);
    tick_at(f, f->now_ms + RESEND_MS);
    f->now_ms += 50;
    values(f, 0, op, 0, 0);
    f->now_ms += 300;
    welcome(f, 0);
    expect_pull_waits(f, pull(f, 0, 0), 600);
    cr_expect_eq(missed_after(f), 300);
}

Test(session_pace, a_pace_has_a_most)
{
    FIXTURE(f);
    uint64_t op = 0;

    get_ready(f);
    op = pull(f, 0, 0);
    tick_at(f, f->now_ms + RESEND_MS);
    f->now_ms += 50;
    values(f, 0, op, 0, 0);
    f->now_ms += 60000;
    welcome(f, 0);
    expect_pull_waits(f, pull(f, 0, 0), 10000);
    cr_expect_eq(missed_after(f), 2000);
}

/* All of the answers may be to what was asked again. */
Test(session_pace, answers_to_repetitions_count_from_the_first_one)
{
    FIXTURE(f);
    uint64_t op = 0;

    get_ready(f);
    op = pull(f, 0, 0);
    tick_at(f, f->now_ms + RESEND_MS);
    f->now_ms += 50;
    values(f, 0, op, 0, 0);
    f->now_ms += 400;
    welcome(f, 0); /* a pace of 400 */
    op = pull(f, 0, 0);
    tick_at(f, f->now_ms + 800);
    for (int i = 0; i < 20; i++) {
        values(f, 0, op, 0, 0);
        op = pull(f, 0, 0);
        tick_at(f, f->now_ms + 50);
        refused(f, 0, op, 0, PSD_BUSY, 0); /* it is sent twice */
        tick_at(f, f->now_ms + GAP_MS);
        f->now_ms += 20;
    }
    values(f, 0, op, 0, 0);
    op = pull(f, 0, 0);
    ps_outbox_clear(&f->outbox);
    tick_at(f, f->now_ms + 400);
    cr_expect_str_neq(story(f), "", "twice what the answers took at most");
}

/* It may be another way, or another life of the node. */
Test(session_pace, a_new_connection_has_a_pace_of_its_own)
{
    FIXTURE(f);
    uint64_t op = pull_slowly(f);

    values(f, 0, op, 0, 0);
    ps_session_relinked(f->session, f->now_ms, 0, &f->outbox);
    welcome(f, 0);
    op = pull(f, 0, 0);
    ps_outbox_clear(&f->outbox);
    tick_at(f, f->now_ms + RESEND_MS);
    EXPECT(f, "0 < HELLO\n0 < PULL 2 p0 after 0 e5\n");
}

/* A pull of which no piece has come yet. */
static uint64_t pull_in_pieces(fixture_t *f)
{
    uint64_t op = 0;

    get_ready(f);
    op = pull(f, 0, 0);
    ps_outbox_clear(&f->outbox);
    return op;
}

static void piece_after(fixture_t *f, uint64_t op, uint64_t ms)
{
    f->now_ms += ms;
    ps_session_heard(f->session, f->now_ms, 0, op);
}

/* It is asked again so long after the last piece, and not before. */
static void expect_asked_after(fixture_t *f, uint64_t ms)
{
    ps_outbox_clear(&f->outbox);
    tick_at(f, f->now_ms + ms - 1);
    EXPECT(f, "");
    tick_at(f, f->now_ms + 1);
    EXPECT(f, "0 < HELLO\n0 < PULL 2 p0 after 1 e5\n");
}

/* It answers an earlier question than the piece. */
Test(session_pace, parked_does_not_shorten_the_wait_for_a_piece)
{
    FIXTURE(f);
    uint64_t op = pull_in_pieces(f);

    piece_after(f, op, 10);
    piece_after(f, op, 90);
    parked(f, 0, op, 0);
    expect_asked_after(f, 180);
}

/* What was held at a gate has told nothing of how long its pieces take: a
 * primary that died in the middle was missed twice as late as that. */
Test(session_pace, the_first_piece_tells_nothing_of_the_next)
{
    FIXTURE(f);
    uint64_t op = pull_in_pieces(f);

    for (int i = 0; i < 5; i++) {
        tick_at(f, f->now_ms + 4000);
        parked(f, 0, op, 0);
    }
    piece_after(f, op, 1500);
    expect_asked_after(f, RESEND_MS);
}

/* A node that stood still once, in the middle of an answer. */
Test(session_pace, a_piece_that_was_late_once_is_forgotten_with_the_next)
{
    FIXTURE(f);
    uint64_t op = pull_in_pieces(f);

    piece_after(f, op, 10);
    piece_after(f, op, 5000);
    piece_after(f, op, 10);
    expect_asked_after(f, RESEND_MS);
}

/* Or the first piece of what is sent again would come late. */
Test(session_pace, what_is_sent_again_has_no_pieces_yet)
{
    FIXTURE(f);
    uint64_t op = pull_in_pieces(f);

    piece_after(f, op, 10);
    ps_session_relinked(f->session, f->now_ms, 0, &f->outbox);
    f->now_ms += SLOW_MS;
    welcome(f, 0);
    piece_after(f, op, 10);
    expect_asked_after(f, 2 * SLOW_MS);
}

/* When the rest of an answer was dropped, somebody has to ask. */
Test(session_pace, a_piece_is_waited_for_a_minute_at_most)
{
    FIXTURE(f);
    uint64_t op = pull_in_pieces(f);

    piece_after(f, op, 10);
    piece_after(f, op, 100000);
    expect_asked_after(f, 60000);
}
