/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes that change rows where they lie and pulls that measure them: taken
 * once, in order, behind the clocks, like any other. */
#include <math.h>

#include "base/hash.h"
#include "shard_bench.h"

#define OTHER 2
#define JOB 3

static bench_t bench;

static psd_status_t add_table(uint32_t table)
{
    return step(&bench, &(ps_event_t){.kind = PS_EVENT_TABLE,
                                      .table = table,
                                      .spec = &bench.spec,
                                      .routes = bench.routes,
                                      .n_routes = 2});
}

/* Rows of OTHER are gone; sessions up to that one knew them. */
static void lose_other(uint64_t lost_sessions)
{
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TABLE,
                                            .table = OTHER,
                                            .spec = &bench.spec,
                                            .routes = bench.routes,
                                            .n_routes = 2,
                                            .rows_lost = true,
                                            .lost_sessions = lost_sessions}),
                 PSD_OK);
}

static void setup(void)
{
    cr_assert_eq(open_bench(&bench), PSD_OK);
    cr_assert_eq(add_table(OTHER), PSD_OK);
}

static void teardown(void)
{
    close_bench(&bench);
}

TestSuite(shard_ops, .init = setup, .fini = teardown);

/* The rows 0 .. 3, which are those of partition 0. */
static ps_message_t change_message(uint64_t seq, uint8_t op, double operand)
{
    ps_message_t message = {.kind = PS_KIND_PUSH,
                            .push = {.request = seq,
                                     .table = 1,
                                     .epoch = 4,
                                     .seq = seq,
                                     .op = op,
                                     .rows = PS_ROWS_RANGE,
                                     .type = PS_TYPE_F32,
                                     .n_rows = 4,
                                     .n_cols = 1}};

    memcpy(&message.push.operand, &operand, sizeof operand);
    return message;
}

static psd_status_t change(uint64_t seq, uint8_t op, double operand)
{
    ps_message_t message = change_message(seq, op, operand);

    return say(&bench, &message, NULL);
}

static ps_message_t measure_message(uint8_t op)
{
    return (ps_message_t){.kind = PS_KIND_PULL,
                          .pull = {.request = 900,
                                   .table = 1,
                                   .epoch = 4,
                                   .op = op,
                                   .rows = PS_ROWS_RANGE,
                                   .type = PS_TYPE_F32,
                                   .n_rows = 4,
                                   .n_cols = 1}};
}

/* The bytes of the only answer, which is of VALUES. */
static const uint8_t *answered_values(ps_type_t type)
{
    cr_assert_not_null(answer(&bench));
    cr_assert_eq(said(&bench)->kind, PS_KIND_VALUES);
    cr_assert_eq(said(&bench)->values.type, type);
    cr_assert_eq(said(&bench)->values.n_values, 1);
    cr_assert_eq(said(&bench)->values.n_done, 4);
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        if (bench.outbox.effects[i].kind == PS_EFFECT_SEND) {
            return bench.outbox.effects[i].payload->spans[0].data;
        }
    }
    return NULL;
}

static double answered_number(void)
{
    double number = 0;

    memcpy(&number, answered_values(PS_TYPE_F64), sizeof number);
    return number;
}

static double measure(uint8_t op, uint32_t other)
{
    ps_message_t message = measure_message(op);

    message.pull.other = other;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    return answered_number();
}

Test(shard_ops, changes_rows_once)
{
    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(change(2, PS_CHANGE_SCALE, 4), PSD_OK);
        cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    }
    cr_expect_eq(pull(&bench, 2), 2.0F, "the second one was a repetition");
    cr_assert_eq(change(3, PS_CHANGE_FILL, -1), PSD_OK);
    cr_expect_eq(pull(&bench, 0), -1.0F);
    cr_expect_eq(pull(&bench, 2), -1.0F);
}

Test(shard_ops, logs_what_changes_rows)
{
    bool found = false;

    cr_assert_eq(change(1, PS_CHANGE_SCALE, 4), PSD_OK);
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        const ps_effect_t *effect = &bench.outbox.effects[i];

        if (effect->kind == PS_EFFECT_RECORD) {
            found = true;
            cr_expect_eq(effect->record.kind, PS_RECORD_PUSH);
            cr_expect_eq(effect->record.lsn, 1);
            cr_expect_eq(effect->record.op.op, PS_CHANGE_SCALE);
            cr_expect_eq(effect->record.slice.n_rows, 4);
        }
    }
    cr_expect(found);
}

