/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/session/session.h: starting operations, credits, looking. */
#include "session_fixture.h"
#include "support/fail_alloc.h"

Test(session, first_operation_opens_a_link_and_says_hello)
{
    FIXTURE(f);

    (void)push(f, 2);
    EXPECT(f, "open 0\n0 < HELLO\n");
    (void)push(f, 0);
    EXPECT(f, "open 1\n1 < HELLO\n");
    (void)push(f, 1); /* at the same shard */
    EXPECT(f, "");
    cr_assert_str_eq(ps_session_link(f->session, 0)->tcp, "tcp://node:7001");
    cr_assert_str_eq(ps_session_link(f->session, 1)->tcp, "tcp://node:7000");
    cr_assert_null(ps_session_link(f->session, 2));
}

Test(session, hello_says_who_and_whom)
{
    FIXTURE(f);
    const ps_msg_hello_t *hello = NULL;

    (void)push(f, 0);
    cr_assert_eq(f->outbox.n_effects, 2);
    hello = &f->outbox.effects[1].message.hello;
    cr_assert_eq(hello->version_min, PS_VERSION_MIN);
    cr_assert_eq(hello->version_max, PS_VERSION);
    cr_assert_eq(hello->cluster.bytes[0], 1);
    cr_assert_eq(hello->client.bytes[0], 2);
    cr_assert_eq(hello->incarnation, 77);
    cr_assert_eq(hello->session, 9);
}

Test(session, seqs_count_pushes_and_marks_of_each_partition)
{
    FIXTURE(f);

    (void)push(f, 0);
    (void)push(f, 1);
    (void)mark(f, 0);
    (void)pull(f, 0, 0);
    (void)push(f, 0);
    (void)pull(f, 1, 0);
    EXPECT(f, "open 0\n0 < HELLO\n");
    welcome(f, 0);
    EXPECT(f, "0 < PUSH 1 p0 seq 1 e5\n"
              "0 < PUSH 2 p1 seq 1 e5\n"
              "0 < MARK 3 p0 seq 2 e5\n"
              "0 < PULL 6 p1 after 1 e5\n"
              "0 < PULL 4 p0 after 2 e5\n"
              "0 < PUSH 5 p0 seq 3 e5\n");
}

Test(session, worker_and_patience_travel_with_the_request)
{
    FIXTURE(f);
    ps_op_start_t wanted = a_mark(1, 0);
    const ps_msg_mark_t *sent = NULL;

    wanted.timeout_ms = 250;
    wanted.worker = (ps_op_worker_t){.job = 3, .worker = 4, .member = 5, .joins = 7, .clock = 6};
    get_ready(f);
    (void)start(f, &wanted);
    cr_assert_eq(f->outbox.n_effects, 1);
    sent = &f->outbox.effects[0].message.mark;
    cr_assert_eq(sent->job, 3);
    cr_assert_eq(sent->worker, 4);
    cr_assert_eq(sent->member, 5);
    cr_assert_eq(sent->joins, 7);
    cr_assert_eq(sent->clock, 6);
    cr_assert_eq(sent->timeout_ms, 250);
}

Test(session, asks_for_times_where_the_shard_tells_them)
{
    for (int tells = 0; tells < 2; tells++) {
        FIXTURE(f);
        ps_op_start_t wanted = {
            .kind = PS_KIND_PULL, .table = 1, .slice = a_slice(), .wants_times = true};
        ps_message_t granted = a_welcome(0);

        granted.welcome.filters = tells == 1 ? PS_SPEAKS_TIMES : 0;
        get_ready(f);
        receive(f, 0, &granted, NULL);
        (void)start(f, &wanted);
        cr_assert_eq(f->outbox.effects[f->outbox.n_effects - 1].message.flags,
                     tells == 1 ? PS_FLAG_TIMES : 0);
    }
}

/* Effects are not zeroed: what a request does not say must be 0 all the same,
 * also where another one stood before. */
