/* SPDX-License-Identifier: Apache-2.0 */
/* What a shard keeps waiting, for how long and how much of it; and what it
 * forgets. */
#include "protocol/partition/request.h"
#include "shard_bench.h"
#include "support/fail_alloc.h"

static bench_t bench;

static void setup(void)
{
    cr_assert_eq(open_bench(&bench), PSD_OK);
}

static void teardown(void)
{
    close_bench(&bench);
}

TestSuite(shard_held, .init = setup, .fini = teardown);

/* A level is never silently lowered: the push waits, and says for what. */
Test(shard_held, parks_a_push_whose_level_cannot_be_had)
{
    ps_message_t message = push_message(1);

    message.push.ack = PS_ACK_DISK;
    message.push.timeout_ms = 50;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_null(answer(&bench));
    cr_expect_eq(ps_shard_deadline(bench.shard), 150);
    bench.now_ms = 150;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_assert_eq(said(&bench)->kind, PS_KIND_PARKED);
    cr_expect_str_eq(said(&bench)->parked.text,
                     "ack level disk is not available: the table was created with ack memory, so "
                     "partition 0 has no log on disk");
    cr_expect_eq(ps_shard_deadline(bench.shard), 1150,
                 "a short patience is no reason to say it all the time");
    cr_expect_eq(pull(&bench, 2), 0.0F);
}

Test(shard_held, holds_no_more_than_it_granted)
{
    ps_message_t message = push_message(1);

    for (uint64_t seq = 1; seq <= 3; seq++) {
        message.push.seq = message.push.request = seq;
        message.push.ack = PS_ACK_REPLICA;
        cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    }
    expect_refused(&bench, PSD_BUSY, "more requests in flight than credit_requests grants");
}

Test(shard_held, says_what_a_held_push_waits_for_when_probed)
{
    ps_message_t message = push_message(1);
    ps_message_t probe = {.kind = PS_KIND_PROBE, .probe = {.table = 1, .epoch = 4, .seq = 1}};

    cr_assert_eq(say(&bench, &probe, NULL), PSD_OK);
    expect_refused(&bench, PSD_GAP, "gap, expected 1");
    message.push.ack = PS_ACK_REPLICA;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_assert_eq(say(&bench, &probe, NULL), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->kind, PS_KIND_PARKED);
}

Test(shard_held, ends_a_pull_that_waits_too_long)
{
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.table = 1,
                                     .epoch = 4,
                                     .after = 1,
                                     .timeout_ms = 20,
                                     .rows = PS_ROWS_RANGE,
                                     .type = PS_TYPE_F32,
                                     .n_rows = 1,
                                     .n_cols = 1}};

    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_null(answer(&bench));
    bench.now_ms += 20;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    expect_refused(&bench, PSD_DEADLINE, "waiting for push 1 of the same client");
    cr_expect_eq(ps_shard_deadline(bench.shard), UINT64_MAX);
}

static size_t n_sent(void)
{
    size_t n = 0;

    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        n += bench.outbox.effects[i].kind == PS_EFFECT_SEND;
    }
    return n;
}

Test(shard_held, serves_a_pull_behind_the_push_that_it_names)
{
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.table = 1,
                                     .epoch = 4,
                                     .after = 1,
                                     .rows = PS_ROWS_RANGE,
                                     .type = PS_TYPE_F32,
                                     .n_rows = 1,
                                     .n_cols = 1}};

    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_assert_eq(push(&bench, 1, 0, 2.0F), PSD_OK);
    cr_expect_eq(n_sent(), 2, "the acknowledgement and the values");
}

/* Of the one that asks; now_us of an event is finer than its now_ms. */
Test(shard_held, tells_how_long_a_pull_was_held)
{
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.table = 1,
                                     .epoch = 4,
                                     .after = 1,
                                     .rows = PS_ROWS_RANGE,
                                     .type = PS_TYPE_F32,
                                     .n_rows = 1,
                                     .n_cols = 1}};
    const ps_message_t *told = NULL;

    for (int asks = 0; asks < 2; asks++) {
        message.flags = asks == 1 ? PS_FLAG_TIMES : 0;
        message.pull.request = 10 + (uint64_t)asks;
        cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                                .now_us = 700,
                                                .conn = CONN,
                                                .message = &message}),
                     PSD_OK);
    }
    message = push_message(1);
    bench.now_ms += 30;
    cr_assert_eq(push_as(&bench, &message, 0, 2.0F), PSD_OK);
    cr_assert_eq(n_sent(), 3, "the acknowledgement and the values, twice");
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        const ps_message_t *sent = &bench.outbox.effects[i].message;

        if (bench.outbox.effects[i].kind == PS_EFFECT_SEND && ps_message_has_times(sent)) {
            cr_assert_null(told, "one of them asked");
            told = sent;
        }
    }
    cr_assert_not_null(told);
    cr_expect(told->kind == PS_KIND_VALUES && told->values.request == 11);
    cr_expect_eq(told->times.queue_us, 130000 - 700);
    cr_expect_eq(told->times.gate_us + told->times.work_us + told->times.copies_us +
                     told->times.flush_us,
                 0);
}

