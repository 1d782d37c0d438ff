/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle at its shard: taken whole, answered again, or split. */
#include "protocol/facts/job_bytes.h"
#include "protocol/partition/replay.h"
#include "protocol/shard/shard_state.h"
#include "shard_bench.h"
#include "model/combine/combine_check.h"
#include "wire/records/bundle.h"

#define JOB 3
#define WORKERS 4
#define CONNS 100 /* worker i has connection CONNS + i and session SESSION + 1 + i */
#define ANSWERS_MAX 16

/* Their sum depends on its order: 2 by halves, 0 one after the other. */
static const float DELTAS[WORKERS] = {1, 1, 0x1p25F, -0x1p25F};

static bench_t bench;
static ps_worker_t workers[WORKERS];
static uint64_t version;
static uint64_t requests;
static int32_t max_delay;

/* What is made of pushes of some workers to row 0. */
typedef struct made {
    ps_bundle_from_t from[WORKERS];
    ps_bundle_span_t spans[WORKERS];
    float values[WORKERS];
    ps_bundle_t bundle;
} made_t;

static void say_as(uint32_t worker, const ps_message_t *message, ps_payload_t *payload)
{
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                                            .conn = CONNS + worker,
                                            .message = message,
                                            .payload = payload}),
                 PSD_OK);
}

/* A pull of the worker: its session is known as one of the job. */
static void look_as(uint32_t worker)
{
    const ps_message_t message = {.kind = PS_KIND_PULL,
                                  .pull = {.request = 1000,
                                           .table = 1,
                                           .epoch = 4,
                                           .job = JOB,
                                           .worker = worker,
                                           .joins = 1,
                                           .rows = PS_ROWS_RANGE,
                                           .type = bench_type,
                                           .n_rows = 1,
                                           .n_cols = 1}};

    say_as(worker, &message, NULL);
    cr_assert_eq(said(&bench)->kind, PS_KIND_VALUES);
}

static void tell_job(void)
{
    const ps_job_t job = {.id = JOB,
                          .name = "lr",
                          .max_delay = max_delay,
                          .version = ++version,
                          .workers = workers,
                          .n_workers = WORKERS};

    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}), PSD_OK);
}

static void setup_with(const char *updater, ps_combine_t combine)
{
    cr_assert_eq(open_bench_of(&bench, 0, updater), PSD_OK);
    bench.shard->step.args.sessions_max = 64;
    version = 0;
    requests = 0;
    for (uint32_t i = 0; i < WORKERS; i++) {
        ps_message_t message = {.kind = PS_KIND_HELLO, .hello = good_hello};

        workers[i] =
            (ps_worker_t){.worker = i, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
        message.hello.session = SESSION + 1 + i;
        say_as(i, &message, NULL);
    }
    tell_job();
    bench.spec.combine = combine;
    cr_assert_eq(set_table(&bench), PSD_OK);
    for (uint32_t i = 0; i < WORKERS; i++) {
        look_as(i);
    }
}

static void setup(void)
{
    max_delay = 0;
    setup_with(NULL, PS_COMBINE_CLOCK_SUM);
}

static void teardown(void)
{
    close_bench(&bench);
}

TestSuite(shard_bundle, .init = setup, .fini = teardown);

static void push_of(uint32_t worker, uint64_t seq, uint64_t clock, float value)
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

/* Worker first's pushes … of n workers, seq `seq` of each, which also mark. */
static void add_from(made_t *made, uint32_t first, uint32_t n, uint64_t seq)
{
    made->bundle.from = made->from;
    made->bundle.spans = made->spans;
    for (uint32_t i = first; i < first + n; i++) {
        made->from[made->bundle.n_from++] = (ps_bundle_from_t){.session = SESSION + 1 + i,
                                                               .first_seq = seq,
                                                               .last_seq = seq,
                                                               .worker = i,
                                                               .joins = 1,
                                                               .marks = true};
    }
}

/* They all brought rows, whose sum is value. */
static void add_span(made_t *made, uint32_t first, uint32_t n, uint64_t seq, float value)
{
    uint16_t at = made->bundle.n_spans++;

    made->values[at] = value;
    made->spans[at] = (ps_bundle_span_t){
        .first = first,
        .n = n,
        .from = made->bundle.n_from,
        .n_from = (uint16_t)n,
        .slice =
            {.rows = PS_ROWS_RANGE, .type = PS_TYPE_F32, .n_rows = 1, .n_cols = 1, .n_values = 1},
        .body = {.values = {(const uint8_t *)&made->values[at], sizeof(float)}}};
    add_from(made, first, n, seq);
}

static void bring(uint32_t worker, const made_t *made, uint64_t clock)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    const ps_message_t message = {.kind = PS_KIND_BUNDLE,
                                  .bundle = {.request = ++requests,
                                             .table = 1,
                                             .epoch = 4,
                                             .job = JOB,
                                             .worker = worker,
                                             .joins = 1,
                                             .clock = clock,
                                             .timeout_ms = 50,
                                             .n_from = made->bundle.n_from,
                                             .n_spans = made->bundle.n_spans}};
    uint8_t *bytes = NULL;
    size_t size = 0;

    cr_assert(ps_bundle_size(&made->bundle, &size));
    payload = ps_payload_room(0, 0, size, &bytes);
    cr_assert_not_null(payload);
    ps_bundle_write(&made->bundle, bytes);
    say_as(worker, &message, payload);
}

