/* SPDX-License-Identifier: Apache-2.0 */
/* The second connection: which operations go by it, and that neither numbers
 * nor a broken connection get lost between the two. */
#include "session_fixture.h"

static void welcome_with_room(fixture_t *f, uint64_t link)
{
    ps_message_t message = a_welcome(0);

    message.welcome.credit_bytes = UINT64_C(1) << 20;
    receive(f, link, &message, NULL);
}

static uint64_t push_large(fixture_t *f, uint32_t partition)
{
    static const uint8_t zeros[64 << 10];
    ps_op_start_t wanted = {
        .kind = PS_KIND_PUSH, .table = 1, .partition = partition, .slice = a_slice()};
    uint64_t op = 0;

    wanted.payload = ps_payload_new((ps_bytes_t){0}, (ps_bytes_t){0},
                                    (ps_bytes_t){zeros, sizeof zeros}, NULL, NULL);
    cr_assert_not_null(wanted.payload);
    wanted.slice.n_values = 1;
    op = start(f, &wanted);
    ps_payload_destroy(&wanted.payload);
    return op;
}

/* Link 1 is the second connection of link 0; one push was answered. */
static void get_both_ready(fixture_t *f)
{
    uint64_t op = push(f, 0);

    welcome_with_room(f, 0);
    ack(f, 0, op, 0, 1);
    EXPECT(f, "open 0\n"
              "0 < HELLO\n"
              "0 < PUSH 1 p0 seq 1 e5\n"
              "end 1 ACK\n");
    ps_session_allow_bulk(f->session, 0);
    cr_assert_not(ps_session_link_is_bulk(f->session, 1));
    op = push_large(f, 0);
    cr_assert(ps_session_link_is_bulk(f->session, 1));
    cr_assert_not(ps_session_link_is_bulk(f->session, 0));
    cr_assert_eq(ps_session_link(f->session, 1), ps_session_link(f->session, 0));
    cr_assert_eq(f->outbox.n_effects, 3);
    cr_assert_eq(f->outbox.effects[1].message.hello.bulk, 1);
    EXPECT(f, "open 1\n"
              "1 < HELLO\n"
              "0 < PUSH 2 p0 seq 2 e5\n"); /* it is not waited for */
    welcome_with_room(f, 1);
    ack(f, 0, op, 0, 2);
    EXPECT(f, "end 2 ACK\n");
}

Test(session_bulk, nobody_opens_what_is_not_allowed)
{
    FIXTURE(f);
    uint64_t op = push(f, 0);

    welcome_with_room(f, 0);
    ack(f, 0, op, 0, 1);
    (void)push_large(f, 0);
    EXPECT(f, "open 0\n"
              "0 < HELLO\n"
              "0 < PUSH 1 p0 seq 1 e5\n"
              "end 1 ACK\n"
              "0 < PUSH 2 p0 seq 2 e5\n");
}

Test(session_bulk, what_follows_a_large_push_goes_the_same_way)
{
    FIXTURE(f);

    get_both_ready(f);
    (void)push_large(f, 0);
    (void)push(f, 0);
    (void)pull(f, 0, 0);
    (void)push(f, 1);
    EXPECT(f, "1 < PUSH 3 p0 seq 3 e5\n"
              "1 < PUSH 4 p0 seq 4 e5\n"
              "0 < PULL 5 p0 after 4 e5\n" /* says what it comes behind */
              "0 < PUSH 6 p1 seq 1 e5\n"); /* another partition */
    ack(f, 1, 3, 0, 3);
    ack(f, 0, 4, 0, 4); /* answers come either way */
    (void)push(f, 0);
    EXPECT(f, "end 3 ACK\n"
              "end 4 ACK\n"
              "0 < PUSH 7 p0 seq 5 e5\n");
}

Test(session_bulk, a_large_push_waits_for_small_ones_of_its_partition)
{
    FIXTURE(f);

    get_both_ready(f);
    (void)push(f, 0);
    (void)push_large(f, 0);
    (void)push(f, 0);
    EXPECT(f, "0 < PUSH 3 p0 seq 3 e5\n");
    ack(f, 0, 3, 0, 3);
    EXPECT(f, "end 3 ACK\n"
              "1 < PUSH 4 p0 seq 4 e5\n"
              "1 < PUSH 5 p0 seq 5 e5\n");
}

