/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of a clock's pushes: each, their sum, or their mean. */
#include <math.h>

#include "protocol/shard/shard_state.h"
#include "shard_bench.h"

#define JOB 3
#define WORKERS 4
#define CONNS 100 /* worker i has connection CONNS + i and session SESSION + 1 + i */

/* Their sum depends on its order: 2e-9 by halves, 0 one after the other. */
static const float DELTAS[WORKERS] = {1e-9F, 1e-9F, 1, -1};

static bench_t bench;
static ps_worker_t workers[WORKERS];
static uint64_t seqs[WORKERS];
static uint64_t version;

static void say_as(uint32_t worker, const ps_message_t *message, ps_payload_t *payload)
{
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                            .conn = CONNS + worker,
                                            .message = message,
                                            .payload = payload}),
                 PSD_OK);
}

static void tell_job(void)
{
    const ps_job_t job = {
        .id = JOB, .name = "lr", .version = ++version, .workers = workers, .n_workers = WORKERS};

    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
}

static void set_combine(ps_combine_t combine)
{
    bench.spec.combine = combine;
    cr_assert_eq(set_table(&bench), PSD_OK);
}

static void setup(void)
{
    cr_assert_eq(open_bench(&bench), PSD_OK);
    bench.shard->step.args.sessions_max = 64;
    version = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        ps_message_t message = {.kind = PS_KIND_HELLO, .hello = good_hello};

        workers[i] =
            (ps_worker_t){.worker = i, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
        seqs[i] = 0;
        message.hello.session = SESSION + 1 + i;
        say_as(i, &message, NULL);
    }
    tell_job();
}

static void teardown(void)
{
    close_bench(&bench);
}

TestSuite(shard_combine, .init = setup, .fini = teardown);

/* A push to row 0; its worker has finished `clock` clocks. */
static void push_of(uint32_t worker, uint64_t clock, float value, uint8_t op)
{
    const uint64_t row = 0;
    const double two = 2;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy(
        (ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
        (ps_bytes_t){(const uint8_t *)&value, op == PS_CHANGE_UPDATE ? sizeof value : 0});
    ps_message_t message = push_message(++seqs[worker]);

    message.push.job = JOB;
    message.push.worker = worker;
    message.push.joins = 1;
    message.push.clock = clock;
    if (op != PS_CHANGE_UPDATE) {
        message.push.op = op;
        message.push.n_values = 0;
        memcpy(&message.push.operand, &two, sizeof two);
    }
    say_as(worker, &message, payload);
    cr_assert_eq(said(&bench)->kind, PS_KIND_ACK);
}

static void mark_of(uint32_t worker, uint64_t clock)
{
    const ps_message_t message = {.kind = PS_KIND_MARK,
                                  .mark = {.request = seqs[worker] + 1,
                                           .table = 1,
                                           .epoch = 4,
                                           .seq = ++seqs[worker],
                                           .job = JOB,
                                           .worker = worker,
                                           .joins = 1,
                                           .clock = clock}};

    say_as(worker, &message, NULL);
}

static void mark_all(uint64_t clock)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        mark_of(i, clock);
    }
}

Test(shard_combine, the_bits_do_not_depend_on_who_comes_first)
{
    uint64_t clock = 0;

    set_combine(PS_COMBINE_CLOCK_SUM);
    for (uint32_t order = 0; order < WORKERS; order++, clock++) {
        float before = pull(&bench, 0);

        for (uint32_t i = 0; i < WORKERS; i++) {
            uint32_t worker = (i * 3 + order) % WORKERS;

            push_of(worker, clock, DELTAS[worker], PS_CHANGE_UPDATE);
        }
        mark_all(clock + 1);
        cr_assert_float_eq(pull(&bench, 0) - before, 2e-9F, 1e-15F);
    }
}

