/* SPDX-License-Identifier: Apache-2.0 */
/* A push that ends its worker's clock: PS_FLAG_MARK. */
#include <math.h>

#include "shard_bench.h"

#define JOB 3
#define OTHER_CONN 78 /* of worker 1, whose session is the next one */

static bench_t bench;

static void say_as(uint32_t worker, const ps_message_t *message, ps_payload_t *payload)
{
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                            .conn = worker == 0 ? CONN : OTHER_CONN,
                                            .message = message,
                                            .payload = payload}),
                 PSD_OK);
}

/* Two workers under BSP. */
static void setup(void)
{
    ps_worker_t workers[2] = {
        {.worker = 0, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1},
        {.worker = 1, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1}};
    const ps_job_t job = {
        .id = JOB, .name = "lr", .version = 1, .workers = workers, .n_workers = 2};
    ps_message_t message = {.kind = PS_KIND_HELLO, .hello = good_hello};

    cr_assert_eq(open_bench(&bench), PSD_OK);
    message.hello.session = SESSION + 1;
    say_as(1, &message, NULL);
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
}

static void teardown(void)
{
    close_bench(&bench);
}

TestSuite(shard_marks, .init = setup, .fini = teardown);

/* Pushes to row 0, and ends the clock. */
static void push_last(uint32_t worker, uint64_t seq, uint64_t clock, float value)
{
    const uint64_t row = 0;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
                        (ps_bytes_t){(const uint8_t *)&value, sizeof value});
    ps_message_t message = push_message(seq);

    message.flags = PS_FLAG_MARK;
    message.push.job = JOB;
    message.push.worker = worker;
    message.push.joins = 1;
    message.push.clock = clock;
    say_as(worker, &message, payload);
}

static void pull_at(uint32_t worker, uint64_t clock)
{
    const ps_message_t message = {.kind = PS_KIND_PULL,
                                  .pull = {.request = 100 + clock,
                                           .table = 1,
                                           .epoch = 4,
                                           .job = JOB,
                                           .worker = worker,
                                           .joins = 1,
                                           .clock = clock,
                                           .type = PS_TYPE_F32,
                                           .rows = PS_ROWS_RANGE,
                                           .n_rows = 1,
                                           .n_cols = 1}};

    say_as(worker, &message, NULL);
}

/* The row as the only VALUES among the effects has it; NAN: there is none. */
static float pulled(void)
{
    float value = NAN;

    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        const ps_effect_t *effect = &bench.outbox.effects[i];

        if (effect->kind == PS_EFFECT_SEND && effect->message.kind == PS_KIND_VALUES) {
            cr_assert(isnan(value));
            memcpy(&value, effect->payload->spans[0].data, sizeof value);
        }
    }
    return value;
}

/* The kind of the answer to that request; 0: there is none. */
static ps_kind_t answered(uint64_t request)
{
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        const ps_effect_t *effect = &bench.outbox.effects[i];

        if (effect->kind == PS_EFFECT_SEND && effect->message.ack.request == request) {
            return effect->message.kind;
        }
    }
    return 0;
}

Test(shard_marks, closes_the_clock_with_itself_in_it)
{
    push_last(0, 1, 0, 1);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    pull_at(0, 1);
    cr_expect(isnan(pulled()), "worker 1 has not finished");
    push_last(1, 1, 0, 10);
    cr_expect_float_eq(pulled(), 11, 0, "the pull that waited");
}

Test(shard_marks, is_taken_once)
{
    push_last(0, 1, 0, 1);
    push_last(0, 1, 0, 1);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    push_last(1, 1, 0, 10);
    push_last(1, 1, 0, 10);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    pull_at(0, 1);
    cr_expect_float_eq(pulled(), 11, 0);
}

Test(shard_marks, ends_the_clock_also_when_it_is_refused)
{
    push_last(0, 1, 0, 1);
    pull_at(0, 1);
    push_last(1, 1, 0, NAN);
    cr_expect_eq(answered(push_message(1).push.request), PS_KIND_REFUSED);
    cr_expect_float_eq(pulled(), 1, 0);
    push_last(1, 1, 0, NAN); /* the answer was lost */
    cr_expect_eq(said(&bench)->kind, PS_KIND_REFUSED);
}

/* The one in front of it got lost: nothing of it counts. */
Test(shard_marks, comes_in_its_turn)
{
    push_last(0, 1, 0, 1);
    pull_at(0, 1);
    push_last(1, 2, 0, 10);
    cr_expect_eq(said(&bench)->kind, PS_KIND_REFUSED);
    cr_expect_eq(said(&bench)->refused.status, PSD_GAP);
    cr_expect(isnan(pulled()));
}

Test(shard_marks, of_who_is_no_worker_is_refused_and_counts_for_nobody)
{
    push_last(0, 1, 0, 1);
    pull_at(0, 1);
    push_last(2, 1, 0, 10);
    cr_expect_eq(answered(push_message(1).push.request), PS_KIND_REFUSED);
    cr_expect(isnan(pulled()));
}
