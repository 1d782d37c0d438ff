/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/session/session.h: what each answer makes of an operation. */
#include "session_fixture.h"
#include "support/fail_alloc.h"

static void moved(fixture_t *f, uint64_t link, uint64_t op, uint32_t shard, uint64_t epoch)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_message_t message = {.kind = PS_KIND_MOVED,
                            .moved = {ADDRESS(op, 0, EPOCH, 0), .n_routes = N_PARTITIONS}};
    ps_route_t routes[N_PARTITIONS];

    fill_routes(routes, EPOCH);
    routes[0].shard = shard;
    routes[0].epoch = epoch;
    for (size_t i = 0; i < N_PARTITIONS; i++) {
        cr_assert(ps_route_encode(&routes[i], &bytes));
    }
    payload =
        ps_payload_copy((ps_bytes_t){bytes.data, bytes.size}, (ps_bytes_t){0}, (ps_bytes_t){0});
    receive(f, link, &message, payload);
}

static void assert_broken(fixture_t *f, psd_status_t status, const char *wanted)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    const char *text = NULL;
    uint64_t op = 0;

    cr_assert_eq(ps_session_broken(f->session, &text), status);
    cr_assert_str_eq(text, wanted);
    cr_assert_eq(try_start(f, a_mark(1, 0), &op, err), PSD_CLOSED);
    cr_assert(strstr(psd_error_text(err), wanted) != NULL);
    cr_assert_eq(ps_session_pending(f->session, true), 0);
    cr_assert_eq(ps_session_deadline(f->session), UINT64_MAX);
}

Test(session_answer, values_come_with_their_payload)
{
    FIXTURE(f);

    get_ready(f);
    (void)pull(f, 0, 0);
    ps_outbox_clear(&f->outbox);
    values(f, 0, 2, 0, 0);
    cr_assert_eq(f->outbox.n_effects, 1);
    cr_assert_eq(f->outbox.effects[0].kind, PS_EFFECT_DONE);
    cr_assert_eq(ps_payload_size(f->outbox.effects[0].payload), 4);
}

/* The relay that brought it does not know the request's number. */
Test(session_answer, what_a_bundle_brought_ends_by_its_seq)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)pull(f, 0, 0);
    (void)push(f, 0);
    ps_outbox_clear(&f->outbox);
    ack(f, 0, 0, 0, 3);
    EXPECT(f, "end 4 ACK\n");
    ack(f, 0, 0, 0, 3); /* comes again */
    ack(f, 0, 0, 0, 9);
    ack(f, 0, 0, 1, 2);
    EXPECT(f, "");
    ack(f, 0, 0, 0, 2);
    EXPECT(f, "end 2 ACK\n");
}

/* It asked for more than what the table, and so a bundle, is answered at. */
Test(session_answer, a_bundle_s_level_may_be_too_low_for_it)
{
    FIXTURE(f);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = bytes_of(4);
    ps_op_start_t wanted = {.kind = PS_KIND_PUSH,
                            .table = 1,
                            .slice = a_slice(),
                            .payload = payload,
                            .ack = PS_ACK_DISK};
    ps_message_t high = {.kind = PS_KIND_ACK,
                         .ack = {ADDRESS(0, 0, EPOCH, 2), .level = PS_ACK_DISK}};

    wanted.slice.n_values = 1;
    get_ready(f);
    cr_assert_eq(start(f, &wanted), 2);
    ps_outbox_clear(&f->outbox);
    ack(f, 0, 0, 0, 2);
    EXPECT(f, "");
    receive(f, 0, &high, NULL);
    EXPECT(f, "end 2 ACK\n");
}

Test(session_answer, refusal_for_good_ends_it)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)push(f, 0);
    ps_outbox_clear(&f->outbox);
    refused(f, 0, 2, 0, PSD_SHAPE, 0);
    EXPECT(f, "end 2 SHAPE: because\n");
    refused(f, 0, 2, 0, PSD_SHAPE, 0); /* once more, late */
    ack(f, 0, 3, 0, 3);
    EXPECT(f, "end 3 ACK\n");
    cr_assert_eq(ps_session_broken(f->session, NULL), PSD_OK);
}