/* Its client may think that the push has ended: it said nothing, for good. */
Test(shard_held, says_what_a_repeated_pull_waits_behind)
{
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.request = 9,
                                     .table = 1,
                                     .epoch = 4,
                                     .after = 1,
                                     .rows = PS_ROWS_RANGE,
                                     .type = PS_TYPE_F32,
                                     .n_rows = 1,
                                     .n_cols = 1}};

    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_assert_null(answer(&bench), "the push may be on its way");
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    expect_refused(&bench, PSD_GAP, "gap, expected 1");
    cr_assert_eq(push(&bench, 1, 0, 2.0F), PSD_OK);
    cr_expect_eq(n_sent(), 2, "it waits, and is served");
}

static psd_status_t mark_clock(bench_t *self, uint64_t seq, uint32_t worker, uint64_t clock)
{
    ps_message_t mark = {.kind = PS_KIND_MARK,
                         .mark = {.table = 1,
                                  .epoch = 4,
                                  .seq = seq,
                                  .job = 3,
                                  .worker = worker,
                                  .joins = 1,
                                  .clock = clock}};

    return say(self, &mark, NULL);
}

/* A worker may hear that it runs before this node does. It was refused for
 * good, and the push lost with that. */
Test(shard_held, holds_a_worker_until_it_is_told_that_it_runs)
{
    ps_worker_t workers[1] = {{.state = PS_WORKER_JOINING, .n_members = 1, .joins = 1}};
    ps_job_t job = {.id = 3, .version = 1, .workers = workers, .n_workers = 1};
    ps_message_t message = push_message(1);

    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
    message.push.job = 3;
    message.push.joins = 1;
    message.push.timeout_ms = 50;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_null(answer(&bench));
    bench.now_ms = 150;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    cr_assert_eq(said(&bench)->kind, PS_KIND_PARKED);
    cr_expect_str_eq(said(&bench)->parked.text, "this node does not know yet that worker 0 runs");
    workers[0].state = PS_WORKER_RUNNING;
    job.version = 2;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
}

/* A clock that never closed used to keep pushes without end. Waiting would not
 * help, so what is too much is refused; the clock closes with what it has. */
Test(shard_held, keeps_no_more_for_an_open_clock_than_it_may)
{
    ps_worker_t workers[1] = {{.state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1}};
    const ps_job_t job = {.id = 3, .name = "lr", .version = 1, .workers = workers, .n_workers = 1};
    ps_message_t message = push_message(1);
    uint64_t seq = 0;

    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
    message.push.job = 3;
    message.push.joins = 1;
    do {
        message.push.seq = ++seq;
        cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
        cr_assert_not_null(answer(&bench));
    } while (said(&bench)->kind == PS_KIND_ACK && seq < 100000);
    cr_assert_eq(said(&bench)->kind, PS_KIND_REFUSED);
    cr_expect_eq(said(&bench)->refused.status, PSD_LIMIT);
    cr_expect_not_null(strstr(said(&bench)->refused.text,
                              "exceed limits.held_bytes 1048576; push less per clock"));
    cr_assert_eq(mark_clock(&bench, seq + 1, 0, 1), PSD_OK);
    cr_expect_eq(pull(&bench, 2), (float)(seq - 1));
    message.push.seq = seq + 2;
    message.push.clock = 1;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
}

/* A push of an open clock is kept for long, while a client on this machine may
 * write into the memory that it came from. */
