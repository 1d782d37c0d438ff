/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/shard/shard_image.h: an image right behind one clock of a job under SSP.
 */
#include "protocol/shard/shard_image.h"
#include "shard_bench.h"

#define JOB 3
#define OTHER_CONN 78 /* of worker 1, whose session is the next one */
#define HOLD_MS 2000

static bench_t bench;

static ps_image_step_t step_now(void)
{
    ps_outbox_clear(&bench.outbox);
    return (ps_image_step_t){.now_ms = bench.now_ms, .outbox = &bench.outbox};
}

static void say_as(uint32_t worker, const ps_message_t *message, ps_payload_t *payload)
{
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                            .conn = worker == 0 ? CONN : OTHER_CONN,
                                            .message = message,
                                            .payload = payload}),
                 PSD_OK);
}

static void push_at(uint64_t seq, uint64_t clock, float value)
{
    const uint64_t row = 0;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
                        (ps_bytes_t){(const uint8_t *)&value, sizeof value});
    ps_message_t message = push_message(seq);

    message.push.job = JOB;
    message.push.joins = 1;
    message.push.clock = clock;
    say_as(0, &message, payload);
}

static void mark(uint32_t worker, uint64_t seq, uint64_t clock)
{
    const ps_message_t message = {.kind = PS_KIND_MARK,
                                  .mark = {.request = seq,
                                           .table = 1,
                                           .epoch = 4,
                                           .seq = seq,
                                           .job = JOB,
                                           .worker = worker,
                                           .joins = 1,
                                           .clock = clock}};

    say_as(worker, &message, NULL);
}

/* Two workers that may be two clocks apart; worker 0 has finished one, and has
 * pushed 1 in it and 10 in the next. */
static void setup(void)
{
    ps_worker_t workers[2] = {
        {.worker = 0, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1},
        {.worker = 1, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1}};
    const ps_job_t job = {
        .id = JOB, .name = "lr", .max_delay = 2, .version = 1, .workers = workers, .n_workers = 2};
    ps_message_t message = {.kind = PS_KIND_HELLO, .hello = good_hello};

    cr_assert_eq(open_bench(&bench), PSD_OK);
    message.hello.session = SESSION + 1;
    say_as(1, &message, NULL);
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
    push_at(1, 0, 1);
    mark(0, 2, 1);
    push_at(3, 1, 10);
}

static void teardown(void)
{
    close_bench(&bench);
}

TestSuite(shard_image_job, .init = setup, .fini = teardown);

static void begin(uint64_t clock)
{
    const ps_image_order_t order = {
        .table = 1, .job = JOB, .exact = true, .clock = clock, .early_bytes = 1 << 20};
    const ps_image_step_t now = step_now();

    ps_shard_image_begin(bench.shard, &now, &order);
}

static uint64_t arm(void)
{
    const ps_image_order_t order = {.table = 1, .job = JOB, .exact = true};
    const ps_image_step_t now = step_now();

    return ps_shard_image_arm(bench.shard, &now, &order, HOLD_MS);
}

static ps_image_view_t look(void)
{
    ps_image_view_t view = {0};

    cr_assert(ps_shard_image_look(bench.shard, 1, 0, &view));
    return view;
}

/* Row 0 of the image, in a table of its own. */
static float value_in_image(void)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;
    ps_restore_at_t at = {0};
    bench_t other;
    ps_image_step_t now = {0};
    bool is_last = false;
    float value = 0;

    while (piece == NULL && !is_last) {
        cr_assert_eq(ps_shard_image_next(bench.shard, 1, 0, 1 << 20, &piece, &is_last, NULL),
                     PSD_OK);
    }
    cr_assert_not_null(piece);
    cr_assert_eq(open_bench(&other), PSD_OK);
    ps_outbox_clear(&other.outbox);
    now = (ps_image_step_t){.now_ms = other.now_ms, .outbox = &other.outbox};
    cr_assert_eq(ps_shard_restore(other.shard, &now, 1, 0, piece, &at, NULL), PSD_OK);
    value = pull(&other, 0);
    close_bench(&other);
    return value;
}

Test(shard_image_job, has_what_was_pushed_up_to_the_clock_and_nothing_behind)
{
    cr_assert_eq(arm(), 1, "the furthest mark");
    mark(0, 4, 2);
    cr_expect_null(answer(&bench), "marks wait until it begins");
    begin(2);
    cr_expect_eq(look().state, PS_IMAGE_PENDING);
    push_at(5, 2, 100);
    cr_expect_null(answer(&bench), "that is behind the clock");
    mark(1, 1, 1);
    cr_expect_eq(look().state, PS_IMAGE_PENDING);
    mark(1, 2, 2);
    cr_assert_eq(look().state, PS_IMAGE_BEGUN);
    cr_expect(look().exact);
    cr_expect_eq(look().clock, 2);
    cr_expect_eq(pull(&bench, 0), 111, "it goes on");
    cr_expect_eq(value_in_image(), 11);
}