Test(session_answer, gap_sends_again_from_there_in_order)
{
    FIXTURE(f);

    get_ready(f);
    for (int i = 0; i < 4; i++) {
        (void)push(f, 0); /* seqs 2 to 5 */
    }
    ack(f, 0, 2, 0, 2);
    ps_outbox_clear(&f->outbox);
    f->now_ms += GAP_MS;
    refused(f, 0, 5, 0, PSD_GAP, 3);
    EXPECT(f, "0 < PUSH 3 p0 seq 3 e5\n"
              "0 < PUSH 4 p0 seq 4 e5\n"
              "0 < PUSH 5 p0 seq 5 e5\n");
}

/* What was acknowledged at memory and lost with its primary is what the next
 * one expects; the client once sent the wrong push again, for ever. */
Test(session_answer, gap_before_what_a_former_primary_acknowledged_is_a_loss)
{
    FIXTURE(f);
    ps_message_t gap = {.kind = PS_KIND_REFUSED,
                        .refused = {ADDRESS(3, 0, EPOCH, 3), .status = PSD_GAP, .detail = 2}};

    get_ready(f);
    (void)push(f, 0);
    (void)push(f, 0);
    ack(f, 0, 2, 0, 2);
    receive(f, 0, &gap, NULL); /* from before that ACK: it was overtaken */
    cr_assert_eq(ps_session_broken(f->session, NULL), PSD_OK);
    gap.refused.epoch = EPOCH + 1;
    receive(f, 0, &gap, NULL);
    assert_broken(f, PSD_ROWS_LOST,
                  "partition 0 of table 1 has lost pushes that were "
                  "acknowledged at memory: its new primary expects seq 2");
    ps_outbox_clear(&f->outbox);
}

/* The new primary knew an earlier push, whose first answer had been lost, and
 * said so: what was lost behind that passed for what it had, for ever. */
Test(session_answer, gap_is_a_loss_though_an_earlier_push_ended_under_its_epoch)
{
    FIXTURE(f);
    ps_message_t late = {.kind = PS_KIND_ACK, .ack = {ADDRESS(2, 0, EPOCH + 1, 2), .level = 1}};
    ps_message_t gap = {.kind = PS_KIND_REFUSED,
                        .refused = {ADDRESS(4, 0, EPOCH + 1, 4), .status = PSD_GAP, .detail = 3}};

    get_ready(f);
    (void)push(f, 0);
    (void)push(f, 0);
    (void)push(f, 0);
    ack(f, 0, 3, 0, 3);
    receive(f, 0, &late, NULL);
    receive(f, 0, &gap, NULL);
    assert_broken(f, PSD_ROWS_LOST,
                  "partition 0 of table 1 has lost pushes that were "
                  "acknowledged at memory: its new primary expects seq 3");
    ps_outbox_clear(&f->outbox);
}

/* It waited for good: nothing that it is behind is ever sent again. */
Test(session_answer, gap_before_a_pull_is_a_loss_too)
{
    FIXTURE(f);
    ps_message_t gap = {.kind = PS_KIND_REFUSED,
                        .refused = {ADDRESS(3, 0, EPOCH, 0), .status = PSD_GAP, .detail = 2}};

    get_ready(f);
    (void)push(f, 0);
    (void)pull(f, 0, 0);
    ps_outbox_clear(&f->outbox);
    f->now_ms += GAP_MS;
    receive(f, 0, &gap, NULL); /* the push is on its way */
    EXPECT(f, "");
    ack(f, 0, 2, 0, 2);
    ps_outbox_clear(&f->outbox);
    receive(f, 0, &gap, NULL); /* it was overtaken */
    EXPECT(f, "");
    cr_assert_eq(ps_session_broken(f->session, NULL), PSD_OK);
    gap.refused.epoch = EPOCH + 1;
    receive(f, 0, &gap, NULL);
    assert_broken(f, PSD_ROWS_LOST,
                  "partition 0 of table 1 has lost pushes that were "
                  "acknowledged at memory: its new primary expects seq 2");
    ps_outbox_clear(&f->outbox);
}