Test(shard_held, an_open_clock_keeps_its_own_copy_of_shared_values)
{
    ps_worker_t workers[1] = {{.state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1}};
    const ps_job_t job = {.id = 3, .name = "lr", .version = 1, .workers = workers, .n_workers = 1};
    ps_message_t message = push_message(1);
    uint64_t row = 2;
    float value = 4;
    ps_payload_t *payload =
        ps_payload_new((ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
                       (ps_bytes_t){(const uint8_t *)&value, sizeof value}, NULL, NULL);

    cr_assert_not_null(payload);
    payload->shared = true;
    message.push.job = 3;
    message.push.joins = 1;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
    cr_assert_eq(say(&bench, &message, payload), PSD_OK);
    cr_assert_eq(said(&bench)->kind, PS_KIND_ACK);
    ps_payload_destroy(&payload);
    value = 7;
    cr_assert_eq(mark_clock(&bench, 2, 0, 1), PSD_OK);
    cr_expect_eq(pull(&bench, 2), 4);
}

/* The same of a request that is held. */
Test(shard_held, a_held_request_keeps_its_own_copy_of_shared_values)
{
    ps_held_list_t list = {.first = NULL};
    uint8_t value = 4;
    ps_payload_t *payload =
        ps_payload_new((ps_bytes_t){0}, (ps_bytes_t){0}, (ps_bytes_t){&value, 1}, NULL, NULL);
    ps_held_t *held = NULL;

    cr_assert_not_null(payload);
    payload->shared = true;
    held = ps_held_append(&list, &(ps_request_t){.payload = payload}, 0);
    cr_assert_not_null(held);
    value = 7;
    cr_expect_eq(held->is.payload->spans[0].data[0], 4);
    ps_held_clear(&list);
    ps_payload_destroy(&payload);
}

/* Each partition kept a gate for every job that had ever used it. */
Test(shard_held, forgets_the_gates_of_jobs_that_ended_long_ago)
{
    ps_message_t message = push_message(1);
    ps_clock_info_t *clocks = NULL;
    size_t n = 0;

    message.push.joins = 1;
    for (uint32_t id = 1; id <= 300; id++) {
        ps_worker_t worker = {.state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
        ps_job_t job = {.id = id, .version = 1, .workers = &worker, .n_workers = 1};

        cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
        message.push.seq = id;
        message.push.job = id;
        cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
        cr_assert_eq(said(&bench)->kind, PS_KIND_ACK);
        worker.state = PS_WORKER_FINISHED;
        job.version = 2;
        cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
    }
    cr_assert_eq(ps_shard_clocks(bench.shard, 1, &clocks, &n, NULL), PSD_OK);
    cr_expect_eq(n, 0);
    ps_free(clocks);
    clocks = NULL;
    cr_assert_eq(ps_shard_clocks(bench.shard, 300, &clocks, &n, NULL), PSD_OK);
    cr_expect_eq(n, 1);
    ps_free(clocks);
    cr_expect_eq(pull(&bench, 2), 300.0F);
    message.push.job = 1;
    message.push.seq = 301;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    expect_refused(&bench, PSD_NO_JOB, "job 1 is not known here");
}

Test(shard_held, a_dropped_table_answers_what_it_held)
{
    ps_message_t message = push_message(1);

    message.push.ack = PS_ACK_REPLICA;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_DROP, .table = 1}), PSD_OK);
    expect_refused(&bench, PSD_NO_TABLE, "the table was dropped");
}

Test(shard_held, a_partition_that_moves_away_sends_the_new_map)
{
    ps_message_t message = push_message(1);

    message.push.ack = PS_ACK_REPLICA;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    bench.routes[0].shard = 1;
    bench.routes[0].epoch = 5;
    cr_assert_eq(set_table(&bench), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->kind, PS_KIND_MOVED);
}

/* Whatever is refused for lack of memory was not applied, and comes through
 * when it is sent again. */
static psd_status_t push_twice(void *fixture)
{
    bench_t self;
    psd_status_t rc = open_bench(&self);
    float n_acked = 0;

    (void)fixture;
    for (uint64_t seq = 1; rc == PSD_OK && seq <= 2; seq++) {
        const ps_message_t *message = NULL;

        rc = push(&self, seq, 1, 1.0F);
        message = answer(&self);
        if (rc != PSD_OK || message == NULL || message->kind != PS_KIND_ACK) {
            rc = PSD_NOMEM;
        } else {
            n_acked += 1;
        }
    }
    if (rc == PSD_NOMEM && self.shard != NULL && fail_alloc_happened() &&
        set_table(&self) == PSD_OK && hello(&self, &good_hello) == PSD_OK) {
        cr_assert_eq(pull(&self, 1), n_acked);
        cr_assert_eq(push(&self, (uint64_t)n_acked + 1, 1, 1.0F), PSD_OK);
        cr_assert_eq(pull(&self, 1), n_acked + 1);
    }
    close_bench(&self);
    /* a note or a refusal's words may be missing: nothing else suffers */
    return fail_alloc_happened() ? PSD_NOMEM : rc;
}

Test(shard_memory, survives_every_failed_allocation)
{
    cr_assert_null(fail_alloc_sweep(push_twice, NULL));
}

/* ---- rooms: memory of the client for the answer's values ---- */

/* A pull of row 2 that waits behind push 1, from that connection. */
static void pull_behind(uint64_t conn, ps_room_t room)
{
    static const uint64_t row = 2;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row},
                                            (ps_bytes_t){0}, (ps_bytes_t){0});
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {.request = 900,
                                     .table = 1,
                                     .epoch = 4,
                                     .after = 1,
                                     .type = PS_TYPE_F32,
                                     .n_rows = 1,
                                     .n_cols = 1}};

    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                            .conn = conn,
                                            .message = &message,
                                            .payload = payload,
                                            .room = room}),
                 PSD_OK);
    if (answer(&bench) != NULL) {
        cr_expect_eq(said(&bench)->kind, PS_KIND_REFUSED, "asked again");
        cr_expect_eq(said(&bench)->refused.status, PSD_GAP, "it waits");
    }
}