Test(session_bulk, a_gap_sends_a_large_push_again_though_others_are_behind_it)
{
    FIXTURE(f);

    get_both_ready(f);
    (void)push_large(f, 0);
    f->now_ms += GAP_MS;
    (void)push(f, 0);
    EXPECT(f, "1 < PUSH 3 p0 seq 3 e5\n"
              "1 < PUSH 4 p0 seq 4 e5\n");
    refused(f, 0, 3, 0, PSD_GAP, 3);
    EXPECT(f, "1 < PUSH 3 p0 seq 3 e5\n");
}

Test(session_bulk, without_the_second_connection_all_goes_by_the_first)
{
    FIXTURE(f);

    get_both_ready(f);
    (void)push_large(f, 0);
    EXPECT(f, "1 < PUSH 3 p0 seq 3 e5\n");
    ps_session_relinked(f->session, f->now_ms, 1, &f->outbox);
    EXPECT(f, "1 < HELLO\n"
              "0 < PUSH 3 p0 seq 3 e5\n");
    ack(f, 0, 3, 0, 3);
    welcome_with_room(f, 1);
    (void)push_large(f, 0);
    EXPECT(f, "end 3 ACK\n"
              "1 < PUSH 4 p0 seq 4 e5\n");
}

/* Answers to what went by one may have gone to the other, which is broken
 * without anybody knowing. */
Test(session_bulk, silence_says_hello_on_the_other_connection)
{
    FIXTURE(f);

    get_both_ready(f);
    (void)push_large(f, 0);
    EXPECT(f, "1 < PUSH 3 p0 seq 3 e5\n");
    tick_at(f, f->now_ms + RESEND_MS);
    EXPECT(f, "0 < HELLO\n"
              "1 < PROBE 3 p0 seq 3 e5\n");
    refused(f, 0, 0, 0, PSD_NO_SESSION, 0);
    EXPECT(f, "0 < HELLO\n");
}

Test(session_bulk, a_refused_hello_for_bulk_ends_nothing)
{
    FIXTURE(f);
    uint64_t op = push(f, 0);

    welcome_with_room(f, 0);
    ack(f, 0, op, 0, 1);
    ps_session_allow_bulk(f->session, 0);
    (void)push_large(f, 0);
    refused(f, 1, 0, 0, PSD_DENIED, 0);
    cr_assert_eq(ps_session_broken(f->session, NULL), PSD_OK);
    ack(f, 0, 2, 0, 2);
    EXPECT(f, "open 0\n"
              "0 < HELLO\n"
              "0 < PUSH 1 p0 seq 1 e5\n"
              "end 1 ACK\n"
              "open 1\n"
              "1 < HELLO\n"
              "0 < PUSH 2 p0 seq 2 e5\n"
              "end 2 ACK\n");
}

/* The refusal on the second connection once took the doubt away that the one on
 * the first had raised, and the registry was not asked any more. */
Test(session_bulk, another_life_of_the_node_is_doubted_on_both_connections)
{
    FIXTURE(f);
    uint32_t tables[PS_DOUBT_MAX];
    size_t n = 0;
    uint64_t since_ms = 0;

    get_both_ready(f);
    (void)push(f, 0);
    ps_session_relinked(f->session, f->now_ms, 0, &f->outbox);
    ps_session_relinked(f->session, f->now_ms, 1, &f->outbox);
    since_ms = ps_session_doubt(f->session, tables, &n);
    cr_assert_neq(since_ms, UINT64_MAX);
    refused(f, 0, 0, 0, PSD_INCARNATION, 0);
    refused(f, 1, 0, 0, PSD_INCARNATION, 0);
    cr_assert_eq(ps_session_doubt(f->session, tables, &n), since_ms);
    ps_outbox_clear(&f->outbox);
}