Test(shard_image_job, says_that_it_is_not_exact_when_marks_came_before_it)
{
    (void)arm();
    bench.now_ms += HOLD_MS;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    mark(0, 4, 2);
    push_at(5, 2, 100);
    begin(2);
    mark(1, 1, 1);
    mark(1, 2, 2);
    cr_assert_eq(look().state, PS_IMAGE_BEGUN);
    cr_expect_not(look().exact);
}

/* Those workers are not there any more. */
static void end_workers(uint32_t n, ps_worker_state_t state)
{
    ps_worker_t workers[2] = {
        {.worker = 0, .state = state, .n_members = 1, .joins = 1},
        {.worker = 1, .state = n > 1 ? state : PS_WORKER_RUNNING, .n_members = 1, .joins = 1}};
    const ps_job_t job = {
        .id = JOB, .name = "lr", .max_delay = 2, .version = 2, .workers = workers, .n_workers = 2};

    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
}

Test(shard_image_job, waits_for_nobody_when_all_have_gone)
{
    (void)arm();
    begin(2);
    cr_expect_eq(look().state, PS_IMAGE_PENDING);
    end_workers(2, PS_WORKER_LOST);
    cr_expect_eq(look().state, PS_IMAGE_BEGUN);
    cr_expect_not(look().exact, "clock 2 was not closed");
    cr_expect_eq(look().clock, 0, "pushes of open clocks are in the rows");
}

Test(shard_image_job, counts_the_marks_of_workers_that_have_gone)
{
    end_workers(1, PS_WORKER_FINISHED);
    cr_expect_eq(arm(), 1, "its pushes behind clock 1 are in the rows");
}

Test(shard_image_job, marks_go_on_by_themselves_when_none_begins)
{
    (void)arm();
    bench.now_ms += HOLD_MS / 2;
    (void)arm();
    mark(0, 4, 2);
    for (int i = 0; i < 2; i++) {
        cr_expect_null(answer(&bench));
        cr_assert_neq(ps_shard_deadline(bench.shard), UINT64_MAX);
        bench.now_ms = ps_shard_deadline(bench.shard);
        cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    }
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
}

/* Of no job: each partition at its own moment. */
Test(shard_image_job, begins_in_turn_with_what_was_pushed_until_then)
{
    const ps_image_order_t order = {.table = 1, .in_turn = true, .early_bytes = 1 << 20};
    ps_image_step_t now = step_now();

    ps_shard_image_begin(bench.shard, &now, &order);
    cr_expect_eq(look().state, PS_IMAGE_PENDING);
    push_at(4, 1, 100);
    cr_expect_eq(look().state, PS_IMAGE_PENDING, "it waits to be told");
    now = step_now();
    ps_shard_image_take_turn(bench.shard, &now, 1, 0);
    cr_assert_eq(look().state, PS_IMAGE_BEGUN);
    push_at(5, 1, 1000);
    cr_expect_eq(value_in_image(), 111);
}

Test(shard_image_job, has_no_turn_when_it_waits_for_a_clock)
{
    const ps_image_order_t order = {.table = 1, .job = JOB, .clock = 1, .in_turn = true};
    ps_image_step_t now = step_now();

    ps_shard_image_begin(bench.shard, &now, &order);
    now = step_now();
    ps_shard_image_take_turn(bench.shard, &now, 1, 0);
    cr_expect_eq(look().state, PS_IMAGE_PENDING);
    mark(1, 1, 1);
    cr_expect_eq(look().state, PS_IMAGE_BEGUN);
}

Test(shard_image_job, marks_go_on_at_once_when_it_is_given_up_before_it_begins)
{
    (void)arm();
    mark(0, 4, 2);
    cr_expect_null(answer(&bench));
    ps_shard_image_disarm(bench.shard);
    cr_expect_leq(ps_shard_deadline(bench.shard), bench.now_ms);
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    begin(2);
    cr_expect_eq(look().state, PS_IMAGE_PENDING);
    mark(1, 1, 1);
    mark(1, 2, 2);
    cr_expect_not(look().exact, "marks have come meanwhile");
}

Test(shard_image_job, lets_go_what_it_held_when_it_is_given_up)
{
    (void)arm();
    begin(2);
    mark(0, 4, 2);
    push_at(5, 2, 100);
    cr_expect_null(answer(&bench));
    ps_shard_image_end(bench.shard, 1, 0);
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
}