/* ACKs that went to that worker for what a bundle brought. */
static size_t acks_of(uint32_t worker, uint64_t seq)
{
    size_t n = 0;

    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        const ps_effect_t *effect = &bench.outbox.effects[i];

        n += effect->kind == PS_EFFECT_SEND && effect->to == CONNS + worker &&
                     effect->message.kind == PS_KIND_ACK && effect->message.ack.request == 0 &&
                     effect->message.ack.seq == seq
                 ? 1
                 : 0;
    }
    return n;
}

static const ps_message_t *relay_heard(void)
{
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        const ps_effect_t *effect = &bench.outbox.effects[i];

        if (effect->kind == PS_EFFECT_SEND &&
            ((effect->message.kind == PS_KIND_ACK && effect->message.ack.request == requests) ||
             (effect->message.kind == PS_KIND_PARKED &&
              effect->message.parked.request == requests) ||
             (effect->message.kind == PS_KIND_REFUSED &&
              effect->message.refused.request == requests))) {
            return &effect->message;
        }
    }
    return NULL;
}

static void expect_split(uint64_t n_in, const char *text)
{
    const ps_message_t *message = relay_heard();

    cr_assert_not_null(message);
    cr_assert_eq(message->kind, PS_KIND_REFUSED);
    cr_assert_eq(message->refused.status, PSD_SPLIT, "%s", message->refused.text);
    cr_assert_eq(message->refused.detail, n_in);
    cr_assert_str_eq(message->refused.text, text);
}

static void expect_taken(void)
{
    cr_assert_not_null(relay_heard());
    cr_assert_eq(relay_heard()->kind, PS_KIND_ACK, "%s",
                 relay_heard()->kind == PS_KIND_REFUSED ? relay_heard()->refused.text : "parked");
}

static ps_partition_t *partition_of(const bench_t *of)
{
    const ps_local_table_t *table = ps_map_get(&of->shard->step.tables, 1);

    return table->partitions[0];
}

/* One record, the bits of direct pushes, and each origin hears it. */
Test(shard_bundle, one_record_takes_all_of_it)
{
    made_t made = {.bundle = {.from = NULL}};
    float sum = (DELTAS[0] + DELTAS[1]) + (DELTAS[2] + DELTAS[3]);
    uint64_t before = 0;

    push_of(0, 1, 0, 1); /* from here on the table combines */
    push_of(1, 1, 0, 0);
    push_of(2, 1, 0, 0);
    push_of(3, 1, 0, 0);
    before = partition_of(&bench)->lsn;
    add_span(&made, 0, 4, 2, sum);
    bring(2, &made, 1);
    expect_taken();
    for (uint32_t i = 0; i < WORKERS; i++) {
        cr_assert_eq(acks_of(i, 2), 1);
    }
    cr_assert_eq(partition_of(&bench)->lsn, before + 1);
    cr_assert_eq(pull(&bench, 0), 1 + sum);
    bring(2, &made, 1); /* the answer was lost */
    expect_taken();
    cr_assert_eq(acks_of(3, 2), 1);
    cr_assert_eq(partition_of(&bench)->lsn, before + 1);
    cr_assert_eq(pull(&bench, 0), 1 + sum);
}

/* Replays what the last step has recorded, as another copy or a restart does. */
static void follow(bench_t *copy)
{
    ps_partition_t *partition = partition_of(copy);

    copy->shard->step.outbox = &copy->outbox;
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        const ps_effect_t *effect = &bench.outbox.effects[i];

        if (effect->kind == PS_EFFECT_RECORD) {
            cr_assert(ps_partition_takes_record(&copy->shard->step, partition, &effect->record,
                                                effect->payload));
            cr_assert(ps_partition_replay(&copy->shard->step, partition, &effect->record,
                                          effect->payload));
        }
    }
    copy->shard->step.outbox = NULL;
    ps_outbox_clear(&copy->outbox);
}

/* The record of the job, which the first request of a worker made. */
static void give_gate(bench_t *copy)
{
    const ps_job_t job = {.id = JOB,
                          .name = "lr",
                          .max_delay = max_delay,
                          .version = version,
                          .workers = workers,
                          .n_workers = WORKERS};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = ps_job_encode(&job);
    const ps_record_t record = {
        .kind = PS_RECORD_JOB, .table = 1, .lsn = 1, .epoch = 4, .job = JOB, .seq = version};

    cr_assert_not_null(payload);
    copy->shard->step.outbox = &copy->outbox;
    cr_assert(ps_partition_replay(&copy->shard->step, partition_of(copy), &record, payload));
    copy->shard->step.outbox = NULL;
}