Test(session, what_is_done_on_the_server_travels_with_the_request)
{
    FIXTURE(f);
    ps_op_start_t wanted = {.kind = PS_KIND_PULL,
                            .table = 1,
                            .slice = a_slice(),
                            .op = PS_READ_DOT,
                            .other = 8,
                            .operand = 9,
                            .since = 10};
    const ps_message_t *sent = NULL;

    get_ready(f);
    (void)start(f, &wanted);
    sent = &f->outbox.effects[0].message;
    cr_assert_eq(sent->pull.op, PS_READ_DOT);
    cr_assert_eq(sent->pull.other, 8);
    cr_assert_eq(sent->pull.operand, 9);
    cr_assert_eq(sent->pull.since, 10);
    ps_outbox_clear(&f->outbox);
    (void)pull(f, 0, 0);
    cr_assert_eq(sent->pull.op, PS_READ_VALUES);
    cr_assert_eq(sent->pull.other, 0);
    cr_assert_eq(sent->pull.operand, 0);
    cr_assert_eq(sent->pull.since, 0);
    ps_outbox_clear(&f->outbox);
    wanted.kind = PS_KIND_PUSH;
    wanted.op = PS_CHANGE_AXPY;
    (void)start(f, &wanted);
    cr_assert_eq(sent->push.op, PS_CHANGE_AXPY);
    cr_assert_eq(sent->push.other, 8);
    cr_assert_eq(sent->push.operand, 9);
    ps_outbox_clear(&f->outbox);
    (void)push(f, 0);
    cr_assert_eq(sent->push.op, PS_CHANGE_UPDATE);
    cr_assert_eq(sent->push.other, 0);
    cr_assert_eq(sent->push.operand, 0);
    cr_assert_eq(sent->flags, 0);
}

Test(session, effects_name_the_owner_of_their_operation)
{
    FIXTURE(f);
    int mine = 0;
    ps_op_start_t wanted = a_mark(1, 0);

    get_ready(f);
    wanted.owner = &mine;
    (void)start(f, &wanted);
    (void)start(f, &wanted);
    cr_assert_eq(f->outbox.effects[0].owner, &mine);
    ps_outbox_clear(&f->outbox);
    ack(f, 0, 2, 0, 2);
    ps_session_forget(f->session, 1, PSD_NO_TABLE, &f->outbox);
    cr_assert_eq(f->outbox.n_effects, 2);
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(f->outbox.effects[i].kind, PS_EFFECT_DONE);
        cr_assert_eq(f->outbox.effects[i].owner, &mine);
    }
}

Test(session, what_is_left_of_the_patience_is_told)
{
    FIXTURE(f);

    (void)pull(f, 0, 1000);
    f->now_ms += 400;
    EXPECT(f, "open 0\n0 < HELLO\n");
    welcome(f, 0);
    cr_assert_eq(f->outbox.effects[0].message.pull.timeout_ms, 600);
}

Test(session, no_more_requests_than_credits)
{
    FIXTURE(f);
    ps_message_t message = a_welcome(0);

    for (int i = 0; i < 4; i++) {
        (void)push(f, 0);
    }
    EXPECT(f, "open 0\n0 < HELLO\n");
    message.welcome.credit_requests = 2;
    receive(f, 0, &message, NULL);
    EXPECT(f, "0 < PUSH 1 p0 seq 1 e5\n"
              "0 < PUSH 2 p0 seq 2 e5\n");
    ack(f, 0, 2, 0, 2);
    EXPECT(f, "end 2 ACK\n0 < PUSH 3 p0 seq 3 e5\n");
    ack(f, 0, 1, 0, 1);
    ack(f, 0, 3, 0, 3);
    EXPECT(f, "end 1 ACK\n0 < PUSH 4 p0 seq 4 e5\nend 3 ACK\n");
}

/* The refusal of the oldest, should its answer be lost, is remembered only
 * while the others stay that close. */