/* Push 1 comes: where the values of the pull behind it lie. */
static const uint8_t *values_behind_push(uint64_t conn)
{
    static const uint64_t row = 2;
    static const float value = 0.5F;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
                        (ps_bytes_t){(const uint8_t *)&value, sizeof value});
    ps_message_t message = push_message(1);

    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                            .conn = conn,
                                            .message = &message,
                                            .payload = payload}),
                 PSD_OK);
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        const ps_effect_t *effect = &bench.outbox.effects[i];

        if (effect->kind == PS_EFFECT_SEND && effect->message.kind == PS_KIND_VALUES) {
            cr_expect_eq(effect->to, conn);
            cr_assert_arr_eq(effect->payload->spans[0].data, &value, sizeof value);
            return effect->payload->spans[0].data;
        }
    }
    cr_assert(false, "the pull goes on");
    return NULL;
}

static void hello_from(uint64_t conn)
{
    ps_message_t message = {.kind = PS_KIND_HELLO, .hello = good_hello};

    cr_assert_eq(
        step(&bench, &(ps_event_t){.kind = PS_EVENT_MESSAGE, .conn = conn, .message = &message}),
        PSD_OK);
}

Test(shard_held, keeps_the_room_of_a_pull_that_waits)
{
    _Alignas(64) uint8_t memory[64] = {0};

    pull_behind(CONN, (ps_room_t){memory, sizeof memory});
    cr_expect_eq(values_behind_push(CONN), memory);
}

/* The memory goes with the connection, and may be unmapped behind GONE. */
Test(shard_held, writes_to_no_room_of_a_connection_that_is_gone)
{
    _Alignas(64) uint8_t memory[64] = {0};

    pull_behind(CONN, (ps_room_t){memory, sizeof memory});
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_GONE, .conn = CONN}), PSD_OK);
    hello_from(CONN + 1);
    cr_expect_neq(values_behind_push(CONN + 1), memory);
    cr_expect_eq(memory[3], 0);
}

/* It is not gone yet, but its end would not be waited for: what is sent to
 * another connection must not lie in it. */
Test(shard_held, writes_to_no_room_of_another_connection_than_it_answers_to)
{
    _Alignas(64) uint8_t memory[64] = {0};

    pull_behind(CONN, (ps_room_t){memory, sizeof memory});
    hello_from(CONN + 1);
    cr_expect_neq(values_behind_push(CONN + 1), memory);
    cr_expect_eq(memory[3], 0);
}

Test(shard_held, keeps_the_room_when_a_repeated_pull_names_none)
{
    _Alignas(64) uint8_t memory[64] = {0};

    pull_behind(CONN, (ps_room_t){memory, sizeof memory});
    pull_behind(CONN, (ps_room_t){NULL, 0});
    cr_expect_eq(values_behind_push(CONN), memory);
}

Test(shard_held, takes_the_room_of_a_pull_that_is_repeated)
{
    _Alignas(64) uint8_t memory[64] = {0};
    _Alignas(64) uint8_t newer[64] = {0};

    pull_behind(CONN, (ps_room_t){memory, sizeof memory});
    hello_from(CONN + 1);
    pull_behind(CONN + 1, (ps_room_t){newer, sizeof newer});
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_GONE, .conn = CONN}), PSD_OK);
    cr_expect_eq(values_behind_push(CONN + 1), newer);
}

/* Who sent it can change its values at any time, but not those that are kept.
 */
Test(shard_held, keeps_a_copy_of_a_push_that_others_can_change)
{
    uint64_t row = 2;
    float value = 0.5F;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_new((ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
                       (ps_bytes_t){(const uint8_t *)&value, sizeof value}, NULL, NULL);
    ps_message_t message = push_message(1);

    cr_assert_not_null(payload);
    payload->shared = true;
    message.push.ack = PS_ACK_DISK;
    cr_assert_eq(say(&bench, &message, payload), PSD_OK);
    cr_expect_null(answer(&bench));
    cr_expect_eq(atomic_load(&payload->n_holders), 1, "nobody else holds it");
}

Test(shard_held, logs_a_copy_of_a_push_that_others_can_change)
{
    uint64_t row = 2;
    float value = 0.5F;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_new((ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
                       (ps_bytes_t){(const uint8_t *)&value, sizeof value}, NULL, NULL);
    ps_message_t message = push_message(1);

    cr_assert_not_null(payload);
    payload->shared = true;
    cr_assert_eq(say(&bench, &message, payload), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(atomic_load(&payload->n_holders), 1, "not even the record");
}