static uint64_t next_of(const ps_partition_t *partition, uint64_t session)
{
    const ps_window_t *window = ps_map_get(&partition->windows, session);

    return window == NULL ? 1 : window->next;
}

/* In a copy, or after a restart, all windows have moved as well, and all marks count. */
Test(shard_bundle, its_record_does_the_same_elsewhere)
{
    made_t made = {.bundle = {.from = NULL}};
    bench_t copy;

    cr_assert_eq(open_bench(&copy), PSD_OK);
    give_gate(&copy);
    push_of(3, 1, 0, 1);
    follow(&copy);
    add_span(&made, 0, 2, 1, 2);
    add_from(&made, 2, 1, 1);
    bring(1, &made, 0);
    expect_taken();
    follow(&copy);
    for (uint32_t i = 0; i < WORKERS; i++) {
        cr_assert_eq(next_of(partition_of(&copy), SESSION + 1 + i), 2);
    }
    cr_assert_eq(ps_partition_closed(partition_of(&copy), JOB), 1);
    cr_assert_eq(pull(&copy, 0), 3);
    cr_assert_eq(pull(&bench, 0), 3);
    close_bench(&copy);
}

/* A copy does not trust its primary's checks. */
Test(shard_bundle, a_bad_record_is_not_replayed)
{
    made_t made = {.bundle = {.from = NULL}};
    ps_record_t record = {.kind = PS_RECORD_BUNDLE};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    bench_t copy;

    cr_assert_eq(open_bench(&copy), PSD_OK);
    give_gate(&copy);
    push_of(3, 1, 0, 1);
    follow(&copy);
    add_span(&made, 0, 2, 1, 2);
    bring(1, &made, 0);
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        if (bench.outbox.effects[i].kind == PS_EFFECT_RECORD) {
            record = bench.outbox.effects[i].record;
            payload = ps_payload_keep(bench.outbox.effects[i].payload);
        }
    }
    cr_assert_eq(record.kind, PS_RECORD_BUNDLE);
    copy.shard->step.outbox = &copy.outbox;
    cr_assert(ps_partition_takes_record(&copy.shard->step, partition_of(&copy), &record, payload));
    cr_assert_not(ps_partition_takes_record(&copy.shard->step, partition_of(&copy), &record, NULL));
    record.worker = 1; /* contributors */
    cr_assert_not(
        ps_partition_takes_record(&copy.shard->step, partition_of(&copy), &record, payload));
    record.worker = 2;
    record.job = JOB + 1;
    cr_assert_not(
        ps_partition_takes_record(&copy.shard->step, partition_of(&copy), &record, payload));
    record.job = JOB;
    partition_of(&copy)->combine = PS_COMBINE_EACH;
    cr_assert_not(
        ps_partition_takes_record(&copy.shard->step, partition_of(&copy), &record, payload));
    copy.shard->step.outbox = NULL;
    close_bench(&copy);
}

Test(shard_bundle, its_bits_are_those_of_direct_pushes)
{
    made_t made = {.bundle = {.from = NULL}};
    float direct = 0;

    for (uint32_t i = 0; i < WORKERS; i++) {
        push_of(i, 1, 0, DELTAS[i]);
    }
    direct = pull(&bench, 0);
    cr_assert_eq(direct, 2);
    add_span(&made, 0, 2, 2, DELTAS[0] + DELTAS[1]);
    bring(0, &made, 1);
    expect_taken();
    push_of(3, 2, 1, DELTAS[3]);
    push_of(2, 2, 1, DELTAS[2]);
    cr_assert_eq(pull(&bench, 0), direct + direct);
}

/* F3: origin 1 went directly, and the bundle comes late. */
Test(shard_bundle, what_is_in_partly_is_split_and_consumes_nothing)
{
    made_t made = {.bundle = {.from = NULL}};

    push_of(1, 1, 0, 5);
    add_span(&made, 0, 2, 1, 8);
    bring(0, &made, 0);
    expect_split(1, "it is not the turn of all its contributors");
    cr_assert_eq(acks_of(0, 1), 0);
    push_of(0, 1, 0, 3);
    push_of(2, 1, 0, 0);
    push_of(3, 1, 0, 0);
    cr_assert_eq(pull(&bench, 0), 8);
    bring(0, &made, 0);
    expect_taken();
    cr_assert_eq(pull(&bench, 0), 8, "all of it is in");
}

