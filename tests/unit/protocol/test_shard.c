/* SPDX-License-Identifier: Apache-2.0 */
/* What a shard takes, repeats and refuses, one line of the contract each;
 * stories of several clients are told by the trace tests. */
#include "shard_bench.h"

static bench_t bench;

static void setup(void)
{
    cr_assert_eq(open_bench(&bench), PSD_OK);
}

static void teardown(void)
{
    close_bench(&bench);
}

TestSuite(shard, .init = setup, .fini = teardown);

Test(shard, grants_credits_in_its_welcome)
{
    const ps_message_t *message = answer(&bench);

    cr_assert_not_null(message);
    cr_assert_eq(message->kind, PS_KIND_WELCOME);
    cr_expect_eq(message->welcome.credit_requests, 2);
    cr_expect_eq(message->welcome.incarnation, INCARNATION);
}

Test(shard, refuses_a_hello_by_name)
{
    ps_msg_hello_t change = good_hello;

    change.version_min = change.version_max = 9;
    cr_assert_eq(hello(&bench, &change), PSD_OK);
    expect_refused(&bench, PSD_VERSION, "protocol versions 9..9; spoken here: 1..1");
    change = good_hello;
    change.cluster.bytes[15] = 1;
    cr_assert_eq(hello(&bench, &change), PSD_OK);
    expect_refused(&bench, PSD_CLUSTER,
                   "cluster 00000000-0000-0000-0000-000000000001; this is "
                   "00000000-0000-0000-0000-000000000000");
    change = good_hello;
    change.incarnation = 7;
    cr_assert_eq(hello(&bench, &change), PSD_OK);
    expect_refused(&bench, PSD_INCARNATION,
                   "this is another incarnation of the node than the one asked for");
    change = good_hello;
    change.session = 0;
    cr_assert_eq(hello(&bench, &change), PSD_OK);
    expect_refused(&bench, PSD_DENIED, "session 0; allowed: 1 and up");
}

#define LOST_TEXT                                                          \
    "table \"w\" lost rows with the last node that had them; this client " \
    "opened before that; open a new one"

/* Table 1 is told anew, or table 2 for the first time. */
static void tell_table(uint32_t table, uint64_t epoch, uint64_t lost_sessions)
{
    bench.routes[0].epoch = epoch;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TABLE,
                                            .table = table,
                                            .spec = &bench.spec,
                                            .routes = bench.routes,
                                            .n_routes = 2,
                                            .rows_lost = lost_sessions > 0,
                                            .lost_sessions = lost_sessions}),
                 PSD_OK);
}

/* Every request of an old session for a table that has lost rows, wherever its
 * partition is and whatever that has; no other table's. */