Test(shard_combine, each_push_by_itself_is_in_the_order_of_workers)
{
    for (uint32_t i = WORKERS; i > 0; i--) {
        push_of(i - 1, 0, DELTAS[i - 1], PS_CHANGE_UPDATE);
    }
    mark_all(1);
    cr_assert_eq(pull(&bench, 0), 0);
}

/* Also a worker that pushes nothing does its part of a batch. */
Test(shard_combine, a_mean_is_over_the_workers_of_the_clock)
{
    set_combine(PS_COMBINE_CLOCK_MEAN);
    push_of(1, 0, 3, PS_CHANGE_UPDATE);
    push_of(1, 0, 2, PS_CHANGE_UPDATE);
    push_of(2, 0, 3, PS_CHANGE_UPDATE);
    mark_all(1);
    cr_assert_eq(pull(&bench, 0), 2);
    /* worker 3 finishes no more clocks; worker 2 is lost after it has pushed */
    workers[3].state = PS_WORKER_FINISHED;
    tell_job();
    push_of(0, 1, 1, PS_CHANGE_UPDATE);
    push_of(2, 1, 5, PS_CHANGE_UPDATE);
    mark_of(0, 2);
    mark_of(1, 2);
    workers[2].state = PS_WORKER_LOST;
    tell_job();
    cr_assert_eq(pull(&bench, 0), 4);
}

/* As docs/guarantees.md says: here both have no push. */
Test(shard_combine, in_a_mean_a_lost_worker_counts_until_it_joins_again)
{
    set_combine(PS_COMBINE_CLOCK_MEAN);
    push_of(0, 0, 3 * WORKERS, PS_CHANGE_UPDATE);
    mark_of(2, 1);
    workers[2].state = PS_WORKER_LOST;
    tell_job();
    mark_all(1);
    cr_assert_eq(pull(&bench, 0), 3);
    push_of(0, 1, 3 * (WORKERS - 2), PS_CHANGE_UPDATE);
    mark_of(1, 2);
    workers[1].joins = 2;
    workers[1].start = 2;
    tell_job();
    mark_all(2);
    cr_assert_eq(pull(&bench, 0), 6);
}

Test(shard_combine, what_scales_rows_comes_before_the_sum)
{
    set_combine(PS_COMBINE_CLOCK_SUM);
    push_of(0, 0, 1, PS_CHANGE_UPDATE);
    push_of(1, 0, 2, PS_CHANGE_UPDATE);
    mark_all(1);
    push_of(0, 1, 10, PS_CHANGE_UPDATE);
    push_of(1, 1, 0, PS_CHANGE_SCALE);
    push_of(2, 1, 20, PS_CHANGE_UPDATE);
    mark_all(2);
    cr_assert_eq(pull(&bench, 0), 36);
}

/* A clock that has begun ends as it began. */
Test(shard_combine, a_change_takes_effect_between_two_clocks)
{
    push_of(0, 0, 4, PS_CHANGE_UPDATE);
    set_combine(PS_COMBINE_CLOCK_MEAN);
    push_of(1, 0, 4, PS_CHANGE_UPDATE);
    mark_all(1);
    cr_assert_eq(pull(&bench, 0), 8);
    push_of(0, 1, 4, PS_CHANGE_UPDATE);
    set_combine(PS_COMBINE_EACH);
    push_of(1, 1, 4, PS_CHANGE_UPDATE);
    mark_all(2);
    cr_assert_eq(pull(&bench, 0), 10);
    push_of(0, 2, 4, PS_CHANGE_UPDATE);
    mark_all(3);
    cr_assert_eq(pull(&bench, 0), 14);
}

/* Without a job nothing waits for anything. */
Test(shard_combine, pushes_of_no_worker_are_applied_at_once)
{
    set_combine(PS_COMBINE_CLOCK_MEAN);
    cr_assert_eq(push(&bench, 1, 0, 5), PSD_OK);
    cr_assert_eq(pull(&bench, 0), 5);
}