Test(shard_bundle, a_mark_in_a_split_bundle_does_not_count)
{
    made_t made = {.bundle = {.from = NULL}};

    push_of(3, 1, 0, 1);
    push_of(2, 1, 0, 1);
    push_of(1, 1, 0, 1);
    add_span(&made, 0, 2, 1, 2);
    bring(0, &made, 0);
    expect_split(1, "it is not the turn of all its contributors");
    cr_assert_eq(pull(&bench, 0), 0, "worker 0 has not marked");
}

/* Worker 1 lives and may still push: its delta belongs inside of the sum. */
Test(shard_bundle, a_span_without_a_live_worker_is_split)
{
    made_t made = {.bundle = {.from = NULL}};

    add_span(&made, 0, 4, 1, 4);
    made.bundle.n_from = 3;
    made.spans[0].n_from = 3;
    bring(0, &made, 0);
    expect_split(0, "others at a span's positions push by themselves");
    workers[3].state = PS_WORKER_FINISHED;
    tell_job();
    bring(0, &made, 0);
    expect_taken();
    cr_assert_eq(pull(&bench, 0), 4);
}

/* It has pushed, and does not mark with it: more may come. */
Test(shard_bundle, a_span_beside_an_open_push_is_split)
{
    made_t made = {.bundle = {.from = NULL}};
    ps_message_t message = push_message(1);
    const uint64_t row = 0;
    const float value = 1;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload =
        ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row}, (ps_bytes_t){0},
                        (ps_bytes_t){(const uint8_t *)&value, sizeof value});

    message.push.job = JOB;
    message.push.joins = 1;
    say_as(0, &message, payload);
    add_span(&made, 0, 2, 1, 2);
    made.from[0].first_seq = 2;
    made.from[0].last_seq = 2;
    bring(0, &made, 0);
    expect_split(0, "others at a span's positions push by themselves");
}

/* F4 */
Test(shard_bundle, a_lost_contributor_splits_it)
{
    made_t made = {.bundle = {.from = NULL}};

    push_of(0, 1, 0, 0);
    workers[1].state = PS_WORKER_LOST;
    tell_job();
    add_span(&made, 2, 2, 1, 2);
    bring(0, &made, 0);
    expect_taken();
    made = (made_t){.bundle = {.from = NULL}};
    add_from(&made, 0, 2, 1);
    made.from[0].first_seq = 2;
    made.from[0].last_seq = 2;
    bring(2, &made, 1);
    expect_split(0, "a contributor may not work now");
}

Test(shard_bundle, only_a_worker_of_the_job_brings_one)
{
    made_t made = {.bundle = {.from = NULL}};

    add_from(&made, 0, 2, 1);
    workers[3].state = PS_WORKER_FINISHED;
    tell_job();
    bring(3, &made, 0);
    expect_split(0, "its sender is no worker of the job now");
    bring(2, &made, 0);
    expect_taken();
}

/* Anybody could else have a shard answer others, as often as they have pushed. */
Test(shard_bundle, what_is_here_is_answered_only_to_who_may_bring_it)
{
    made_t made = {.bundle = {.from = NULL}};

    push_of(0, 1, 0, 1);
    push_of(1, 1, 0, 1);
    add_from(&made, 0, 2, 1);
    workers[3].state = PS_WORKER_FINISHED;
    tell_job();
    bring(3, &made, 0);
    expect_split(2, "its sender is no worker of the job now");
    cr_assert_eq(acks_of(0, 1), 0);
    bring(2, &made, 0);
    expect_taken();
    cr_assert_eq(acks_of(0, 1), 1);
}

Test(shard_bundle, a_client_of_no_job_is_not_answered_by_a_bundle)
{
    made_t made = {.bundle = {.from = NULL}};

    cr_assert_eq(push(&bench, 1, 0, 1), PSD_OK);
    add_from(&made, 0, 1, 1);
    made.from[0].session = SESSION;
    bring(2, &made, 0);
    expect_split(1, "a contributor is not known here as a client of the job");
}

/* The gate ignores a mark that it has; the clock's own would never come. */
Test(shard_bundle, a_mark_of_another_clock_splits_it)
{
    made_t made = {.bundle = {.from = NULL}};

    for (uint32_t i = 0; i < WORKERS; i++) {
        push_of(i, 1, 0, 1);
    }
    add_from(&made, 0, 1, 2);
    bring(1, &made, 0);
    expect_split(0, "a contributor that marks is in another clock");
    bring(1, &made, 1);
    expect_taken();
}

/* Sessions are numbers; a relay may not use up seqs of clients to come, nor of others. */
Test(shard_bundle, a_session_of_others_splits_it)
{
    made_t made = {.bundle = {.from = NULL}};

    add_from(&made, 0, 2, 1);
    made.from[1].session = 900;
    bring(0, &made, 0);
    expect_split(0, "a contributor is not known here as a client of the job");
    made.from[1].session = SESSION; /* a client of no job */
    bring(0, &made, 0);
    expect_split(0, "a contributor is not known here as a client of the job");
}