Test(session, no_partition_runs_further_ahead_than_its_credits)
{
    FIXTURE(f);
    ps_message_t message = a_welcome(0);

    for (int i = 0; i < 4; i++) {
        (void)push(f, 0);
    }
    message.welcome.credit_requests = 2;
    receive(f, 0, &message, NULL);
    ack(f, 0, 2, 0, 2);
    ack(f, 0, 3, 0, 3);
    EXPECT(f, "open 0\n0 < HELLO\n"
              "0 < PUSH 1 p0 seq 1 e5\n"
              "0 < PUSH 2 p0 seq 2 e5\n"
              "end 2 ACK\n0 < PUSH 3 p0 seq 3 e5\nend 3 ACK\n");
    ack(f, 0, 1, 0, 1);
    EXPECT(f, "end 1 ACK\n0 < PUSH 4 p0 seq 4 e5\n");
}

Test(session, no_more_bytes_than_credits_but_one_large_body_alone)
{
    FIXTURE(f); /* 100 bytes */

    get_ready(f);
    (void)push_bytes(f, 0, 60, false);
    (void)push_bytes(f, 0, 40, false);
    (void)push_bytes(f, 0, 500, false);
    (void)push_bytes(f, 0, 4, false);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n0 < PUSH 3 p0 seq 3 e5\n");
    ack(f, 0, 2, 0, 2);
    EXPECT(f, "end 2 ACK\n");
    ack(f, 0, 3, 0, 3);
    EXPECT(f, "end 3 ACK\n0 < PUSH 4 p0 seq 4 e5\n");
    ack(f, 0, 4, 0, 4);
    EXPECT(f, "end 4 ACK\n0 < PUSH 5 p0 seq 5 e5\n");
}

/* A push that waits at a clock gate kept the last credit from the mark, of
 * another partition, that was made before it and opens the gate. */
Test(session, credits_go_by_the_order_of_submission_across_partitions)
{
    FIXTURE(f);
    ps_message_t message = a_welcome(0);

    (void)push(f, 0);
    (void)mark(f, 0);
    (void)mark(f, 1);
    (void)push(f, 1);
    EXPECT(f, "open 0\n0 < HELLO\n");
    message.welcome.credit_requests = 2;
    receive(f, 0, &message, NULL);
    EXPECT(f, "0 < PUSH 1 p0 seq 1 e5\n0 < MARK 2 p0 seq 2 e5\n");
    ack(f, 0, 1, 0, 1);
    EXPECT(f, "end 1 ACK\n0 < MARK 3 p1 seq 1 e5\n");
}

/* A pull that was lost and asked again behind its client's mark could see a
 * later clock than its own. */
Test(session, mark_goes_behind_the_values_asked_for_before_it)
{
    FIXTURE(f);

    get_ready(f);
    (void)pull(f, 0, 0);
    (void)mark(f, 0);
    (void)push(f, 0);
    (void)push(f, 1);
    EXPECT(f, "0 < PULL 2 p0 after 1 e5\n0 < PUSH 5 p1 seq 1 e5\n");
    values(f, 0, 2, 0, 0);
    EXPECT(f, "end 2 VALUES\n"
              "0 < MARK 3 p0 seq 2 e5\n"
              "0 < PUSH 4 p0 seq 3 e5\n");
}

Test(session, operations_without_routes_are_refused)
{
    FIXTURE(f);
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint64_t op = 99;

    cr_assert_eq(try_start(f, a_mark(2, 0), &op, err), PSD_NO_TABLE);
    cr_assert_str_eq(psd_error_text(err), "no route to partition 0 of table 2");
    cr_assert_eq(try_start(f, a_mark(1, N_PARTITIONS), &op, NULL), PSD_NO_TABLE);
    cr_assert_eq(op, 99);
    cr_assert_eq(f->outbox.n_effects, 0);
    cr_assert_eq(ps_session_pending(f->session, true), 0);
}

Test(session, routes_must_be_all_and_in_order)
{
    FIXTURE(f);
    ps_route_t routes[N_PARTITIONS];

    fill_routes(routes, EPOCH + 1);
    cr_assert_eq(ps_session_routes(f->session, 1, routes, 2, NULL), PSD_PROTO);
    routes[1].partition = 2;
    cr_assert_eq(ps_session_routes(f->session, 1, routes, N_PARTITIONS, NULL), PSD_PROTO);
}