Test(session_answer, gaps_close_together_send_again_once)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)push(f, 0);
    ps_outbox_clear(&f->outbox);
    f->now_ms += 1;
    refused(f, 0, 3, 0, PSD_GAP, 2); /* both may still be on their way */
    EXPECT(f, "");
    refused(f, 0, 3, 0, PSD_GAP, 2);
    EXPECT(f, "");
    cr_assert_eq(ps_session_deadline(f->session), f->now_ms - 1 + GAP_MS);
    tick_at(f, f->now_ms - 1 + GAP_MS);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n0 < PUSH 3 p0 seq 3 e5\n");
}

Test(session_answer, busy_goes_again_ever_later)
{
    /* A partition on its way to another place is there very soon. */
    static const uint64_t pauses_ms[] = {GAP_MS / 8, 2 * (GAP_MS / 8), 4 * (GAP_MS / 8), GAP_MS,
                                         2 * GAP_MS};
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n");
    for (size_t i = 0; i < sizeof pauses_ms / sizeof *pauses_ms; i++) {
        refused(f, 0, 2, 0, PSD_BUSY, 0);
        tick_at(f, f->now_ms + pauses_ms[i] - 1);
        EXPECT(f, "");
        tick_at(f, f->now_ms + 1);
        EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n");
    }
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms, 2), "because");
}

Test(session_answer, busy_of_one_partition_does_not_hold_another)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    ps_outbox_clear(&f->outbox);
    refused(f, 0, 2, 0, PSD_BUSY, 0);
    (void)push(f, 0);
    (void)push(f, 1);
    EXPECT(f, "0 < PUSH 4 p1 seq 1 e5\n");
}

/* An operation that began while its partition paused was sent by nobody. */
Test(session_answer, operation_begun_in_a_pause_goes_behind_it)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    refused(f, 0, 2, 0, PSD_BUSY, 0);
    ack(f, 0, 2, 0, 2); /* late, but true */
    tick_at(f, f->now_ms + 1);
    ps_outbox_clear(&f->outbox);
    (void)push(f, 0);
    EXPECT(f, "");
    cr_assert_leq(ps_session_deadline(f->session), f->now_ms + GAP_MS);
    tick_at(f, f->now_ms + GAP_MS);
    EXPECT(f, "0 < PUSH 3 p0 seq 3 e5\n");
}

Test(session_answer, no_session_says_hello_once_and_sends_again)
{
    FIXTURE(f);
    ps_message_t message = {.kind = PS_KIND_REFUSED, .refused = {.status = PSD_NO_SESSION}};

    get_ready(f);
    (void)push(f, 0);
    (void)push(f, 0);
    ps_outbox_clear(&f->outbox);
    receive(f, 0, &message, NULL);
    receive(f, 0, &message, NULL); /* for the second one */
    EXPECT(f, "0 < HELLO\n");
    welcome(f, 0);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n0 < PUSH 3 p0 seq 3 e5\n");
}

Test(session_answer, moved_carries_operations_to_the_new_place)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)push(f, 1);
    (void)push(f, 0);
    ps_outbox_clear(&f->outbox);
    moved(f, 0, 2, 3, EPOCH + 1);
    EXPECT(f, "open 1\n1 < HELLO\n");
    moved(f, 0, 4, 3, EPOCH + 1); /* the same to the other one */
    welcome(f, 1);
    EXPECT(f, "1 < PUSH 2 p0 seq 2 e6\n1 < PUSH 4 p0 seq 3 e6\n");
    ack(f, 0, 2, 0, 2); /* from the old place: too late */
    ack(f, 0, 3, 1, 1);
    EXPECT(f, "end 3 ACK\n");
}

Test(session_answer, moved_within_the_place_goes_again_with_the_new_epoch)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)push(f, 0);
    ps_outbox_clear(&f->outbox);
    moved(f, 0, 2, 0, EPOCH + 1);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e6\n0 < PUSH 3 p0 seq 3 e6\n");
}