Test(shard, refuses_who_used_rows_that_are_gone_by_table)
{
    ps_message_t other = push_message(1);

    tell_table(2, 4, 0);
    cr_assert_eq(push(&bench, 1, 0, 1.0F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    tell_table(1, 4, SESSION);
    cr_assert_eq(push(&bench, 2, 0, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_ROWS_LOST, LOST_TEXT);
    tell_table(1, 4, 0);
    cr_assert_eq(push(&bench, 2, 0, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_ROWS_LOST, LOST_TEXT);
    other.push.table = 2;
    cr_assert_eq(push_as(&bench, &other, 0, 1.0F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK, "it lost nothing");
}

Test(shard, serves_who_came_behind_the_loss)
{
    tell_table(1, 4, SESSION - 1);
    cr_assert_eq(push(&bench, 1, 0, 1.0F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
}

/* Nobody has to ask again to hear of it. */
Test(shard, tells_those_who_wait_that_rows_are_gone)
{
    const ps_message_t message = {.kind = PS_KIND_PULL,
                                  .pull = {.request = 9,
                                           .table = 1,
                                           .epoch = 4,
                                           .after = 1,
                                           .type = PS_TYPE_F32,
                                           .n_rows = 1,
                                           .n_cols = 1,
                                           .timeout_ms = 100000}};
    const uint64_t row = 0;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row},
                                            (ps_bytes_t){0}, (ps_bytes_t){0});

    cr_assert_eq(say(&bench, &message, payload), PSD_OK);
    cr_assert_null(answer(&bench), "it waits for a push that has not come");
    tell_table(1, 5, SESSION);
    expect_refused(&bench, PSD_ROWS_LOST, LOST_TEXT);
    cr_expect_eq(said(&bench)->refused.request, 9);
}

/* Nobody may take a number before the registry gives it to another. */
Test(shard, refuses_a_session_that_was_not_given_out)
{
    ps_message_t message = {.kind = PS_KIND_HELLO, .hello = good_hello};
    ps_event_t event = {.kind = PS_EVENT_MESSAGE,
                        .conn = CONN + 1,
                        .message = &message,
                        .last_session = SESSION + 1};

    message.hello.client.bytes[0] = 9;
    message.hello.session = SESSION + 2;
    cr_assert_eq(step(&bench, &event), PSD_OK);
    expect_refused(&bench, PSD_BUSY,
                   "session 7 is not known here yet; the registry has not announced it");
    message.hello.session = SESSION + 1;
    cr_assert_eq(step(&bench, &event), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_WELCOME);
}

/* It chose its number itself, while there was no registry. */
Test(shard, serves_a_guest_and_takes_nothing_from_it)
{
    ps_message_t message = {.kind = PS_KIND_HELLO, .hello = good_hello};
    ps_event_t event = {
        .kind = PS_EVENT_MESSAGE, .conn = CONN, .message = &message, .last_session = SESSION + 1};

    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    message.hello.client.bytes[0] = 9;
    message.hello.session = PS_GUEST_FIRST + 5;
    cr_assert_eq(step(&bench, &event), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_WELCOME);
    cr_expect_eq(pull(&bench, 2), 0.5F);
    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    expect_refused(&bench, PSD_NO_SESSION, "a client without a session of the registry only reads");
    cr_expect_eq(pull(&bench, 2), 0.5F);
    /* The same client, with a session. */
    message.hello.session = SESSION + 1;
    cr_assert_eq(step(&bench, &event), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_WELCOME);
    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(pull(&bench, 2), 1.0F);
}

Test(shard, answers_a_stranger_with_no_session)
{
    ps_message_t message = push_message(1);

    cr_assert_eq(
        step(&bench,
             &(ps_event_t){.kind = PS_EVENT_MESSAGE, .conn = CONN + 1, .message = &message}),
        PSD_OK);
    expect_refused(&bench, PSD_NO_SESSION, "say HELLO first");
}

Test(shard, applies_a_push_once)
{
    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(said(&bench)->ack.level, PS_ACK_MEMORY);
    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK, "the answer is repeated");
    cr_expect_eq(pull(&bench, 2), 0.5F);
}

Test(shard, answers_a_gap_with_the_expected_seq)
{
    cr_assert_eq(push(&bench, 3, 2, 0.5F), PSD_OK);
    expect_refused(&bench, PSD_GAP, "gap, expected 1");
    cr_expect_eq(said(&bench)->refused.detail, 1);
    cr_expect_eq(pull(&bench, 2), 0.0F);
}

Test(shard, remembers_a_refusal_under_its_seq)
{
    cr_assert_eq(push(&bench, 1, 6, 0.5F), PSD_OK);
    cr_assert_eq(said(&bench)->refused.status, PSD_RANGE);
    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    cr_assert_eq(said(&bench)->kind, PS_KIND_REFUSED);
    cr_expect_eq(said(&bench)->refused.status, PSD_RANGE);
    cr_assert_eq(push(&bench, 2, 2, 0.5F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(pull(&bench, 2), 0.5F);
}

/* It was answered ACK: a push that was never applied counted as applied. */
Test(shard, does_not_call_a_forgotten_refusal_applied)
{
    ps_message_t probe = {.kind = PS_KIND_PROBE, .probe = {.table = 1, .epoch = 4, .seq = 1}};

    cr_assert_eq(push(&bench, 1, 6, 0.5F), PSD_OK);
    cr_assert_eq(said(&bench)->refused.status, PSD_RANGE);
    cr_assert_eq(push(&bench, 2, 2, 0.5F), PSD_OK);
    cr_assert_eq(push(&bench, 3, 2, 0.5F), PSD_OK);
    cr_assert_eq(push(&bench, 4, 6, 0.5F), PSD_OK);
    cr_assert_eq(said(&bench)->refused.status, PSD_RANGE);
    cr_assert_eq(say(&bench, &probe, NULL), PSD_OK);
    expect_refused(&bench, PSD_CLOSED,
                   "resent too late; it is no longer known whether it was applied");
    probe.probe.seq = 2;
    cr_assert_eq(say(&bench, &probe, NULL), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    probe.probe.seq = 4;
    cr_assert_eq(say(&bench, &probe, NULL), PSD_OK);
    cr_expect_eq(said(&bench)->refused.status, PSD_RANGE);
}

Test(shard, sends_the_map_for_a_partition_elsewhere)
{
    ps_message_t message = push_message(1);

    message.push.partition = 1;
    cr_assert_eq(push_as(&bench, &message, 6, 1.0F), PSD_OK);
    cr_assert_eq(said(&bench)->kind, PS_KIND_MOVED);
    cr_expect_eq(said(&bench)->moved.n_routes, 2);
    message.push.partition = 0;
    message.push.epoch = 3;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_MOVED);
    message.push.epoch = 5;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_BUSY, "the map here is older than yours");
}

Test(shard, says_which_table_or_partition_is_missing)
{
    ps_message_t message = push_message(1);

    bench.told_table = 9;
    message.push.table = 9;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_NO_TABLE, "the table does not exist");
    message.push.table = 1;
    message.push.partition = 2;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_NO_TABLE, "the partition does not exist");
}

/* The node may have been frozen when the job was made. */
Test(shard, refuses_a_mark_of_no_worker_and_a_job_that_it_was_not_told_of_yet)
{
    ps_message_t mark = {.kind = PS_KIND_MARK, .mark = {.table = 1, .epoch = 4, .seq = 1}};
    ps_message_t message = push_message(2);

    cr_assert_eq(say(&bench, &mark, NULL), PSD_OK);
    expect_refused(&bench, PSD_NOT_JOINED, "a mark of a client that is not a worker");
    message.push.job = 8;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_BUSY,
                   "job 8 is not known here yet; the registry has not announced it");
}

/* Found by sim_cluster, seed 44018: a client came sooner than the registry's word. */
Test(shard, refuses_a_table_that_it_may_be_told_of_for_now)
{
    ps_message_t message = push_message(1);

    message.push.table = 9;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_BUSY, "this node knows no such table yet");
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_DROP, .table = 10}), PSD_OK);
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_BUSY, "this node knows no such table yet");
    message.push.table = 10;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_NO_TABLE, "the table does not exist");
    message.push.table = 9;
    bench.told_table = 9;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_NO_TABLE, "the table does not exist");
}