Test(session, newer_routes_carry_operations_along_at_the_next_tick)
{
    FIXTURE(f);
    ps_route_t routes[N_PARTITIONS];

    get_ready(f);
    (void)push(f, 0);
    (void)push(f, 1);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n0 < PUSH 3 p1 seq 1 e5\n");
    fill_routes(routes, EPOCH);
    routes[0].shard = 4;
    cr_assert_eq(ps_session_routes(f->session, 1, routes, N_PARTITIONS, NULL),
                 PSD_OK); /* as old as what is known: ignored */
    tick_at(f, f->now_ms);
    EXPECT(f, "");
    routes[0].epoch = EPOCH + 3;
    cr_assert_eq(ps_session_routes(f->session, 1, routes, N_PARTITIONS, NULL), PSD_OK);
    cr_assert_leq(ps_session_deadline(f->session), f->now_ms);
    tick_at(f, f->now_ms);
    EXPECT(f, "open 1\n1 < HELLO\n");
    welcome(f, 1);
    EXPECT(f, "1 < PUSH 2 p0 seq 2 e8\n");
}

Test(session, pending_counts_what_has_not_ended)
{
    FIXTURE(f);

    get_ready(f);
    (void)push(f, 0);
    (void)pull(f, 1, 0);
    cr_assert_eq(ps_session_pending(f->session, false), 1);
    cr_assert_eq(ps_session_pending(f->session, true), 2);
    ack(f, 0, 2, 0, 2);
    values(f, 0, 3, 1, 0);
    cr_assert_eq(ps_session_pending(f->session, true), 0);
}

Test(session, limits_are_those_of_the_welcomes)
{
    FIXTURE(f);
    ps_message_t message = a_welcome(1);

    cr_assert_eq(ps_session_slice_bytes(f->session), UINT64_MAX);
    cr_assert_eq(ps_session_chunk_bytes(f->session, 0), 0);
    get_ready(f);
    cr_assert_eq(ps_session_slice_bytes(f->session), 2048);
    cr_assert_eq(ps_session_chunk_bytes(f->session, 0), 64);
    (void)push(f, 2);
    message.welcome.slice_bytes = 512;
    receive(f, 1, &message, NULL);
    cr_assert_eq(ps_session_slice_bytes(f->session), 512);
}

/* A route has two places; what is waited for is at the one that was opened. */
Test(session, reason_names_where_a_link_really_goes)
{
    FIXTURE(f);

    (void)push(f, 0);
    ps_session_link_goes(f->session, 0, "ipc:///run/psd/shard-0.ipc");
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms + 3000, 1),
                     "no welcome from ipc:///run/psd/shard-0.ipc for 3 s");
    ps_session_link_goes(f->session, 0, "tcp://10.0.0.1:7000");
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms + 3000, 1),
                     "no welcome from tcp://10.0.0.1:7000 for 3 s");
}

/* Ports of shards stand in no list of nodes. */
Test(session, reason_names_the_node)
{
    const ps_node_name_t name = {.incarnation = 77, .name = "vm-2", .endpoint = "tcp://node:7171"};
    FIXTURE(f);

    (void)push(f, 0);
    cr_assert(ps_node_names_set(ps_session_names(f->session), &name));
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms + 3000, 1),
                     "node \"vm-2\" (tcp://node:7171): no welcome from its "
                     "shard 0 at tcp://node:7000 for 3 s");
    welcome(f, 0);
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms + 2000, 1),
                     "node \"vm-2\" (tcp://node:7171): no answer from its "
                     "shard 0 at tcp://node:7000 for 2 s");
    (void)push_bytes(f, 0, 500, false);
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms, 2),
                     "node \"vm-2\" (tcp://node:7171): 1 requests to its shard "
                     "0 at tcp://node:7000 are unanswered");
    parked_by(f, 0, 1, 0, "the copy on node 77 shard 1 lacks 3");
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms, 1),
                     "the copy on node \"vm-2\" shard 1 lacks 3");
}

