/* SPDX-License-Identifier: Apache-2.0 */
/* Values on their way: who asks for them again is told so. */
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

TestSuite(shard_sending, .init = setup, .fini = teardown);

/* Over a slow link each repetition was answered with all values once more. */
Test(shard_sending, values_on_their_way_are_not_sent_again)
{
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.request = 9,
                                     .table = 1,
                                     .epoch = 4,
                                     .rows = PS_ROWS_RANGE,
                                     .type = PS_TYPE_F32,
                                     .n_rows = 1,
                                     .n_cols = 1}};
    ps_event_t again = {.kind = PS_EVENT_MESSAGE,
                        .conn = CONN,
                        .message = &message,
                        .sending = {.sent = 3, .bytes = 10}};

    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_VALUES);
    cr_assert_eq(step(&bench, &again), PSD_OK);
    cr_assert_eq(said(&bench)->kind, PS_KIND_PARKED);
    cr_expect_eq(said(&bench)->parked.request, 9);
    cr_expect_str_eq(said(&bench)->parked.text, "the values are on their way: 3 of 10 bytes sent");
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_VALUES, "they were lost");
}

/* Of a push that brings values back neither the probe nor the push itself. */
Test(shard_sending, values_of_a_pushpull_on_their_way_are_not_sent_again)
{
    ps_message_t message = push_message(1);
    ps_message_t probe = {.kind = PS_KIND_PROBE,
                          .probe = {.request = 1, .table = 1, .epoch = 4, .seq = 1}};
    ps_event_t again = {.kind = PS_EVENT_MESSAGE,
                        .conn = CONN,
                        .message = &probe,
                        .sending = {.sent = 3, .bytes = 10}};

    message.push.pull = 1;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_VALUES);
    cr_assert_eq(step(&bench, &again), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_PARKED);
    again.message = &message;
    cr_assert_eq(step(&bench, &again), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_PARKED);
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_VALUES);
    cr_expect_eq(pull(&bench, 2), 1.0F, "and it counted once");
}

Test(shard_sending, knows_both_connections_of_a_client)
{
    ps_msg_hello_t more = good_hello;
    ps_message_t message = {.kind = PS_KIND_HELLO};
    uint64_t conns[PS_SENDING_CONNS] = {0};

    cr_expect_eq(ps_shard_conns(bench.shard, CONN, conns), 1);
    cr_expect_eq(conns[0], CONN);
    more.bulk = 1;
    message.hello = more;
    cr_assert_eq(
        step(&bench,
             &(ps_event_t){.kind = PS_EVENT_MESSAGE, .conn = CONN + 1, .message = &message}),
        PSD_OK);
    cr_expect_eq(ps_shard_conns(bench.shard, CONN, conns), 2);
    cr_expect_eq(conns[1], CONN + 1);
    cr_expect_eq(ps_shard_conns(bench.shard, CONN + 2, conns), 0);
}