Test(shard_ops, adds_another_table_to_this_one)
{
    ps_message_t message = push_message(1);

    message.push.table = OTHER;
    cr_assert_eq(push_as(&bench, &message, 3, 2.0F), PSD_OK);
    cr_assert_eq(push(&bench, 1, 3, 1.0F), PSD_OK);
    message = change_message(2, PS_CHANGE_AXPY, -3);
    message.push.other = OTHER;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(pull(&bench, 3), -5.0F);
}

Test(shard_ops, refuses_another_table_that_is_not_beside_this_one)
{
    ps_message_t message = change_message(1, PS_CHANGE_AXPY, 1);

    message.push.other = 99;
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
        expect_refused(&bench, PSD_INVALID, "AXPY names table 99, which does not exist");
        cr_assert_eq(add_table(99), PSD_OK); /* remembered all the same */
    }
    bench.routes[0].shard = 1;
    cr_assert_eq(add_table(OTHER), PSD_OK);
    message.push.seq = message.push.request = 2;
    message.push.other = OTHER;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    expect_refused(&bench, PSD_INVALID,
                   "AXPY needs partition 0 of table w on shard 0 too, where "
                   "the first table has it");
    message = measure_message(PS_READ_DOT);
    message.pull.other = OTHER;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    expect_refused(&bench, PSD_INVALID,
                   "DOT needs partition 0 of table w on shard 0 too, where "
                   "the first table has it");
}

#define LOST_TEXT                                                          \
    "table \"w\" lost rows with the last node that had them; this client " \
    "opened before that; open a new one"

/* Whoever knew rows that are gone hears so, and is not told a sum without them.
 */
Test(shard_ops, refuses_another_table_whose_rows_are_gone)
{
    ps_message_t message = change_message(1, PS_CHANGE_AXPY, 1);

    lose_other(SESSION);
    message.push.other = OTHER;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    expect_refused(&bench, PSD_ROWS_LOST, LOST_TEXT);
    message = measure_message(PS_READ_DOT);
    message.pull.other = OTHER;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    expect_refused(&bench, PSD_ROWS_LOST, LOST_TEXT);
}

Test(shard_ops, measures_with_rows_made_behind_a_loss)
{
    ps_message_t message = push_message(1);

    lose_other(SESSION - 1);
    message.push.table = OTHER;
    cr_assert_eq(push_as(&bench, &message, 3, 2.0F), PSD_OK);
    cr_assert_eq(push(&bench, 1, 3, 1.0F), PSD_OK);
    cr_expect_eq(measure(PS_READ_DOT, OTHER), 2.0);
    message = change_message(2, PS_CHANGE_AXPY, -3);
    message.push.other = OTHER;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    cr_expect_eq(pull(&bench, 3), -5.0F);
}

/* It waits at its own table, for a push that has not come. */
Test(shard_ops, tells_a_product_that_waits_of_the_other_tables_loss)
{
    ps_message_t message = measure_message(PS_READ_DOT);

    message.pull.other = OTHER;
    message.pull.after = 1;
    message.pull.timeout_ms = 100000;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_assert_null(answer(&bench));
    lose_other(SESSION);
    expect_refused(&bench, PSD_ROWS_LOST, LOST_TEXT);
    cr_expect_eq(said(&bench)->refused.request, 900);
}

/* Another table's loss is none of what waits beside it. */
Test(shard_ops, leaves_a_sum_that_waits_to_its_own_table)
{
    ps_message_t message = measure_message(PS_READ_SUM);

    message.pull.other = OTHER;
    message.pull.after = 1;
    message.pull.timeout_ms = 100000;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    lose_other(SESSION);
    cr_expect_null(answer(&bench));
}

Test(shard_ops, refuses_another_table_of_another_shape)
{
    ps_message_t message = measure_message(PS_READ_DOT);

    bench.spec.type = PS_TYPE_F64;
    cr_assert_eq(add_table(4), PSD_OK);
    message.pull.other = 4;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->refused.status, PSD_TYPE);
}

Test(shard_ops, refuses_an_operand_that_is_not_finite)
{
    cr_assert_eq(change(1, PS_CHANGE_SCALE, (double)NAN), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->refused.status, PSD_NOT_FINITE);
    cr_assert_eq(push(&bench, 2, 2, 0.5F), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK, "its seq was used up");
}

Test(shard_ops, measures_rows)
{
    ps_message_t message = push_message(1);
    uint64_t count = 0;

    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    cr_assert_eq(push(&bench, 2, 3, -2.0F), PSD_OK);
    message.push.table = OTHER;
    cr_assert_eq(push_as(&bench, &message, 3, 8.0F), PSD_OK);
    cr_expect_eq(measure(PS_READ_SUM, 0), -1.5);
    cr_expect_eq(measure(PS_READ_SQUARES, 0), 4.25);
    cr_expect_eq(measure(PS_READ_DOT, OTHER), -16.0);
    message = measure_message(PS_READ_NONZEROS);
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    memcpy(&count, answered_values(PS_TYPE_I64), sizeof count);
    cr_expect_eq(count, 2);
}