Test(session_answer, moved_that_tells_nothing_new_waits)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    ps_outbox_clear(&f->outbox);
    moved(f, 0, 2, 3, EPOCH);
    EXPECT(f, "");
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms, 2), "the partition is moving");
    tick_at(f, f->now_ms + GAP_MS);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n");
}

Test(session_answer, answers_of_an_older_epoch_are_asked_for_anew)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)pull(f, 0, 0);
    moved(f, 0, 2, 0, EPOCH + 1);
    ps_outbox_clear(&f->outbox);
    ack(f, 0, 2, 0, 2);
    values(f, 0, 3, 0, 0);
    EXPECT(f, "");
    cr_assert_eq(ps_session_pending(f->session, true), 2);
    tick_at(f, f->now_ms + GAP_MS);
    EXPECT(f, "0 < PROBE 2 p0 seq 2 e6\n0 < PULL 3 p0 after 2 e6\n");
}

Test(session_answer, pushpull_that_was_applied_is_sent_again_for_its_values)
{
    FIXTURE(f);

    get_ready(f);
    (void)push_bytes(f, 0, 4, true);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n");
    tick_at(f, f->now_ms + RESEND_MS);
    EXPECT(f, "0 < PROBE 2 p0 seq 2 e5\n");
    ack(f, 0, 2, 0, 2);
    EXPECT(f, "");
    tick_at(f, f->now_ms + GAP_MS);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n");
    values(f, 0, 2, 0, 2);
    EXPECT(f, "end 2 VALUES\n");
}

Test(session_answer, no_table_ends_all_of_the_table)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)push(f, 1);
    ps_outbox_clear(&f->outbox);
    refused(f, 0, 3, 1, PSD_NO_TABLE, 0);
    EXPECT(f, "end 2 NO_TABLE: table 1: table does not exist\n"
              "end 3 NO_TABLE: table 1: table does not exist\n");
    cr_assert_eq(ps_session_broken(f->session, NULL), PSD_OK);
}

/* A caller may have rights to some tables: the others go on. A push that was denied may have been
 * taken when it was sent before. */
Test(session_answer, a_denied_pull_ends_alone_and_a_denied_push_breaks)
{
    FIXTURE(f);

    get_ready(f);
    (void)pull(f, 0, 0);
    (void)pull(f, 1, 0);
    ps_outbox_clear(&f->outbox);
    refused(f, 0, 2, 0, PSD_DENIED, 0);
    EXPECT(f, "end 2 DENIED: because\n");
    cr_assert_eq(ps_session_broken(f->session, NULL), PSD_OK);
    values(f, 0, 3, 1, 0);
    EXPECT(f, "end 3 VALUES\n");
    (void)push(f, 0);
    (void)pull(f, 1, 0);
    ps_outbox_clear(&f->outbox);
    refused(f, 0, 4, 0, PSD_DENIED, 0);
    EXPECT(f, "end 4 DENIED: because\nend 5 DENIED: because\n");
    assert_broken(f, PSD_DENIED, "because");
}

Test(session_answer, refused_hello_breaks_the_session)
{
    static const psd_status_t reasons[] = {PSD_VERSION, PSD_CLUSTER, PSD_DENIED, PSD_ROWS_LOST,
                                           PSD_CLOSED};

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        FIXTURE(f);
        char wanted[64];

        (void)push(f, 0);
        (void)pull(f, 2, 0);
        ps_outbox_clear(&f->outbox);
        refused(f, 0, 0, 0, reasons[i], 0);
        (void)snprintf(wanted, sizeof wanted, "end 1 %s: because\nend 2 %s: because\n",
                       psd_status_name(reasons[i]), psd_status_name(reasons[i]));
        EXPECT(f, wanted);
        assert_broken(f, reasons[i], "because");
        welcome(f, 0); /* nothing helps any more */
        ps_session_relinked(f->session, f->now_ms, 0, &f->outbox);
        tick_at(f, f->now_ms + 100000);
        EXPECT(f, "");
    }
}