Test(shard_bundle, a_table_that_takes_each_push_takes_none)
{
    made_t made = {.bundle = {.from = NULL}};

    bench.spec.combine = PS_COMBINE_EACH;
    cr_assert_eq(set_table(&bench), PSD_OK);
    add_span(&made, 0, 2, 1, 2);
    bring(0, &made, 0);
    expect_split(0, "the table does not add up what this job pushes");
}

Test(shard_bundle, bad_rows_split_it)
{
    made_t made = {.bundle = {.from = NULL}};

    add_span(&made, 0, 2, 1, 2);
    made.spans[0].slice.first_row = 2 * N_ROWS;
    bring(0, &made, 0);
    expect_split(0, "rows of a span cannot be taken");
}

/* Each span alone would fit beside what is here. */
Test(shard_bundle, its_spans_fit_together_or_it_is_split)
{
    made_t made = {.bundle = {.from = NULL}};
    uint64_t one = sizeof(ps_logged_t) + sizeof(float) + 2 * sizeof(ps_bundle_from_t);

    add_span(&made, 0, 2, 1, 2);
    add_span(&made, 2, 2, 1, 3);
    bench.shard->step.args.held_bytes = 2 * one - 1;
    bring(0, &made, 0);
    expect_split(0, "rows of a span cannot be taken");
    bench.shard->step.args.held_bytes = 2 * one;
    bring(0, &made, 0);
    expect_taken();
    cr_assert_eq(bench.shard->step.logged_bytes, 0, "the clock has closed");
    cr_assert_eq(pull(&bench, 0), 5);
}

Test(shard_bundle, too_many_seqs_split_it)
{
    made_t made = {.bundle = {.from = NULL}};

    add_from(&made, 0, 2, 1);
    made.from[0].last_seq = UINT64_MAX - 1;
    bring(0, &made, 0);
    expect_split(0, "its contributors have too many pushes");
}

/* The next clock's bundle comes before the last one of this clock. */
Test(shard_bundle, one_that_is_early_waits_for_the_clock)
{
    made_t made = {.bundle = {.from = NULL}};
    size_t n_bundles = 0;

    push_of(0, 1, 0, 1);
    push_of(1, 1, 0, 1);
    push_of(2, 1, 0, 1);
    add_span(&made, 0, 2, 2, 5);
    bring(0, &made, 1);
    cr_assert_null(relay_heard());
    cr_assert_eq(bench.shard->step.n_held, 1);
    requests--; /* the same one again */
    bring(0, &made, 1);
    cr_assert_eq(relay_heard()->kind, PS_KIND_PARKED);
    cr_assert_eq(bench.shard->step.n_held, 1);
    bench.now_ms += 60;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    cr_assert_eq(relay_heard()->kind, PS_KIND_PARKED);
    bench.now_ms += 60; /* as often as its sender asked for */
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    cr_assert_not_null(relay_heard());
    cr_assert_eq(relay_heard()->kind, PS_KIND_PARKED);
    push_of(3, 1, 0, 1);
    expect_taken();
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        n_bundles += bench.outbox.effects[i].kind == PS_EFFECT_RECORD &&
                             bench.outbox.effects[i].record.kind == PS_RECORD_BUNDLE
                         ? 1
                         : 0;
    }
    cr_assert_eq(n_bundles, 1);
    cr_assert_eq(bench.shard->step.n_held, 0);
    push_of(2, 2, 1, 0);
    push_of(3, 2, 1, 0);
    cr_assert_eq(pull(&bench, 0), 9);
}

/* It would wait for its clock, and keep its bytes here, for nothing. */
Test(shard_bundle, one_that_waits_is_split_when_its_turn_has_passed)
{
    made_t made = {.bundle = {.from = NULL}};

    push_of(0, 1, 0, 1);
    push_of(1, 1, 0, 1);
    push_of(2, 1, 0, 1);
    add_span(&made, 0, 2, 2, 5);
    bring(0, &made, 1);
    cr_assert_eq(bench.shard->step.n_held, 1);
    push_of(1, 2, 1, 2); /* waits as well */
    bench.now_ms += 60;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    expect_split(0, "it is not the turn of all its contributors");
    cr_assert_eq(bench.shard->step.n_held, 1);
    push_of(3, 1, 0, 1);
    push_of(0, 2, 1, 3);
    push_of(2, 2, 1, 0);
    push_of(3, 2, 1, 0);
    cr_assert_eq(pull(&bench, 0), 9);
}

/* As if the table had been created with it: this shard has no disk. */
static void want_disk(void)
{
    ps_local_table_t *table = ps_map_get(&bench.shard->step.tables, 1);

    table->spec.ack = PS_ACK_DISK;
    cr_assert_eq(partition_of(&bench)->spec->ack, PS_ACK_DISK);
}