Test(session, reason_names_the_place_and_the_time)
{
    FIXTURE(f);

    (void)push(f, 0);
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms + 3000, 1),
                     "no welcome from tcp://node:7000 for 3 s");
    welcome(f, 0);
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms + 2000, 1),
                     "no answer from tcp://node:7000 for 2 s");
    (void)push_bytes(f, 0, 500, false);
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms, 2),
                     "1 requests to tcp://node:7000 are unanswered");
    parked(f, 0, 1, 0);
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms, 1), "waiting for worker 3");
    cr_assert_str_eq(ps_session_reason(f->session, f->now_ms, 17), "");
}

Test(session, adds_up_the_epochs_of_what_it_knows)
{
    FIXTURE(f);
    ps_route_t routes[N_PARTITIONS];

    cr_expect_eq(ps_session_epochs(f->session, 1), N_PARTITIONS * EPOCH);
    cr_expect_eq(ps_session_epochs(f->session, 2), 0);
    fill_routes(routes, EPOCH - 1);
    routes[1].epoch = EPOCH + 2;
    cr_assert_eq(ps_session_routes(f->session, 1, routes, N_PARTITIONS, NULL), PSD_OK);
    cr_expect_eq(ps_session_epochs(f->session, 1), N_PARTITIONS * EPOCH + 2,
                 "older ones are not taken");
}

Test(session, forgotten_table_ends_its_operations)
{
    FIXTURE(f);
    ps_route_t routes[N_PARTITIONS];
    uint64_t op = 0;

    get_ready(f);
    (void)push(f, 0);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n");
    ps_session_forget(f->session, 1, PSD_NO_TABLE, &f->outbox);
    EXPECT(f, "end 2 NO_TABLE: table 1: table does not exist\n");
    ack(f, 0, 2, 0, 2);
    EXPECT(f, "");
    /* Seq 2 may have arrived or not: no seq of this table can be used again. */
    fill_routes(routes, EPOCH + 1);
    cr_assert_eq(ps_session_routes(f->session, 1, routes, N_PARTITIONS, NULL), PSD_OK);
    cr_assert_eq(try_start(f, a_mark(1, 0), &op, NULL), PSD_NO_TABLE);
}

Test(session, table_forgotten_in_peace_can_be_opened_again)
{
    FIXTURE(f);
    ps_route_t routes[N_PARTITIONS];

    get_ready(f);
    ps_session_forget(f->session, 1, PSD_CLOSED, &f->outbox);
    ps_session_forget(f->session, 44, PSD_CLOSED, &f->outbox);
    fill_routes(routes, EPOCH);
    cr_assert_eq(ps_session_routes(f->session, 1, routes, N_PARTITIONS, NULL), PSD_OK);
    (void)push(f, 0);
    EXPECT(f, "0 < PUSH 2 p0 seq 2 e5\n");
}

Test(session, destroy_takes_null_and_what_is_unanswered)
{
    FIXTURE(f);
    ps_session_t *none = NULL;

    (void)push(f, 0);
    ps_session_destroy(&none);
    ps_session_destroy(NULL);
    ps_session_destroy(&f->session);
    cr_assert_null(f->session);
}

/* Everything that can fail for memory: making, learning, starting. */
static psd_status_t start_all(void *fixture)
{
    PSD_AUTO(fixture_done) fixture_t f = {.now_ms = 1};
    ps_op_start_t wanted = {.kind = PS_KIND_PULL, .table = 1, .slice = a_slice()};
    uint64_t op = 0;
    psd_status_t rc = fixture_open(&f);

    (void)fixture;
    for (uint32_t i = 0; i < 20 && rc == PSD_OK; i++) {
        size_t pending = ps_session_pending(f.session, true);

        wanted.partition = i % N_PARTITIONS;
        rc = try_start(&f, wanted, &op, NULL);
        cr_assert_eq(ps_session_pending(f.session, true), pending + (rc == PSD_OK));
        cr_assert_eq(op, i + (rc == PSD_OK)); /* nothing started: same number */
    }
    return rc;
}

Test(session, out_of_memory_starts_nothing)
{
    cr_assert_null(fail_alloc_sweep(start_all, NULL));
}