/* Copies may be elsewhere: only the registry knows whether rows are lost. */
Test(session_answer, another_life_of_the_node_puts_its_places_in_doubt)
{
    FIXTURE(f);
    uint32_t tables[PS_DOUBT_MAX];
    uint64_t since_ms = f->now_ms;
    size_t n = 0;

    (void)push(f, 0);
    ps_outbox_clear(&f->outbox);
    tick_at(f, f->now_ms + 1);
    refused(f, 0, 0, 0, PSD_INCARNATION, 0);
    EXPECT(f, "");
    cr_assert_eq(ps_session_doubt(f->session, tables, &n), since_ms);
    cr_assert_eq(n, 1);
    cr_assert_eq(tables[0], 1);
    cr_assert_eq(ps_session_broken(f->session, NULL), PSD_OK);
}

Test(session_answer, hello_that_meets_a_busy_node_is_said_again)
{
    FIXTURE(f);

    (void)push(f, 0);
    ps_outbox_clear(&f->outbox);
    refused(f, 0, 0, 0, PSD_BUSY, 0);
    EXPECT(f, "");
    tick_at(f, f->now_ms + RESEND_MS);
    EXPECT(f, "0 < HELLO\n");
}

Test(session_answer, welcome_from_another_place_breaks_it)
{
    FIXTURE(f);
    ps_message_t message = a_welcome(0);

    (void)push(f, 0);
    message.welcome.incarnation++;
    receive(f, 0, &message, NULL);
    assert_broken(f, PSD_PROTO,
                  "tcp://node:7000 broke the protocol: WELCOME of version 1 from another shard, "
                  "node or cluster");
}

Test(session_answer, welcome_without_credits_breaks_it)
{
    FIXTURE(f);
    ps_message_t message = a_welcome(0);

    (void)push(f, 0);
    message.welcome.credit_requests = 0;
    receive(f, 0, &message, NULL);
    assert_broken(f, PSD_PROTO,
                  "tcp://node:7000 broke the protocol: WELCOME without "
                  "credits");
}

/* One message that no server may send; the session is as get_ready left it,
 * with a push to partition 0 under way as operation 2. */
static void assert_breaks(const ps_message_t *message, const char *wanted)
{
    FIXTURE(f);
    char text[256];

    get_ready(f);
    (void)push(f, 0);
    receive(f, 0, message, NULL);
    (void)snprintf(text, sizeof text, "tcp://node:7000 broke the protocol: %s", wanted);
    assert_broken(f, PSD_PROTO, text);
}

Test(session_answer, answers_that_make_no_sense_break_it)
{
    ps_message_t message = {.kind = PS_KIND_VALUES, .values = {ADDRESS(2, 0, EPOCH, 2)}};

    assert_breaks(&message, "VALUES of seq 2 for a PUSH");
    message = (ps_message_t){.kind = PS_KIND_ACK, .ack = {ADDRESS(2, 0, EPOCH, 3)}};
    assert_breaks(&message, "ACK of seq 3 for a request of PUSH");
    message.ack.partition = 1;
    assert_breaks(&message, "ACK answers no request");
    message = (ps_message_t){.kind = PS_KIND_HELLO};
    assert_breaks(&message, "HELLO is not for a client");
    message = (ps_message_t){.kind = PS_KIND_REFUSED,
                             .refused = {ADDRESS(2, 0, EPOCH, 2), .status = PSD_GAP, .detail = 7}};
    assert_breaks(&message, "GAP before seq 2 expects 7");
    message.refused.status = PSD_OK;
    assert_breaks(&message, "REFUSED with status 0");
    message = (ps_message_t){.kind = PS_KIND_MOVED,
                             .moved = {ADDRESS(2, 0, EPOCH, 2), .n_routes = N_PARTITIONS}};
    assert_breaks(&message, "MOVED with 3 routes that are not the table's");
    message.moved.n_routes = 0;
    assert_breaks(&message, "MOVED with 0 routes that are not the table's");
}

Test(session_answer, answer_to_what_was_never_sent_breaks_it)
{
    FIXTURE(f);

    (void)push(f, 0);
    ack(f, 0, 1, 0, 1); /* not even a WELCOME came */
    assert_broken(f, PSD_PROTO, "tcp://node:7000 broke the protocol: ACK answers no request");
}