/* Its origins learn why. */
Test(shard_bundle, one_that_waits_for_a_level_says_so)
{
    made_t made = {.bundle = {.from = NULL}};

    want_disk();
    add_span(&made, 0, 2, 1, 5);
    bring(0, &made, 0);
    cr_assert_null(relay_heard());
    bench.now_ms += 60;
    cr_assert_eq(step(&bench, &(ps_event_t){.kind = PS_EVENT_TICK}), PSD_OK);
    cr_assert_not_null(relay_heard());
    cr_assert_eq(relay_heard()->kind, PS_KIND_PARKED);
    cr_assert_str_eq(relay_heard()->parked.text,
                     "ack level disk is not available: the table was created with ack disk, so "
                     "partition 0 has no log on disk");
}

/* As a MARK, which brings no rows. */
Test(shard_bundle, marks_alone_wait_for_no_level)
{
    made_t made = {.bundle = {.from = NULL}};

    want_disk();
    add_from(&made, 0, 2, 1);
    bring(0, &made, 0);
    expect_taken();
    bring(0, &made, 0); /* their pushes would never be answered */
    expect_split(2, "the answers would wait for a level that marks do not need");
}

Test(shard_bundle, bytes_that_are_no_bundle_are_refused)
{
    made_t made = {.bundle = {.from = NULL}};

    add_from(&made, 0, 2, 1);
    made.from[1].worker = 0;
    bring(0, &made, 0);
    cr_assert_eq(relay_heard()->kind, PS_KIND_REFUSED);
    cr_assert_eq(relay_heard()->refused.status, PSD_PROTO);
    cr_assert_str_eq(relay_heard()->refused.text, "BUNDLE: contributor 1: member is 0; allowed: "
                                                  "contributors ascend by worker, then member");
}

/* Worker 1 joins the running clock at a position of a span that is in already: C2 does not speak
 * of it, but all of it counts. */
static void close_with_one_inside_of_a_span(void)
{
    made_t made = {.bundle = {.from = NULL}};

    workers[1].state = PS_WORKER_LOST;
    tell_job();
    add_span(&made, 0, 2, 1, 2);
    made.bundle.n_from = 1;
    made.spans[0].n_from = 1;
    bring(0, &made, 0);
    expect_taken();
    workers[1].state = PS_WORKER_RUNNING;
    tell_job();
    push_of(1, 1, 0, 3);
    push_of(2, 1, 0, 10);
    push_of(3, 1, 0, 20);
}

Test(shard_bundle, a_push_inside_of_a_span_that_is_in_counts)
{
    close_with_one_inside_of_a_span();
    cr_assert_eq(pull(&bench, 0), 35);
}

/* Two steps of 5 and 30 would end elsewhere than one of 35. */
Test(shard_bundle, a_clock_is_one_step_of_the_updater)
{
    static const char *const updaters[] = {"adam", "momentum", "nesterov", "ftrl"};
    static const ps_combine_t combines[] = {PS_COMBINE_CLOCK_SUM, PS_COMBINE_CLOCK_MEAN};

    for (size_t i = 0; i < 2 * sizeof updaters / sizeof updaters[0]; i++) {
        float alone = 0;

        teardown();
        setup_with(updaters[i / 2], combines[i % 2]);
        push_of(0, 1, 0, 2);
        push_of(1, 1, 0, 3);
        push_of(2, 1, 0, 10);
        push_of(3, 1, 0, 20);
        alone = pull(&bench, 0);
        cr_assert_neq(alone, 0);
        teardown();
        setup_with(updaters[i / 2], combines[i % 2]);
        close_with_one_inside_of_a_span();
        cr_assert_eq(pull(&bench, 0), alone, "%s", updaters[i / 2]);
    }
}

/* ---- SSP and ASP: no clock holds a bundle together ---- */

static void setup_ssp(void)
{
    max_delay = 2;
    setup_with(NULL, PS_COMBINE_EACH);
}

TestSuite(shard_sums, .init = setup_ssp, .fini = teardown);

/* Worker 0 has pushed in two clocks and ended both; worker 3 has only pushed. */
static void make_sum(made_t *made)
{
    *made = (made_t){.bundle = {.from = NULL}};
    add_span(made, 0, 4, 1, 7);
    made->from[0].last_seq = 4;
    made->from[0].marks = 2;
    for (size_t i = 0; i < 4; i++) {
        made->from[i].tail = PS_BUNDLE_TAIL_MARK;
    }
    made->from[3].marks = 0;
    made->from[3].tail = PS_BUNDLE_TAIL_PUSH;
}

static uint64_t mark_of(const bench_t *of, uint32_t worker)
{
    return ps_gate_mark_of(ps_partition_gate(partition_of(of), JOB), worker, 0);
}