/* A node that was restarted knows no job; those of before it are gone. */
Test(shard, refuses_a_job_that_is_gone_also_when_it_knows_none)
{
    ps_message_t message = push_message(1);

    bench.told_job = 8;
    message.push.job = 8;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_NO_JOB, "job 8 is not known here");
}

Test(shard, refuses_a_job_that_is_newer_than_those_that_it_was_told_of_for_now)
{
    ps_message_t message = push_message(1);

    bench.told_job = 8;
    message.push.job = 9;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_BUSY,
                   "job 9 is not known here yet; the registry has not announced it");
}

/* Found by sim_overlay: the refusal used up the seq. So the worker got it again each time that it
 * sent the push again, also when the job was known, for ever. */
Test(shard, takes_a_push_that_came_before_its_job_was_known)
{
    ps_worker_t workers[] = {{.worker = 0, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1}};
    const ps_job_t job = {.id = 9, .name = "lr", .version = 1, .workers = workers, .n_workers = 1};
    ps_message_t message = push_message(1);

    bench.told_job = 8;
    message.push.job = 9;
    message.push.joins = 1;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_BUSY,
                   "job 9 is not known here yet; the registry has not announced it");
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(said(&bench)->ack.seq, 1);
}

Test(shard, refuses_what_is_for_clients)
{
    ps_message_t message = {.kind = PS_KIND_ACK};

    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    expect_refused(&bench, PSD_PROTO, "ACK is not for a shard");
}

/* The connection that the only answer went to. */
static uint64_t answered_to(void)
{
    cr_assert_not_null(answer(&bench));
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        if (bench.outbox.effects[i].kind == PS_EFFECT_SEND) {
            return bench.outbox.effects[i].to;
        }
    }
    return 0;
}

Test(shard, sends_large_answers_over_the_bulk_connection)
{
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.table = 2,
                                     .epoch = 4,
                                     .type = PS_TYPE_F32,
                                     .rows = PS_ROWS_RANGE,
                                     .n_rows = 1,
                                     .n_cols = 5000}};
    ps_msg_hello_t bulk = good_hello;
    ps_message_t greeting = {.kind = PS_KIND_HELLO};

    bench.spec.n_cols = 5000;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TABLE,
                                            .table = 2,
                                            .spec = &bench.spec,
                                            .routes = bench.routes,
                                            .n_routes = 2}),
                 PSD_OK);
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_eq(answered_to(), CONN, "there is no other");
    bulk.bulk = 1;
    greeting.hello = bulk;
    cr_assert_eq(
        step(&bench,
             &(ps_event_t){.kind = PS_EVENT_MESSAGE, .conn = CONN + 1, .message = &greeting}),
        PSD_OK);
    cr_expect_eq(answered_to(), CONN + 1, "its own WELCOME");
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_eq(answered_to(), CONN + 1);
    message.pull.n_cols = 4000;
    message.pull.cols = PS_COLS_RANGE;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_eq(answered_to(), CONN, "16,000 bytes are not above 16 KiB");
    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    cr_expect_eq(answered_to(), CONN);
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_GONE, .conn = CONN}), PSD_OK);
    cr_assert_eq(
        step(&bench,
             &(ps_event_t){.kind = PS_EVENT_MESSAGE, .conn = CONN + 1, .message = &message}),
        PSD_OK);
    cr_expect_eq(answered_to(), CONN + 1, "it stands in for the first");
}

/* Nothing came back, and the client asked for ever. */
Test(shard, refuses_a_repeated_pushpull_whose_values_cannot_be_had)
{
    ps_message_t message = push_message(1);

    message.push.pull = 1;
    cr_assert_eq(push_as(&bench, &message, 2, 0.5F), PSD_OK);
    cr_assert_eq(said(&bench)->kind, PS_KIND_VALUES);
    message.push.n_cols = 2;
    message.push.n_values = 2;
    cr_assert_eq(push_as(&bench, &message, 2, 0.5F), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->kind, PS_KIND_REFUSED);
    cr_expect_eq(said(&bench)->refused.status, PSD_SHAPE);
}