Test(session_answer, answers_to_unknown_operations_are_late_ones)
{
    FIXTURE(f);

    get_ready(f);
    ack(f, 0, 1, 0, 1);
    ack(f, 0, 77, 0, 1);
    parked(f, 0, 1, 0);
    refused(f, 0, 1, 0, PSD_GAP, 1);
    moved(f, 0, 1, 0, EPOCH);
    EXPECT(f, "");
    cr_assert_eq(ps_session_broken(f->session, NULL), PSD_OK);
}

/* The list goes again at once, in its turn, under its number. */
Test(session_answer, forgotten_list_is_sent_again_at_once)
{
    FIXTURE(f);
    uint64_t op = 0;

    get_ready(f);
    op = push(f, 0);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n");
    refused(f, 0, op, 0, PSD_KEYS, 0);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n");
    ack(f, 0, op, 0, 2);
    EXPECT(f, "end 2 ACK\n");
    op = pull(f, 0, 0);
    refused(f, 0, op, 0, PSD_KEYS, 0);
    EXPECT(f, "0 < PULL 3 p0 after 2 e5\n"
              "0 < PULL 3 p0 after 2 e5\n");
}

/* Nobody can be told of the end yet, but it is one: answers are late. */
Test(session_answer, answers_behind_an_end_without_memory_are_late)
{
    FIXTURE(f);

    get_ready(f);
    (void)pull(f, 0, 50);
    (void)pull(f, 0, 0); /* keeps the partition on its link */
    EXPECT(f, "0 < PULL 2 p0 after 1 e5\n"
              "0 < PULL 3 p0 after 1 e5\n");
    ps_outbox_done(&f->outbox); /* so that it has to grow */
    fail_alloc_at(0);
    tick_at(f, 1160);
    cr_assert(fail_alloc_happened());
    fail_alloc_off();
    ps_outbox_clear(&f->outbox);
    values(f, 0, 2, 0, 0);
    refused(f, 0, 2, 0, PSD_BUSY, 0);
    moved(f, 0, 2, 0, EPOCH);
    EXPECT(f, "");
    cr_assert_eq(ps_session_pending(f->session, true), 2);
    tick_at(f, 1161);
    EXPECT(f, "end 2 DEADLINE: deadline passed, outcome unknown\n");
    values(f, 0, 3, 0, 0);
    EXPECT(f, "end 3 VALUES\n");
    cr_assert_eq(ps_session_pending(f->session, true), 0);
}

static void heard_at(fixture_t *f, uint64_t now_ms, uint64_t link, uint64_t op)
{
    f->now_ms = now_ms;
    ps_session_heard(f->session, now_ms, link, op);
}

/* The link's own pace: the next piece may take twice as long as the last. */
Test(session_answer, pieces_of_an_answer_put_off_asking_again)
{
    FIXTURE(f);
    uint64_t op = 0;

    get_ready(f);
    op = pull(f, 0, 0);
    EXPECT(f, "0 < PULL 2 p0 after 1 e5\n");
    heard_at(f, 1090, 0, op);
    tick_at(f, 1189);
    EXPECT(f, "");
    heard_at(f, 1189, 0, op);
    heard_at(f, 1190, 0, op + 1); /* of nothing that is asked */
    tick_at(f, 1386);
    EXPECT(f, "");
    tick_at(f, 1387);
    EXPECT(f, "0 < HELLO\n0 < PULL 2 p0 after 1 e5\n");
    values(f, 0, op, 0, 0);
    EXPECT(f, "end 2 VALUES\n");
    heard_at(f, 1700, 0, op); /* it has ended */
}

Test(session_answer, a_piece_is_a_sign_of_life)
{
    FIXTURE(f);
    uint32_t tables[PS_DOUBT_MAX];
    size_t n = 0;
    uint64_t op = 0;

    get_ready(f);
    op = pull(f, 0, 0);
    tick_at(f, 1100);
    cr_assert_eq(ps_session_doubt(f->session, tables, &n), 1100);
    heard_at(f, 1110, 0, op);
    cr_assert_eq(ps_session_doubt(f->session, tables, &n), UINT64_MAX);
}