/* At once, with all windows and marks, once; and a copy does the same. */
Test(shard_sums, a_sum_is_applied_at_once)
{
    made_t made;
    bench_t copy;
    uint64_t before = partition_of(&bench)->lsn;

    cr_assert_eq(open_bench(&copy), PSD_OK);
    give_gate(&copy);
    make_sum(&made);
    bring(2, &made, 0);
    expect_taken();
    follow(&copy);
    cr_assert_eq(acks_of(0, 1) + acks_of(0, 4), 2);
    cr_assert_eq(acks_of(3, 1), 1);
    bring(2, &made, 0); /* the answer was lost */
    expect_taken();
    cr_assert_eq(acks_of(1, 1), 1);
    cr_assert_eq(partition_of(&bench)->lsn, before + 1);
    for (const bench_t *of = &bench;; of = &copy) {
        cr_assert_eq(next_of(partition_of(of), SESSION + 1), 5);
        cr_assert_eq(next_of(partition_of(of), SESSION + 4), 2);
        cr_assert(mark_of(of, 0) == 2 && mark_of(of, 1) == 1 && mark_of(of, 3) == 0);
        if (of == &copy) {
            break;
        }
    }
    cr_assert_eq(pull(&bench, 0), 7);
    cr_assert_eq(pull(&copy, 0), 7);
    close_bench(&copy);
}

/* One of them came directly, and the bundle comes late. */
Test(shard_sums, a_sum_with_what_is_in_is_split)
{
    made_t made;

    push_of(1, 1, 0, 5);
    cr_assert_eq(pull(&bench, 0), 5);
    make_sum(&made);
    bring(2, &made, 0);
    expect_split(1, "it is not the turn of all its contributors");
    cr_assert_eq(pull(&bench, 0), 5);
    cr_assert_eq(next_of(partition_of(&bench), SESSION + 1), 1);
    cr_assert_eq(mark_of(&bench, 0), 0);
}

/* Worker 0's fourth clock is for when the others have ended one. */
Test(shard_sums, the_gate_holds_for_what_is_in_a_sum)
{
    made_t made;

    make_sum(&made);
    made.from[0].marks = 4;
    bring(2, &made, 0);
    expect_split(0, "the gate is closed to a contributor");
    made.from[3].marks = 1; /* the last one that it waits for is in it */
    made.from[3].tail = PS_BUNDLE_TAIL_MARK;
    bring(2, &made, 0);
    expect_taken();
    cr_assert_eq(ps_partition_closed(partition_of(&bench), JOB), 1);
}

/* A push after the third mark is one of the fourth clock. */
Test(shard_sums, the_gate_holds_for_a_push_after_marks)
{
    made_t made;

    make_sum(&made);
    made.from[0].marks = 3;
    made.from[0].tail = PS_BUNDLE_TAIL_PUSH;
    bring(2, &made, 0);
    expect_split(0, "the gate is closed to a contributor");
    made.from[0].tail = PS_BUNDLE_TAIL_MARK;
    bring(2, &made, 0);
    expect_taken();
}

Test(shard_sums, a_bundle_of_one_clock_is_split)
{
    made_t made;

    make_sum(&made);
    made.from[1].tail = 0;
    bring(2, &made, 0);
    expect_split(0, "it is a bundle of a job with another max_delay");
}

/* A pull after a push that a relay has yet waits for it. */
Test(shard_sums, an_own_push_that_is_on_its_way_is_waited_for)
{
    made_t made;
    const ps_message_t message = {.kind = PS_KIND_PULL,
                                  .pull = {.request = 1001,
                                           .table = 1,
                                           .epoch = 4,
                                           .job = JOB,
                                           .worker = 3,
                                           .joins = 1,
                                           .after = 1,
                                           .timeout_ms = 1000,
                                           .rows = PS_ROWS_RANGE,
                                           .type = PS_TYPE_F32,
                                           .n_rows = 1,
                                           .n_cols = 1}};
    bool is_served = false;

    say_as(3, &message, NULL);
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        cr_assert_neq(bench.outbox.effects[i].kind, PS_EFFECT_SEND, "it waits");
    }
    make_sum(&made);
    bring(2, &made, 0);
    expect_taken();
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        const ps_effect_t *effect = &bench.outbox.effects[i];

        is_served = is_served ||
                    (effect->kind == PS_EFFECT_SEND && effect->message.kind == PS_KIND_VALUES &&
                     effect->message.values.request == 1001 &&
                     ps_load_f32(effect->payload->spans[0].data) == 7);
    }
    cr_assert(is_served);
}

Test(shard_sums, several_sums_are_split)
{
    made_t made = {.bundle = {.from = NULL}};

    add_span(&made, 0, 2, 1, 2);
    add_span(&made, 2, 2, 1, 3);
    bring(0, &made, 0);
    expect_split(0, "it has more than one sum, and they are applied at once");
}