/* The payload of the only answer. */
static const ps_payload_t *answered_payload(void)
{
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        if (bench.outbox.effects[i].kind == PS_EFFECT_SEND) {
            return bench.outbox.effects[i].payload;
        }
    }
    return NULL;
}

Test(shard_ops, digests_the_values_that_a_plain_pull_has)
{
    ps_message_t message = measure_message(PS_READ_VALUES);
    const ps_payload_t *payload = NULL;
    ps_id_t digest;

    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    cr_assert_eq(push(&bench, 2, 3, -2.0F), PSD_OK);
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    payload = answered_payload();
    cr_assert(payload != NULL && payload->n_spans > 0);
    ps_hash_id_spans(payload->spans, payload->n_spans, &digest);
    message = measure_message(PS_READ_DIGEST);
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_assert_eq(said(&bench)->kind, PS_KIND_VALUES);
    cr_expect_eq(said(&bench)->values.type, PS_TYPE_I64);
    cr_expect_eq(said(&bench)->values.n_done, message.pull.n_rows);
    cr_expect_eq(said(&bench)->values.n_values, 2);
    payload = answered_payload();
    cr_assert(payload != NULL && ps_payload_size(payload) == sizeof digest.bytes);
    cr_expect_arr_eq(payload->spans[0].data, digest.bytes, sizeof digest.bytes);
}

Test(shard_ops, gives_the_largest_values_and_not_too_many)
{
    ps_message_t message = measure_message(PS_READ_TOP);

    cr_assert_eq(push(&bench, 1, 2, 0.5F), PSD_OK);
    cr_assert_eq(push(&bench, 2, 3, 2.0F), PSD_OK);
    message.pull.operand = 2;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_assert_eq(said(&bench)->kind, PS_KIND_VALUES);
    cr_expect_eq(said(&bench)->values.layout, PS_LAYOUT_SPARSE);
    cr_expect_eq(said(&bench)->values.n_values, 2);
    message.pull.operand = 1048577;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    expect_refused(&bench, PSD_LIMIT, "TOP of 1048577 values; allowed: 0..1048576");
}

Test(shard_ops, refuses_since_where_no_versions_are_kept)
{
    ps_message_t message = measure_message(PS_READ_VALUES);

    message.pull.since = 1;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_expect_eq(said(&bench)->refused.status, PSD_UNSUPPORTED);
}

/* ---- behind clocks ---- */

/* Two workers of one member; ours is worker 0. */
static void start_job(int32_t max_delay)
{
    ps_worker_t workers[] = {{.worker = 0, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1},
                             {.worker = 1, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1}};
    ps_job_t job = {.id = JOB,
                    .name = "lr",
                    .max_delay = max_delay,
                    .version = 1,
                    .workers = workers,
                    .n_workers = 2};

    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
}

static psd_status_t mark(uint64_t seq, uint32_t table, uint32_t worker, uint64_t clock)
{
    ps_message_t message = {.kind = PS_KIND_MARK,
                            .mark = {.request = 100 + seq,
                                     .table = table,
                                     .epoch = 4,
                                     .seq = seq,
                                     .job = JOB,
                                     .worker = worker,
                                     .joins = 1,
                                     .clock = clock}};

    return say(&bench, &message, NULL);
}

Test(shard_ops, a_change_waits_for_its_clock_in_the_order_of_pushes)
{
    ps_message_t message = push_message(1);

    start_job(0);
    message.push.job = JOB;
    message.push.joins = 1;
    cr_assert_eq(push_as(&bench, &message, 2, 3.0F), PSD_OK);
    message = change_message(2, PS_CHANGE_SCALE, 2);
    message.push.job = JOB;
    message.push.joins = 1;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK);
    message = push_message(3);
    message.push.job = JOB;
    message.push.joins = 1;
    cr_assert_eq(push_as(&bench, &message, 2, 1.0F), PSD_OK);
    cr_expect_eq(pull(&bench, 2), 0.0F, "the clock is open");
    cr_assert_eq(mark(4, 1, 0, 1), PSD_OK);
    cr_assert_eq(mark(5, 1, 1, 1), PSD_OK);
    cr_expect_eq(pull(&bench, 2), 7.0F);
}

