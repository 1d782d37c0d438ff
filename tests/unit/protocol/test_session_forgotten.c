/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/session/session.h: a partition has forgotten the client. What nobody can
 * have taken begins again under another session; the rest breaks the client. */
#include "session_fixture.h"

#define FORGOTTEN PSD_CLOSED, PS_CLOSED_NOT_TAKEN

static bool wants(const fixture_t *f)
{
    uint32_t table = 0;
    uint32_t partition = 9;
    bool wanted = ps_session_wants_identity(f->session, &table, &partition);

    cr_expect(!wanted || (table == 1 && partition == 0));
    return wanted;
}

static void give_identity(fixture_t *f, uint64_t session)
{
    const ps_identity_t added = {.client = {{7}}, .session = session};

    cr_assert_eq(ps_session_add_identity(f->session, &added, NULL), PSD_OK);
    tick_at(f, f->now_ms + 1);
}

static void expect_broken(fixture_t *f)
{
    cr_expect_eq(ps_session_broken(f->session, NULL), PSD_CLOSED);
    cr_expect_not(wants(f));
}

Test(session_forgotten, what_was_not_taken_goes_on_under_another_session)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)push(f, 0);
    (void)pull(f, 0, 0);
    (void)push(f, 1);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n"
              "0 < PUSH 3 p0 seq 3 e5\n"
              "0 < PULL 4 p0 after 3 e5\n"
              "0 < PUSH 5 p1 seq 1 e5\n");
    refused(f, 0, 2, 0, FORGOTTEN);
    cr_assert(wants(f));
    EXPECT(f, "");
    refused(f, 0, 3, 0, FORGOTTEN); /* late: nothing new */
    refused(f, 0, 4, 0, FORGOTTEN);
    give_identity(f, 30);
    cr_expect_not(wants(f));
    EXPECT(f, "open 1\n1 < HELLO\n");
    cr_expect_eq(ps_session_number(f->session, 0), 9);
    cr_expect_eq(ps_session_number(f->session, 1), 30);
    welcome(f, 1);
    EXPECT(f, "1 < PUSH 2 p0 seq 1 e5\n"
              "1 < PUSH 3 p0 seq 2 e5\n"
              "1 < PULL 4 p0 after 2 e5\n");
    ack(f, 1, 2, 0, 1);
    ack(f, 1, 3, 0, 2);
    values(f, 1, 4, 0, 0);
    ack(f, 0, 5, 1, 1); /* others go on as they were */
    EXPECT(f, "end 2 ACK\nend 3 ACK\nend 4 VALUES\nend 5 ACK\n");
    (void)push(f, 0);
    (void)push(f, 1);
    EXPECT(f, "1 < PUSH 6 p0 seq 3 e5\n0 < PUSH 7 p1 seq 2 e5\n");
}

Test(session_forgotten, what_was_sent_twice_may_have_been_taken)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    ps_session_relinked(f->session, f->now_ms, 0, &f->outbox);
    welcome(f, 0);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n0 < HELLO\n0 < PUSH 2 p0 seq 2 e5\n");
    refused(f, 0, 2, 0, FORGOTTEN);
    expect_broken(f);
}

Test(session_forgotten, a_refusal_of_a_probe_says_nothing_of_the_push)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    tick_at(f, f->now_ms + RESEND_MS);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n0 < PROBE 2 p0 seq 2 e5\n");
    refused(f, 0, 2, 0, PSD_CLOSED, 0);
    expect_broken(f);
}

/* Busy may be an answer to the probe: the push, sent before, may be taken. */
Test(session_forgotten, what_was_asked_about_stays_unsure)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    tick_at(f, f->now_ms + RESEND_MS);
    refused(f, 0, 2, 0, PSD_BUSY, 0);
    tick_at(f, f->now_ms + GAP_MS);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n"
              "0 < PROBE 2 p0 seq 2 e5\n"
              "0 < PUSH 2 p0 seq 2 e5\n");
    refused(f, 0, 2, 0, FORGOTTEN);
    expect_broken(f);
}

Test(session_forgotten, what_was_turned_away_was_not_taken)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    refused(f, 0, 2, 0, PSD_BUSY, 0);
    tick_at(f, f->now_ms + GAP_MS);
    refused(f, 0, 2, 0, PSD_NO_SESSION, 0);
    welcome(f, 0);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n"
              "0 < PUSH 2 p0 seq 2 e5\n"
              "0 < HELLO\n"
              "0 < PUSH 2 p0 seq 2 e5\n");
    refused(f, 0, 2, 0, FORGOTTEN);
    cr_expect(wants(f));
}

/* The first one's answer is on its way, and says that it was taken. */
Test(session_forgotten, what_went_before_is_waited_for)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)push(f, 0);
    refused(f, 0, 3, 0, FORGOTTEN);
    cr_expect_not(wants(f));
    ack(f, 0, 2, 0, 2);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n0 < PUSH 3 p0 seq 3 e5\nend 2 ACK\n");
    tick_at(f, f->now_ms + RESEND_MS);
    EXPECT(f, "0 < PUSH 3 p0 seq 3 e5\n");
    refused(f, 0, 3, 0, FORGOTTEN);
    cr_expect(wants(f));
    give_identity(f, 31);
    welcome(f, 1);
    EXPECT(f, "open 1\n1 < HELLO\n1 < PUSH 3 p0 seq 1 e5\n");
}

Test(session_forgotten, a_pull_alone_begins_again)
{
    FIXTURE(f);

    get_ready(f);
    (void)pull(f, 0, 0);
    refused(f, 0, 2, 0, FORGOTTEN);
    cr_expect(wants(f));
    give_identity(f, 31);
    welcome(f, 1);
    EXPECT(f, "0 < PULL 2 p0 after 1 e5\n"
              "open 1\n1 < HELLO\n1 < PULL 2 p0 after 0 e5\n");
}