Test(shard_sums, an_updater_that_does_not_add_takes_none)
{
    made_t made;

    teardown();
    setup_with("adagrad", PS_COMBINE_CLOCK_SUM);
    make_sum(&made);
    bring(0, &made, 0);
    expect_split(0, "the table does not add up what this job pushes");
}

/* ---- sums of integers ---- */

static void setup_integers(void)
{
    bench_type = PS_TYPE_I32;
    max_delay = 0;
    setup_with(NULL, PS_COMBINE_CLOCK_SUM);
}

TestSuite(shard_verify, .init = setup_integers, .fini = teardown);

/* n workers from `first` on brought i + 1 each to row 0, and their sum is `sum`. */
static void add_sum(made_t *made, uint32_t first, uint32_t n, uint64_t seq, int32_t sum)
{
    float bits = 0;

    memcpy(&bits, &sum, sizeof sum);
    add_span(made, first, n, seq, bits);
    made->spans[made->bundle.n_spans - 1].slice.type = PS_TYPE_I32;
    for (uint32_t i = first; i < first + n; i++) {
        const int32_t value = (int32_t)i + 1;
        PSD_AUTO(ps_payload_destroy)
        ps_payload_t *payload =
            ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0},
                            (ps_bytes_t){(const uint8_t *)&value, sizeof value});
        ps_bundle_from_t *from = &made->from[made->bundle.n_from - n + i - first];

        from->has_check = true;
        from->check = ps_combine_check(&made->spans[made->bundle.n_spans - 1].slice, payload, 0);
    }
}

/* The note of a wrong sum, which names who brought it; NULL: there is none. */
static const ps_note_t *wrong_note(void)
{
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        if (bench.outbox.effects[i].kind == PS_EFFECT_NOTE &&
            bench.outbox.effects[i].note.kind == PS_NOTE_WRONG) {
            return &bench.outbox.effects[i].note;
        }
    }
    return NULL;
}

static uint64_t n_wrong(void)
{
    return ps_count_get(bench.shard->step.counts->wrong_bundles);
}

Test(shard_verify, a_right_sum_is_taken_and_its_record_has_no_checks)
{
    made_t made = {.bundle = {.from = NULL}};
    size_t size = 0;
    size_t n_records = 0;

    add_sum(&made, 0, 2, 1, 1 + 2);
    add_sum(&made, 2, 2, 1, 3 + 4);
    bring(2, &made, 0);
    expect_taken();
    cr_assert_eq(n_wrong(), 0);
    cr_assert(ps_bundle_size(&made.bundle, &size));
    for (size_t i = 0; i < bench.outbox.n_effects; i++) {
        const ps_effect_t *effect = &bench.outbox.effects[i];

        if (effect->kind == PS_EFFECT_RECORD && effect->record.kind == PS_RECORD_BUNDLE) {
            cr_assert_eq(ps_payload_size(effect->payload), size - 4 * sizeof(uint64_t));
            n_records++;
        }
    }
    cr_assert_eq(n_records, 1);
}

/* Nothing of it counts, and each of them can still push itself. */
static void expect_wrong(const made_t *made)
{
    uint64_t lsn = partition_of(&bench)->lsn;
    uint64_t n = n_wrong();

    bring(2, made, 0);
    expect_split(0, "its sums are not those of what its contributors pushed");
    cr_assert_eq(partition_of(&bench)->lsn, lsn);
    cr_assert_eq(n_wrong(), n + 1);
    cr_assert_not_null(wrong_note());
    cr_assert_eq(wrong_note()->a, JOB);
    cr_assert_eq(wrong_note()->b, 2);
    for (uint32_t i = 0; i < WORKERS; i++) {
        cr_assert_eq(next_of(partition_of(&bench), SESSION + 1 + i), 1);
    }
}

Test(shard_verify, a_relay_that_drops_or_doubles_or_changes_is_found)
{
    const int32_t sums[] = {2, 4, 1 + 2 + 2, 3 + 1000000, -3};

    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        made_t made = {.bundle = {.from = NULL}};

        add_sum(&made, 0, 2, 1, sums[i]);
        expect_wrong(&made);
    }
}

/* All that worker 1 has pushed is gone, and it seems to have marked only. */
Test(shard_verify, a_span_that_is_gone_is_found)
{
    made_t made = {.bundle = {.from = NULL}};

    add_sum(&made, 0, 1, 1, 1);
    add_sum(&made, 1, 1, 1, 2);
    made.bundle.n_spans = 1;
    expect_wrong(&made);
    made.from[1].check = 0;
    bring(2, &made, 0);
    expect_taken();
}

/* One that pushed without a check: nobody knows. */
Test(shard_verify, without_all_checks_nothing_is_verified)
{
    made_t made = {.bundle = {.from = NULL}};

    add_sum(&made, 0, 2, 1, 77);
    made.from[1].has_check = false;
    bring(2, &made, 0);
    expect_taken();
    cr_assert_eq(n_wrong(), 0);
}