Test(shard_ops, a_sum_of_tables_has_no_clock_under_bsp)
{
    ps_message_t message = change_message(1, PS_CHANGE_AXPY, 2);

    start_job(0);
    message.push.job = JOB;
    message.push.joins = 1;
    message.push.other = OTHER;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    expect_refused(&bench, PSD_UNSUPPORTED,
                   "AXPY from another table in a job with max_delay 0: it is undefined which "
                   "clocks it would read");
    message.push.seq = message.push.request = 2;
    message.push.other = 1;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_eq(said(&bench)->kind, PS_KIND_ACK, "with itself it has one");
}

Test(shard_ops, a_product_waits_for_the_clocks_of_both_tables)
{
    ps_message_t message = measure_message(PS_READ_DOT);

    start_job(0);
    message.pull.job = JOB;
    message.pull.joins = 1;
    message.pull.clock = 1;
    message.pull.timeout_ms = 50;
    message.pull.other = OTHER;
    cr_assert_eq(mark(1, 1, 0, 1), PSD_OK);
    cr_assert_eq(mark(2, 1, 1, 1), PSD_OK);
    cr_assert_eq(mark(1, OTHER, 0, 1), PSD_OK);
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_null(answer(&bench), "worker 1 has not marked the other table");
    bench.now_ms += 50;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    expect_refused(&bench, PSD_DEADLINE, "waiting for worker 1 at clock 0; clock 1 is needed");
    message.pull.timeout_ms = 0;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_null(answer(&bench));
    cr_assert_eq(mark(2, OTHER, 1, 1), PSD_OK);
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        const ps_effect_t *effect = &bench.outbox.effects[i];

        if (effect->kind == PS_EFFECT_SEND && effect->message.kind == PS_KIND_VALUES) {
            return;
        }
    }
    cr_assert(false, "the mark lets the product through");
}

Test(shard_ops, a_product_whose_other_table_goes_is_refused)
{
    ps_message_t message = measure_message(PS_READ_DOT);

    start_job(0);
    message.pull.job = JOB;
    message.pull.joins = 1;
    message.pull.clock = 1;
    message.pull.other = OTHER;
    cr_assert_eq(mark(1, 1, 0, 1), PSD_OK);
    cr_assert_eq(mark(2, 1, 1, 1), PSD_OK);
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_expect_null(answer(&bench));
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_DROP, .table = OTHER}), PSD_OK);
    expect_refused(&bench, PSD_INVALID, "DOT names table 2, which does not exist");
}

/* ---- versions ---- */

static const ps_message_t *pull_since(uint32_t table, uint64_t since)
{
    ps_message_t message = measure_message(PS_READ_VALUES);

    message.pull.table = table;
    message.pull.since = since;
    cr_assert_eq(say(&bench, &message, NULL), PSD_OK);
    cr_assert_not_null(answer(&bench));
    cr_assert_eq(said(&bench)->kind, PS_KIND_VALUES);
    return said(&bench);
}

static void push_to(uint32_t table, uint64_t seq, uint64_t row, uint32_t job)
{
    ps_message_t message = push_message(seq);

    message.push.table = table;
    message.push.job = job;
    message.push.joins = job == 0 ? 0 : 1;
    cr_assert_eq(push_as(&bench, &message, row, 1.0F), PSD_OK);
    cr_assert_eq(said(&bench)->kind, PS_KIND_ACK);
}

Test(shard_ops, gives_the_rows_changed_since_a_version)
{
    uint64_t version = 0;

    cr_expect_eq(pull_since(1, 0)->values.version, 0, "it keeps none");
    bench.spec.versions = true;
    cr_assert_eq(add_table(5), PSD_OK);
    version = pull_since(5, 0)->values.version;
    cr_expect_gt(version, 0, "0 would ask for everything");
    cr_expect_eq(pull_since(5, version)->values.n_rows, 0);
    push_to(5, 1, 3, 0);
    cr_expect_eq(pull_since(5, version)->values.n_rows, 1);
    version = said(&bench)->values.version;
    cr_expect_eq(pull_since(5, version)->values.n_rows, 0);
    push_to(5, 2, 1, 0);
    cr_expect_eq(pull_since(5, version)->values.n_rows, 1);
    cr_expect_eq(pull_since(5, version - 1)->values.n_rows, 2);
}

/* A push that is logged changes nothing yet: the version that a reader gets
 * before its clock closes must not cover it. */
Test(shard_ops, a_version_does_not_cover_what_its_clock_still_holds)
{
    uint64_t version = 0;

    bench.spec.versions = true;
    cr_assert_eq(add_table(5), PSD_OK);
    start_job(0);
    push_to(5, 1, 3, JOB);
    version = pull_since(5, 0)->values.version;
    cr_assert_eq(mark(2, 5, 0, 1), PSD_OK);
    cr_assert_eq(mark(3, 5, 1, 1), PSD_OK);
    cr_expect_eq(pull_since(5, version)->values.n_rows, 1);
}
